// The generic pool: any fold over windows, with a callable of yours that the compiler inlines into its loops.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>

#include <cenote/array.h>
#include <cenote/detail/direct_fold.h>
#include <cenote/detail/sweep_fold.h>
#include <cenote/types.h>
#include <cenote/window.h>

namespace cenote {

/// How a fold may be grouped. sequential: strictly from left to right, one answer even if fn is not associative.
/// associative: neighbours may be combined first, innermost axis before outer ones, but never in another order;
/// the cost then does not grow with the window.
enum class Fold : std::uint8_t { sequential, associative };

namespace detail {

/// Folds all windows of a space with `size` > 0 outputs, which lie in memory without gaps.
template <class C, class F>
void run_fold(FoldSpace& space, const Folding<C, F>& folding, std::int64_t size, Fold fold) {
  const auto sweep = fold == Fold::associative ? plan_sweep(space) : std::nullopt;
  if (!sweep) return DirectFold<C, F>(space, folding).run();
  if (!sweep->complete)
    for (std::int64_t i = 0; i < size; ++i) folding.write(i, 1, &folding.init, 1);
  SweepFold<C, F>(space, *sweep, folding).run();
}

template <class C, class F>
Array fold(const View& x, C init, const F& fn, const std::variant<Window, Adaptive, Global>& region, Fold fold) {
  static_assert(std::is_invocable_r_v<C, const F&, C, C>, "fn must map two numbers of init's type to one");
  FoldSpace space = fold_space("pool", x, type_of<C>, region);
  Array result(x.type, space.output_shape);
  if (result.size() == 0) return result;
  run_fold(space, Folding<C, F>{x.data, result.data(), conversion(x.type), init, fn}, result.size(), fold);
  return result;
}

}  // namespace detail

/// Folds the real cells of each window in row-major order: fn(… fn(fn(init, x0), x1) …, xn); padding is skipped, and a
/// window without a real cell gives init. C is the type that x computes in: float for f16, bf16 and f32, otherwise its
/// own. The result has x's type, rounded once. fn may be called from several threads at once, and must not throw.
template <class C, class F>
Array pool(const View& x, C init, F fn, const Window& window, Fold fold = Fold::sequential) {
  return detail::fold(x, init, fn, window, fold);
}
template <class C, class F>
Array pool(const View& x, C init, F fn, const Adaptive& region, Fold fold = Fold::sequential) {
  return detail::fold(x, init, fn, region, fold);
}
template <class C, class F>
Array pool(const View& x, C init, F fn, const Global& region, Fold fold = Fold::sequential) {
  return detail::fold(x, init, fn, region, fold);
}

}  // namespace cenote
