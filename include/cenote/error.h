// What cenote throws. A caller's mistake is std::invalid_argument, always before any work starts.
#pragma once

#include <stdexcept>
#include <string>

namespace cenote {

/// A valid request that this build or this device cannot serve.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A backward pass through a graph that an earlier one released.
class InvalidBackprop : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that cannot be read or written, with its name and the cause.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace cenote
