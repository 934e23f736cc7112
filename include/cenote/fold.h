// The generic pool: any fold over windows, with a callable of yours that the compiler inlines into its loops.
#pragma once

#include <algorithm>
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

template <class E, class C, class F>
void run_fold(const FoldSpace& space, const std::optional<SweepPlan>& sweep, const void* data, Array& result, C init,
              const F& fn) {
  const E* x = static_cast<const E*>(data);
  E* y = static_cast<E*>(result.data());
  if (!sweep) return DirectFold<E, C, F>(space, x, y, init, fn).run();
  if (!sweep->complete) std::fill_n(y, result.size(), static_cast<E>(init));
  SweepFold<E, C, F>(space, *sweep, x, y, init, fn).run();
}

template <class C, class F>
Array fold(const View& x, C init, const F& fn, const std::variant<Window, Adaptive, Global>& region, Fold fold) {
  static_assert(std::is_invocable_r_v<C, const F&, C, C>, "fn must map two numbers of init's type to one");
  FoldSpace space = fold_space(x, type_of<C>, region);
  Array result(x.type, space.output_shape);
  if (result.size() == 0) return result;
  const auto sweep = fold == Fold::associative ? plan_sweep(space) : std::nullopt;
  if constexpr (std::is_same_v<C, float>) {
    if (x.type == Type::f16) run_fold<f16>(space, sweep, x.data, result, init, fn);
    if (x.type == Type::bf16) run_fold<bf16>(space, sweep, x.data, result, init, fn);
    if (x.type == Type::f32) run_fold<float>(space, sweep, x.data, result, init, fn);
  } else {
    using Stored = std::conditional_t<std::is_same_v<C, bool>, std::uint8_t, C>;
    run_fold<Stored>(space, sweep, x.data, result, init, fn);
  }
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
