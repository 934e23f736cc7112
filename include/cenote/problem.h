// A whole problem as one line of text, for tests, benchmarks, the command line and bug reports.
#pragma once

#include <string>
#include <string_view>

#include <cenote/plan.h>

namespace cenote {

/// An operation together with the type and shape of its input: "max f32 32x64x112x112 k3 s2 p1".
struct Problem {
  enum class Direction { forward, jvp, vjp };
  Pooling pooling{};
  Type type = Type::f32;
  Extents shape{};
  Direction direction = Direction::forward;

  Plan plan() const { return cenote::plan(pooling, type, shape); }
};

/// Reads a problem; throws std::invalid_argument naming the token that is wrong. docs/problems.md has the grammar.
Problem parse_problem(std::string_view text);

/// Prints a problem with every axis spelled out; parse_problem reads it back to an equal problem.
std::string to_string(const Problem& problem);

}  // namespace cenote
