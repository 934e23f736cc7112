// The ways in which a pooling could be carried out, for those who compare them.
#pragma once

#include <string>
#include <vector>

#include <cenote/plan.h>

namespace cenote {

struct Way {
  std::string name;
  Plan plan;
};

/// The plan as it is, "chosen", and the same with windows "swept" or "folded", planes "turned", "unturned" or "unflat",
/// where that may be something else. Of averages that are made as sums, the last is what they are else, "unsliced".
std::vector<Way> ways(const Plan& planned);

}  // namespace cenote
