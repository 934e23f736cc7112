// Pictures with libpng. Its errors jump: the functions that set the jump hold nothing that needs a destructor.
#include <io/png.h>

#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <cenote/error.h>

namespace cenote::io {
namespace {

// What libpng's callbacks see of one reading or writing.
struct Stream {
  std::span<const std::byte> input{};
  std::size_t at = 0;
  OutputFile* output = nullptr;
  char message[256] = "unknown error";
};

void on_error(png_structp png, png_const_charp text) {
  auto* stream = static_cast<Stream*>(png_get_error_ptr(png));
  std::snprintf(stream->message, sizeof stream->message, "%s", text);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep data, std::size_t length) {
  auto* stream = static_cast<Stream*>(png_get_io_ptr(png));
  if (stream->input.size() - stream->at < length) png_error(png, "truncated");
  std::memcpy(data, stream->input.data() + stream->at, length);
  stream->at += length;
}

bool write_all(Stream& stream, std::span<const std::byte> bytes) noexcept {
  try {
    stream.output->write(bytes);
    return true;
  } catch (const std::exception& error) {
    std::snprintf(stream.message, sizeof stream.message, "%s", error.what());
    return false;
  }
}

void on_write(png_structp png, png_bytep data, std::size_t length) {
  auto* stream = static_cast<Stream*>(png_get_io_ptr(png));
  if (!write_all(*stream, std::as_bytes(std::span(data, length)))) png_longjmp(png, 1);
}

void on_flush(png_structp) {}

// A reader and its memory.
struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  explicit Reader(Stream& stream) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &stream, on_error, on_warning);
    if (png) info = png_create_info_struct(png);
    if (!info) throw std::bad_alloc();
    png_set_read_fn(png, &stream, on_read);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  explicit Writer(Stream& stream) {
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &stream, on_error, on_warning);
    if (png) info = png_create_info_struct(png);
    if (!info) throw std::bad_alloc();
    png_set_write_fn(png, &stream, on_write, on_flush);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { png_destroy_write_struct(&png, &info); }
};

// The header, and libpng set up to give whole samples in the machine's byte order. False after an error.
bool read_layout(const Reader& reader, std::size_t& stored_row_bytes) noexcept {
  png_structp png = reader.png;
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_info(png, reader.info);
  stored_row_bytes = png_get_rowbytes(png, reader.info);
  const int colour = png_get_color_type(png, reader.info);
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (colour == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, reader.info) < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (png_get_valid(png, reader.info, PNG_INFO_tRNS)) png_set_tRNS_to_alpha(png);
  if (png_get_bit_depth(png, reader.info) == 16) png_set_swap(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  return true;
}

bool read_rows(const Reader& reader, png_bytep pixels, std::size_t row_bytes) noexcept {
  png_structp png = reader.png;
  if (setjmp(png_jmpbuf(png))) return false;
  const int passes = png_get_interlace_type(png, reader.info) == PNG_INTERLACE_NONE ? 1 : 7;
  const png_uint_32 height = png_get_image_height(png, reader.info);
  for (int pass = 0; pass < passes; ++pass) {
    for (png_uint_32 y = 0; y < height; ++y) png_read_row(png, pixels + y * row_bytes, nullptr);
  }
  png_read_end(png, nullptr);
  return true;
}

struct Layout {
  png_uint_32 width, height;
  int channels, bits;
};

bool write_rows(const Writer& writer, const Layout& layout, const unsigned char* pixels) noexcept {
  constexpr int colours[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                             PNG_COLOR_TYPE_RGB_ALPHA};
  png_structp png = writer.png;
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_IHDR(png, writer.info, layout.width, layout.height, layout.bits, colours[layout.channels - 1],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, writer.info);
  if (layout.bits == 16) png_set_swap(png);
  const std::size_t row_bytes = std::size_t{layout.width} * static_cast<std::size_t>(layout.channels * layout.bits / 8);
  for (png_uint_32 y = 0; y < layout.height; ++y) png_write_row(png, pixels + y * row_bytes);
  png_write_end(png, nullptr);
  return true;
}

// The nearest sample; 64-bit integers compare exactly, floats go through double.
template <class Sample, class T>
Sample to_sample(T value) {
  constexpr auto top = std::numeric_limits<Sample>::max();
  if constexpr (std::is_same_v<T, bool>) {
    return value ? top : Sample{0};
  } else if constexpr (std::is_integral_v<T>) {
    if (std::cmp_less(value, 0)) return 0;
    return std::cmp_greater(value, top) ? top : static_cast<Sample>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!(value > 0)) return 0;
    return value >= top ? top : static_cast<Sample>(std::nearbyint(value));
  } else {
    return to_sample<Sample>(static_cast<float>(value));
  }
}

