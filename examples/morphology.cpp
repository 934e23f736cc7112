// Grey-scale morphology is pooling with stride 1: dilation is a max, erosion a min, opening one after the other.
#include <algorithm>
#include <cstdio>

#include <cenote/cenote.h>

namespace {

using cenote::Array;

Array open(const Array& picture, std::int64_t side) {
  const cenote::Window window{.size = {side, side}, .padding = cenote::same};
  cenote::Window mirrored = window;
  mirrored.padding = cenote::same_lower;
  return max_pool(min_pool(picture, window), mirrored);
}

std::int64_t bright_cells(const Array& picture) {
  const auto values = picture.values<std::uint8_t>();
  return std::count(values.begin(), values.end(), 255);
}

}  // namespace

int main() {
  // A square of 20 x 20 and, apart from it, specks of one cell.
  Array picture = Array::zeros(cenote::Type::u8, {64, 64});
  for (std::int64_t i = 10; i < 30; ++i)
    for (std::int64_t j = 10; j < 30; ++j) picture.at<std::uint8_t>({i, j}) = 255;
  for (std::int64_t i = 34; i < 64; i += 3) picture.at<std::uint8_t>({i, (i * 5) % 64}) = 255;

  const Array cleaned = open(picture, 6);
  std::printf("bright cells: %lld, after opening %lld\n", static_cast<long long>(bright_cells(picture)),
              static_cast<long long>(bright_cells(cleaned)));
  return bright_cells(cleaned) == 400 ? 0 : 1;
}
