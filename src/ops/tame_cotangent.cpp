// Gradients of smooth max and lp where cells are tame: made of sums, a few planes at a time.
#include "ops/tame_cotangent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/copy.h"
#include "core/parallel.h"
#include "cpu/execute.h"
#include "cpu/scratch.h"
#include "reduce/reducers.h"

namespace cenote {
namespace {

constexpr std::int64_t piece_bytes = 192 << 10;  // of cells: with their powers and sums, less than a core's own cache
constexpr std::int64_t chunk = 1 << 14;          // elements of a large piece that one task handles
constexpr std::int64_t slack = 128;              // bytes that whole packs may be written behind an array

std::int64_t bytes_of(Type type) { return static_cast<std::int64_t>(size_of(type)); }
std::int64_t rounded(std::int64_t bytes) { return (bytes + slack + 63) / 64 * 64; }

template <class V>
bool lies_side_by_side(const V& view) {
  std::int64_t step = 1;
  for (int i = view.rank() - 1; i >= 0; --i) {
    if (view.shape[i] != 1 && view.strides[i] != step) return false;
    step *= view.shape[i];
  }
  return true;
}

// Calls body(begin, count) for pieces of [0, n): one, or as many as threads can share.
template <class Body>
void each_chunk(std::int64_t n, bool shared, const Body& body) {
  if (!shared) return body(std::int64_t{0}, n);
  parallel_for((n + chunk - 1) / chunk, [&](std::int64_t i) { body(i * chunk, std::min(chunk, n - i * chunk)); });
}

/// Of magnitudes, or of cells, as kernels see them.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
};
using Look = void (*)(const void* line, std::int64_t n, double& low, double& high);

Range range_of(const void* line, std::int64_t n, Type type, Look look, bool shared) {
  std::vector<Range> parts(static_cast<std::size_t>(shared ? (n + chunk - 1) / chunk : 0));
  Range all;
  each_chunk(n, shared, [&](std::int64_t begin, std::int64_t count) {
    Range& range = shared ? parts[static_cast<std::size_t>(begin / chunk)] : all;
    look(static_cast<const std::byte*>(line) + begin * bytes_of(type), count, range.low, range.high);
  });
  for (const Range& part : parts) {
    all.low = std::min(all.low, part.low);
    // NaN, which stands for what is not finite, stays.
    if (!(part.high <= all.high) && !std::isnan(all.high)) all.high = part.high;
  }
  return all;
}

}  // namespace

std::shared_ptr<const TameCotangent> TameCotangent::make(const Plan::Impl& forward) {
  const cpu::Kernels kernels = cpu::kernels(forward.type, forward.pooling.reducer, Role::value);
  const bool simple =
      forward.pooling.reducer == Reducer::lp ? forward.params.p == 1 || forward.params.p == 2 : forward.params.crowded;
  if (!kernels.powers || !simple || element_count(forward.shape) == 0 ||
      element_count(forward.geometry.kept_shape) == 0)
    return nullptr;
  std::shared_ptr<const TameCotangent> result(new TameCotangent(forward));
  // The counts of a large plane would be as large as it is.
  return result->large_ && !forward.count ? nullptr : result;
}

TameCotangent::TameCotangent(const Plan::Impl& forward)
    : forward_(forward), kernels_(cpu::kernels(forward.type, forward.pooling.reducer, Role::value)) {
  const std::int64_t lane = bytes_of(forward.lane_type);
  // The outermost axis of which one index fits a piece.
  std::int64_t cells = element_count(forward.shape);
  for (int i = 0; i < forward.geometry.pooled[0]; ++i) {
    cells /= forward.shape[i];
    axis_ = i;
    if (cells * lane <= piece_bytes) break;
  }
  large_ = cells * lane > piece_bytes;
  if (axis_ >= 0) planes_ = std::clamp<std::int64_t>(piece_bytes / (cells * lane), 1, forward.shape[axis_]);
  pieces_[0] = piece(planes_);
  const std::int64_t rest = axis_ < 0 ? 0 : forward.shape[axis_] % planes_;
  if (rest > 0) pieces_[1] = piece(rest);
}

