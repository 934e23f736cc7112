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
#include "cpu/power_sums.h"
#include "cpu/scratch.h"

namespace cenote {
namespace {

constexpr std::int64_t piece_bytes = 192 << 10;  // of cells: with their powers and sums, less than a core's own cache
constexpr std::int64_t chunk = 1 << 14;          // elements of a large piece that one task handles
constexpr std::int64_t slack = 128;              // bytes that whole packs may be written behind an array

std::int64_t bytes_of(Type type) { return static_cast<std::int64_t>(size_of(type)); }
std::int64_t rounded(std::int64_t bytes) { return (bytes + slack + 63) / 64 * 64; }

// Calls body(begin, count) for pieces of [0, n): one, or as many as threads can share.
template <class Body>
void each_chunk(std::int64_t n, bool shared, const Body& body) {
  if (!shared) return body(std::int64_t{0}, n);
  parallel_for((n + chunk - 1) / chunk, [&](std::int64_t i) { body(i * chunk, std::min(chunk, n - i * chunk)); });
}

}  // namespace

std::shared_ptr<const TameCotangent> TameCotangent::make(const Plan::Impl& forward) {
  const auto rule = cpu::tame_rule(forward, Role::cotangent);
  if (!rule || element_count(forward.shape) == 0 || element_count(forward.geometry.kept_shape) == 0) return nullptr;
  return std::shared_ptr<const TameCotangent>(new TameCotangent(forward, *rule));
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
  const ImplPtr pooled = planned(forward_.pooling, forward_.type);
  Cotangent weighed(pooled, false);
  // Powers and sums of cells, sums of windows.
  const std::int64_t own = 2 * rounded(cells * bytes_of(lane)) + rounded(outputs * bytes_of(lane));
  return std::make_unique<const Piece>(
      Piece{shape, kept, cells, outputs, own + weighed.scratch(), pooled, sums, Cotangent(sums), std::move(weighed)});
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
  cpu::add_padded(*piece.planned, rule_, shares);
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
  if (!cpu::lies_side_by_side(x) || !cpu::lies_side_by_side(gy) || !cpu::lies_side_by_side(gx)) return false;
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
