// Serves the peers that were found when this was built: without arguments lists them, with a peer's name answers
// requests on standard input, each with lines of JSON:
//   check PROBLEM          does the peer give cenote's numbers?
//   time SECONDS PROBLEM   first that it is ready, then how long it takes
//   drop                   forgets the last problem's arrays; no answer
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <cenote/cenote.h>

#include "cli/json.h"
#include "cli/measure.h"
#include "peer.h"

namespace cenote::peers {
namespace {

std::vector<Peer> all_peers() {
  std::vector<Peer> peers;
#if defined(CENOTE_PEER_ONEDNN)
  peers.push_back(onednn());
#endif
#if defined(CENOTE_PEER_TORCH)
  peers.push_back(torch());
#endif
#if defined(CENOTE_PEER_OPENCV)
  peers.push_back(opencv());
#endif
  return peers;
}

Case make_case(const std::string& text) {
  const Problem problem = parse_problem(text);
  if (problem.direction == Problem::Direction::jvp) throw Absent("no forward mode");
  const Plan plan = problem.plan();
  Array x = cli::noise(plan.input_type(), plan.input_shape());
  Array gy =
      problem.direction == Problem::Direction::vjp ? cli::noise(plan.output_type(), plan.output_shape()) : Array();
  return {problem, plan, std::move(x), std::move(gy)};
}

Array solve(const Case& problem) {
  Array result = *make_result(problem);
  if (problem.back()) {
    problem.plan.vjp(problem.x, problem.gy, result);
  } else if (problem.indices()) {
    Array indices(*problem.plan.index_type(), problem.plan.output_shape());
    problem.plan.run(problem.x, result, indices);
  } else {
    problem.plan.run(problem.x, result);
  }
  return result;
}

// The largest difference, relative to the larger of 1 and the value; infinite where only one of the two is NaN.
double difference(const Array& a, const Array& b) {
  double most = 0;
  visit(a.type(), [&](auto element) {
    using T = decltype(element);
    const auto left = a.values<T>(), right = b.values<T>();
    const auto number = [](T value) {
      if constexpr (is_half(type_of<T>)) {
        return static_cast<double>(static_cast<float>(value));
      } else {
        return static_cast<double>(value);
      }
    };
    for (std::size_t i = 0; i < left.size(); ++i) {
      const double p = number(left[i]), q = number(right[i]);
      if (p == q || (std::isnan(p) && std::isnan(q))) continue;
      const double apart = std::abs(p - q) / std::max(1.0, std::abs(q));
      most = std::max(most, std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
    }
  });
  return most;
}

double tolerance(Type type) {
  switch (type) {
    case Type::f16: return 4e-3;
    case Type::bf16: return 3e-2;
    case Type::f32: return 2e-5;
    default: return 1e-10;
  }
}

// Puts a NaN at every place of a window.
void spoil(Array& array) {
  visit(array.type(), [&](auto element) {
    using T = decltype(element);
    if constexpr (is_float(type_of<T>)) {
      const auto values = array.values<T>();
      for (std::size_t i = 0; i < values.size(); i += 11) {
        values[i] = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
      }
    }
  });
}

void check(const Peer& peer, int threads, const std::string& text) {
  Case problem = make_case(text);
  const Row row = peer.prepare(problem, threads);
  const double apart = difference(row.solve(), solve(problem));
  std::string note;
  const bool picks = problem.reducer() == Reducer::max || problem.reducer() == Reducer::min;
  if (picks && is_float(problem.x.type()) && !problem.back()) {
    spoil(problem.x);
    const Row spoiled = peer.prepare(problem, threads);
    if (difference(spoiled.solve(), solve(problem)) > tolerance(problem.x.type())) note = "NaN is treated differently";
  }
  fmt::print("{{\"status\": \"{}\", \"difference\": {:.3g}, \"note\": {}}}\n",
             apart <= tolerance(row.result->type()) ? "same" : "differs",
             std::min(apart, std::numeric_limits<double>::max()), cli::json_string(note));
}

struct Kept {
  std::string text;
  Case problem;
  Row row;
};

void time(const Peer& peer, int threads, double least, const std::string& text, std::unique_ptr<Kept>& kept) {
  if (!kept || kept->text != text) {
    kept.reset();
    auto made = std::make_unique<Kept>(Kept{text, make_case(text), {}});
    made->row = peer.prepare(made->problem, threads);
    kept = std::move(made);
  }
  fmt::print("{{\"status\": \"ready\"}}\n");
  std::fflush(stdout);
  cli::Timing timing = cli::measure_once(kept->row.run);
  // A second is long enough to be timed once.
  if (timing.best < 1) timing = cli::measure(kept->row.run, 0, least);
  fmt::print("{{\"status\": \"timed\", \"best_seconds\": {:.9g}, \"median_seconds\": {:.9g}, \"runs\": {}}}\n",
             timing.best, timing.median, timing.runs);
}

std::string first_line(const std::string& text) { return text.substr(0, std::min<std::size_t>(text.find('\n'), 200)); }

void serve(const Peer& peer, int threads) {
  set_threads(threads);
  std::unique_ptr<Kept> kept;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string request, text;
    double least = 0;
    words >> request;
    if (request == "time") words >> least;
    std::getline(words >> std::ws, text);
    try {
      if (request == "check") check(peer, threads, text);
      if (request == "time") time(peer, threads, least, text, kept);
      if (request == "drop") kept.reset();
    } catch (const Absent& absent) {
      fmt::print("{{\"status\": \"absent\", \"note\": {}}}\n", cli::json_string(first_line(absent.what())));
    } catch (const std::exception& error) {
      fmt::print("{{\"status\": \"failed\", \"note\": {}}}\n", cli::json_string(first_line(error.what())));
    }
    std::fflush(stdout);
  }
}

}  // namespace

Image image_of(const Case& problem) {
  const Plan& plan = problem.plan;
  const Extents& shape = plan.input_shape();
  const int rank = shape.size(), pooled = plan.pooled().size();
  if (pooled != rank - 2 || pooled < 1 || pooled > 3) throw Absent("no pooling of these axes");
  Image image;
  image.last = plan.pooled()[0] == 1;
  if (plan.output_shape().size() != rank) throw Absent("no pooling that drops axes");
  for (int i = 0; i < pooled; ++i) {
    if (plan.pooled()[i] != i + (image.last ? 1 : 2)) throw Absent("no pooling of these axes");
  }
  image.batch = shape[0];
  image.channels = image.last ? shape[rank - 1] : shape[1];
  image.axes = plan.axes();
  return image;
}

std::shared_ptr<Array> make_result(const Case& problem) {
  const Plan& plan = problem.plan;
  return problem.back() ? std::make_shared<Array>(plan.input_type(), plan.input_shape())
                        : std::make_shared<Array>(plan.output_type(), plan.output_shape());
}

}  // namespace cenote::peers

int main(int argc, char** argv) {
  using namespace cenote::peers;
  const std::string name = argc > 1 ? argv[1] : "";
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  for (const Peer& peer : all_peers()) {
    if (argc == 1) fmt::print("{} {}\n", peer.name, peer.version);
    if (peer.name != name) continue;
    serve(peer, threads);
    return 0;
  }
  if (argc > 1) fmt::print(stderr, "bench_peers: {} is not built in\n", name);
  return argc > 1 ? 2 : 0;
}
