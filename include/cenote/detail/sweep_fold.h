// An associative fold at a cost that does not grow with the window.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <cenote/detail/fold_space.h>

namespace cenote::detail {

/// Windows of one axis over cells of their own, `step` apart from `origin` on, whose ends never move back: with
/// dilation 1 all of them, otherwise those whose cells have the same remainder. Each holds a real cell.
struct SweepRun {
  /// The number of the first window among those of the axis, and how many there are.
  std::int64_t base = 0, count = 0;
  std::int64_t output = 0, output_step = 1;
  std::int64_t origin = 0, cells = 0;
  /// Window i covers cells [start + i * advance, start + i * advance + size), as far as they exist.
  std::int64_t start = 0, advance = 1, size = 1;
};

struct SweepAxis {
  std::vector<SweepRun> runs;
  /// The windows of an adaptive axis instead of a formula.
  std::vector<std::pair<std::int64_t, std::int64_t>> bins;
  /// The output of each window; only for inner axes.
  std::vector<std::int64_t> outputs;
  /// `rows` is how many cells must be held at once: those of the longest window, or 1 if no two windows overlap.
  std::int64_t step = 1, count = 0, longest = 0, rows = 1;

  std::pair<std::int64_t, std::int64_t> window(const SweepRun& run, std::int64_t i) const noexcept {
    if (!bins.empty()) return bins[static_cast<std::size_t>(i)];
    const std::int64_t begin = run.start + i * run.advance, end = begin + run.size;
    return {begin < 0 ? 0 : begin, end < run.cells ? end : run.cells};
  }
};

/// How an associative fold is swept: axis by axis, the outermost in parts that may be done at once.
struct SweepPlan {
  /// Windows [begin, end) of a run of the outermost axis.
  struct Part {
    std::size_t run;
    std::int64_t begin, end;
  };
  std::vector<SweepAxis> axes;
  std::vector<Part> parts;
  /// The outermost axis has one window; `parts` are pieces of it that are still to be joined.
  bool pieces = false;
  /// Every output has a real cell.
  bool complete = true;
};
/// nullopt where the direct way is as good; otherwise also chooses the lanes anew.
std::optional<SweepPlan> plan_sweep(FoldSpace& space);

/// The associative way: one axis after the other, innermost first, two combinations per cell and one per window.
/// A window is the end of a block (`front`, folds of all its tails) joined with the beginning of the next (`sum`).
/// Rows of an outer axis are folded along the inner ones when the sweep reaches them and dropped behind it.
template <class C, class F>
class SweepFold {
 public:
  SweepFold(const FoldSpace& space, const SweepPlan& plan, const Folding<C, F>& folding)
      : space_(space), plan_(plan), folding_(folding) {}

  void run() const {
    const auto parts = static_cast<std::int64_t>(plan_.parts.size());
    Counter slices;
    for (const FoldAxis& axis : space_.kept) slices.add(axis.n);
    slices.add((space_.lanes.n + space_.block - 1) / space_.block);
    const std::int64_t count = slices.total() * parts, row_size = scratch_lanes(0);
    const Rows pieces = make_rows(plan_.pieces ? count * row_size : 0);
    const bool single = plan_.axes.size() == 1 && space_.block == 1;
    parallel_parts(count, std::max<std::int64_t>(count / 64, 1), [&](std::int64_t begin, std::int64_t end) {
      Scratch scratch(*this);
      for (; begin < end; ++begin) {
        const Slice slice = slice_at(slices, begin / parts);
        scratch.set_lanes(slice.lanes);
        const SweepPlan::Part& part = plan_.parts[static_cast<std::size_t>(begin % parts)];
        const Target target =
            plan_.pieces ? Target{pieces.get() + begin * row_size, 0, nullptr} : Target{scratch.row.get(), 0, &slice};
        const SweepRun& run = plan_.axes[0].runs[part.run];
        if (single)
          sweep<true>(scratch, 0, run, slice.x, part.begin, part.end, target);
        else
          sweep<false>(scratch, 0, run, slice.x, part.begin, part.end, target);
      }
    });
    if (plan_.pieces) combine(slices, pieces.get(), row_size);
  }

