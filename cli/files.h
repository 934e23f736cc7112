// The arrays and pictures that commands read and write.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include <cenote/cenote.h>
#include <io/npy.h>

namespace cenote::cli {

enum class Format { npy, png };

/// The end of a name from its last dot on, in small letters.
std::string extension_of(const std::string& path);

/// Whether two names lead to one file.
bool same_file(const std::string& a, const std::string& b);

/// By the end of the name; throws std::invalid_argument for any but .npy and .png.
Format format_of(const std::string& path);

/// A file that was read, whichever way it is held.
class Input {
 public:
  /// `as` is the type that the file must hold; it is needed for bf16, which NumPy stores as void.
  explicit Input(const std::string& path, std::optional<Type> as = std::nullopt);

  bool is_picture() const { return std::holds_alternative<Array>(file_); }
  View view() const;
  /// Pictures become f32, as derivatives need them; arrays stay what they are.
  void make_differentiable();

 private:
  std::variant<std::optional<io::NpyFile>, Array> file_;
};

/// Writes values to an open file in the format of its name; pictures have 16 bits if `deep`, else 8.
void write(io::OutputFile& file, const View& values, bool deep = false);

}  // namespace cenote::cli
