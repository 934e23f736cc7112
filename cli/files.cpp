// Reading and writing the files of the command line.
#include "files.h"

#include <cctype>
#include <filesystem>
#include <stdexcept>

#include <fmt/core.h>

#include <io/png.h>

namespace cenote::cli {

std::string extension_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  const auto absolute = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored);
  };
  return absolute(a) == absolute(b);
}

Format format_of(const std::string& path) {
  const std::string extension = extension_of(path);
  if (extension == ".npy") return Format::npy;
  if (extension == ".png") return Format::png;
  throw std::invalid_argument(path + ": the name must end in .npy or .png");
}

Input::Input(const std::string& path, std::optional<Type> as) {
  if (format_of(path) == Format::npy) {
    file_ = io::NpyFile(path, as);
  } else {
    file_ = io::read_png(path);
    const Type found = view().type;
    if (as && *as != found) throw FileError(fmt::format("{}: holds {}, not {}", path, name(found), name(*as)));
  }
}

View Input::view() const {
  return is_picture() ? View(std::get<Array>(file_)) : std::get<std::optional<io::NpyFile>>(file_)->view();
}

void Input::make_differentiable() {
  if (!is_picture()) return;
  const Array& picture = std::get<Array>(file_);
  Array floats(Type::f32, picture.shape());
  const auto to = floats.values<float>();
  const auto convert = [&](const auto& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(from[i]);
  };
  if (picture.type() == Type::u16) {
    convert(picture.values<std::uint16_t>());
  } else {
    convert(picture.values<std::uint8_t>());
  }
  file_ = std::move(floats);
}

void write(io::OutputFile& file, const View& values, bool deep) {
  if (format_of(file.path()) == Format::npy) {
    io::write_npy(file, values);
  } else {
    io::write_png(file, values, deep ? Type::u16 : Type::u8);
  }
}

}  // namespace cenote::cli
