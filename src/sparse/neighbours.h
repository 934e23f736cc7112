// Neighbour search: the edges of windows that overlap, by walking sorted keys or by a table.
#pragma once

#include <string_view>

#include "sparse/kernel.h"
#include "sparse/relation.h"
#include "sparse/store.h"

namespace cenote::sparse {

/// All edges onto the rows of `out`. Both engines give the same.
Found find_neighbours(std::string_view who, const Coordinates::Impl& in, const Coordinates::Impl& out,
                      const Shape& shape, Engine engine);

}  // namespace cenote::sparse
