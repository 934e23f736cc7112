// OpenCV's filters where they are a pooling: dilate, erode and boxFilter at stride 1, resize by area for windows that
// do not overlap. Planes are filtered beside each other.
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "peer.h"

namespace cenote::peers {
namespace {

int depth_of(Type type) {
  switch (type) {
    case Type::u8: return CV_8U;
    case Type::u16: return CV_16U;
    case Type::i16: return CV_16S;
    case Type::f32: return CV_32F;
    case Type::f64: return CV_64F;
    default: throw Absent("no filter of " + std::string(name(type)));
  }
}

// One plane: `channels` interleaved, or one.
struct Planes {
  int depth, channels;
  cv::Size in, out;
  std::size_t in_bytes, out_bytes;
  int count;
  Axis vertical, horizontal;
};

Planes planes_of(const Case& problem) {
  const Image image = image_of(problem);
  if (image.axes.size() > 2) throw Absent("no three-dimensional filters");
  if (image.last && image.channels > CV_CN_MAX) throw Absent("no more than 512 channels beside each other");
  Planes planes{};
  planes.horizontal = image.axes.back();
  planes.depth = depth_of(problem.x.type());
  planes.channels = image.last ? static_cast<int>(image.channels) : 1;
  const bool line = image.axes.size() == 1;
  // Lines without channels between them lie below each other: one plane, which its threads cut into strips.
  const std::int64_t lines = image.batch * (image.last ? 1 : image.channels);
  const std::int64_t strips = line && lines % 16 == 0 ? 16 : lines;
  planes.vertical = line ? Axis{.n = lines / strips, .out = lines / strips} : image.axes.front();
  planes.count = static_cast<int>(strips);
  const auto size = [](std::int64_t width, std::int64_t height) {
    return cv::Size(static_cast<int>(width), static_cast<int>(height));
  };
  planes.in = size(planes.horizontal.n, planes.vertical.n);
  planes.out = size(planes.horizontal.out, planes.vertical.out);
  planes.in_bytes = problem.x.bytes() / static_cast<std::size_t>(strips);
  planes.out_bytes = make_result(problem)->bytes() / static_cast<std::size_t>(strips);
  return planes;
}

using Filter = std::function<void(const cv::Mat& from, cv::Mat& to)>;

Filter area_filter() {
  return [](const cv::Mat& from, cv::Mat& to) { cv::resize(from, to, to.size(), 0, 0, cv::INTER_AREA); };
}

// The part of the input whose pixels are the windows' anchors; its surroundings are read as well.
Filter sliding_filter(const Case& problem, const Planes& planes) {
  const auto start = [](const Axis& axis) {
    const std::int64_t first = axis.size / 2 - axis.low;
    if (first < 0 || first + axis.out > axis.n) throw Absent("no padding of more than half a window");
    return static_cast<int>(first);
  };
  const cv::Rect anchors(start(planes.horizontal), start(planes.vertical), planes.out.width, planes.out.height);
  const cv::Size window(static_cast<int>(planes.horizontal.size), static_cast<int>(planes.vertical.size));
  const cv::Point anchor(window.width / 2, window.height / 2);
  const cv::Mat ones = cv::Mat::ones(window, CV_8U);
  switch (problem.reducer()) {
    case Reducer::max: return [=](const cv::Mat& from, cv::Mat& to) { cv::dilate(from(anchors), to, ones, anchor); };
    case Reducer::min: return [=](const cv::Mat& from, cv::Mat& to) { cv::erode(from(anchors), to, ones, anchor); };
    case Reducer::sum:
    case Reducer::avg: {
      const bool divides = problem.reducer() == Reducer::avg;
      return [=](const cv::Mat& from, cv::Mat& to) {
        cv::boxFilter(from(anchors), to, -1, window, anchor, divides, cv::BORDER_CONSTANT);
      };
    }
    default: throw Absent("no " + std::string(name(problem.reducer())));
  }
}

Filter filter_of(const Case& problem, const Planes& planes) {
  if (problem.back()) throw Absent("no way back");
  if (problem.indices()) throw Absent("no indices");
  const bool divides_by_window = problem.problem.pooling.divisor.rule() == Divisor::Rule::window;
  if (problem.reducer() == Reducer::avg && !divides_by_window) throw Absent("no such divisor");
  bool tiles = problem.reducer() == Reducer::avg, slides = true;
  for (const Axis& axis : {planes.vertical, planes.horizontal}) {
    tiles = tiles && axis.size == axis.stride && axis.size * axis.out == axis.n && axis.low == 0;
    slides = slides && axis.stride == 1;
    if (axis.adaptive || axis.dilation != 1) throw Absent("no bins and no dilation");
  }
  if (slides) return sliding_filter(problem, planes);
  if (tiles) return area_filter();
  throw Absent("no stride");
}

Row prepare(const Case& problem, int threads) {
  cv::setNumThreads(threads);
  const Planes planes = planes_of(problem);
  const Filter filter = filter_of(problem, planes);
  const auto result = make_result(problem);
  const int type = CV_MAKETYPE(planes.depth, planes.channels);
  return {[=, &problem] {
            cv::parallel_for_(cv::Range(0, planes.count), [&](const cv::Range& range) {
              for (int i = range.start; i < range.end; ++i) {
                const auto number = static_cast<std::size_t>(i);
                auto* from = static_cast<std::byte*>(const_cast<void*>(problem.x.data())) + number * planes.in_bytes;
                auto* to = static_cast<std::byte*>(result->data()) + number * planes.out_bytes;
                const cv::Mat in(planes.in, type, from);
                cv::Mat out(planes.out, type, to);
                filter(in, out);
                if (out.data != reinterpret_cast<unsigned char*>(to))
                  throw std::runtime_error("a filter moved its result");
              }
            });
          },
          result};
}

}  // namespace

Peer opencv() { return {"opencv", cv::getVersionString(), prepare}; }

}  // namespace cenote::peers
