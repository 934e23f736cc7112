// The envelope of a signal: a sliding maximum over a long window, and a fold of one's own for its root mean square.
#include <cmath>
#include <cstdio>

#include <cenote/cenote.h>

int main() {
  constexpr std::int64_t n = 48000, window = 481;
  cenote::Array signal(cenote::Type::f32, {n});
  const auto samples = signal.values<float>();
  for (std::int64_t i = 0; i < n; ++i) {
    const double t = static_cast<double>(i) / 48000;
    samples[static_cast<std::size_t>(i)] = static_cast<float>(std::exp(-3 * t) * std::sin(2 * M_PI * 440 * t));
  }

  const cenote::Array envelope = cenote::max_pool(signal, {.size = {window}, .padding = cenote::same});
  const auto add_square = [](float sum, float x) { return sum + x * x; };
  const cenote::Array power = cenote::pool(signal, 0.f, add_square, cenote::Window{.size = {window}, .stride = window});
  const cenote::Array norm = cenote::lp_pool(signal, {.size = {window}, .stride = window}, 2);

  // The decaying sine is under its envelope everywhere, and both ways to its power agree.
  for (std::int64_t i = 0; i < n; ++i)
    if (envelope.at<float>({i}) < signal.at<float>({i})) return 1;
  for (std::int64_t i = 0; i < norm.size(); ++i)
    if (std::fabs(std::sqrt(power.at<float>({i})) - norm.at<float>({i})) > 1e-4f * norm.at<float>({i})) return 1;
  std::printf("envelope at 0.1 s: %.3f, at 0.9 s: %.3f\n", static_cast<double>(envelope.at<float>({4800})),
              static_cast<double>(envelope.at<float>({43200})));
}