template <class Sample>
Array to_samples(const View& pixels) {
  const Array rows(pixels);
  Array out(type_of<Sample>, pixels.shape);
  visit(pixels.type, [&](auto element) {
    using T = decltype(element);
    const auto to = out.values<Sample>();
    if constexpr (std::is_same_v<T, bool>) {
      // Bytes of a bool from outside may hold more than 0 and 1.
      const auto* from = static_cast<const unsigned char*>(rows.data());
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = to_sample<Sample>(from[i] != 0);
    } else {
      const auto from = rows.values<T>();
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = to_sample<Sample>(from[i]);
    }
  });
  return out;
}

}  // namespace

Array read_png(const std::string& path) {
  const MappedFile file(path);
  Stream stream{.input = file.bytes()};
  const auto fail = [&] { throw FileError(path + ": not a readable .png file: " + stream.message); };
  if (file.bytes().size() < 8 || png_sig_cmp(reinterpret_cast<png_const_bytep>(file.bytes().data()), 0, 8) != 0) {
    throw FileError(path + ": not a .png file: it does not begin with the PNG signature");
  }
  const Reader reader(stream);
  std::size_t stored_row_bytes = 0;
  if (!read_layout(reader, stored_row_bytes)) fail();
  const std::int64_t height = png_get_image_height(reader.png, reader.info);
  const std::int64_t width = png_get_image_width(reader.png, reader.info);
  const std::int64_t channels = png_get_channels(reader.png, reader.info);
  const Type type = png_get_bit_depth(reader.png, reader.info) == 16 ? Type::u16 : Type::u8;
  const std::size_t row_bytes = png_get_rowbytes(reader.png, reader.info);
  // Deflate gains at most a factor of 1032, so a tiny file cannot ask for much memory.
  if (static_cast<std::size_t>(height) > file.bytes().size() * 1032 / std::max<std::size_t>(stored_row_bytes, 1)) {
    throw FileError(path + ": truncated: " + std::to_string(width) + " x " + std::to_string(height) +
                    " pixels cannot be in " + std::to_string(file.bytes().size()) + " bytes");
  }
  Extents shape{height, width};
  if (channels > 1) shape.push_back(channels);
  Array pixels(type, shape);
  if (!read_rows(reader, static_cast<png_bytep>(pixels.data()), row_bytes)) fail();
  return pixels;
}

void require_picture(const Extents& shape) {
  const bool ranks = shape.size() == 2 || (shape.size() == 3 && shape[2] >= 1 && shape[2] <= 4);
  const auto fits = [](std::int64_t extent) { return extent >= 1 && extent <= PNG_USER_WIDTH_MAX; };
  if (ranks && fits(shape[0]) && fits(shape[1])) return;
  throw std::invalid_argument(
      "[write_png] shape " + to_string(shape) +
      ": a picture is (height, width) or (height, width, 1 to 4 channels), each side from 1 to " +
      std::to_string(PNG_USER_WIDTH_MAX));
}

void write_png(OutputFile& file, const View& pixels, Type depth) {
  require_picture(pixels.shape);
  if (depth != Type::u8 && depth != Type::u16) {
    throw std::invalid_argument("[write_png] depth " + std::string(name(depth)) + ": pictures are u8 or u16");
  }
  const Array samples = depth == Type::u8 ? to_samples<std::uint8_t>(pixels) : to_samples<std::uint16_t>(pixels);
  const Layout layout{static_cast<png_uint_32>(pixels.shape[1]), static_cast<png_uint_32>(pixels.shape[0]),
                      pixels.rank() == 3 ? static_cast<int>(pixels.shape[2]) : 1, depth == Type::u8 ? 8 : 16};
  Stream stream{.output = &file};
  const Writer writer(stream);
  if (!write_rows(writer, layout, static_cast<const unsigned char*>(samples.data()))) {
    const std::string cause = stream.message;
    throw FileError(cause.starts_with(file.path() + ":") ? cause : file.path() + ": " + cause);
  }
}

void write_png(const std::string& path, const View& pixels, Type depth) {
  OutputFile file(path);
  write_png(file, pixels, depth);
  file.commit();
}

}  // namespace cenote::io
