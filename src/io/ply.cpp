// .ply files: a strict parser of the header, the vertices behind it in three encodings, and their writer.
#include <io/ply.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <cenote/error.h>

namespace cenote::io {
namespace {

static_assert(std::endian::native == std::endian::little, "vertices are written as they lie, little-endian");

// The first name of a type is the one that is written: it is the one that every program knows.
struct Spelling {
  Type type;
  std::string_view name, other;
};
constexpr Spelling spellings[] = {{Type::i8, "char", "int8"},      {Type::u8, "uchar", "uint8"},
                                  {Type::i16, "short", "int16"},   {Type::u16, "ushort", "uint16"},
                                  {Type::i32, "int", "int32"},     {Type::u32, "uint", "uint32"},
                                  {Type::f32, "float", "float32"}, {Type::f64, "double", "float64"}};

std::string_view spelling_of(Type type) {
  for (const Spelling& s : spellings)
    if (s.type == type) return s.name;
  return {};
}

enum class Encoding { ascii, little, big };

struct Property {
  std::string name;
  Type type = Type::f32;
  /// Of a list: the type of its length.
  std::optional<Type> length{};
};

struct Element {
  std::string name;
  std::int64_t count = 0;
  std::vector<Property> properties{};

  bool has_lists() const {
    return std::any_of(properties.begin(), properties.end(), [](const Property& p) { return p.length.has_value(); });
  }
  /// Bytes of one element without lists.
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Property& p : properties) sum += size_of(p.type);
    return sum;
  }
};

struct Header {
  std::optional<Encoding> encoding;
  std::vector<Element> elements;
};

constexpr std::string_view blanks = " \t\r\v\f";

// Takes the next word off a line; empty at its end.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(blanks));
  line.remove_prefix(word.size());
  return word;
}

std::string quoted(std::string_view text) { return "'" + printable(text) + "'"; }

// Takes lines off the front of a text.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::string_view rest() const { return rest_; }
  /// The next line without its end; nothing where no further one is complete.
  std::optional<std::string_view> complete() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    return take(end);
  }
  /// The next line that is not blank; the last one may lack its end.
  std::optional<std::string_view> filled() {
    while (!rest_.empty()) {
      const std::string_view line = take(std::min(rest_.find('\n'), rest_.size()));
      if (line.find_first_not_of(blanks) != std::string_view::npos) return line;
    }
    return std::nullopt;
  }

 private:
  std::string_view take(std::size_t end) {
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return line;
  }

  std::string_view rest_;
};

class HeaderParser {
 public:
  HeaderParser(const std::string& path, Lines& lines) : path_(path), lines_(lines) {}

  Header parse() {
    auto line = lines_.complete();
    if (!line || next_word(*line) != "ply" || !next_word(*line).empty())
      throw FileError(path_ + ": not a .ply file: its first line is not 'ply'");
    for (;;) {
      line = lines_.complete();
      if (!line) throw FileError(path_ + ": truncated inside the .ply header: there is no end_header");
      line_ = rest_ = *line;
      const std::string_view word = next_word(rest_);
      if (word == "end_header") break;
      read(word);
    }
    if (!header_.encoding) bad("it has no format line");
    return std::move(header_);
  }

 private:
  [[noreturn]] void bad(const std::string& cause) const { throw FileError(path_ + ": bad .ply header: " + cause); }
  [[noreturn]] void bad_line(const std::string& cause) const { bad(quoted(line_) + ": " + cause); }

  void read(std::string_view word) {
    if (word == "comment" || word == "obj_info" || word.empty()) return;
    if (word == "format") {
      read_format();
    } else if (word == "element") {
      read_element();
    } else if (word == "property") {
      read_property();
    } else {
      bad_line("format, element, property, comment, obj_info or end_header expected");
    }
    if (!next_word(rest_).empty()) bad_line("too many words");
  }
  void read_format() {
    if (header_.encoding) bad_line("a second format line");
    const std::string_view name = next_word(rest_), version = next_word(rest_);
    if (name == "ascii") header_.encoding = Encoding::ascii;
    if (name == "binary_little_endian") header_.encoding = Encoding::little;
    if (name == "binary_big_endian") header_.encoding = Encoding::big;
    if (!header_.encoding) bad_line("ascii, binary_little_endian and binary_big_endian are read");
    if (version != "1.0") bad_line("version 1.0 is read");
  }
  void read_element() {
    const std::string_view name = next_word(rest_), count = next_word(rest_);
    for (const Element& e : header_.elements)
      if (e.name == name) bad_line("a second element of that name");
    Element element{std::string(name)};
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), element.count);
    if (error == std::errc::result_out_of_range) bad_line("the count exceeds 64 bits");
    if (error != std::errc() || end != count.data() + count.size()) bad_line("a name and a count expected");
    if (element.count < 0) bad_line("a count must be at least 0");
    header_.elements.push_back(std::move(element));
  }
  void read_property() {
    if (header_.elements.empty()) bad_line("a property of no element");
    Property property;
    std::string_view type = next_word(rest_);
    if (type == "list") {
      property.length = read_type(next_word(rest_));
      if (is_float(*property.length)) bad_line("the length of a list must be an integer");
      type = next_word(rest_);
    }
    property.type = read_type(type);
    property.name = next_word(rest_);
    if (property.name.empty()) bad_line("a type and a name expected");
    auto& all = header_.elements.back().properties;
    for (const Property& p : all)
      if (p.name == property.name) bad_line("a second property of that name");
    all.push_back(std::move(property));
  }
  Type read_type(std::string_view word) const {
    for (const Spelling& s : spellings)
      if (word == s.name || word == s.other) return s.type;
    bad_line(quoted(word) + " is no type: char, uchar, short, ushort, int, uint, float, double, or int8 to float64");
  }

  const std::string& path_;
  Lines& lines_;
  std::string_view line_, rest_;
  Header header_;
};

