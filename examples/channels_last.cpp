// One pooling, two layouts: the same picture with its channels first and last gives the same result, bit for bit.
#include <cstdio>

#include <cenote/cenote.h>

int main() {
  constexpr std::int64_t channels = 3, height = 37, width = 53;
  cenote::Array first(cenote::Type::f32, {1, channels, height, width});
  for (std::int64_t i = 0; i < first.size(); ++i)
    first.values<float>()[static_cast<std::size_t>(i)] = static_cast<float>((i * 7919) % 1009);

  // The same memory seen with the channels last, by strides alone; Array copies the view into that order.
  const cenote::View turned(first.data(), first.type(), {1, height, width, channels},
                            {channels * height * width, width, 1, height * width});
  const cenote::Array last(turned);

  const cenote::Window window{.size = {3, 3}, .stride = 2, .padding = cenote::same};
  cenote::Window window_last = window;
  window_last.channels_last = true;
  const cenote::Array y = cenote::avg_pool(first, window, cenote::Divisor::Rule::valid);
  const cenote::Array z = cenote::avg_pool(last, window_last, cenote::Divisor::Rule::valid);
  std::printf("%s and %s\n", to_string(y.shape()).c_str(), to_string(z.shape()).c_str());

  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t i = 0; i < y.shape()[2]; ++i)
      for (std::int64_t j = 0; j < y.shape()[3]; ++j)
        if (y.at<float>({0, c, i, j}) != z.at<float>({0, i, j, c})) return 1;
}
