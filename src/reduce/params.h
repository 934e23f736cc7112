// What a reducer may be told when it is made.
#pragma once

namespace cenote {

/// Options of the reducers, already checked: beta finite and not 0, p at least 1.
struct Params {
  double beta = 1;
  double p = 2;
};

}  // namespace cenote
