// NumPy's .npy files: a strict parser of the header's dictionary, and its writer.
#include <io/npy.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include <cenote/error.h>

namespace cenote::io {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are mapped as they are, little-endian");

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr std::size_t alignment = 64;
// NumPy leaves room for the first extent to grow to this many digits in place.
constexpr std::size_t growth_digits = 21;

struct Spelling {
  Type type;
  std::string_view descr;
};
constexpr Spelling spellings[] = {{Type::f16, "<f2"},    {Type::bf16, "<V2"}, {Type::f32, "<f4"}, {Type::f64, "<f8"},
                                  {Type::i8, "|i1"},     {Type::i16, "<i2"},  {Type::i32, "<i4"}, {Type::i64, "<i8"},
                                  {Type::u8, "|u1"},     {Type::u16, "<u2"},  {Type::u32, "<u4"}, {Type::u64, "<u8"},
                                  {Type::boolean, "|b1"}};

struct Header {
  std::string_view descr;
  bool fortran_order = false;
  Extents shape;
};

// Reads exactly what NumPy writes, a dictionary of a string, a bool and a tuple of integers, and no other Python.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    expect('{');
    bool descr = false, order = false, shape = false;
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !std::exchange(descr, true)) {
        header_.descr = type();
      } else if (key == "fortran_order" && !std::exchange(order, true)) {
        header_.fortran_order = boolean();
      } else if (key == "shape" && !std::exchange(shape, true)) {
        header_.shape = tuple();
      } else {
        fail("unknown or repeated key '" + printable(key) + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) unexpected("the end");
    if (!descr || !order || !shape) fail("it lacks one of 'descr', 'fortran_order', 'shape'");
    return header_;
  }

 private:
  [[noreturn]] void fail(const std::string& cause) const { throw FileError(path_ + ": bad .npy header: " + cause); }
  [[noreturn]] void unexpected(const std::string& wanted) const {
    fail(wanted + " expected, found '" + printable(text_.substr(at_)) + "'");
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) unexpected(std::string("'") + c + "'");
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') unexpected("a string");
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' || text_[at_] == '\n') unexpected("a plain string");
      ++at_;
    }
    if (at_ == text_.size()) fail("a string does not end");
    return text_.substr(begin, at_++ - begin);
  }
  std::string_view type() {
    if (peek() == '[') throw FileError(path_ + ": structured elements: only plain numbers and bool are read");
    return string();
  }
  bool boolean() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    unexpected("True or False");
  }
  Extents tuple() {
    Extents shape;
    expect('(');
    while (!accept(')')) {
      if (shape.size() == max_rank) {
        throw FileError(path_ + ": more than " + std::to_string(max_rank) + " axes");
      }
      shape.push_back(extent());
      if (accept(',')) continue;
      if (shape.size() == 1) unexpected("','");
      expect(')');
      break;
    }
    return shape;
  }
  std::int64_t extent() {
    if (peek() == '-') throw FileError(path_ + ": negative extent in the shape: " + printable(text_.substr(at_)));
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) {
      throw FileError(path_ + ": an extent of the shape exceeds 64 bits: " + printable(text_.substr(at_)));
    }
    if (error != std::errc()) unexpected("an integer");
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
    return value;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  Header header_;
};

std::string_view kind_in_words(char kind) {
  switch (kind) {
    case 'O': return "Python objects";
    case 'c': return "complex numbers";
    case 'S':
    case 'a':
    case 'U': return "text";
    case 'M':
    case 'm': return "dates";
    case 'V': return "void";
    default: return "elements of an unknown kind";
  }
}

Type read_descr(const std::string& path, std::string_view descr, std::optional<Type> as) {
  const std::string quoted = " ('" + printable(descr) + "')";
  std::string_view code = descr;
  char order = '=';
  if (!code.empty() && std::string_view("<>|=").find(code[0]) != std::string_view::npos) {
    order = code[0];
    code.remove_prefix(1);
  }
  if (code == "V2") {
    if (as == Type::bf16 && order != '>') return Type::bf16;
    throw FileError(path + ": two-byte void" + quoted + ": if these are bfloat16 numbers, ask for type bf16");
  }
  for (const Spelling& spelling : spellings) {
    if (spelling.descr.substr(1) != code) continue;
    if (order == '>') throw FileError(path + ": big-endian elements" + quoted + ": only little-endian is read");
    if (as && *as != spelling.type) {
      throw FileError(path + ": holds " + std::string(name(spelling.type)) + ", not " + std::string(name(*as)));
    }
    return spelling.type;
  }
  throw FileError(path + ": " + std::string(kind_in_words(code.empty() ? ' ' : code[0])) + quoted +
                  ": f16, bf16, f32, f64, i8 to i64, u8 to u64 and bool are read");
}

