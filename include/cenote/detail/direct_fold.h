// A fold that goes through every window cell by cell.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <cenote/detail/fold_space.h>

namespace cenote::detail {

/// The direct way: every window from its first cell to its last, a block of windows side by side.
template <class C, class F>
class DirectFold {
 public:
  DirectFold(const FoldSpace& space, const Folding<C, F>& folding)
      : space_(space), line_(space.pooled.back()), folding_(folding) {}

  void run() const {
    const std::int64_t wide = std::max<std::int64_t>(accumulators / space_.block, 1);
    Counter blocks;
    for (const FoldAxis& axis : space_.kept) blocks.add(axis.n);
    for (const FoldAxis& axis : space_.pooled)
      blocks.add(&axis == &line_ ? (axis.window.out + wide - 1) / wide : axis.window.out);
    blocks.add((space_.lanes.n + space_.block - 1) / space_.block);
    double cells = static_cast<double>(std::min(wide, line_.window.out) * space_.block);
    for (const FoldAxis& axis : space_.pooled) cells *= static_cast<double>(std::min(axis.window.size, axis.n) + 1);
    const auto grain = static_cast<std::int64_t>(std::max(1.0, 1e5 / cells));
    parallel_parts(blocks.total(), grain, [&](std::int64_t begin, std::int64_t end) {
      std::array<C, accumulators> values;
      Counter at = blocks;
      at.seek(begin);
      for (; begin < end; ++begin, at.next()) fold_block(at, wide, values.data());
    });
  }

 private:
  static constexpr std::int64_t accumulators = 1024;

  /// The windows [first, first + count) along the innermost pooled axis, for `lanes` lanes.
  struct Block {
    std::int64_t first, count, lanes;
  };

  void fold_block(const Counter& at, std::int64_t wide, C* values) const {
    std::int64_t x = 0, y = 0;
    std::size_t loop = 0;
    for (const FoldAxis& axis : space_.kept) {
      x += at[loop] * axis.x_stride;
      y += at[loop++] * axis.y_stride;
    }
    Counter rows;
    std::array<std::int64_t, max_rank> steps{};
    bool empty = false;
    for (std::size_t i = 0; i + 1 < space_.pooled.size(); ++i) {
      const FoldAxis& axis = space_.pooled[i];
      y += at[loop] * axis.y_stride;
      const Axis::Span span = axis.window.span(at[loop++]);
      rows.add(span.count);
      x += span.first * axis.x_stride;
      steps[i] = span.count > 1 ? axis.window.dilation * axis.x_stride : 0;
      empty = empty || span.count == 0;
    }
    const std::int64_t first = at[loop++] * wide, lane = at[loop] * space_.block;
    const Block block{first, std::min(wide, line_.window.out - first), std::min(space_.block, space_.lanes.n - lane)};
    x += lane * space_.lanes.x_stride;
    y += first * line_.y_stride + lane * space_.lanes.y_stride;

    std::fill_n(values, block.count * block.lanes, folding_.init);
    if (!empty) do {
        std::int64_t row = x;
        for (std::size_t i = 0; i + 1 < space_.pooled.size(); ++i) row += rows[i] * steps[i];
        if (line_.window.adaptive || block.count < 8)
          fold_each(row, block, values);
        else
          fold_taps(row, block, values);
      } while (rows.next());
    if (block.lanes == 1) return folding_.write(y, line_.y_stride, values, block.count);
    for (std::int64_t o = 0; o < block.count; ++o, y += line_.y_stride)
      folding_.write(y, space_.lanes.y_stride, values + o * block.lanes, block.lanes);
  }

  /// One line of cells, window after window.
  void fold_each(std::int64_t row, const Block& block, C* values) const {
    for (std::int64_t o = 0; o < block.count; ++o, values += block.lanes) {
      const Axis::Span span = line_.window.span(block.first + o);
      const std::int64_t step = span.count > 1 ? line_.window.dilation * line_.x_stride : 0;
      const std::int64_t x = row + span.first * line_.x_stride;
      if (block.lanes == 1)
        *values = folding_.append_all(*values, x, step, span.count);
      else
        for (std::int64_t i = 0; i < span.count; ++i)
          folding_.append_cells(values, x + i * step, space_.lanes.x_stride, block.lanes);
    }
  }

  /// One line of cells, tap after tap. As the tap grows, the windows [begin, end) that have a real cell there move
  /// down; taps without any are skipped, so that the cost follows the cells.
  void fold_taps(std::int64_t row, const Block& block, C* values) const {
    const Axis& axis = line_.window;
    const auto position = [&](std::int64_t o, std::int64_t tap) {
      return o * axis.stride - axis.low + tap * axis.dilation;
    };
    const auto first_tap = [&](std::int64_t o) {
      const std::int64_t start = position(o, 0);
      return start < 0 ? (-start - 1) / axis.dilation + 1 : 0;
    };
    std::int64_t begin = block.first + block.count, end = begin;
    for (std::int64_t tap = first_tap(end - 1); tap < axis.size; ++tap) {
      while (end > block.first && position(end - 1, tap) >= axis.n) --end;
      if (end == block.first) return;
      begin = std::min(begin, end);
      while (begin > block.first && position(begin - 1, tap) >= 0) --begin;
      if (begin == end) {
        tap = first_tap(end - 1) - 1;
        continue;
      }
      std::int64_t x = row + position(begin, tap) * line_.x_stride;
      const std::int64_t hop = end - begin > 1 ? axis.stride * line_.x_stride : 0;
      C* to = values + (begin - block.first) * block.lanes;
      if (block.lanes == 1)
        folding_.append_cells(to, x, hop, end - begin);
      else if (hop == block.lanes * space_.lanes.x_stride)
        folding_.append_cells(to, x, space_.lanes.x_stride, (end - begin) * block.lanes);
      else
        for (std::int64_t o = begin; o < end; ++o, x += hop, to += block.lanes)
          folding_.append_cells(to, x, space_.lanes.x_stride, block.lanes);
    }
  }

  const FoldSpace& space_;
  const FoldAxis& line_;
  const Folding<C, F>& folding_;
};

}  // namespace cenote::detail
