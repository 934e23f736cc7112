// Gradients of smooth max and lp where cells are tame: made of sums, a few planes at a time.
#include "ops/tame_cotangent.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "core/parallel.h"
#include "cpu/execute.h"
#include "cpu/machine.h"
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

// The rule by which cells are tame, if there is one. Powers of two that f32 and f64 bear: their sums, quotients and
// sums of those are normal numbers, whatever the signs.
std::optional<cpu::TameRule> tame_rule(const Plan::Impl& plan) {
  const bool lp = plan.pooling.reducer == Reducer::lp, wide = plan.type == Type::f64;
  const auto within = [](int low, int high) { return Bounds{std::ldexp(1.0, low), std::ldexp(1.0, high)}; };
  const Bounds given = wide ? within(-500, 300) : within(-60, 40);
  if (lp) {
    const double p = plan.params.p;
    if (p != 1 && p != 2 && p != 3 && p != 4) return std::nullopt;
    const auto weight = static_cast<cpu::Weight>(static_cast<int>(cpu::Weight::sign) + static_cast<int>(p) - 1);
    if (p > 2) {
      // Roots are raised to powers, too.
      const int low = (wide ? -600 : -80) / static_cast<int>(p), high = (wide ? 400 : 60) / static_cast<int>(p);
      return cpu::TameRule{plan.type, weight, plan.params, within(low, high), given};
    }
    return cpu::TameRule{plan.type, weight, plan.params, wide ? within(-400, 300) : within(-50, 40), given};
  }
  const double beta = std::fabs(plan.params.beta);
  if (plan.pooling.reducer != Reducer::smooth_max || !plan.params.crowded || beta > (wide ? 1e300 : 1e30))
    return std::nullopt;
  Params params = plan.params;
  params.tame = true;
  const double doublings = wide ? 300 : 40;
  return cpu::TameRule{plan.type, cpu::Weight::power, params, {0, doublings * std::numbers::ln2 / beta}, given};
}

}  // namespace

std::shared_ptr<const TameCotangent> TameCotangent::make(const Plan::Impl& forward) {
  const auto rule = tame_rule(forward);
  if (!rule || element_count(forward.shape) == 0 || element_count(forward.geometry.kept_shape) == 0) return nullptr;
  std::shared_ptr<const TameCotangent> result(new TameCotangent(forward, *rule));
  // The counts of a large plane would be as large as it is.
  return result->large_ && !forward.count ? nullptr : result;
}

TameCotangent::TameCotangent(const Plan::Impl& forward, const cpu::TameRule& rule)
    : forward_(forward),
      rule_(rule),
      stream_(2 * element_count(forward.shape) * bytes_of(forward.type) > cpu::last_level_cache()) {
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
  // Powers and sums of cells, sums of windows.
  const std::int64_t own = 2 * rounded(cells * bytes_of(lane)) + rounded(outputs * bytes_of(lane));
  const bool counts = !forward_.count && !large_;
  return std::make_unique<const Piece>(Piece{shape, kept, cells, outputs, own + weighed.scratch(), sums,
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

template <class A>
void TameCotangent::make(const Piece& piece, const std::byte* x, const std::byte* gy, std::byte* gx,
                         std::byte* memory) const {
  const Type type = forward_.type, lane = type_of<A>;
  const std::int64_t bytes = bytes_of(type);
  const auto take = [&](std::int64_t count) {
    auto* result = reinterpret_cast<A*>(memory);
    memory += rounded(count * bytes_of(lane));
    return result;
  };
  A *const powers = take(piece.cells), *const sums = take(piece.cells), *const shares = take(piece.outputs);
  std::atomic<bool> wild = false, some = false;
  const auto note = [](std::atomic<bool>& flag, bool value) {
    if (value) flag.store(true, std::memory_order_relaxed);
  };
  each_chunk(piece.cells, large_, [&](std::int64_t begin, std::int64_t count) {
    note(wild, cpu::tame_cells(rule_, x + begin * bytes, powers + begin, count));
  });
  const MutableView windows(shares, lane, piece.kept_shape);
  cpu::execute(*piece.sums, {.x = View(powers, lane, piece.shape), .y = windows});
  if (!piece.padded.empty()) {
    const double zero = static_cast<double>(scalar::SmoothMax(rule_.params).tame_power(A{0}));
    for (std::int64_t i = 0; i < piece.outputs; ++i)
      shares[i] += static_cast<A>(zero * piece.padded[static_cast<std::size_t>(i)]);
  }
  each_chunk(piece.outputs, large_, [&](std::int64_t begin, std::int64_t count) {
    const cpu::Shares found = cpu::share_sums(rule_, gy + begin * bytes, shares + begin, count);
    note(wild, found.wild);
    note(some, found.tame);
  });
  if (wild)
    piece.weighed.run(View(x, type, piece.shape), View(gy, type, piece.kept_shape), MutableView(gx, type, piece.shape),
                      memory);
  if (wild && !some) return;
  piece.back.run(View(), windows, MutableView(sums, lane, piece.shape), nullptr);
  const cpu::Put put = wild ? cpu::Put::mend : stream_ ? cpu::Put::stream : cpu::Put::store;
  each_chunk(piece.cells, large_, [&](std::int64_t begin, std::int64_t count) {
    cpu::weigh_cells(rule_, x + begin * bytes, powers + begin, sums + begin, gx + begin * bytes, count, put);
  });
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
