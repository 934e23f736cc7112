// Gradients of small planes: output by output, or several planes at a time with lanes across them.
#pragma once

#include "cpu/router.h"

namespace cenote::cpu {

/// Gives gy to the winners, or without offsets to all cells, divided by `divisor`. False, and nothing is done, where
/// lines are long enough for lanes to run along them, or planes do not lie side by side.
bool send_small(const Router& router, const View& offsets, const View& gy, const MutableView& gx, double divisor);

}  // namespace cenote::cpu
