// The compiled part of the generic pool: checks, the order of its loops, and how an associative fold is swept.
#include <cenote/fold.h>

#include <bit>
#include <cstdlib>
#include <numeric>

#include "core/reject.h"
#include "core/views.h"

namespace cenote::detail {
namespace {

// Parts of the work to aim for when there are few slices: fixed, so that no result depends on the threads.
constexpr std::int64_t wanted_parts = 64;

Type compute_type(Type type) { return is_half(type) ? Type::f32 : type; }

void check_input(const char* who, const View& x, Type compute) {
  if (compute != compute_type(x.type))
    reject(who, "init of type ", name(compute), " for x of type ", name(x.type), ": must be ",
           name(compute_type(x.type)), ", the type that ", name(x.type), " is folded in");
  check_memory(who, "x", x);
}

bool is_identity(const Axis& axis) {
  return !axis.adaptive && axis.size == 1 && axis.stride == 1 && axis.low == 0 && axis.high == 0 && axis.out == axis.n;
}

std::int64_t distance(const FoldAxis& axis) { return std::abs(axis.x_stride); }

double cells_per_window(const FoldSpace& space) {
  double cells = 1;
  for (const FoldAxis& axis : space.pooled) cells *= static_cast<double>(std::min(axis.window.size, axis.n));
  return cells;
}

// Makes a kept axis the one of the lanes, and the lanes, if there were any, a kept axis again.
void take_lanes(FoldSpace& space, std::size_t number) {
  std::swap(space.lanes, space.kept[number]);
  if (space.kept[number].n == 1) space.kept.erase(space.kept.begin() + static_cast<std::ptrdiff_t>(number));
}

// Direct folds run along the closest elements: kept ones, unless those of the innermost pooled axis are closer and
// many.
void choose_direct_lanes(FoldSpace& space) {
  const auto closest = std::min_element(space.kept.begin(), space.kept.end(),
                                        [](const FoldAxis& a, const FoldAxis& b) { return distance(a) < distance(b); });
  if (closest == space.kept.end()) return;
  const FoldAxis& line = space.pooled.back();
  if (distance(*closest) >= distance(line) && line.window.out >= 8) return;
  const std::int64_t most = distance(*closest) <= 1 ? 1024 : 8;
  take_lanes(space, static_cast<std::size_t>(closest - space.kept.begin()));
  space.block = std::min(space.lanes.n, most);
}

}  // namespace

FoldSpace fold_space(const char* who, const View& x, Type compute,
                     const std::variant<Window, Adaptive, Global>& region) {
  check_input(who, x, compute);
  const Geometry geometry = fold_geometry(who, region, x.shape);
  FoldSpace space;
  space.output_shape = geometry.output_shape;
  Extents kept_shape = x.shape;
  for (int i = 0; i < geometry.pooled.size(); ++i)
    kept_shape[static_cast<int>(geometry.pooled[i])] = geometry.axes[static_cast<std::size_t>(i)].out;
  if (element_count(kept_shape) == 0) return space;
  const Extents y_strides = row_major_strides(kept_shape);
  const bool any_window = !std::all_of(geometry.axes.begin(), geometry.axes.end(), is_identity);
  bool mergeable = false;
  for (int i = 0, p = 0; i < x.rank(); ++i) {
    FoldAxis axis{x.shape[i], x.strides[i], y_strides[i], {}};
    if (p < geometry.pooled.size() && geometry.pooled[p] == i) {
      axis.window = geometry.axes[static_cast<std::size_t>(p++)];
      if (!any_window || !is_identity(axis.window)) {
        space.pooled.push_back(axis);
        mergeable = false;
        continue;
      }
    }
    if (axis.n == 1) continue;
    std::int64_t whole = 0;
    const bool fits = !__builtin_mul_overflow(axis.n, axis.x_stride, &whole);
    if (mergeable && fits && space.kept.back().x_stride == whole) {
      axis.n *= space.kept.back().n;
      space.kept.back() = axis;
    } else {
      space.kept.push_back(axis);
    }
    mergeable = true;
  }
  choose_direct_lanes(space);
  return space;
}

namespace {

SweepAxis sweep_bins(const Axis& axis) {
  SweepAxis result;
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const Axis::Span span = axis.span(o);
    if (span.count == 0) return result;  // then n is 0, and no bin has a cell
    if (o > 0 && span.first < result.bins.back().second) result.rows = 0;
    result.bins.emplace_back(span.first, span.first + span.count);
    result.longest = std::max(result.longest, span.count);
  }
  if (result.rows == 0) result.rows = result.longest;
  result.count = axis.out;
  result.runs.push_back({.count = axis.out, .cells = axis.n});
  return result;
}

// Outputs whose windows begin at cells of equal remainder modulo the dilation lie `apart` from each other; in units of
// the dilation, their windows are `advance` apart and not dilated.
SweepAxis sweep_windows(const Axis& axis) {
  SweepAxis result;
  result.step = axis.dilation;
  const std::int64_t common = std::gcd(axis.stride, axis.dilation);
  const std::int64_t apart = axis.dilation / common, advance = axis.stride / common;
  for (std::int64_t o = 0; o < std::min(apart, axis.out); ++o) {
    const std::int64_t position = o * axis.stride - axis.low, rest = position % axis.dilation;
    const std::int64_t origin = rest < 0 ? rest + axis.dilation : rest;
    if (origin >= axis.n) continue;
    const std::int64_t cells = (axis.n - 1 - origin) / axis.dilation + 1;
    const std::int64_t start = (position - origin) / axis.dilation;
    const std::int64_t first = start + axis.size > 0 ? 0 : (-start - axis.size) / advance + 1;
    const std::int64_t limit = start < cells ? (cells - start - 1) / advance + 1 : 0;
    const std::int64_t last = std::min(limit, (axis.out - o - 1) / apart + 1);
    if (first >= last) continue;
    const SweepRun run{result.count, last - first, o + first * apart, apart, origin, cells, start + first * advance,
                       advance,      axis.size};
    result.count += run.count;
    result.longest = std::max(result.longest, std::min(axis.size, cells));
    if (run.count > 1 && advance < axis.size) result.rows = 0;
    result.runs.push_back(run);
  }
  if (result.rows == 0) result.rows = result.longest;
  return result;
}

SweepAxis sweep_axis(const Axis& axis, bool is_inner) {
  SweepAxis result = axis.adaptive ? sweep_bins(axis) : sweep_windows(axis);
  if (!is_inner) return result;
  for (const SweepRun& run : result.runs)
    for (std::int64_t i = 0; i < run.count; ++i) result.outputs.push_back(run.output + i * run.output_step);
  return result;
}

}  // namespace

