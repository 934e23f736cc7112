// What a peer must offer to be timed beside cenote: the same problem, solved on the same arrays.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <cenote/cenote.h>

namespace cenote::peers {

/// A problem and the arrays to solve it on: x, and for the way back gy.
struct Case {
  Problem problem;
  Plan plan;
  Array x, gy;

  Reducer reducer() const { return problem.pooling.reducer; }
  bool back() const { return problem.direction == Problem::Direction::vjp; }
  bool indices() const { return problem.pooling.indices.has_value(); }
};

/// A problem made ready: `run` solves it into `result`, which is laid out as cenote's is; where the peer keeps it
/// elsewhere, `fetch` brings it there.
struct Row {
  std::function<void()> run;
  std::shared_ptr<Array> result;
  std::function<void()> fetch{};

  const Array& solve() const {
    run();
    if (fetch) fetch();
    return *result;
  }
};

/// Thrown for a problem that the peer has no operation for; the text says what is missing.
struct Absent : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Peer {
  std::string name, version;
  /// The case outlives the row.
  Row (*prepare)(const Case& problem, int threads);
};

#if defined(CENOTE_PEER_ONEDNN)
Peer onednn();
#endif
#if defined(CENOTE_PEER_OPENCV)
Peer opencv();
#endif
#if defined(CENOTE_PEER_TORCH)
Peer torch();
#endif

/// A pooling as frameworks know it: batch, channels and one to three axes that are pooled, all of them.
struct Image {
  std::int64_t batch = 0, channels = 0;
  bool last = false;
  std::vector<Axis> axes;

  /// Per axis, in the integers that the peer wants.
  template <class Get>
  std::vector<std::int64_t> each(Get get) const {
    std::vector<std::int64_t> values;
    for (const Axis& axis : axes) values.push_back(get(axis));
    return values;
  }
};

/// Throws Absent for what is no such pooling.
Image image_of(const Case& problem);

/// An array for the result: gx on the way back, otherwise y.
std::shared_ptr<Array> make_result(const Case& problem);

}  // namespace cenote::peers