// Where the vertices stand among the elements, once they are points.
std::size_t find_vertices(const std::string& path, const Header& header) {
  const auto vertices =
      std::find_if(header.elements.begin(), header.elements.end(), [](const Element& e) { return e.name == "vertex"; });
  if (vertices == header.elements.end()) throw FileError(path + ": it has no element vertex");
  for (const Property& p : vertices->properties)
    if (p.length)
      throw FileError(path + ": property " + quoted(p.name) + " of vertex is a list: only numbers are read");
  for (const std::string_view name : {"x", "y", "z"}) {
    if (std::none_of(vertices->properties.begin(), vertices->properties.end(),
                     [&](const Property& p) { return p.name == name; }))
      throw FileError(path + ": its vertices have no property " + std::string(name));
  }
  return static_cast<std::size_t>(vertices - header.elements.begin());
}

[[noreturn]] void fail_truncated(const std::string& path, const Element& element, std::size_t available) {
  throw FileError(path + ": truncated: " + std::to_string(element.count) + " elements " + quoted(element.name) +
                  " cannot be in the " + std::to_string(available) + " bytes that are left");
}

// Rejects a count that so many bytes cannot hold at `least` bytes per element.
void require_room(const std::string& path, const Element& element, std::size_t least, std::size_t available) {
  if (least > 0 && static_cast<std::size_t>(element.count) > available / least)
    fail_truncated(path, element, available);
}

PointCloud allocate(const Element& vertices) {
  PointCloud cloud;
  for (const Property& p : vertices.properties) cloud.properties.push_back({p.name, Array(p.type, {vertices.count})});
  return cloud;
}

// ASCII: one element per line.

template <class T>
bool read_number(std::string_view word, T& value) {
  if (word.starts_with('+')) word.remove_prefix(1);
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if constexpr (std::is_floating_point_v<T>) {
    // Too small to be told from zero is no mistake; too large is.
    long double wide = 0;
    if (error == std::errc::result_out_of_range && std::from_chars(word.data(), end, wide).ec == std::errc() &&
        std::fabs(wide) < 1) {
      value = static_cast<T>(wide);
      return stop == end;
    }
  }
  return error == std::errc() && stop == end;
}

PointCloud read_ascii(const std::string& path, const Header& header, std::size_t which, Lines lines) {
  for (std::size_t e = 0; e < which; ++e) {
    const Element& passed = header.elements[e];
    require_room(path, passed, passed.properties.empty() ? 0 : 1, lines.rest().size());
    for (std::int64_t i = 0; i < passed.count && !passed.properties.empty(); ++i)
      if (!lines.filled()) fail_truncated(path, passed, 0);
  }
  const Element& vertices = header.elements[which];
  // A digit each, and blanks between them.
  require_room(path, vertices, 2 * vertices.properties.size() - 1, lines.rest().size());
  PointCloud cloud = allocate(vertices);
  for (std::int64_t i = 0; i < vertices.count; ++i) {
    auto line = lines.filled();
    const auto fail = [&](const std::string& cause) {
      throw FileError(path + ": vertex " + std::to_string(i) + ": " + cause);
    };
    if (!line) fail("truncated: " + std::to_string(vertices.count) + " vertices are announced");
    for (PointProperty& p : cloud.properties) {
      const std::string_view word = next_word(*line);
      if (word.empty()) fail("no value for " + quoted(p.name));
      visit(p.values.type(), [&]<class T>(T) {
        if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
          if (!read_number(word, p.values.values<T>()[static_cast<std::size_t>(i)]))
            fail(quoted(p.name) + " = " + quoted(word) + ": not of type " + std::string(spelling_of(p.values.type())));
        }
      });
    }
    if (const std::string_view word = next_word(*line); !word.empty()) fail("too many values, from " + quoted(word));
  }
  return cloud;
}

// Binary: bytes without gaps.

template <class T>
T load(const std::byte* at, bool swapped) {
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof(T));
  if (swapped) std::reverse(bytes, bytes + sizeof(T));
  return std::bit_cast<T>(bytes);
}

