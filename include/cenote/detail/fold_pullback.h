// Reverse mode of a fold: every window sends its cotangent back to its cells, at a cost linear in its cells.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include <cenote/detail/fold_space.h>
#include <cenote/dual.h>

namespace cenote::detail {

/// What reaches rows [begin, end) of a pooled axis: outputs [first, last), whose windows lie in rows [low, high).
struct Cover {
  std::int64_t first = 0, last = 0, low = 0, high = 0;
};
Cover cover(const Axis& axis, std::int64_t begin, std::int64_t end) noexcept;

/// How the work is cut. A task owns some lanes of one position of the kept axes and `rows` rows of the outermost pooled
/// axis; it goes through all windows that reach them.
struct PullbackPlan {
  FoldSpace space;
  std::int64_t rows = 1, tasks_at_once = 1;
  /// Whether a task copies its rows, lanes side by side; else they lie so already. And the strides of the pooled axes
  /// where it reads.
  bool gathered = false;
  Extents strides;
};
/// Requires that x lies in memory without gaps and that there is an output and an element of x.
PullbackPlan plan_pullback(FoldSpace space);

/// With the cells c0 … cm of a window in their order, y = f(f(before, ct), after): `before` folds init and the cells up
/// to ct, `after` those behind it. That is what associativity gives, and a dual number in place of ct finds dy/dct.
/// N is the number type: float or double, or a Dual of them, which makes this its own derivative.
///
/// An element of gx is written by the one task that owns it, and what reaches it is added in the order of the outputs.
/// No weight depends on how the work is cut, so no bit does.
template <class N, class F>
class FoldPullback {
 public:
  FoldPullback(const PullbackPlan& plan, const F& fn, const N& init, const N* x, const N* gy, N* gx)
      : plan_(plan), space_(plan.space), fn_(fn), init_(init), x_(x), gy_(gy), gx_(gx) {}

  /// Fills gx, which must hold zeros.
  void run() const {
    Counter tasks;
    for (const FoldAxis& axis : space_.kept) tasks.add(axis.n);
    tasks.add((space_.lanes.n + space_.block - 1) / space_.block);
    tasks.add((space_.pooled[0].n + plan_.rows - 1) / plan_.rows);
    parallel_parts(tasks.total(), plan_.tasks_at_once, [&](std::int64_t begin, std::int64_t end) {
      Scratch scratch(static_cast<std::size_t>(space_.block));
      Counter at = tasks;
      at.seek(begin);
      for (; begin < end; ++begin, at.next()) run_task(at, scratch);
    });
  }

 private:
  /// Where a task lies in x (and gx) and gy, what it owns and what it reads.
  struct Task {
    std::int64_t x = 0, y = 0, lanes = 0, begin = 0, end = 0;
    Cover cover{};
    /// The memory of its rows, which begins at row `low` of x and at row `begin` of gx.
    const N* cells = nullptr;
    N* sums = nullptr;
  };

  struct Scratch {
    explicit Scratch(std::size_t lanes) : before(lanes), cotangent(lanes) {}
    std::vector<N> before, after, cotangent, cells, sums;
    /// Where the cells of a window lie, counted from its first; the same for all windows with as many along each axis.
    std::vector<std::int64_t> offsets;
    std::array<std::int64_t, max_rank> counts{};
  };

  void run_task(const Counter& at, Scratch& scratch) const {
    Task task;
    std::size_t loop = 0;
    for (const FoldAxis& axis : space_.kept) {
      task.x += at[loop] * axis.x_stride;
      task.y += at[loop++] * axis.y_stride;
    }
    const std::int64_t lane = at[loop++] * space_.block;
    task.x += lane * space_.lanes.x_stride;
    task.y += lane * space_.lanes.y_stride;
    task.lanes = std::min(space_.block, space_.lanes.n - lane);
    const FoldAxis& outer = space_.pooled[0];
    task.begin = at[loop] * plan_.rows;
    task.end = std::min(task.begin + plan_.rows, outer.n);
    task.cover = cover(outer.window, task.begin, task.end);
    if (task.cover.first >= task.cover.last) return;
    if (plan_.gathered) {
      gather(task, scratch);
    } else {
      task.cells = x_ + task.x + task.cover.low * plan_.strides[0];
      task.sums = gx_ + task.x + task.begin * plan_.strides[0];
    }
    Counter outputs;
    outputs.add(task.cover.last - task.cover.first);
    for (std::size_t i = 1; i < space_.pooled.size(); ++i) outputs.add(space_.pooled[i].window.out);
    do run_window(task, outputs, scratch);
    while (outputs.next());
    if (plan_.gathered) scatter(task, scratch);
  }