void choose_gathered_lanes(FoldSpace& space) {
  if (space.lanes.n > 1) space.kept.push_back(space.lanes);
  space.lanes = FoldAxis{};
  const auto enough = [](const FoldAxis& axis) { return std::min<std::int64_t>(axis.n, 8); };
  const auto best = std::min_element(space.kept.begin(), space.kept.end(), [&](const FoldAxis& a, const FoldAxis& b) {
    return std::pair(-enough(a), distance(a)) < std::pair(-enough(b), distance(b));
  });
  if (best != space.kept.end()) take_lanes(space, static_cast<std::size_t>(best - space.kept.begin()));
}

namespace {

// Up to so many cells a direct fold is faster: it vectorises along outputs too, a sweep only along lanes. Measured.
double most_direct_cells(const FoldSpace& space) {
  if (space.kept.empty() && space.lanes.n == 1) return 48;
  return distance(space.lanes) == 1 ? 36 : 12;
}

// As many lanes as fill a cache line or more, while what the sweep holds stays in cache.
std::int64_t sweep_block(const FoldSpace& space, const SweepPlan& plan) {
  double rows = 0, inside = 1;
  for (std::size_t i = plan.axes.size(); i-- > 0; inside *= static_cast<double>(plan.axes[i].count))
    rows += inside * (2 * static_cast<double>(plan.axes[i].rows) + 1);
  std::int64_t block = distance(space.lanes) <= 1 ? 1024 : 8;
  while (block > 1 && rows * static_cast<double>(block) > (block > 16 ? 1 << 15 : 1 << 23)) block /= 2;
  return std::min(block, space.lanes.n);
}

// Cuts each run of the outermost axis into parts, each long enough to make up for the cells read twice.
void cut_runs(SweepPlan& plan, std::int64_t slices) {
  const SweepAxis& axis = plan.axes[0];
  for (std::size_t number = 0; number < axis.runs.size(); ++number) {
    const SweepRun& run = axis.runs[number];
    std::int64_t size = slices >= wanted_parts ? run.count : (run.count * slices + wanted_parts - 1) / wanted_parts;
    if (axis.rows > 1) {
      const double windows = 8.0 * static_cast<double>(axis.longest) * static_cast<double>(run.count);
      const double needed = std::min(windows / static_cast<double>(run.cells), static_cast<double>(run.count));
      size = std::max(size, static_cast<std::int64_t>(needed));
    }
    for (std::int64_t from = 0; from < run.count; from += size)
      plan.parts.push_back({number, from, std::min(from + size, run.count)});
  }
}

// Cuts the only window of the outermost axis into pieces.
void cut_window(SweepPlan& plan) {
  SweepAxis& axis = plan.axes[0];
  const auto [begin, end] = axis.window(axis.runs[0], 0);
  const std::int64_t size = std::max<std::int64_t>((end - begin + wanted_parts - 1) / wanted_parts, 16);
  const std::int64_t count = (end - begin + size - 1) / size;
  axis.runs[0] = {0,    count, axis.runs[0].output, 0, axis.runs[0].origin + begin * axis.step, end - begin, 0,
                  size, size};
  axis.bins.clear();
  axis.count = count;
  axis.longest = size;
  for (std::int64_t i = 0; i < count; ++i) plan.parts.push_back({0, i, i + 1});
  plan.pieces = true;
}

}  // namespace