// The bytes of one list, its length included; nothing where it reaches past the end.
std::optional<std::size_t> list_bytes(const Property& list, std::span<const std::byte> rest, bool swapped) {
  const std::size_t head = size_of(*list.length);
  if (rest.size() < head) return std::nullopt;
  const auto length = visit(*list.length, [&]<class T>(T) -> std::int64_t {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return static_cast<std::int64_t>(load<T>(rest.data(), swapped));
    return -1;
  });
  if (length < 0 || static_cast<std::size_t>(length) > (rest.size() - head) / size_of(list.type)) return std::nullopt;
  return head + static_cast<std::size_t>(length) * size_of(list.type);
}

void pass_over(const std::string& path, const Element& element, std::span<const std::byte>& rest, bool swapped) {
  if (!element.has_lists()) {
    require_room(path, element, element.bytes(), rest.size());
    rest = rest.subspan(static_cast<std::size_t>(element.count) * element.bytes());
    return;
  }
  for (std::int64_t i = 0; i < element.count; ++i) {
    for (const Property& p : element.properties) {
      const auto bytes = p.length ? list_bytes(p, rest, swapped) : std::optional(size_of(p.type));
      if (!bytes || *bytes > rest.size())
        throw FileError(path + ": truncated, or a bad list, in element " + quoted(element.name) + " " +
                        std::to_string(i));
      rest = rest.subspan(*bytes);
    }
  }
}

PointCloud read_binary(const std::string& path, const Header& header, std::size_t which,
                       std::span<const std::byte> rest) {
  const bool swapped = header.encoding == Encoding::big;
  for (std::size_t e = 0; e < which; ++e) pass_over(path, header.elements[e], rest, swapped);
  const Element& vertices = header.elements[which];
  require_room(path, vertices, vertices.bytes(), rest.size());
  PointCloud cloud = allocate(vertices);
  const std::byte* from = rest.data();
  for (PointProperty& p : cloud.properties) {
    visit(p.values.type(), [&]<class T>(T) {
      const auto values = p.values.values<T>();
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = load<T>(from + i * vertices.bytes(), swapped);
    });
    from += size_of(p.values.type());
  }
  return cloud;
}

// Writing.

void check_cloud(const PointCloud& cloud) {
  const auto reject = [](const PointProperty& p, const std::string& what) {
    throw std::invalid_argument("[write_ply] property " + quoted(p.name) + what);
  };
  for (const PointProperty& p : cloud.properties) {
    if (p.name.empty() || p.name.find_first_of(" \t\r\n\v\f") != std::string::npos)
      reject(p, ": a name must be one word");
    if (!is_ply_type(p.values.type()))
      reject(p, " of " + std::string(name(p.values.type())) + ": must be i8, u8, i16, u16, i32, u32, f32 or f64");
    if (p.values.rank() != 1 || p.values.size() != cloud.size())
      reject(p, " of shape " + to_string(p.values.shape()) + ": must be " + to_string(Extents{cloud.size()}));
  }
}

void append_text(std::string& text, const PointProperty& p, std::size_t i) {
  visit(p.values.type(), [&]<class T>(T) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      char digits[32];
      text.append(digits, std::to_chars(digits, digits + sizeof digits, p.values.values<T>()[i]).ptr);
    }
  });
}

void append_bytes(std::string& text, const PointProperty& p, std::size_t i) {
  const std::size_t bytes = size_of(p.values.type());
  text.append(static_cast<const char*>(p.values.data()) + i * bytes, bytes);
}

}  // namespace

int PointCloud::find(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < properties.size(); ++i)
    if (properties[i].name == name) return static_cast<int>(i);
  return -1;
}

bool is_ply_type(Type type) noexcept { return !spelling_of(type).empty(); }

PointCloud read_ply(const std::string& path) {
  const MappedFile file(path);
  Lines lines(std::string_view(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()));
  const Header header = HeaderParser(path, lines).parse();
  const std::size_t vertices = find_vertices(path, header);
  if (header.encoding == Encoding::ascii) return read_ascii(path, header, vertices, lines);
  return read_binary(path, header, vertices, file.bytes().last(lines.rest().size()));
}

void write_ply(OutputFile& file, const PointCloud& cloud, PlyEncoding encoding) {
  check_cloud(cloud);
  const bool ascii = encoding == PlyEncoding::ascii;
  std::string text = std::string("ply\nformat ") + (ascii ? "ascii" : "binary_little_endian") +
                     " 1.0\nelement vertex " + std::to_string(cloud.size()) + "\n";
  for (const PointProperty& p : cloud.properties)
    text += "property " + std::string(spelling_of(p.values.type())) + " " + p.name + "\n";
  text += "end_header\n";
  for (std::size_t i = 0; i < static_cast<std::size_t>(cloud.size()); ++i) {
    for (std::size_t c = 0; c < cloud.properties.size(); ++c) {
      if (ascii && c > 0) text += ' ';
      if (ascii) {
        append_text(text, cloud.properties[c], i);
      } else {
        append_bytes(text, cloud.properties[c], i);
      }
    }
    if (ascii) text += '\n';
    if (text.size() < 1 << 20) continue;
    file.write(text);
    text.clear();
  }
  file.write(text);
}

void write_ply(const std::string& path, const PointCloud& cloud, PlyEncoding encoding) {
  OutputFile file(path);
  write_ply(file, cloud, encoding);
  file.commit();
}

}  // namespace cenote::io
