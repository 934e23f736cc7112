// The reducers by name, and the options that some of them take.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// Every reducer: its name, and the struct in src/reduce/reducers-inl.h that says what it does.
#define CENOTE_REDUCERS(X) \
  X(max, Max)              \
  X(min, Min)              \
  X(sum, Sum)              \
  X(avg, Avg)              \
  X(smooth_max, SmoothMax) \
  X(lp, Lp)

namespace cenote {

enum class Reducer : std::uint8_t {
#define CENOTE_ITEM(name, struct_name) name,
  CENOTE_REDUCERS(CENOTE_ITEM)
#undef CENOTE_ITEM
};

inline constexpr Reducer all_reducers[] = {
#define CENOTE_ITEM(name, struct_name) Reducer::name,
    CENOTE_REDUCERS(CENOTE_ITEM)
#undef CENOTE_ITEM
};

/// The name as written in problem strings: max, min, sum, …
std::string_view name(Reducer reducer) noexcept;
/// The reducer with that name; throws std::invalid_argument for any other.
Reducer parse_reducer(std::string_view name);

/// What an average divides by.
class Divisor {
 public:
  enum class Rule { window, valid, clipped, number };
  /// window: all taps. valid: real cells. clipped: taps inside the padded extent, so without a ceil overhang.
  Divisor(Rule rule) : rule_(rule) {}
  /// A given number, finite and > 0.
  Divisor(double number) : rule_(Rule::number), number_(number) {}
  Rule rule() const noexcept { return rule_; }
  double number() const noexcept { return number_; }
  friend bool operator==(const Divisor&, const Divisor&) = default;

 private:
  Rule rule_ = Rule::window;
  double number_ = 1;
};

/// What padded cells are to a smooth max: numeric zeros that count, or nothing.
enum class SmoothPadding : std::uint8_t { zero, ignore };

/// Who gets the derivative where values are equal: the first cell, or all in equal parts.
enum class Ties : std::uint8_t { first, split };

/// How the winner of a window is named. offset: among the window's taps, the narrowest of u8, u16, i32, i64.
/// plane: among the pooled axes of the input, i64. tensor: in the whole input, i64. tensor_column: the same with the
/// plane part column-major. A window without a real cell has -1 (offset: 0).
enum class IndexKind : std::uint8_t { offset, plane, tensor, tensor_column };

}  // namespace cenote
