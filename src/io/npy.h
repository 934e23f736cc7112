// NumPy's .npy files: read in place, written byte for byte as NumPy writes them.
#pragma once

#include <optional>
#include <string>

#include <cenote/array.h>

#include <io/file.h>

namespace cenote::io {

/// An array in a mapped .npy file. The view is good as long as the object; moving the object keeps it good.
class NpyFile {
 public:
  /// Reads the header and maps the elements; nothing is allocated from numbers in the header.
  /// Two-byte void is read as bfloat16 when `as` is bf16. Any other `as` must be the type of the file.
  /// Throws FileError naming the file and the cause.
  explicit NpyFile(const std::string& path, std::optional<Type> as = std::nullopt);

  const View& view() const noexcept { return view_; }

 private:
  MappedFile file_;
  std::optional<Array> aligned_;
  View view_;
};

/// The bytes that NumPy writes before the elements of a row-major array.
std::string npy_header(Type type, const Extents& shape);

/// Writes magic, header and the elements in row-major order; bf16 as ml_dtypes does, two-byte void.
void write_npy(OutputFile& file, const View& array);
/// The same into a file of its own, which appears when it is complete.
void write_npy(const std::string& path, const View& array);

}  // namespace cenote::io
