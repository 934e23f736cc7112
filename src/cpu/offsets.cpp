// Offsets that a caller hands in: each must name a real cell of its window.
#include <array>
#include <string>
#include <utility>

#include "core/reject.h"
#include "cpu/index_type.h"
#include "cpu/route.h"
#include "cpu/router.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t most_real = 1024;  // offsets of a window that are looked up

}  // namespace

void check_offsets(const Plan::Impl& plan, const View& offsets) {
  View none;
  none.shape = plan.shape;
  const Router router(plan, offsets, View(), none);
  std::int64_t taps = 1;
  for (const Axis& axis : plan.geometry.axes) taps = axis.adaptive ? 0 : taps * axis.size;
  const std::size_t last = router.depth() - 1;
  const RouteAxis &level = router.level(last), &lanes = router.lanes();
  const auto [inside, outside] = router.axis(last).interior();
  const std::int64_t width = router.axis(last).size, known = taps > 0 && taps <= most_real ? taps : 0;
  using Real = std::array<bool, most_real>;
  // Whether the taps of the levels outside are real, for every offset of a row's windows.
  const auto find_real = [&](const Places& outer, Real& real) {
    for (std::int64_t i = 0; i < known / width; ++i) {
      std::int64_t rest = i;
      bool all = true;
      for (std::size_t l = last; l-- > 0; rest /= router.axis(l).size) {
        const Axis::Span span = router.axis(l).span(outer[l]);
        const std::int64_t tap = rest % router.axis(l).size;
        all = all && tap >= span.tap && tap < span.tap + span.count;
      }
      real[static_cast<std::size_t>(i)] = all;
    }
  };
  Real everything;
  everything.fill(true);
  // The windows of one row of outputs from `begin` up to `end`, one by one.
  const auto check_each = [&]<class Offset>(const Places& outer, const RouteAxis& row, const Real& real,
                                            std::int64_t begin, std::int64_t end, Offset) {
    Places o = outer;
    for (o[last] = begin; o[last] < end; ++o[last]) {
      const Axis::Span span = router.axis(last).span(o[last]);
      if (span.count == 0) continue;
      const auto* p = static_cast<const Offset*>(offsets.data) + row.offset_step + o[last] * level.offset_step;
      for (std::int64_t c = 0; c < lanes.outputs; ++c, p += lanes.offset_step) {
        const auto offset = static_cast<std::int64_t>(*p);
        if (offset >= 0 && offset < known) {
          // Short numbers divide faster.
          const std::uint32_t before = static_cast<std::uint32_t>(offset) / static_cast<std::uint32_t>(width);
          const std::int64_t tap = offset - before * width - span.tap;
          if (tap >= 0 && tap < span.count && real[before]) continue;
        } else if (offset >= 0 && router.real(o, offset)) {
          continue;
        }
        reject(plan.who, "offsets hold ", offset, " for a window of ",
               taps > 0 ? std::to_string(taps) + " cells" : std::string("an adaptive bin"),
               ": it must name a real cell of its window");
      }
    }
  };
  const auto check = [&]<class Offset>(const Places& o, const RouteAxis& row, bool interior, Offset type) {
    const std::int64_t out = router.axis(last).out;
    const bool whole = interior && taps > 0 && inside < outside;
    const std::int64_t begin = whole ? inside : out, end = whole ? outside : out;
    Real border;
    if (!interior) find_real(o, border);
    const Real& real = interior ? everything : border;
    check_each(o, row, real, 0, begin, type);
    // Inside, any tap is a real cell.
    const auto* p = static_cast<const Offset*>(offsets.data) + row.offset_step;
    using Number = std::make_unsigned_t<Offset>;
    Number largest = 0;
    const auto look = [&](const Offset* line, std::int64_t step, std::int64_t n) {
      Number most = 0;
      if (step == 1)
        for (std::int64_t i = 0; i < n; ++i) most = std::max(most, static_cast<Number>(line[i]));
      else
        for (std::int64_t i = 0; i < n; ++i) most = std::max(most, static_cast<Number>(line[i * step]));
      largest = std::max(largest, most);
    };
    if (lanes.outputs == 1)
      look(p + begin * level.offset_step, level.offset_step, end - begin);
    else
      for (std::int64_t i = begin; i < end; ++i) look(p + i * level.offset_step, lanes.offset_step, lanes.outputs);
    if (begin < end && static_cast<std::uint64_t>(largest) >= static_cast<std::uint64_t>(taps))
      check_each(o, row, real, begin, end, type);
    check_each(o, row, real, end, out, type);
  };
  std::array<std::pair<std::int64_t, std::int64_t>, max_rank> insides;
  for (std::size_t l = 0; l < last; ++l) insides[l] = router.axis(l).interior();
  in_tasks(router.slices(), outputs_of_slice(router), [&](std::int64_t i) {
    visit_index_type(offsets.type, [&](auto type) {
      router.rows(0, router.axis(0).out, router.slice(i), true, [&](const Places& o, const RouteAxis& row) {
        bool interior = true;
        for (std::size_t l = 0; l < last; ++l) {
          const auto [begin, end] = insides[l];
          interior = interior && o[l] >= begin && o[l] < end;
        }
        check(o, row, interior, type);
      });
    });
  });
}

}  // namespace cenote::cpu
