// The ways to refuse an argument: "[who] what: what is allowed", as ValueError, TypeError or NotImplementedError.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <cenote/error.h>
#include <cenote/extents.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace cenote::python {

template <class... Parts>
std::string message(std::string_view who, const Parts&... parts) {
  std::ostringstream text;
  text << '[' << who << "] ";
  (text << ... << parts);
  return text.str();
}

template <class... Parts>
[[noreturn]] void reject(std::string_view who, const Parts&... parts) {
  throw std::invalid_argument(message(who, parts...));
}

template <class... Parts>
[[noreturn]] void reject_type(std::string_view who, const Parts&... parts) {
  throw nanobind::type_error(message(who, parts...).c_str());
}

template <class... Parts>
[[noreturn]] void unsupported(std::string_view who, const Parts&... parts) {
  throw Unsupported(message(who, parts...));
}

}  // namespace cenote::python
