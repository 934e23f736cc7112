// What the rest of the library asks about a reducer, answered by its struct.
#pragma once

#include <cenote/reducers.h>

#include "reduce/reducers.h"

namespace cenote {

using scalar::Counts;

struct Traits {
  bool integers = false;
  bool picks = false;
  bool weighs = false;
  Counts counts = Counts::none;
  int parts = 1;
};

constexpr Traits traits(Reducer reducer) noexcept {
  switch (reducer) {
#define CENOTE_ITEM(name, S) \
  case Reducer::name:        \
    return {scalar::S::integers, scalar::S::picks, scalar::S::weighs, scalar::S::counts, scalar::S::parts};
    CENOTE_REDUCERS(CENOTE_ITEM)
#undef CENOTE_ITEM
  }
  return {};
}

}  // namespace cenote
