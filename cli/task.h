// A problem made ready to be explained and timed: a pooling or one of its derivatives.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <cenote/cenote.h>

#include "measure.h"

namespace cenote::cli {

class Task {
 public:
  /// Throws std::invalid_argument for a problem that has no plan, or no derivative where one is asked for.
  explicit Task(const Problem& problem);
  /// The same problem by a plan of another way; not for derivatives, which have plans of their own.
  Task(const Problem& problem, Plan plan);

  const Plan& plan() const noexcept { return plan_; }
  Problem::Direction direction() const noexcept { return problem_.direction; }
  bool is_derivative() const noexcept { return problem_.direction != Problem::Direction::forward; }
  /// Bytes that must be moved at least. Forward: input, output and indices. jvp: x, dx and dy, without x for sum and
  /// avg. vjp: gy and gx, for max and min also offsets, and for what weighs its cells also x and y.
  std::int64_t bytes() const;
  /// How it is done, in a word.
  std::string algorithm() const;
  /// And why, in half a sentence.
  std::string reason() const;
  /// One line: the problem, the result, the algorithm and why.
  std::string explain() const;
  /// Runs it on noise; max and min go back from offsets that were saved before.
  Timing time(double least) const;
  /// Runs it so many times on the same noise, untimed.
  void repeat(int runs) const;

 private:
  /// How a derivative is found.
  enum class Rule { none, linear, routed, weighed };
  Rule rule() const;
  bool from_offsets() const;
  std::string basis() const;
  /// What is measured, with the arrays that it works on.
  std::function<void()> prepare() const;
  std::function<void()> prepare_forward() const;
  std::function<void()> prepare_tangent() const;
  std::function<void()> prepare_cotangent() const;

  Problem problem_;
  Plan plan_;
};

}  // namespace cenote::cli
