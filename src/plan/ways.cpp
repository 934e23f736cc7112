// Plans with another algorithm than the one that was chosen.
#include "plan/ways.h"

#include <memory>
#include <utility>

#include "plan/impl.h"

namespace cenote {

std::vector<Way> ways(const Plan& planned) {
  const auto& sums = planned.impl().sums;
  const Algorithm& chosen = sums ? sums->algorithm : planned.impl().algorithm;
  std::vector<Way> result{{"chosen", planned}};
  const auto add = [&](const char* name, const auto& change) {
    auto impl = std::make_shared<Plan::Impl>(planned.impl());
    change(impl->algorithm);
    if (sums) {
      auto changed = std::make_shared<Plan::Impl>(*sums);
      change(changed->algorithm);
      impl->sums = std::move(changed);
    }
    result.push_back({name, Plan(std::move(impl))});
  };
  const auto swept = [&](Sweep sweep) {
    Algorithm algorithm = chosen;
    algorithm.sweep = sweep;
    std::vector<bool> axes;
    for (const Axis& axis : planned.axes())
      for (const bool innermost : {false, true}) axes.push_back(algorithm.sweeps(axis, innermost));
    return axes;
  };
  for (const Sweep sweep : {Sweep::always, Sweep::never})
    if (swept(sweep) != swept(Sweep::automatic))
      add(sweep == Sweep::always ? "swept" : "folded", [&](Algorithm& algorithm) {
        algorithm.sweep = sweep;
        algorithm.weave = Weave::never;
      });
  // Only planes of lines are ever turned.
  if (chosen.along_lines)
    add(chosen.small ? "unturned" : "turned",
        [&](Algorithm& algorithm) { algorithm.weave = chosen.small ? Weave::never : Weave::always; });
  if (chosen.form != Form::plain) add("plain", [](Algorithm& algorithm) { algorithm.form = Form::plain; });
  if (chosen.joins_planes)
    add(chosen.by_planes ? "at once" : "by planes",
        [](Algorithm& algorithm) { algorithm.by_planes = !algorithm.by_planes; });
  if (planned.impl().portions)
    add(chosen.by_sums ? "weighed" : "by sums", [](Algorithm& algorithm) { algorithm.by_sums = !algorithm.by_sums; });
  if (chosen.joins_rows && chosen.form != Form::rows_first)
    add("rows first", [](Algorithm& algorithm) { algorithm.form = Form::rows_first; });
  if (sums) {
    auto whole = std::make_shared<Plan::Impl>(planned.impl());
    whole->sums.reset();
    result.push_back({"unsliced", Plan(std::move(whole))});
  }
  return result;
}

}  // namespace cenote
