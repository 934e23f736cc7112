// What a Plan knows.
#pragma once

#include <memory>
#include <string>

#include <cenote/plan.h>

#include "plan/choose.h"
#include "plan/geometry.h"
#include "reduce/traits.h"

namespace cenote {

class Portions;

struct Plan::Impl {
  Pooling pooling;
  Role role = Role::value;
  std::string who;  // the function as a caller knows it, for errors
  Type type = Type::f32;
  Extents shape;
  Geometry geometry;
  Traits traits;
  Type output_type = Type::f32;
  Type lane_type = Type::f32;  // what the kernels compute in
  std::optional<Type> index_type;
  Params params;
  /// What `lower` of the reducer is given: the same everywhere, or (nullopt) computed from the geometry.
  std::optional<double> count;
  bool divides_late = false;  // in f64, after the kernels have summed
  bool in_doubles = false;    // where they have to be, since f32 does not hold sums or divisors
  std::int64_t bytes = 0;
  Algorithm algorithm;
  /// Of volumes that are made plane by plane: how planes are pooled where that is not enough, or to be done again. Sums
  /// are divided once, and whoever follows winners needs those too.
  std::shared_ptr<const Impl> planes;
  /// Averages whose outputs are divided by different numbers, or whose cells are integers: the same as sums, of a type
  /// that holds them. Those are made a slice at a time, and divided in the cache.
  std::shared_ptr<const Impl> sums;
  /// Of cells that are weighed: how powers may be summed, if they may.
  std::shared_ptr<const Portions> portions;
};

/// Prepares `plan` for being made plane by plane, if it may be.
void prepare_planes(Plan::Impl& plan);

/// Whether cells are halves of which the order alone matters: kernels compare them as whole numbers of their size.
inline bool is_keyed(const Plan::Impl& plan) { return is_half(plan.type) && plan.lane_type == Type::i16; }
/// What cells become that kernels cannot read where they lie.
inline Type staged_type(const Plan::Impl& plan) { return is_keyed(plan) ? plan.type : plan.lane_type; }

}  // namespace cenote
