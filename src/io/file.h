// Files: whole ones mapped for reading, and outputs that appear under their name only when complete.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace cenote::io {

/// Bytes of a file as they may stand in an error message: short, on one line, printable.
std::string printable(std::string_view text);

/// A whole regular file, mapped read-only; throws FileError when it cannot be. The bytes live as long as the object.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const noexcept { return path_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

/// A file being written beside its final name; commit() renames it, and without commit() it is removed again.
/// A name that is a device or a pipe is written directly, never replaced. Failures throw FileError.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  const std::string& path() const noexcept { return path_; }
  void write(std::span<const std::byte> bytes);
  void write(const std::string& text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  void open_beside();

  std::string path_;
  std::string target_;
  std::string temporary_;
  int descriptor_ = -1;
};

}  // namespace cenote::io