std::optional<SweepPlan> plan_sweep(FoldSpace& space) {
  if (cells_per_window(space) <= most_direct_cells(space)) return std::nullopt;
  SweepPlan plan;
  bool any = true;
  for (const FoldAxis& axis : space.pooled) {
    plan.axes.push_back(sweep_axis(axis.window, !plan.axes.empty()));
    plan.complete = plan.complete && plan.axes.back().count == axis.window.out;
    any = any && plan.axes.back().count > 0;
  }
  if (!any) return std::nullopt;
  choose_gathered_lanes(space);
  space.block = sweep_block(space, plan);
  std::int64_t slices = (space.lanes.n + space.block - 1) / space.block;
  for (const FoldAxis& axis : space.kept) slices *= axis.n;
  if (plan.axes[0].count == 1 && plan.axes[0].longest >= 64 && slices < wanted_parts / 4)
    cut_window(plan);
  else
    cut_runs(plan, slices);
  return plan;
}

namespace {

// All ones where a condition holds: selections by such masks vectorise.
inline std::uint32_t mask(bool condition) noexcept { return 0u - static_cast<std::uint32_t>(condition); }

// Subnormals become normal by a difference that is exact.
inline float widen(f16 half) noexcept {
  const std::uint32_t magnitude = (half.bits & 0x7fffu) << 13, sign = (half.bits & 0x8000u) << 16;
  const std::uint32_t normal = magnitude + (112u << 23) + (mask(magnitude >= 0x0f800000u) & (112u << 23));
  const float small = std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23);
  const std::uint32_t is_small = mask(magnitude < 0x00800000u);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(small) & is_small) | (normal & ~is_small) | sign);
}
inline float widen(bf16 half) noexcept { return static_cast<float>(half); }
inline bool widen(std::uint8_t byte) noexcept { return byte != 0; }

// To nearest even: by the sum with 0.5, whose last bit is that of the smallest half, or by adding just under a half.
inline void narrow(f16& half, float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value), magnitude = bits & 0x7fffffffu;
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const std::uint32_t special = 0x7c00u | (mask(magnitude > 0x7f800000u) & 0x0200u);
  const std::uint32_t is_small = mask(magnitude < 0x38800000u), is_special = mask(magnitude >= 0x47800000u);
  const std::uint32_t rounded = (small & is_small) | (special & is_special) | (normal & ~is_small & ~is_special);
  half.bits = static_cast<std::uint16_t>(rounded | ((bits >> 16) & 0x8000u));
}
inline void narrow(bf16& half, float value) noexcept { half = bf16(value); }
inline void narrow(std::uint8_t& byte, bool value) noexcept { byte = value; }

template <class Number, class Element>
void read_line(void* numbers, const void* elements, std::int64_t step, std::int64_t count) noexcept {
  auto* to = static_cast<Number*>(numbers);
  const auto* from = static_cast<const Element*>(elements);
  if (step == 1)
    for (std::int64_t i = 0; i < count; ++i) to[i] = widen(from[i]);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = widen(from[i * step]);
}

template <class Number, class Element>
void write_line(void* elements, std::int64_t step, const void* numbers, std::int64_t count) noexcept {
  auto* to = static_cast<Element*>(elements);
  const auto* from = static_cast<const Number*>(numbers);
  if (step == 1)
    for (std::int64_t i = 0; i < count; ++i) narrow(to[i], from[i]);
  else
    for (std::int64_t i = 0; i < count; ++i) narrow(to[i * step], from[i]);
}

template <class Number, class Element>
constexpr Conversion between{sizeof(Element), read_line<Number, Element>, write_line<Number, Element>};

}  // namespace

const Conversion* conversion(Type type) noexcept {
  if (type == Type::f16) return &between<float, f16>;
  if (type == Type::bf16) return &between<float, bf16>;
  if (type == Type::boolean) return &between<bool, std::uint8_t>;
  return nullptr;
}

std::int64_t Counter::total() const noexcept {
  return std::accumulate(extents_.begin(), extents_.begin() + rank_, std::int64_t{1}, std::multiplies<>());
}

void Counter::seek(std::int64_t position) noexcept {
  for (int i = rank_ - 1; i >= 0; --i) {
    const auto loop = static_cast<std::size_t>(i);
    at_[loop] = position % extents_[loop];
    position /= extents_[loop];
  }
}

}  // namespace cenote::detail
