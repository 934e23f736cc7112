// cenote sparse-pool as a process: facts of sparse pooling by the bytes it writes, every mistake by its text and
// status.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <cenote/cenote.h>
#include <gtest/gtest.h>
#include <io/npy.h>

#include "files.h"
#include "process.h"

namespace cenote::test {
namespace {

using Arguments = std::vector<std::string>;

class SparsePool : public testing::Test {
 protected:
  Outcome pool(const Arguments& arguments) {
    Arguments all{"sparse-pool", "x.npy", "y.npy"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_cenote(all, {.folder = folder_.path().string()});
  }
  void write(const std::string& name, const std::string& bytes) { write_bytes(folder_ / name, bytes); }
  /// Pools `x` and expects the file `y`, byte for byte.
  void expect(const std::string& x, const Arguments& arguments, const std::string& y) {
    write("x.npy", x);
    const Outcome outcome = pool(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(read_bytes(folder_ / "y.npy"), y) << testing::PrintToString(arguments);
    std::filesystem::remove(folder_ / "y.npy");
  }
  /// Expects a failure that says `text`, alone on one line, and leaves nothing behind.
  void expect_error(const Arguments& arguments, int status, const std::string& text) {
    const auto before = folder_.names();
    const Outcome outcome = pool(arguments);
    EXPECT_EQ(outcome.status, status) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.err, "cenote: " + text + "\n");
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(folder_.names(), before);
  }

  TemporaryFolder folder_;
};

std::string shape_of(std::size_t rows, std::size_t columns) {
  return "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")";
}

/// Rows (0, x, 0, 0, feature).
template <class T = float>
std::string line(const std::vector<int>& x, const std::vector<double>& f, const std::string& descr = "<f4") {
  std::vector<T> values;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (const double value : {0.0, static_cast<double>(x[i]), 0.0, 0.0, f[i]}) values.push_back(static_cast<T>(value));
  }
  return array(descr, shape_of(x.size(), 5), values);
}

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const Arguments three{"--dims", "3"};

TEST_F(SparsePool, HalvesALine) {
  const std::string x = line({0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Arguments halve = with(three, {"--kernel", "2", "--stride", "2"});
  expect(x, with(halve, {"--mode", "sum"}), line({0, 1, 2, 3}, {3, 7, 11, 15}));
  expect(x, with(halve, {"--mode", "max"}), line({0, 1, 2, 3}, {2, 4, 6, 8}));
  expect(x, with(halve, {"--mode", "min"}), line({0, 1, 2, 3}, {1, 3, 5, 7}));
  expect(x, with(halve, {"--mode", "avg"}), line({0, 1, 2, 3}, {1.5, 3.5, 5.5, 7.5}));
  expect(x, three, line({0, 1, 2, 3}, {2, 4, 6, 8}));
  expect(x, with(halve, {"--mode", "avg", "--divisor", "volume"}), line({0, 1, 2, 3}, {.375, .875, 1.375, 1.875}));
  expect(x, with(halve, {"--mode", "avg", "--divisor", "4"}), line({0, 1, 2, 3}, {.75, 1.75, 2.75, 3.75}));
  expect(x, with(three, {"--mode", "sum", "--kernel", "3", "--stride", "2"}), line({0, 1, 2, 3}, {3, 9, 15, 21}));
}

TEST_F(SparsePool, LooksAroundEveryPoint) {
  const std::string x = line({0, 1, 2}, {1, 2, 3});
  const Arguments around = with(three, {"--kernel", "3,1,1", "--stride", "1"});
  for (const char* engine : {"automatic", "sorted", "hashed"}) {
    const Arguments by = with(around, {"--engine", engine});
    expect(x, with(by, {"--mode", "sum"}), line({0, 1, 2}, {3, 6, 5}));
    expect(x, with(by, {"--mode", "max"}), line({0, 1, 2}, {2, 3, 3}));
    expect(x, with(by, {"--mode", "avg"}), line({0, 1, 2}, {1.5, 2, 2.5}));
    expect(x, with(by, {"--mode", "sum", "--padding", "1,0,0"}), line({0, 1, 2}, {1, 3, 6}));
  }
  expect(line({0, 1, 2, 3, 4}, {1, 2, 3, 4, 5}), with(around, {"--mode", "sum", "--dilation", "2"}),
         line({0, 1, 2, 3, 4}, {4, 6, 9, 6, 8}));
  expect(line({0, 1}, {3, 4}), with(around, {"--mode", "lp"}), line({0, 1}, {5, 5}));
  expect(line({0, 1}, {3, 4}), with(around, {"--mode", "lp", "--p", "inf"}), line({0, 1}, {4, 4}));
  expect(line({0, 5}, {3, 4}), with(around, {"--mode", "smooth_max", "--beta", "2"}), line({0, 5}, {3, 4}));
}

TEST_F(SparsePool, TakesNegativePlacesBatchesAndOrders) {
  const Arguments along = with(three, {"--kernel", "2,1,1", "--stride", "2,1,1", "--mode", "sum"});
  expect(line({-3, -2, -1, 0}, {1, 2, 3, 4}), along, line({-2, -1, 0}, {1, 5, 4}));
  const std::string unsorted = floats("(4, 3)", {1, 0, 1, 0, 0, 2, 1, 1, 3, 0, 3, 4});
  const Arguments one{"--dims", "1", "--mode", "sum"};
  expect(unsorted, one, floats("(3, 3)", {1, 0, 4, 0, 0, 2, 0, 1, 4}));
  expect(unsorted, with(one, {"--order", "sorted"}), floats("(3, 3)", {0, 0, 2, 0, 1, 4, 1, 0, 4}));
}

TEST_F(SparsePool, FollowsPolicies) {
  const std::string x = floats("(2, 3)", {0, 0, 1, 0, 3, 2});
  const Arguments three_wide{"--dims", "1", "--mode", "sum", "--kernel", "3", "--stride", "3"};
  expect(x, three_wide, floats("(2, 3)", {0, 0, 1, 0, 1, 2}));
  expect(floats("(1, 3)", {0, 2, 5}), three_wide, floats("(1, 3)", {0, 0, 0}));
  expect(floats("(1, 3)", {0, 2, 5}), with(three_wide, {"--policy", "minkowski"}), floats("(1, 3)", {0, 0, 5}));
  expect(x, {"--dims", "1", "--mode", "sum", "--kernel", "2", "--stride", "1", "--policy", "dense"},
         floats("(4, 3)", {0, -1, 1, 0, 0, 1, 0, 2, 2, 0, 3, 2}));
  expect(x, {"--dims", "1", "--mode", "sum", "--kernel", "2", "--stride", "1", "--policy", "dense", "--extent", "4"},
         floats("(2, 3)", {0, 0, 1, 0, 2, 2}));
}

TEST_F(SparsePool, KeepsIntegersWhereTheyStayIntegers) {
  const auto line_of = [](const std::vector<double>& f) { return line<std::int16_t>({0, 1}, f, "<i2"); };
  const auto one_of = [](double f) { return line<std::int16_t>({0}, {f}, "<i2"); };
  expect(line_of({300, -7}), with(three, {"--mode", "sum"}), one_of(293));
  expect(line_of({300, -7}), with(three, {"--mode", "min"}), one_of(-7));
  expect(line_of({300, -7}), with(three, {"--mode", "avg"}), line<double>({0}, {146.5}, "<f8"));
  write("x.npy", line_of({30000, 30000}));
  expect_error(with(three, {"--mode", "sum"}), 2,
               "output row 0, feature 0: 60000 must be from -32768 to 32767: store the features as f64");
  write("x.npy", array<std::uint8_t>("|u1", "(2, 3)", {0, 0, 200, 0, 0, 100}));
  expect_error({"--dims", "1", "--duplicates", "sum"}, 2,
               "output row 0, feature 0: 300 must be from 0 to 255: store the features as f64");
  expect(array<std::uint8_t>("|u1", "(1, 3)", {0, 2, 5}),
         {"--dims", "1", "--kernel", "3", "--stride", "3", "--empty", "identity"},
         array<std::uint8_t>("|u1", "(1, 3)", {0, 0, 0}));
  write("x.npy", array<std::int64_t>("<i8", "(1, 3)", {0, 1, 9007199254740993}));
  expect_error({"--dims", "1"}, 2, "x.npy: row 0 has 9007199254740993: integers must be within 2^53");
}

TEST_F(SparsePool, TakesFeaturesAndCoordinatesApart) {
  write("c.npy", array<std::int32_t>("<i4", "(3, 2)", {0, 0, 0, 1, 0, 2}));
  const Arguments apart{"--coords", "c.npy", "--out-coords", "d.npy", "--mode", "sum"};
  expect(floats("(3, 2)", {1, 10, 2, 20, 3, 30}), apart, floats("(2, 2)", {3, 30, 3, 30}));
  EXPECT_EQ(read_bytes(folder_ / "d.npy"), array<std::int32_t>("<i4", "(2, 2)", {0, 0, 0, 1}));
  std::filesystem::remove(folder_ / "d.npy");
  write("c.npy", array<std::int64_t>("<i8", "(1, 2)", {0, 1}));
  expect_error(apart, 2, "--coords c.npy: 1 rows: must be 3, as many as x.npy has");
  write("c.npy", floats("(3, 2)", {0, 0, 0, 1, 0, 2}));
  expect_error(apart, 2, "--coords c.npy: type f32: must be i32 or i64");
  write("c.npy", array<std::int64_t>("<i8", "(3, 1)", {0, 1, 2}));
  expect_error(apart, 2, "--coords c.npy: shape (3, 1): must be (rows, 1 + D), batch first, D from 1 to 6");
  expect_error({"--coords", "c.npy", "--out-coords", "./y.npy"}, 2,
               "--out-coords ./y.npy: features and coordinates cannot go into one file");
  expect_error({"--coords", "c.npy"}, 2, "--coords requires --out-coords (see cenote sparse-pool --help)");
  expect_error({"--coords", "c.npy", "--out-coords", "d.npy", "--dims", "1"}, 2,
               "--dims excludes --coords (see cenote sparse-pool --help)");
}

TEST_F(SparsePool, MergesDuplicatesWhenAsked) {
  const std::string x = floats("(3, 3)", {0, 4, 1, 0, 4, 5, 0, 5, 2});
  const auto merged = [](const std::string& rule) {
    return Arguments{"--dims", "1", "--kernel", "1", "--stride", "1", "--mode", "sum", "--duplicates", rule};
  };
  for (const auto& [rule, value] : std::vector<std::pair<std::string, float>>{
           {"sum", 6.f}, {"mean", 3.f}, {"max", 5.f}, {"min", 1.f}, {"first", 1.f}}) {
    expect(x, merged(rule), floats("(2, 3)", {0, 4, value, 0, 5, 2}));
  }
  write("x.npy", x);
  expect_error({"--dims", "1"}, 2,
               "x.npy: rows 0 and 1 are both (0, 4): rows must differ; --duplicates merges those that do not");
  expect_error(merged("all"), 2, "--duplicates all: one of sum, mean, max, min, first");
}

TEST_F(SparsePool, RefusesOutputsWithoutInputsUnlessTold) {
  const std::string x = floats("(1, 3)", {0, 2, 5});
  const Arguments apart{"--dims", "1", "--kernel", "3", "--stride", "3"};
  write("x.npy", x);
  expect_error(apart, 2, "output row 0 at (0, 0) has no inputs: every row must have one, or --empty must be identity");
  expect(x, with(apart, {"--empty", "identity"}), floats("(1, 3)", {0, 0, -std::numeric_limits<float>::infinity()}));
}

TEST_F(SparsePool, RefusesCoordinatesThatAreNone) {
  write("x.npy", floats("(2, 3)", {0, 1, 5, 0, 1.5f, 5}));
  expect_error({"--dims", "1"}, 2, "x.npy: row 1, column 1 = 1.5: a coordinate must be a whole number of 64 bits");
  write("x.npy", array<double>("<f8", "(1, 3)", {0, 1e300, 5}));
  expect_error({"--dims", "1"}, 2, "x.npy: row 0, column 1 = 1e+300: a coordinate must be a whole number of 64 bits");
  write("x.npy", floats("(1, 3)", {std::nanf(""), 1, 5}));
  expect_error({"--dims", "1"}, 2, "x.npy: row 0, column 0 = nan: a batch must be a whole number of 64 bits");
  write("x.npy", floats("(1, 3)", {-1, 1, 5}));
  expect_error({"--dims", "1"}, 2, "x.npy: row 0 is (-1, 1): batch ids must be at least 0");
  write("x.npy", array("<f2", "(1, 3)", std::vector<std::uint16_t>{0, 0x6800, 0x3c00}));  // 0, 2048, 1
  expect_error(
      {"--dims", "1", "--kernel", "1", "--stride", "1", "--policy", "dense", "--padding", "1", "--mode", "sum"}, 2,
      "coordinate 2049 of the output is not exact in f16: keep coordinates apart with --coords and "
      "--out-coords");
}

TEST_F(SparsePool, RefusesWhatIsNoRequest) {
  write("x.npy", line({0, 1}, {1, 2}));
  const auto error = [&](const Arguments& more, const std::string& text) { expect_error(with(three, more), 2, text); };
  expect_error({}, 2,
               "--dims is needed, the number of coordinates after the batch, or --coords (see cenote sparse-pool "
               "--help)");
  expect_error({"--dims", "0"}, 2, "--dims 0: from 1 to 6");
  expect_error({"--dims", "7"}, 2, "--dims 7: from 1 to 6");
  expect_error({"--dims", "4"}, 2,
               "--dims 4: x.npy has 5 columns: batch, 4 coordinates and at least one feature need 6");
  error({"--policy", "torus"}, "--policy torus: one of lattice, dense, minkowski");
  error({"--order", "random"}, "--order random: one of first_seen, sorted");
  error({"--engine", "warp"}, "--engine warp: one of automatic, sorted, hashed");
  error({"--empty", "zero"}, "--empty zero: one of reject, identity");
  error({"--mode", "avg", "--divisor", "window"}, "--divisor window: count, volume or a number");
  error({"--divisor", "count"}, "--divisor is an option of avg, not of max");
  error({"--mode", "sum", "--empty", "identity"}, "--empty is an option of max and min and smooth_max, not of sum");
  error({"--beta", "1"}, "--beta is an option of smooth_max, not of max");
  error({"--p", "1"}, "--p is an option of lp, not of max");
  error({"--kernel", "2,x,2"}, "--kernel 2,x,2: 'x' is not a 64-bit integer");
  error({"--threads", "0"}, "--threads 0: at least 1");
  error({"--mode", "median"}, "--mode median: max, min, sum, avg, smooth_max, lp");
  error({"--kernel", "0"}, "--kernel = 0: every kernel extent must be at least 1");
  error({"--kernel", "2,0,2"}, "--kernel[1] = 0: every kernel extent must be at least 1");
  error({"--kernel", "2,2"}, "--kernel = (2, 2): must be one integer or one per lattice axis, 3");
  error({"--stride", "0"}, "--stride = 0: every kernel stride must be at least 1");
  error({"--dilation", "-1"}, "--dilation = -1: every kernel dilation must be at least 1");
  error({"--policy", "minkowski", "--padding", "1"}, "--padding[0] = 1: policy minkowski has no padding, it must be 0");
  error({"--extent", "4,4,4"}, "--extent with --policy lattice: only policy dense has an extent");
  error({"--policy", "dense", "--extent", "4"}, "--extent (4,): must have one number per lattice axis, 3");
  error({"--policy", "dense", "--extent", "4,-1,4"}, "--extent[1] = -1: must be at least 0");
  error({"--policy", "dense", "--extent", "1,4,4"},
        "--extent[0] = 1: with padding 0 it must be at least 2, the reach of the kernel");
  error({"--mode", "lp", "--p", "0"}, "--p = 0: must be at least 1 (infinity is the largest magnitude)");
  error({"--mode", "smooth_max", "--beta", "0"}, "--beta = 0: must be finite and not 0");
  error({"--mode", "avg", "--divisor", "-1"}, "--divisor = -1: must be finite and greater than 0");
  write("x.npy", floats("(4,)", counting(4)));
  error({}, "x.npy: shape (4,): rows and columns are needed");
  write("x.npy", array<char>("|b1", "(1, 5)", {0, 1, 0, 1, 0}));
  error({}, "x.npy: type bool: must be numbers");
  write("x.npy", "nothing");
  expect_error(three, 1, "x.npy: not a .npy file: it does not begin with \\x93NUMPY");
}

TEST_F(SparsePool, ExplainsItsRouteAndTakesNoRowsAtAll) {
  write("x.npy", line({0, 1}, {1, 2}));
  const Outcome outcome = pool(with(three, {"--explain", "--threads", "1"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("group"), std::string::npos) << outcome.out;
  expect(floats("(0, 5)", {}), three, floats("(0, 5)", {}));
}

}  // namespace
}  // namespace cenote::test
