// What a plan keeps of its derivatives: each made ready once, with working memory from call to call.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "ops/derivative.h"

namespace cenote {

struct Plan::Derivatives {
  explicit Derivatives(ImplPtr forward) : forward_(std::move(forward)) {}

  const Tangent& tangent() {
    std::call_once(tangent_once_, [&] { tangent_.emplace(forward_); });
    return *tangent_;
  }
  const Cotangent& cotangent() {
    std::call_once(cotangent_once_, [&] { cotangent_.emplace(forward_); });
    return *cotangent_;
  }

  /// Calls f with `bytes` of memory that nobody else uses meanwhile.
  template <class F>
  void with_scratch(std::int64_t bytes, const F& f) {
    Array memory = take(bytes);
    f(static_cast<std::byte*>(memory.data()));
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(memory));
  }

 private:
  Array take(std::int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      while (!idle_.empty()) {
        Array memory = std::move(idle_.back());
        idle_.pop_back();
        if (memory.size() >= bytes) return memory;
      }
    }
    return Array(Type::u8, {bytes});
  }

  ImplPtr forward_;
  std::once_flag tangent_once_, cotangent_once_;
  std::optional<Tangent> tangent_;
  std::optional<Cotangent> cotangent_;
  std::mutex mutex_;
  std::vector<Array> idle_;
};

}  // namespace cenote