  void run_window(const Task& task, const Counter& output, Scratch& scratch) const {
    std::array<std::int64_t, max_rank> counts{};
    std::int64_t first = 0, y = task.y, row = 0;
    for (std::size_t i = 0; i < space_.pooled.size(); ++i) {
      const FoldAxis& axis = space_.pooled[i];
      const std::int64_t o = i == 0 ? task.cover.first + output[i] : output[i];
      const Axis::Span span = axis.window.span(o);
      if (span.count == 0) return;
      counts[i] = span.count;
      y += o * axis.y_stride;
      if (i == 0)
        row = span.first;
      else
        first += span.first * plan_.strides[static_cast<int>(i)];
    }
    if (counts != scratch.counts) list_cells(counts, scratch);
    // The outermost axis is the slowest, so that the cells in the task's rows follow each other.
    const auto total = static_cast<std::int64_t>(scratch.offsets.size()), inner = total / counts[0];
    const std::int64_t dilation = space_.pooled[0].window.dilation;
    const auto cells_before = [&](std::int64_t end) {
      return end <= row ? 0 : std::min((end - row - 1) / dilation + 1, counts[0]) * inner;
    };
    const std::int64_t begin = cells_before(task.begin), end = cells_before(task.end);
    if (begin == end) return;
    for (std::int64_t lane = 0; lane < task.lanes; ++lane)
      scratch.cotangent[static_cast<std::size_t>(lane)] = gy_[y + lane * space_.lanes.y_stride];
    const std::int64_t to_cells = first + (row - task.cover.low) * plan_.strides[0];
    send(task, scratch, to_cells, to_cells + (task.cover.low - task.begin) * plan_.strides[0], begin, end);
  }

  /// Lists the offsets of a window's cells in row-major order.
  void list_cells(const std::array<std::int64_t, max_rank>& counts, Scratch& scratch) const {
    Counter at;
    for (std::size_t i = 0; i < space_.pooled.size(); ++i) at.add(counts[i]);
    scratch.counts = counts;
    scratch.offsets.clear();
    scratch.offsets.reserve(static_cast<std::size_t>(at.total()));
    do {
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < space_.pooled.size(); ++i)
        if (at[i] > 0) offset += at[i] * space_.pooled[i].window.dilation * plan_.strides[static_cast<int>(i)];
      scratch.offsets.push_back(offset);
    } while (at.next());
  }

  /// Sends a window's cotangent to its cells [begin, end). The cells begin at `to_cells`, their sums at `to_sums`.
  void send(const Task& task, Scratch& scratch, std::int64_t to_cells, std::int64_t to_sums, std::int64_t begin,
            std::int64_t end) const {
    const std::int64_t* offsets = scratch.offsets.data();
    const auto total = static_cast<std::int64_t>(scratch.offsets.size());
    const std::int64_t lanes = task.lanes;
    const auto cell = [&](std::int64_t t) { return task.cells + (to_cells + offsets[t]); };

    scratch.after.resize(static_cast<std::size_t>((end - begin) * space_.block));
    const auto after = [&](std::int64_t t) { return scratch.after.data() + (t - begin) * space_.block; };
    for (std::int64_t t = total - 1; t > begin; --t) {
      // What lies behind the owned cells is folded in one place.
      N* to = after(std::min(t, end) - 1);
      if (t + 1 == total)
        std::copy_n(cell(t), lanes, to);
      else
        prepend(cell(t), after(std::min(t + 1, end) - 1), to, lanes);
    }

    N* before = scratch.before.data();
    std::fill_n(before, lanes, init_);
    for (std::int64_t t = 0; t < begin; ++t) append(before, cell(t), lanes);
    for (std::int64_t t = begin; t < end; ++t) {
      N* sums = task.sums + (to_sums + offsets[t]);
      if (t + 1 < total)
        add_inside(before, cell(t), after(t), scratch.cotangent.data(), sums, lanes);
      else
        add_last(before, cell(t), scratch.cotangent.data(), sums, lanes);
    }
  }

