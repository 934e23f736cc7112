// Timing a pooling.
#include "measure.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

#include <fmt/core.h>

#include "benchmarks/copy.h"

namespace cenote::cli {
namespace {

double seconds_of(const std::function<void()>& work, int times) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (int i = 0; i < times; ++i) work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Timing measure_once(const std::function<void()>& work) {
  const double seconds = seconds_of(work, 1);
  return {.best = seconds, .median = seconds, .runs = 1};
}

Timing measure(const std::function<void()>& work, std::int64_t bytes, double least) {
  const auto seconds = [&](int times) { return seconds_of(work, times); };
  seconds(1);  // touches every page and starts the threads
  // Work shorter than the clock can tell is timed many at once.
  const int batch = std::clamp(static_cast<int>(20e-6 / std::max(seconds(1), 1e-9)), 1, 1000);
  std::vector<double> times;
  double total = 0;
  while (total < least || (times.size() < 3 && total < 10 * least)) {
    const double elapsed = seconds(batch);
    total += elapsed;
    times.push_back(elapsed / batch);
  }
  std::sort(times.begin(), times.end());
  return {.best = times.front(),
          .median = times[times.size() / 2],
          .runs = static_cast<std::int64_t>(times.size()) * batch,
          .bytes = bytes,
          .copy_seconds = bytes > 0 ? bench::copy_seconds(bytes, threads(), least / 2) : 0};
}

Array noise(Type type, const Extents& shape) {
  Array array(type, shape);
  visit(type, [&](auto element) {
    using T = decltype(element);
    std::uint64_t state = 88172645463325252u;
    for (T& value : array.values<T>()) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      if constexpr (std::is_same_v<T, bool>) {
        value = (state >> 40 & 1) != 0;
      } else if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(state >> 16);
      } else {
        value = static_cast<T>(static_cast<float>(static_cast<std::int64_t>(state)) * 0x1p-63f);
      }
    }
  });
  return array;
}

std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  std::string name = "an unnamed processor";
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos || !line.starts_with("model name")) continue;
    name = line.substr(colon + 2);
    break;
  }
  return fmt::format("{}, {} cores", name, std::thread::hardware_concurrency());
}

std::string algorithm(const Plan& plan) {
  // "problem -> (shape) type: algorithm, why"
  const std::string line = plan.explain();
  const std::size_t arrow = line.find(" -> "), colon = line.find(": ", arrow == std::string::npos ? 0 : arrow);
  if (colon == std::string::npos) return line;
  return line.substr(colon + 2, line.find(',', colon) - colon - 2);
}

}  // namespace cenote::cli
