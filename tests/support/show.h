// Requests in words, for the report of a failed case.
#pragma once

#include <ostream>
#include <type_traits>

#include "random_problem.h"

namespace cenote::test {

inline std::ostream& operator<<(std::ostream& out, const PerAxis& values) {
  return values.is_scalar() ? out << values.values()[0] : out << cenote::to_string(values.values());
}

inline void show(std::ostream& out, const Window& w) {
  out << "window " << w.size << " stride " << w.stride << " dilation " << w.dilation << " padding";
  constexpr const char* rules[] = {" valid", " same", " same_lower", ""};
  out << rules[static_cast<int>(w.padding.rule())];
  for (const auto& sides : w.padding.sides()) out << " " << sides.low << ":" << sides.high;
  out << (w.ceil ? " ceil" : "") << (w.exact ? " exact" : "") << (w.allow_empty ? " allow_empty" : "");
}

inline void show(std::ostream& out, const Adaptive& a) {
  out << "adaptive";
  for (const auto& extent : a.output) out << " " << (extent ? std::to_string(*extent) : "keep");
}

inline void show(std::ostream& out, const Global& g) {
  out << "global";
  if (g.rank) out << " rank " << *g.rank;
  if (!g.keepdims) out << " keepdims=false";
}

inline void show(std::ostream& out, const char* name, const Layout& layout) {
  out << "; " << name << " order";
  for (const int axis : layout.order) out << " " << axis;
  out << " steps";
  for (const auto step : layout.step) out << " " << step;
  out << " shift " << layout.shift;
}

inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  const Pooling& p = c.pooling;
  out << name(p.reducer) << " " << name(c.type) << " " << cenote::to_string(c.shape) << ": ";
  std::visit(
      [&](const auto& region) {
        show(out, region);
        if (region.channels_last) out << " channels_last";
        if (region.axes) out << " axes " << cenote::to_string(*region.axes);
      },
      p.region);
  out << "; divisor " << static_cast<int>(p.divisor.rule()) << " " << p.divisor.number() << ", beta " << p.beta
      << (p.pad == SmoothPadding::ignore ? " ignore" : "") << ", p " << p.p;
  if (p.dtype) out << ", dtype " << name(*p.dtype);
  if (p.indices) out << ", indices " << static_cast<int>(*p.indices);
  show(out, "x", c.x);
  show(out, "y", c.y);
  show(out, "indices", c.indices);
  return out << "; data " << static_cast<int>(c.data) << " seed " << c.seed;
}

}  // namespace cenote::test