  N combine(const N& a, const N& b) const { return static_cast<N>(fn_(a, b)); }
  Dual<N> combine(const Dual<N>& a, const Dual<N>& b) const { return static_cast<Dual<N>>(fn_(a, b)); }

  void append(N* __restrict before, const N* __restrict cell, std::int64_t lanes) const {
    for (std::int64_t i = 0; i < lanes; ++i) before[i] = combine(before[i], cell[i]);
  }
  /// `from` and `to` may be the same.
  void prepend(const N* cell, const N* from, N* to, std::int64_t lanes) const {
    for (std::int64_t i = 0; i < lanes; ++i) to[i] = combine(cell[i], from[i]);
  }
  void add_inside(N* __restrict before, const N* __restrict cell, const N* __restrict after,
                  const N* __restrict cotangent, N* __restrict sums, std::int64_t lanes) const {
    for (std::int64_t i = 0; i < lanes; ++i) {
      const Dual<N> until = combine(Dual<N>(before[i], N(0)), Dual<N>(cell[i], N(1)));
      const Dual<N> y = combine(until, Dual<N>(after[i], N(0)));
      before[i] = until.value;
      sums[i] = sums[i] + cotangent[i] * y.tangent;
    }
  }
  void add_last(const N* __restrict before, const N* __restrict cell, const N* __restrict cotangent, N* __restrict sums,
                std::int64_t lanes) const {
    for (std::int64_t i = 0; i < lanes; ++i) {
      const Dual<N> y = combine(Dual<N>(before[i], N(0)), Dual<N>(cell[i], N(1)));
      sums[i] = sums[i] + cotangent[i] * y.tangent;
    }
  }

  /// Calls use(place in the array, place in the copy) for each cell of rows [begin, end) of a task.
  template <class Use>
  void for_rows(const Task& task, std::int64_t begin, std::int64_t end, const Use& use) const {
    Counter at;
    at.add(end - begin);
    for (std::size_t i = 1; i < space_.pooled.size(); ++i) at.add(space_.pooled[i].n);
    std::int64_t copy = 0;
    do {
      std::int64_t place = task.x + begin * space_.pooled[0].x_stride;
      for (std::size_t i = 0; i < space_.pooled.size(); ++i) place += at[i] * space_.pooled[i].x_stride;
      use(place, copy);
      copy += space_.block;
    } while (at.next());
  }
  void gather(Task& task, Scratch& scratch) const {
    const std::int64_t stride = plan_.strides[0], step = space_.lanes.x_stride;
    scratch.cells.resize(static_cast<std::size_t>((task.cover.high - task.cover.low) * stride));
    scratch.sums.assign(static_cast<std::size_t>((task.end - task.begin) * stride), N(0));
    task.cells = scratch.cells.data();
    task.sums = scratch.sums.data();
    for_rows(task, task.cover.low, task.cover.high, [&](std::int64_t place, std::int64_t copy) {
      for (std::int64_t i = 0; i < task.lanes; ++i)
        scratch.cells[static_cast<std::size_t>(copy + i)] = x_[place + i * step];
    });
  }
  void scatter(const Task& task, const Scratch& scratch) const {
    for_rows(task, task.begin, task.end, [&](std::int64_t place, std::int64_t copy) {
      for (std::int64_t i = 0; i < task.lanes; ++i)
        gx_[place + i * space_.lanes.x_stride] = scratch.sums[static_cast<std::size_t>(copy + i)];
    });
  }

  const PullbackPlan& plan_;
  const FoldSpace& space_;
  const F& fn_;
  N init_;
  const N *x_, *gy_;
  N* gx_;
};

}  // namespace cenote::detail