std::unique_ptr<const TameCotangent::Piece> TameCotangent::piece(std::int64_t planes) const {
  Extents shape = forward_.shape, kept = forward_.geometry.kept_shape;
  for (int i = 0; i <= axis_; ++i) shape[i] = kept[i] = i < axis_ ? 1 : planes;
  const Type lane = is_half(forward_.type) ? Type::f32 : forward_.type;
  const auto planned = [&](const Pooling& pooling, Type type) {
    auto part = std::make_shared<Plan::Impl>(plan(pooling, type, shape).impl());
    if (!large_) part->bytes = 0;  // small pieces stay on their thread, and in its cache
    return part;
  };
  const ImplPtr sums = planned({.reducer = Reducer::sum, .region = forward_.pooling.region}, lane);
  const std::int64_t cells = element_count(shape), outputs = element_count(kept);
  Cotangent weighed(planned(forward_.pooling, forward_.type), false);
  // Powers and sums of cells, sums of windows; and of halves, cells and gy as lanes.
  const std::int64_t wider = is_half(forward_.type) ? 1 : 0;
  const std::int64_t own =
      (2 + wider) * rounded(cells * bytes_of(lane)) + (1 + wider) * rounded(outputs * bytes_of(lane));
  const bool counts = !forward_.count && !large_;
  return std::make_unique<const Piece>(Piece{shape, kept, cells, outputs, std::max(own, weighed.scratch()), sums,
                                             Cotangent(sums), std::move(weighed),
                                             counts ? count_padded(kept) : std::vector<double>()});
}

std::vector<double> TameCotangent::count_padded(const Extents& kept_shape) const {
  const Extents& pooled = forward_.geometry.pooled;
  std::vector<double> counts(static_cast<std::size_t>(element_count(kept_shape)));
  for (std::size_t output = 0; output < counts.size(); ++output) {
    std::int64_t rest = static_cast<std::int64_t>(output);
    double real = 1, all = 1;
    for (int i = kept_shape.size() - 1, level = pooled.size() - 1; i >= 0; --i) {
      const std::int64_t o = rest % kept_shape[i];
      rest /= kept_shape[i];
      if (level < 0 || pooled[level] != i) continue;
      const Axis& axis = forward_.geometry.axes[static_cast<std::size_t>(level--)];
      real *= static_cast<double>(axis.span(o).count);
      all *= static_cast<double>(axis.clipped(o));
    }
    counts[output] = all - real;
  }
  return counts;
}

Params TameCotangent::tamed(const void* x, std::int64_t cells, const void* gy, std::int64_t outputs) const {
  const bool lp = forward_.pooling.reducer == Reducer::lp, wide = forward_.type == Type::f64;
  const Range given =
      range_of(gy, outputs, forward_.type, cpu::kernels(forward_.type, Reducer::lp, Role::value).range, large_);
  Range range = range_of(x, cells, forward_.type, kernels_.range, large_);
  if (!forward_.count) {
    range.low = std::min(range.low, 0.0);
    if (range.high < 0) range.high = 0;
  }
  const auto at = [&]<class N>(N) {
    const auto of = [&](auto make) {
      return make(forward_.params, static_cast<N>(range.low), static_cast<N>(range.high));
    };
    return lp ? of(scalar::Lp::tamed<N>) : of(scalar::SmoothMax::tamed<N>);
  };
  Params params = wide ? at(double{}) : at(float{});
  if (!params.tame) return params;
  // What gy is divided by lies between these powers of two: the quotients, and sums of them, must be normal numbers.
  double taps = 1;
  for (const Axis& axis : forward_.geometry.axes) taps *= static_cast<double>(axis.adaptive ? axis.n : axis.size);
  const double least =
      lp ? std::log2(range.low) : -(range.high - range.low) * std::fabs(forward_.params.beta) * 1.45 - 2;
  const double most = (lp ? std::log2(range.high) : 2) + std::log2(taps);
  const double widest = wide ? 1020 : 124;
  params.tame = std::log2(given.high) + std::log2(taps) - std::min(least, 0.0) <= widest &&
                std::log2(given.low) - std::max(most, 0.0) >= -widest;
  return params;
}

