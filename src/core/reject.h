// The one way to turn a caller's mistake into an error: "[who] what: what is allowed".
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <cenote/extents.h>

namespace cenote {

inline std::ostream& operator<<(std::ostream& out, const Extents& extents) { return out << to_string(extents); }

/// Throws std::invalid_argument with the parts written one after the other behind "[who] ".
template <class... Parts>
[[noreturn]] void reject(std::string_view who, const Parts&... parts) {
  std::ostringstream text;
  text << '[' << who << "] ";
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

}  // namespace cenote
