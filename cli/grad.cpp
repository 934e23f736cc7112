// cenote grad: derivatives of a pooling, backward (vjp), forward (jvp) and of second order (hvp).
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include <fmt/core.h>

#include <cenote/cenote.h>
#include <io/npy.h>
#include <io/png.h>

#include "arguments.h"
#include "commands.h"
#include "files.h"
#include "pooling_options.h"
#include "progress.h"
#include "task.h"

namespace cenote::cli {
namespace {

struct Options {
  std::string input, output;
  PoolingOptions pooling;
  Text cotangent, tangent, second, type;
  bool verbose = false;
  std::optional<int> threads;
};

// Calls work with the elements, whose type must be one that has derivatives.
template <class Work>
void with_floats(Array& array, const Work& work) {
  visit(array.type(), [&](auto element) {
    using T = decltype(element);
    if constexpr (!std::is_integral_v<T>) work(array.values<T>());
  });
}

Array ones(Type type, const Extents& shape) {
  Array array(type, shape);
  with_floats(array, [](auto values) {
    for (auto& value : values) value = static_cast<std::remove_reference_t<decltype(value)>>(1.0f);
  });
  return array;
}

// An array that stands beside the input: a cotangent, a tangent or a direction.
class Companion {
 public:
  Companion(const char* option, const std::string& path, Type type, const Extents& shape, const char* whose)
      : file_(path, type == Type::bf16 ? std::optional(type) : std::nullopt) {
    file_.make_differentiable();
    const View found = file_.view();
    if (found.shape != shape) {
      reject_value(
          option, path,
          fmt::format("shape {}: must be {}, that of the {}", to_string(found.shape), to_string(shape), whose));
    }
    if (found.type != type) {
      reject_value(option, path,
                   fmt::format("type {}: must be {}, that of the {}", name(found.type), name(type), whose));
    }
  }
  View view() const { return file_.view(); }

 private:
  Input file_;
};

// The magnitudes of a derivative as a picture: the largest is white. Infinities are too, and NaN is black.
Array heat_map(const View& values) {
  Array magnitudes(values);
  Array picture(Type::f32, values.shape);
  const auto to = picture.values<float>();
  with_floats(magnitudes, [&](auto from) {
    using T = std::remove_cvref_t<decltype(from[0])>;
    const auto magnitude = [](T value) {
      if constexpr (std::is_same_v<T, double>) {
        return std::fabs(value);
      } else {
        return static_cast<double>(std::fabs(static_cast<float>(value)));
      }
    };
    double largest = 0;
    for (const T value : from)
      if (std::isfinite(magnitude(value))) largest = std::max(largest, magnitude(value));
    const double scale = largest > 0 ? largest : 1;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(255 * (magnitude(from[i]) / scale));
  });
  // Where the input was transparent is not what is asked.
  const std::int64_t channels = values.rank() == 3 ? values.shape[2] : 1;
  if (channels == 2 || channels == 4) {
    const auto step = static_cast<std::size_t>(channels);
    for (std::size_t i = step - 1; i < to.size(); i += step) to[i] = 255;
  }
  return picture;
}

void check_request(const Options& options) {
  require_region(options.pooling, "grad");
  format_of(options.input);
  format_of(options.output);
  for (const Text* path : {&options.cotangent, &options.tangent, &options.second})
    if (*path) format_of(**path);
}

Array differentiate(const Options& options, const Plan& plan, const View& x) {
  if (options.tangent) {
    const Companion dx("--tangent", *options.tangent, x.type, x.shape, "input");
    Array dy(plan.output_type(), plan.output_shape());
    plan.jvp(x, dx.view(), dy);
    return dy;
  }
  std::optional<Companion> given;
  if (options.cotangent)
    given.emplace("--cotangent", *options.cotangent, plan.output_type(), plan.output_shape(), "output");
  const Array all = given ? Array() : ones(plan.output_type(), plan.output_shape());
  const View gy = given ? given->view() : View(all);
  Array result(x.type, x.shape);
  if (options.second) {
    const Companion v("--second", *options.second, x.type, x.shape, "input");
    plan.hvp(x, gy, v.view(), result);
  } else {
    plan.vjp(x, gy, result);
  }
  return result;
}

void run(const Options& options) {
  check_request(options);
  use_threads(options.threads);
  std::optional<Type> as;
  if (options.type) as = parse_type(*options.type);
  Progress progress("reading " + options.input);
  Input input(options.input, as);
  input.make_differentiable();
  const View x = input.view();
  const auto direction = options.tangent ? Problem::Direction::jvp : Problem::Direction::vjp;
  const Task task(Problem{read_pooling(options.pooling, input.is_picture()), x.type, x.shape, direction});
  const Plan& plan = task.plan();
  if (format_of(options.output) == Format::png)
    io::require_picture(options.tangent ? plan.output_shape() : plan.input_shape());
  if (options.verbose) {
    progress.hide();
    fmt::print(stderr, "{}\n", task.explain());
  }

  progress.say("differentiating " + options.input);
  // Opened before the work: that a file cannot be made is told at once.
  io::OutputFile file(options.output);
  const Array result = differentiate(options, plan, x);
  progress.say("writing " + options.output);
  write(file, format_of(options.output) == Format::png ? heat_map(result) : result);
  file.commit();
}

constexpr const char* examples =
    "By default the result is gx, the gradient in the input of the output times the cotangent, summed: of the\n"
    "plain sum where no cotangent is given. Cotangents have type and shape of the output, tangents those of\n"
    "the input. Windows are asked for as in cenote pool. A picture is read as f32, from 0 to 255 or 65535;\n"
    "a result that is written as .png shows magnitudes, the largest one white.\n"
    "Examples:\n"
    "  cenote grad in.npy -o gx.npy --window 2,2 --stride 2\n"
    "  cenote grad in.npy --cotangent gy.npy -o gx.npy --reducer avg --window 3,3 --padding same --divisor valid\n"
    "  cenote grad in.npy --cotangent gy.npy -o gx.npy --window 2,2 --ties split\n"
    "  cenote grad in.npy --tangent dx.npy -o dy.npy --reducer lp --p 3 --window 9\n"
    "  cenote grad in.npy --second v.npy -o hv.npy --reducer smooth_max --beta 4 --window 5,5\n"
    "  cenote grad photo.png -o where.png --reducer smooth_max --beta 0.1 --window 9 --stride 4";

}  // namespace

void add_grad(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("grad", "Differentiate a pooling of an array (.npy) or a picture (.png)");
  command.footer(examples);
  command.add_option("IN", options->input, "The array or picture at which to differentiate")->required();
  command.add_option("-o,--output", options->output, "The file to write")->type_name("OUT")->required();
  auto* cotangent =
      command.add_option("--cotangent", options->cotangent, "Weights of the outputs (ones)")->type_name("G.npy");
  auto* tangent =
      command.add_option("--tangent", options->tangent, "Write how the output moves when the input does so")
          ->type_name("DX.npy");
  auto* second = command.add_option("--second", options->second, "Write how the gradient moves when the input does so")
                     ->type_name("V.npy");
  tangent->excludes(cotangent)->excludes(second);
  command.add_option("--type", options->type, "Type of the input; needed for bf16, which NumPy stores as void")
      ->type_name("TYPE");
  command.add_option("--threads", options->threads, "The most threads to use")->type_name("N");
  command.add_flag("-v,--verbose", options->verbose, "Say on standard error how the derivative is found");
  add_pooling_options(command, options->pooling);
  command.callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace cenote::cli
