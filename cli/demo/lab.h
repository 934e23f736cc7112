// Pools for the demo: runs a request, times it, holds it against the oracle and prints its row of the table.
#pragma once

#include <string>

#include <cenote/cenote.h>

#include "../measure.h"
#include "../progress.h"
#include "check.h"

namespace cenote::demo {

class Lab {
 public:
  explicit Lab(cli::Progress& progress) : progress_(progress) {}

  void print_head() const;
  /// f32 arrays.
  Array pool(const View& x, const Pooling& pooling);
  Pooled pool_with_indices(const View& x, const Pooling& pooling);
  /// The gradient for a cotangent gy of the output.
  Array gradient(const View& x, const Pooling& pooling, const View& gy);
  /// f32 features on i32 coordinates.
  SparseTensor pool(const SparseTensor& x, const SparsePooling& pooling);
  /// The product of each window, by a callable of the demo's own.
  Array product(const View& x, const Window& window);

  int results() const noexcept { return results_; }
  int wrong() const noexcept { return wrong_; }

 private:
  void report(const std::string& problem, const std::string& algorithm, const cli::Timing& timing, Verdict verdict);

  cli::Progress& progress_;
  int results_ = 0, wrong_ = 0;
};

}  // namespace cenote::demo
