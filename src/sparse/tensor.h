// Checks of features that several makers of sparse tensors share.
#pragma once

#include <cstdint>

#include <cenote/array.h>

namespace cenote::sparse {

/// Rejects features that do not belong to so many rows of coordinates.
void check_feats(const View& feats, std::int64_t rows);

/// A copy of the first rows.
Array active_feats(const View& feats, std::int64_t rows);

}  // namespace cenote::sparse
