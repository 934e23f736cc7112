// Pieces of JSON, for the commands that print it.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

#include <cenote/extents.h>

namespace cenote::cli {

/// Quoted; control characters become spaces.
inline std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

inline std::string json_list(const Extents& values) {
  std::string out = "[";
  for (int i = 0; i < values.size(); ++i) out += fmt::format("{}{}", i == 0 ? "" : ", ", values[i]);
  return out + ']';
}

}  // namespace cenote::cli
