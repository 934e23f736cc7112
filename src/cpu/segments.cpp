// Runs row reductions: targets are cut into tasks of about equal work, and long segments into pieces.
#include "cpu/segments.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "cpu/machine.h"

namespace cenote::cpu {
namespace {

using sparse::Segments;

/// Edges folded into one state: a fixed number, so that sums do not depend on threads.
constexpr std::int64_t piece_edges = 4096;
constexpr std::int64_t task_bytes = 256 << 10;

/// Where task i of n begins, if targets and edges count alike.
std::int64_t task_begin(const Segments& segments, std::int64_t i, std::int64_t n) {
  const auto share = [&](std::int64_t all) { return all / n * i + all % n * i / n; };
  if (!segments.offsets) return share(segments.targets);
  if (i == n) return segments.targets;
  const std::int64_t work = share(segments.targets + segments.edges);
  std::int64_t low = 0, high = segments.targets;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (segments.offsets[middle] + middle < work)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void in_tasks(void (*kernel)(const RowPass&), const RowPass& pass, Type storage) {
  const auto row_bytes = pass.width * static_cast<std::int64_t>(size_of(storage)) + 16;
  const std::int64_t rows = pass.segments.targets + pass.segments.edges;
  const std::int64_t least = std::max<std::int64_t>(1, task_bytes / row_bytes);
  const std::int64_t tasks = thread_limit() == 1 ? 1 : std::clamp<std::int64_t>(rows / least, 1, 16 * thread_limit());
  parallel_for(tasks, [&](std::int64_t i) {
    RowPass part = pass;
    part.begin = task_begin(pass.segments, i, tasks);
    part.end = task_begin(pass.segments, i + 1, tasks);
    kernel(part);
    if (pass.stream) hwy::FlushStream();
  });
}

/// Rows whose every pack of lanes is aligned, of a result that does not stay in the caches anyway.
bool streams(const RowPass& pass, Type storage) {
  const auto bytes = static_cast<std::int64_t>(size_of(storage));
  const std::int64_t moved = (pass.segments.edges + pass.segments.targets) * pass.width * bytes;
  return moved > last_level_cache() && pass.width * bytes % 64 == 0 && pass.y_step * bytes % 64 == 0 &&
         reinterpret_cast<std::uintptr_t>(pass.y) % 64 == 0;
}

/// Segments as pieces: where the edges of each piece begin, where the pieces of each target, and whose each piece is.
struct Pieces {
  std::vector<std::int64_t> edges{0}, targets{0}, owners;

  explicit Pieces(const Segments& segments) {
    targets.reserve(static_cast<std::size_t>(segments.targets) + 1);
    for (std::int64_t t = 0; t < segments.targets; ++t) {
      for (std::int64_t e = segments.offsets[t]; e < segments.offsets[t + 1];) {
        e = std::min(e + piece_edges, segments.offsets[t + 1]);
        edges.push_back(e);
        owners.push_back(t);
      }
      targets.push_back(static_cast<std::int64_t>(edges.size()) - 1);
    }
  }
  std::int64_t count() const { return static_cast<std::int64_t>(edges.size()) - 1; }
};

}  // namespace

const RowTable& row_table(Type storage) noexcept {
  kernels(Type::f32, Reducer::max, Role::value);  // which heeds the environment's choice of a target
  switch (storage) {
    case Type::f16: return rows_f16();
    case Type::bf16: return rows_bf16();
    case Type::f64: return rows_f64();
    default: return rows_f32();
  }
}

void reduce_rows(const RowKernels& kernels, const RowPass& pass, Type storage) {
  const Segments& segments = pass.segments;
  if (segments.longest <= piece_edges) {
    RowPass whole = pass;
    whole.stream = pass.stream && streams(pass, storage);
    return in_tasks(kernels.reduce, whole, storage);
  }
  // A pack beyond the last channel may be written.
  const Type lane = is_half(storage) ? Type::f32 : storage;
  const std::int64_t plane = pass.width + 64;
  const Pieces pieces(segments);
  Array states(lane, {pieces.count(), kernels.parts * plane});
  RowPass partial = pass;
  partial.segments.targets = pieces.count();
  partial.segments.offsets = pieces.edges.data();
  partial.owners = pieces.owners.data();
  partial.y = states.data();
  partial.y_step = kernels.parts * plane;
  partial.y_plane = plane;
  partial.stream = false;
  in_tasks(kernels.partial, partial, storage);

  RowPass merge = pass;
  std::vector<double> counts;
  if (pass.divides_by_edges) {
    for (std::int64_t t = 0; t < segments.targets; ++t)
      counts.push_back(static_cast<double>(std::max<std::int64_t>(segments.offsets[t + 1] - segments.offsets[t], 1)));
    merge.divisors = counts.data();
    merge.divides_by_edges = false;
  }
  merge.segments = {segments.targets, pieces.count(), pieces.count(), pieces.targets.data()};
  merge.x = states.data();
  merge.x_step = partial.y_step;
  merge.x_plane = plane;
  merge.stream = false;
  in_tasks(kernels.merge, merge, storage);
}

}  // namespace cenote::cpu