// The header's text and where the elements start.
std::pair<std::string_view, std::size_t> split(const MappedFile& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (text.substr(0, magic.size()) != magic.substr(0, text.size()) || text.empty()) {
    throw FileError(file.path() + ": not a .npy file: it does not begin with \\x93NUMPY");
  }
  if (text.size() < magic.size() + 4) throw FileError(file.path() + ": truncated inside the .npy header");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
  const std::size_t major = byte(6), minor = byte(7);
  if (major < 1 || major > 3 || minor != 0) {
    throw FileError(file.path() + ": .npy version " + std::to_string(major) + "." + std::to_string(minor) +
                    ": 1.0, 2.0 and 3.0 are read");
  }
  const std::size_t start = major == 1 ? 10 : 12;
  if (text.size() < start) throw FileError(file.path() + ": truncated inside the .npy header");
  std::size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (text.size() - start < length) throw FileError(file.path() + ": truncated inside the .npy header");
  return {text.substr(start, length), start + length};
}

// Bytes of the elements, 0 if one extent is 0; the other extents must multiply within 64 bits even so.
std::size_t element_bytes(const std::string& path, Type type, const Extents& shape) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(type));
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      throw FileError(path + ": shape " + to_string(shape) + " exceeds 64 bits");
    }
  }
  return empty ? 0 : static_cast<std::size_t>(bytes);
}

Extents column_major_strides(const Extents& shape) {
  Extents strides = Extents::filled(shape.size(), 1);
  for (int i = 1; i < shape.size(); ++i) strides[i] = strides[i - 1] * (shape[i - 1] ? shape[i - 1] : 1);
  return strides;
}

}  // namespace

NpyFile::NpyFile(const std::string& path, std::optional<Type> as) : file_(path) {
  const auto [text, start] = split(file_);
  const Header header = HeaderParser(path, text).parse();
  const Type type = read_descr(path, header.descr, as);
  const std::size_t bytes = element_bytes(path, type, header.shape);
  const std::size_t available = file_.bytes().size() - start;
  if (available < bytes) {
    throw FileError(path + ": truncated: shape " + to_string(header.shape) + " of " + std::string(name(type)) +
                    " needs " + std::to_string(bytes) + " bytes of elements, the file has " +
                    std::to_string(available));
  }
  const std::byte* data = file_.bytes().data() + start;
  view_ = header.fortran_order ? View(data, type, header.shape, column_major_strides(header.shape))
                               : View(data, type, header.shape);
  // Files of other writers may leave the elements where no element of their size may be read: copy those.
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(type) != 0) {
    aligned_.emplace(Type::u8, Extents{static_cast<std::int64_t>(bytes)});
    if (bytes != 0) std::memcpy(aligned_->data(), data, bytes);
    view_.data = aligned_->data();
  }
}

std::string npy_header(Type type, const Extents& shape) {
  std::string dictionary = "{'descr': '";
  for (const Spelling& spelling : spellings) {
    if (spelling.type == type) dictionary += spelling.descr;
  }
  dictionary += "', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < shape.size(); ++i) {
    dictionary += std::to_string(shape[i]);
    if (i + 1 < shape.size()) dictionary += ", ";
  }
  dictionary += shape.size() == 1 ? ",), }" : "), }";
  if (!shape.empty()) dictionary.append(growth_digits - std::to_string(shape[0]).size(), ' ');
  const std::size_t used = magic.size() + 4 + dictionary.size() + 1;
  dictionary.append(alignment - used % alignment, ' ');
  dictionary += '\n';
  std::string header(magic);
  header += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff), static_cast<char>(dictionary.size() >> 8)};
  return header + dictionary;
}

void write_npy(OutputFile& file, const View& array) {
  file.write(npy_header(array.type, array.shape));
  if (array.strides == row_major_strides(array.shape)) {
    const std::size_t bytes = element_bytes(file.path(), array.type, array.shape);
    file.write(std::span(static_cast<const std::byte*>(array.data), bytes));
  } else {
    const Array rows(array);
    file.write(std::span(static_cast<const std::byte*>(rows.data()), rows.bytes()));
  }
}

void write_npy(const std::string& path, const View& array) {
  OutputFile file(path);
  write_npy(file, array);
  file.commit();
}

}  // namespace cenote::io