 private:
  using Rows = std::unique_ptr<C[]>;
  static Rows make_rows(std::int64_t size) {
    return std::make_unique_for_overwrite<C[]>(static_cast<std::size_t>(size));
  }

  /// One position of the kept axes: where it lies in x and y, and how many lanes it has.
  struct Slice {
    std::int64_t x, y, lanes;
  };
  /// Where folded windows go: to rows `step` apart, and on into y if a slice is given.
  struct Target {
    C* rows;
    std::int64_t step;
    const Slice* slice;
  };
  /// The state of the sweep along one axis; a row has `lanes` numbers.
  struct Level {
    std::int64_t lanes = 0;
    Rows front, back, sum;
  };
  struct Scratch {
    explicit Scratch(const SweepFold& fold) : fold_(fold), levels(fold.plan_.axes.size()) {
      for (std::size_t i = 0; i < levels.size(); ++i) {
        const std::int64_t lanes = fold.scratch_lanes(i), size = fold.plan_.axes[i].rows * lanes;
        levels[i] = {lanes, make_rows(size), make_rows(i + 1 < levels.size() ? size : 0), make_rows(lanes)};
      }
      row = make_rows(fold.scratch_lanes(0));
    }
    void set_lanes(std::int64_t lanes) {
      for (std::size_t i = levels.size(); i-- > 0; lanes *= fold_.plan_.axes[i].count) levels[i].lanes = lanes;
    }
    const SweepFold& fold_;
    std::vector<Level> levels;
    Rows row;
  };

  /// The most lanes of an axis: those of the slice for each window of the axes inside.
  std::int64_t scratch_lanes(std::size_t depth) const {
    std::int64_t lanes = space_.block;
    for (std::size_t i = depth + 1; i < plan_.axes.size(); ++i) lanes *= plan_.axes[i].count;
    return lanes;
  }

  Slice slice_at(Counter slices, std::int64_t number) const {
    slices.seek(number);
    Slice slice{0, 0, 0};
    std::size_t loop = 0;
    for (const FoldAxis& axis : space_.kept) {
      slice.x += slices[loop] * axis.x_stride;
      slice.y += slices[loop++] * axis.y_stride;
    }
    const std::int64_t lane = slices[loop] * space_.block;
    slice.x += lane * space_.lanes.x_stride;
    slice.y += lane * space_.lanes.y_stride;
    slice.lanes = std::min(space_.block, space_.lanes.n - lane);
    return slice;
  }

  /// Folds windows [from, to) of a run, with the axes inside. `single` is for one lane along the innermost axis, where
  /// rows are plain numbers.
  template <bool single>
  void sweep(Scratch& scratch, std::size_t depth, const SweepRun& run, std::int64_t x, std::int64_t from,
             std::int64_t to, const Target& target) const {
    const SweepAxis& axis = plan_.axes[depth];
    const Level& level = scratch.levels[depth];
    const bool leaf = single || depth + 1 == plan_.axes.size();
    const std::int64_t lanes = single ? 1 : level.lanes, x_stride = space_.pooled[depth].x_stride;
    const std::int64_t hop = run.cells > 1 ? axis.step * x_stride : 0;
    x += run.origin * x_stride;
    C *front = level.front.get(), *back = level.back.get(), *sum = level.sum.get();
    // Cells [start, middle) are held as tails in `front`; [middle, stop) as they are in `back`, and folded in `sum`.
    std::int64_t start = 0, middle = 0, stop = 0;
    const auto get = [&](std::int64_t q, C* row) {
      if (leaf)
        folding_.read(row, x + q * hop, space_.lanes.x_stride, lanes);
      else if (q < stop)
        std::copy_n(back + (q - middle) * lanes, lanes, row);
      else
        fold_inner(scratch, depth + 1, x + q * hop, row);
    };
    const auto append = [&](C* row, std::int64_t q, C* spare) {
      if (leaf) return folding_.append_cells(row, x + q * hop, space_.lanes.x_stride, lanes);
      get(q, spare);
      folding_.append(row, spare, 1, lanes);
    };
    auto [begin, end] = axis.window(run, from);
    for (std::int64_t i = from; i < to; ++i) {
      const auto next = axis.window(run, i + 1 < to ? i + 1 : i);
      if (begin >= middle) {
        if (i + 1 == to || next.first >= end) {
          get(begin, front);
          if (single)
            *front = folding_.append_all(*front, x + (begin + 1) * hop, hop, end - begin - 1);
          else
            for (std::int64_t q = begin + 1; q < end; ++q) append(front, q, sum);
        } else {
          get(end - 1, front + (end - 1 - begin) * lanes);
          for (std::int64_t q = end - 1; q-- > begin;) {
            C* tail = front + (q - begin) * lanes;
            get(q, tail);
            folding_.append(tail, tail + lanes, 1, lanes);
          }
        }
        start = begin;
        middle = stop = end;
      }
      for (; stop < end; ++stop) {
        C* held = leaf ? sum : back + (stop - middle) * lanes;
        if (stop > middle) {
          append(sum, stop, held);
        } else {
          get(stop, held);
          if (!leaf) std::copy_n(held, lanes, sum);
        }
      }
      C* row = target.rows + i * target.step;
      std::copy_n(front + (begin - start) * lanes, lanes, row);
      if (stop > middle) folding_.append(row, sum, 1, lanes);
      if (target.slice) {
        const std::int64_t y = target.slice->y + (run.output + i * run.output_step) * space_.pooled[0].y_stride;
        if (single)
          store(row, 1, y);
        else
          store_row(row, target.slice->lanes, y);
      }
      std::tie(begin, end) = next;
    }
  }

