// A plan made once and run on frame after frame, into memory that is reused: nothing is allocated in the loop.
#include <cstdio>
#include <vector>

#include <cenote/cenote.h>

int main() {
  constexpr std::int64_t height = 270, width = 480;
  const cenote::Plan plan = cenote::plan(
      {.reducer = cenote::Reducer::avg, .region = cenote::Window{.size = {4, 4}, .stride = 4, .channels_last = true}},
      cenote::Type::u8, {height, width, 3});
  std::puts(plan.explain().c_str());

  std::vector<std::uint8_t> frame(height * width * 3);
  cenote::Array small(plan.output_type(), plan.output_shape());
  for (int number = 0; number < 50; ++number) {
    for (std::uint8_t& value : frame) value = static_cast<std::uint8_t>(number);
    plan.run(cenote::View(frame.data(), plan.input_shape()), small);
    for (const float value : small.values<float>())
      if (value != static_cast<float>(number)) return 1;
  }
}