template <class A>
void TameCotangent::make(const Piece& piece, const std::byte* x, const std::byte* gy, std::byte* gx,
                         std::byte* memory) const {
  const Type type = forward_.type, lane = type_of<A>;
  const std::int64_t bytes = bytes_of(type);
  const Params params = tamed(x, piece.cells, gy, piece.outputs);
  if (!params.tame)
    return piece.weighed.run(View(x, type, piece.shape), View(gy, type, piece.kept_shape),
                             MutableView(gx, type, piece.shape), memory);
  const auto take = [&](std::int64_t count) {
    auto* result = reinterpret_cast<A*>(memory);
    memory += rounded(count * bytes_of(lane));
    return result;
  };
  A *const powers = take(piece.cells), *const sums = take(piece.cells), *const shares = take(piece.outputs);
  const bool half = is_half(type);
  A* const lanes = half ? take(piece.cells) : nullptr;
  A* const given = half ? take(piece.outputs) : nullptr;
  const A* cells = half ? lanes : reinterpret_cast<const A*>(x);
  const A* cotangents = half ? given : reinterpret_cast<const A*>(gy);
  each_chunk(piece.cells, large_, [&](std::int64_t begin, std::int64_t count) {
    kernels_.powers(x + begin * bytes, 0, powers + begin, count, 0, params);
    if (half) convert_line(lane, lanes + begin, type, x + begin * bytes, 1, count);
  });
  const MutableView windows(shares, lane, piece.kept_shape);
  cpu::execute(*piece.sums, {.x = View(powers, lane, piece.shape), .y = windows});
  const bool lp = forward_.pooling.reducer == Reducer::lp;
  const auto share = [&](const auto& spread) {
    each_chunk(piece.outputs, large_, [&](std::int64_t begin, std::int64_t count) {
      if (half) convert_line(lane, given + begin, type, gy + begin * bytes, 1, count);
      for (std::int64_t i = begin; i < begin + count; ++i)
        shares[i] = shares[i] == A{0} ? A{0} : cotangents[i] / spread(shares[i]);
    });
  };
  if (!piece.padded.empty()) {
    const double zero = static_cast<double>(scalar::SmoothMax(params).tame_power(A{0}));
    for (std::int64_t i = 0; i < piece.outputs; ++i)
      shares[i] += static_cast<A>(zero * piece.padded[static_cast<std::size_t>(i)]);
  }
  if (!lp)
    share([](A sum) { return sum; });
  else if (params.p == 1)
    share([](A) { return A{1}; });
  else
    share([](A sum) { return std::sqrt(sum); });
  piece.back.run(View(), windows, MutableView(sums, lane, piece.shape), nullptr);
  const auto weigh = [&](const auto& slope) {
    each_chunk(piece.cells, large_, [&](std::int64_t begin, std::int64_t count) {
      A* const to = half ? sums : reinterpret_cast<A*>(gx);
      // A cell that no window holds gets 0 without a sign.
      for (std::int64_t i = begin; i < begin + count; ++i) to[i] = slope(i) * sums[i] + A{0};
      if (half) narrow_line(type, gx + begin * bytes, lane, sums + begin, count);
    });
  };
  if (!lp)
    weigh([&](std::int64_t i) { return powers[i]; });
  else if (params.p == 1)
    weigh([&](std::int64_t i) { return static_cast<A>((cells[i] > 0) - (cells[i] < 0)); });
  else
    weigh([&](std::int64_t i) { return cells[i]; });
}

bool TameCotangent::run(const View& x, const View& gy, const MutableView& gx, std::byte* scratch) const {
  if (!lies_side_by_side(x) || !lies_side_by_side(gy) || !lies_side_by_side(gx)) return false;
  const Piece& whole = *pieces_[0];
  const std::int64_t along = axis_ < 0 ? 1 : forward_.shape[axis_];
  const std::int64_t pieces = (along + planes_ - 1) / planes_, bytes = bytes_of(forward_.type);
  const std::int64_t cells = whole.cells / planes_, outputs = whole.outputs / planes_;
  const std::int64_t all = element_count(forward_.shape) / (cells * along) * pieces;
  const auto one = [&](std::int64_t i, std::byte* memory) {
    const std::int64_t first = i / pieces * along + i % pieces * planes_;
    const Piece& piece = (i + 1) % pieces == 0 && pieces_[1] ? *pieces_[1] : whole;
    const auto* from = static_cast<const std::byte*>(x.data) + first * cells * bytes;
    const auto* given = static_cast<const std::byte*>(gy.data) + first * outputs * bytes;
    auto* to = static_cast<std::byte*>(gx.data) + first * cells * bytes;
    forward_.type == Type::f64 ? make<double>(piece, from, given, to, memory)
                               : make<float>(piece, from, given, to, memory);
  };
  if (large_) {
    for (std::int64_t i = 0; i < all; ++i) one(i, scratch);
    return true;
  }
  // Not the kernels' own memory, which they release. Waiting threads may begin another piece, and end it, in between.
  parallel_for(all, [&](std::int64_t i) {
    static thread_local cpu::Scratch pieces_memory;
    const cpu::Scratch::Mark mark = pieces_memory.mark();
    one(i, pieces_memory.take(whole.bytes));
    pieces_memory.release(mark);
  });
  return true;
}

}  // namespace cenote