  /// Folds all windows of an axis, and of those inside it, into rows that follow each other.
  void fold_inner(Scratch& scratch, std::size_t depth, std::int64_t x, C* to) const {
    const std::int64_t lanes = scratch.levels[depth].lanes;
    const bool single = lanes == 1 && depth + 1 == plan_.axes.size();
    for (const SweepRun& run : plan_.axes[depth].runs) {
      const Target target{to + run.base * lanes, lanes, nullptr};
      if (single)
        sweep<true>(scratch, depth, run, x, 0, run.count, target);
      else
        sweep<false>(scratch, depth, run, x, 0, run.count, target);
    }
  }

  /// Puts init on the left of finished folds, in place, and writes them to y, lane by lane.
  void store(C* row, std::int64_t lanes, std::int64_t y) const {
    for (std::int64_t i = 0; i < lanes; ++i) row[i] = folding_.combine(folding_.init, row[i]);
    folding_.write(y, space_.lanes.y_stride, row, lanes);
  }

  /// The same for a row of the outermost axis, to all its places from y on.
  void store_row(C* row, std::int64_t lanes, std::int64_t y) const {
    const std::size_t rank = plan_.axes.size();
    if (rank == 1) return store(row, lanes, y);
    Counter at;
    for (std::size_t i = 1; i + 1 < rank; ++i) at.add(plan_.axes[i].count);
    const SweepAxis& inner = plan_.axes.back();
    do {
      std::int64_t line = y;
      for (std::size_t i = 1; i + 1 < rank; ++i)
        line += plan_.axes[i].outputs[static_cast<std::size_t>(at[i - 1])] * space_.pooled[i].y_stride;
      for (std::int64_t o = 0; o < inner.count; ++o, row += lanes)
        store(row, lanes, line + inner.outputs[static_cast<std::size_t>(o)] * space_.pooled.back().y_stride);
    } while (at.next());
  }

  /// Joins the pieces of the only window of the outermost axis, in their order.
  void combine(const Counter& slices, C* pieces, std::int64_t row_size) const {
    const auto parts = static_cast<std::int64_t>(plan_.parts.size());
    parallel_parts(slices.total(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; ++begin) {
        const Slice slice = slice_at(slices, begin);
        C* row = pieces + begin * parts * row_size;
        const std::int64_t used = row_size / space_.block * slice.lanes;
        for (std::int64_t i = 1; i < parts; ++i) folding_.append(row, row + i * row_size, 1, used);
        store_row(row, slice.lanes, slice.y + plan_.axes[0].runs[0].output * space_.pooled[0].y_stride);
      }
    });
  }

  const FoldSpace& space_;
  const SweepPlan& plan_;
  const Folding<C, F>& folding_;
};

}  // namespace cenote::detail
