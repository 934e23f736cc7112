// oneDNN's pooling primitives, in the layout that the problem has.
#include <string>
#include <unordered_map>

#include <oneapi/dnnl/dnnl_version.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "peer.h"

namespace cenote::peers {
namespace {

using Dims = dnnl::memory::dims;

dnnl::memory::data_type type_of_elements(Type type) {
  switch (type) {
    case Type::f32: return dnnl::memory::data_type::f32;
    case Type::bf16: return dnnl::memory::data_type::bf16;
    case Type::i8: return dnnl::memory::data_type::s8;
    case Type::u8: return dnnl::memory::data_type::u8;
    case Type::i32: return dnnl::memory::data_type::s32;
    default: throw Absent("no " + std::string(name(type)) + " on a CPU");
  }
}

dnnl::algorithm algorithm_of(const Case& problem) {
  if (problem.reducer() == Reducer::max) {
    if (problem.problem.pooling.ties == Ties::split) throw Absent("no ties that split");
    return dnnl::algorithm::pooling_max;
  }
  if (problem.reducer() != Reducer::avg) throw Absent("no " + std::string(name(problem.reducer())));
  switch (problem.problem.pooling.divisor.rule()) {
    case Divisor::Rule::window: return dnnl::algorithm::pooling_avg_include_padding;
    case Divisor::Rule::valid: return dnnl::algorithm::pooling_avg_exclude_padding;
    default: throw Absent("no such divisor");
  }
}

// Dimensions are batch, channels and the pooled axes, whatever the layout.
dnnl::memory::desc description(const Image& image, Type type, bool output) {
  using Tag = dnnl::memory::format_tag;
  static constexpr Tag tags[3][2] = {{Tag::ncw, Tag::nwc}, {Tag::nchw, Tag::nhwc}, {Tag::ncdhw, Tag::ndhwc}};
  Dims dims{image.batch, image.channels};
  for (const Axis& axis : image.axes) dims.push_back(output ? axis.out : axis.n);
  return {dims, type_of_elements(type), tags[image.axes.size() - 1][image.last ? 1 : 0]};
}

Row prepare(const Case& problem, int) {
  const Image image = image_of(problem);
  for (const Axis& axis : image.axes) {
    if (axis.adaptive) throw Absent("no bins");
  }
  const auto algorithm = algorithm_of(problem);
  const bool trains = problem.back() || problem.indices();
  const auto source = description(image, problem.plan.input_type(), false);
  const auto target = description(image, problem.plan.output_type(), true);
  const Dims strides = image.each([](const Axis& a) { return a.stride; });
  const Dims kernel = image.each([](const Axis& a) { return a.size; });
  const Dims dilation = image.each([](const Axis& a) { return a.dilation - 1; });
  const Dims low = image.each([](const Axis& a) { return a.low; });
  const Dims high = image.each([](const Axis& a) { return a.high; });

  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto kind = trains ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const dnnl::pooling_v2_forward::primitive_desc forward(
      {kind, algorithm, source, target, strides, kernel, dilation, low, high}, engine);
  const auto result = make_result(problem);
  const auto bytes = [](const Array& array) { return const_cast<void*>(static_cast<const void*>(array.data())); };

  std::shared_ptr<Array> y = result;
  if (problem.back()) y = std::make_shared<Array>(problem.plan.output_type(), problem.plan.output_shape());
  std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_SRC, {source, engine, bytes(problem.x)}},
                                                  {DNNL_ARG_DST, {target, engine, bytes(*y)}}};
  const bool has_workspace = forward.workspace_desc().get_size() > 0;
  dnnl::memory workspace;
  if (has_workspace) {
    workspace = dnnl::memory(forward.workspace_desc(), engine);
    arguments[DNNL_ARG_WORKSPACE] = workspace;
  }
  const dnnl::pooling_v2_forward primitive(forward);
  const std::function<void()> run_forward = [=]() mutable {
    primitive.execute(stream, arguments);
    stream.wait();
    static_cast<void>(y);
  };
  if (!problem.back()) return {run_forward, result};

  run_forward();
  const dnnl::pooling_v2_backward::primitive_desc backward(
      {algorithm, source, target, strides, kernel, dilation, low, high}, engine, forward);
  std::unordered_map<int, dnnl::memory> back{{DNNL_ARG_DIFF_DST, {target, engine, bytes(problem.gy)}},
                                             {DNNL_ARG_DIFF_SRC, {source, engine, bytes(*result)}}};
  if (has_workspace) back[DNNL_ARG_WORKSPACE] = workspace;
  const dnnl::pooling_v2_backward way_back(backward);
  return {[=]() mutable {
            way_back.execute(stream, back);
            stream.wait();
          },
          result};
}

}  // namespace

Peer onednn() {
  const dnnl_version_t* version = dnnl_version();
  return {"onednn",
          std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch),
          prepare};
}

}  // namespace cenote::peers
