// The version of the library, for the preprocessor and at run time.
#pragma once

#define CENOTE_VERSION_MAJOR 0
#define CENOTE_VERSION_MINOR 1
#define CENOTE_VERSION_PATCH 0
#define CENOTE_VERSION "0.1.0"

namespace cenote {

/// The version of the library that was linked, which may differ from CENOTE_VERSION of the headers.
const char* version() noexcept;

}  // namespace cenote
