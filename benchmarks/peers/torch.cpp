// libtorch's pooling functions. Channels-last problems are tensors in the memory format of that name; results are
// tensors of libtorch's own making, as they are for everybody who calls it.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/api/include/torch/version.h>

#include "peer.h"

namespace cenote::peers {
namespace {

struct Request {
  std::vector<std::int64_t> size, stride, dilation, padding, outputs;
  bool adaptive = false;
};

Request request_of(const Image& image) {
  Request request;
  const auto add = [&](const Axis& axis) {
    if (axis.low != axis.high) throw Absent("no padding of one side");
    request.size.push_back(axis.size);
    request.stride.push_back(axis.stride);
    request.dilation.push_back(axis.dilation);
    request.padding.push_back(axis.low);
    request.outputs.push_back(axis.out);
    request.adaptive = request.adaptive || axis.adaptive;
  };
  // One axis is two of which the first has one cell.
  if (image.axes.size() == 1) add({.n = 1, .size = 1, .out = 1});
  for (const Axis& axis : image.axes) add(axis);
  return request;
}

at::ScalarType type_of_elements(Type type) {
  switch (type) {
    case Type::f16: return at::kHalf;
    case Type::bf16: return at::kBFloat16;
    case Type::f32: return at::kFloat;
    case Type::f64: return at::kDouble;
    case Type::i8: return at::kChar;
    case Type::u8: return at::kByte;
    case Type::i32: return at::kInt;
    case Type::i64: return at::kLong;
    default: throw Absent("no " + std::string(name(type)));
  }
}

// The array as a tensor with the channels second, and a first pooled axis of one cell where there is one pooled axis.
at::Tensor tensor_of(const Array& array, const Image& image) {
  std::vector<std::int64_t> shape;
  for (int i = 0; i < array.rank(); ++i) shape.push_back(array.shape()[i]);
  const bool line = image.axes.size() == 1;
  if (line) shape.insert(shape.begin() + (image.last ? 1 : 2), 1);
  at::Tensor tensor = at::from_blob(const_cast<void*>(array.data()), shape, type_of_elements(array.type()));
  return image.last ? tensor.movedim(-1, 1) : tensor;
}

at::Tensor max_pool(const at::Tensor& x, const Request& r, bool volume, bool indices) {
  if (r.adaptive)
    return std::get<0>(volume ? at::adaptive_max_pool3d(x, r.outputs) : at::adaptive_max_pool2d(x, r.outputs));
  if (indices) {
    return std::get<0>(volume ? at::max_pool3d_with_indices(x, r.size, r.stride, r.padding, r.dilation)
                              : at::max_pool2d_with_indices(x, r.size, r.stride, r.padding, r.dilation));
  }
  const bool line = !volume && x.size(2) == 1;
  if (line) {
    return at::max_pool1d(x.squeeze(2), r.size[1], r.stride[1], r.padding[1], r.dilation[1]).unsqueeze(2);
  }
  return volume ? at::max_pool3d(x, r.size, r.stride, r.padding, r.dilation)
                : at::max_pool2d(x, r.size, r.stride, r.padding, r.dilation);
}

at::Tensor avg_pool(const at::Tensor& x, const Request& r, bool volume, bool padded,
                    c10::optional<std::int64_t> divisor) {
  if (r.adaptive) return volume ? at::adaptive_avg_pool3d(x, r.outputs) : at::adaptive_avg_pool2d(x, r.outputs);
  return volume ? at::avg_pool3d(x, r.size, r.stride, r.padding, false, padded, divisor)
                : at::avg_pool2d(x, r.size, r.stride, r.padding, false, padded, divisor);
}

using Work = std::function<at::Tensor()>;

Work forward(const Case& problem, const at::Tensor& x, const Request& r, bool volume, bool padded) {
  const bool indices = problem.indices();
  const double p = problem.problem.pooling.p;
  for (const std::int64_t d : r.dilation) {
    if (d != 1 && problem.reducer() != Reducer::max) throw Absent("no dilated averages");
  }
  switch (problem.reducer()) {
    case Reducer::max: return [=] { return max_pool(x, r, volume, indices); };
    case Reducer::avg: return [=] { return avg_pool(x, r, volume, padded, c10::nullopt); };
    case Reducer::sum: return [=] { return avg_pool(x, r, volume, true, 1); };
    // As its own lp_pool2d is written.
    case Reducer::lp: return [=] { return avg_pool(x.pow(p), r, volume, true, 1).pow(1 / p); };
    default: throw Absent("no " + std::string(name(problem.reducer())));
  }
}

Work backward(const Case& problem, const at::Tensor& x, const at::Tensor& gy, const Request& r, bool volume,
              bool padded) {
  if (r.adaptive) throw Absent("not compared: the way back from bins");
  if (problem.reducer() == Reducer::max && problem.problem.pooling.ties == Ties::first) {
    const auto made = volume ? at::max_pool3d_with_indices(x, r.size, r.stride, r.padding, r.dilation)
                             : at::max_pool2d_with_indices(x, r.size, r.stride, r.padding, r.dilation);
    const at::Tensor indices = std::get<1>(made);
    if (volume) {
      return [=] {
        return at::max_pool3d_with_indices_backward(gy, x, r.size, r.stride, r.padding, r.dilation, false, indices);
      };
    }
    return [=] {
      return at::max_pool2d_with_indices_backward(gy, x, r.size, r.stride, r.padding, r.dilation, false, indices);
    };
  }
  if (problem.reducer() == Reducer::avg) {
    if (volume) {
      return [=] { return at::avg_pool3d_backward(gy, x, r.size, r.stride, r.padding, false, padded, c10::nullopt); };
    }
    return [=] { return at::avg_pool2d_backward(gy, x, r.size, r.stride, r.padding, false, padded, c10::nullopt); };
  }
  throw Absent("not compared: the way back of " + std::string(name(problem.reducer())));
}

Row prepare(const Case& problem, int threads) {
  at::set_num_threads(threads);
  const c10::InferenceMode no_graph;
  const Image image = image_of(problem);
  const Request request = request_of(image);
  const bool volume = image.axes.size() == 3;
  const Divisor::Rule rule = problem.problem.pooling.divisor.rule();
  if (rule != Divisor::Rule::window && rule != Divisor::Rule::valid) throw Absent("no such divisor");
  const bool padded = rule == Divisor::Rule::window;
  const at::Tensor x = tensor_of(problem.x, image);
  const Work work = problem.back() ? backward(problem, x, tensor_of(problem.gy, image), request, volume, padded)
                                   : forward(problem, x, request, volume, padded);
  const auto result = make_result(problem);
  const auto made = std::make_shared<at::Tensor>();
  return {[=] {
            const c10::InferenceMode no_graph_either;
            *made = at::Tensor();
            try {
              *made = work();
            } catch (const c10::Error& error) {  // for a type, mostly
              throw Absent(error.what_without_backtrace());
            }
          },
          result,
          [=] {
            const c10::InferenceMode no_graph_either;
            tensor_of(*result, image).copy_(*made);
          }};
}

}  // namespace

Peer torch() { return {"torch", TORCH_VERSION, prepare}; }

}  // namespace cenote::peers
