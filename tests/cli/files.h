// Files for tests: a folder that goes away, whole files as strings, and .npy files spelled by hand.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cenote::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "cenote-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  /// The path of a file in the folder.
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }
  /// The names of all files in it, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error("cannot write " + path);
}

/// A .npy file of version 1.0 whose header is `dictionary`, padded to `length` bytes in all, and then `elements`.
inline std::string npy(std::string dictionary, std::string_view elements, std::size_t length = 128) {
  dictionary.resize(length - 11, ' ');
  dictionary += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(dictionary.size() & 0xff);
  file += static_cast<char>(dictionary.size() >> 8);
  return file + dictionary + std::string(elements);
}

/// The bytes of numbers, as they lie in memory.
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// A .npy file of numbers; descr and shape as NumPy writes them.
template <class T>
std::string array(const std::string& descr, const std::string& shape, const std::vector<T>& values,
                  const std::string& fortran = "False") {
  return npy("{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }",
             bytes_of(values));
}

inline std::string floats(const std::string& shape, const std::vector<float>& values) {
  return array("<f4", shape, values);
}

/// n numbers from `first` on.
inline std::vector<float> counting(int n, float first = 0) {
  std::vector<float> values;
  for (int i = 0; i < n; ++i) values.push_back(first + static_cast<float>(i));
  return values;
}

/// "0aff" as the two bytes.
inline std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

}  // namespace cenote::test
