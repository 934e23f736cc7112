// cenote pool as a process: every option by the bytes it writes, every mistake by its text and status.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <io/png.h>

#include "files.h"
#include "process.h"

namespace cenote::test {
namespace {

using Arguments = std::vector<std::string>;

class Pool : public testing::Test {
 protected:
  /// Runs `cenote pool x.npy y.npy ARGUMENTS` in the folder.
  Outcome pool(const Arguments& arguments, const std::string& in = "x.npy", const std::string& out = "y.npy") {
    Arguments all{"pool", in, out};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_cenote(all, {.folder = folder_.path().string()});
  }
  /// Pools `x` and expects the file `y`, byte for byte.
  void expect(const std::string& x, const Arguments& arguments, const std::string& y) {
    write_bytes(folder_ / "x.npy", x);
    const Outcome outcome = pool(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "");
    ASSERT_TRUE(std::filesystem::exists(folder_ / "y.npy"));
    EXPECT_EQ(read_bytes(folder_ / "y.npy"), y) << testing::PrintToString(arguments);
    std::filesystem::remove(folder_ / "y.npy");
  }
  /// Expects a failure that says `text`, alone on one line, and leaves nothing behind.
  void expect_error(const Arguments& arguments, int status, const std::string& text, const std::string& in = "x.npy",
                    const std::string& out = "y.npy") {
    const auto before = folder_.names();
    const Outcome outcome = pool(arguments, in, out);
    EXPECT_EQ(outcome.status, status) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.err, "cenote: " + text + "\n");
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(folder_.names(), before);
  }

  TemporaryFolder folder_;
  const std::string four_ = floats("(4, 4)", counting(16));
  const std::string line_ = floats("(5,)", counting(5, 1));
};

TEST_F(Pool, WindowStrideAndDefaults) {
  expect(four_, {"--window", "2,2", "--stride", "2"}, floats("(2, 2)", {5, 7, 13, 15}));
  expect(four_, {"--reducer", "max", "--window", "2,2", "--stride", "2,1"}, floats("(2, 3)", {5, 6, 7, 13, 14, 15}));
  expect(four_, {"--reducer", "min", "--window=2", "--stride=2"}, floats("(4, 2)", {0, 2, 4, 6, 8, 10, 12, 14}));
  expect(four_, {"--reducer", "sum", "--window", "4,4"}, floats("(1, 1)", {120}));
}

TEST_F(Pool, PaddingsDilationAndSizes) {
  expect(line_, {"--window", "2", "--stride", "2", "--padding", "same"}, floats("(3,)", {2, 4, 5}));
  expect(floats("(4,)", counting(4, 1)), {"--reducer", "avg", "--window", "4", "--padding", "same_lower"},
         floats("(4,)", {.75f, 1.5f, 2.5f, 2.25f}));
  expect(line_, {"--window", "2", "--padding", "valid"}, floats("(4,)", {2, 3, 4, 5}));
  expect(line_, {"--window", "3", "--padding", "1", "--stride", "2"}, floats("(3,)", {2, 4, 5}));
  expect(line_, {"--reducer", "avg", "--window", "2", "--stride", "2", "--padding", "2:3"},
         floats("(5,)", {0, 1.5f, 3.5f, 2.5f, 0}));
  expect(four_, {"--window", "2,2", "--stride", "2", "--padding", "1:0,0"}, floats("(2, 2)", {1, 3, 9, 11}));
  expect(floats("(4, 4)", counting(16, 1)), {"--window", "2,2", "--dilation", "2"}, floats("(2, 2)", {11, 12, 15, 16}));
  expect(four_, {"--window", "2,2", "--dilation", "1,3"}, floats("(3, 1)", {7, 11, 15}));
  expect(line_, {"--window", "2", "--stride", "2", "--ceil"}, floats("(3,)", {2, 4, 5}));
  expect(line_, {"--window", "9", "--allow-empty"}, floats("(0,)", {}));
  expect(four_, {"--window", "2,2", "--stride", "2", "--exact"}, floats("(2, 2)", {5, 7, 13, 15}));
}

TEST_F(Pool, LayoutsAndAxes) {
  const std::string cube = floats("(2, 2, 3)", counting(12));
  expect(cube, {"--window", "2,2", "--channels-last"}, floats("(1, 1, 3)", {9, 10, 11}));
  expect(cube, {"--window", "2,2"}, floats("(2, 1, 2)", {4, 5, 10, 11}));
  expect(cube, {"--window", "2", "--axes", "0"}, floats("(1, 2, 3)", {6, 7, 8, 9, 10, 11}));
  expect(cube, {"--window", "2", "--axes", "-3,-1"}, floats("(1, 2, 2)", {7, 8, 10, 11}));
  expect(cube, {"--global", "--axes", "0,2"}, floats("(1, 2, 1)", {8, 11}));
}

TEST_F(Pool, OptionsOfReducers) {
  const std::string one_to_four = floats("(4,)", counting(4, 1));
  const Arguments ceil{"--reducer", "avg", "--window", "3", "--stride", "2", "--padding", "1", "--ceil", "--divisor"};
  const auto divided = [&](const std::string& divisor) {
    Arguments all = ceil;
    all.push_back(divisor);
    return all;
  };
  expect(one_to_four, divided("window"), floats("(3,)", {1, 3, 4.0f / 3}));
  expect(one_to_four, divided("clipped"), floats("(3,)", {1, 3, 2}));
  expect(one_to_four, divided("valid"), floats("(3,)", {1.5f, 3, 4}));
  expect(one_to_four, divided("0.5"), floats("(3,)", {6, 18, 8}));
  expect(floats("(2,)", {3, 4}), {"--reducer", "lp", "--window", "2"}, floats("(1,)", {5}));
  expect(floats("(2,)", {3, -4}), {"--reducer", "lp", "--p", "1", "--window", "2"}, floats("(1,)", {7}));
  expect(floats("(2,)", {3, -4}), {"--reducer", "lp", "--p", "inf", "--window", "2"}, floats("(1,)", {4}));
  expect(floats("(2,)", {1e20f, -1e20f}), {"--reducer", "smooth_max", "--beta", "1e20", "--window", "2"},
         floats("(1,)", {1e20f}));
  expect(floats("(2,)", {1e20f, -1e20f}), {"--reducer", "smooth_max", "--beta", "-1e20", "--window", "2"},
         floats("(1,)", {-1e20f}));
  expect(floats("(1,)", {-3}),
         {"--reducer", "smooth_max", "--pad", "ignore", "--window", "2", "--padding", "1", "--beta", "7"},
         floats("(2,)", {-3, -3}));
  expect(array<std::uint8_t>("|u1", "(2,)", {200, 100}), {"--reducer", "sum", "--window", "2"},
         array<std::uint8_t>("|u1", "(1,)", {44}));
  expect(array<std::uint8_t>("|u1", "(2,)", {200, 100}), {"--reducer", "sum", "--window", "2", "--dtype", "i64"},
         array<std::int64_t>("<i8", "(1,)", {300}));
  expect(array<std::int16_t>("<i2", "(2,)", {1, 2}), {"--reducer", "avg", "--window", "2"}, floats("(1,)", {1.5f}));
  expect(line_, {"--ties", "split", "--window", "5"}, floats("(1,)", {5}));
}

TEST_F(Pool, AdaptiveAndGlobal) {
  expect(line_, {"--reducer", "avg", "--adaptive", "3"}, floats("(3,)", {1.5f, 3, 4.5f}));
  expect(four_, {"--adaptive", "_,1"}, floats("(4, 1)", {3, 7, 11, 15}));
  const std::string batch = floats("(1, 2, 2, 2)", counting(8));
  expect(batch, {"--global"}, floats("(1, 2, 1, 1)", {3, 7}));
  expect(batch, {"--global", "--no-keepdims"}, floats("(1, 2)", {3, 7}));
  expect(batch, {"--global", "--channels-last", "--reducer", "sum"}, floats("(1, 1, 1, 2)", {12, 16}));
}

TEST_F(Pool, IndicesOfEveryKind) {
  write_bytes(folder_ / "x.npy", floats("(1, 2, 2)", counting(4, 1)));
  const auto indices = [&](const Arguments& more) {
    Arguments all{"--window", "2,2", "--padding", "1", "--indices", "i.npy"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = pool(all);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(read_bytes(folder_ / "y.npy"), floats("(1, 3, 3)", {1, 2, 2, 3, 4, 4, 3, 4, 4}));
    return read_bytes(folder_ / "i.npy");
  };
  const auto longs = [](const std::vector<std::int64_t>& values) { return array("<i8", "(1, 3, 3)", values); };
  EXPECT_EQ(indices({"--index-kind", "offset"}), array<std::uint8_t>("|u1", "(1, 3, 3)", {3, 3, 2, 3, 3, 2, 1, 1, 0}));
  EXPECT_EQ(indices({}), longs({0, 1, 1, 2, 3, 3, 2, 3, 3}));
  EXPECT_EQ(indices({"--index-kind", "plane"}), longs({0, 1, 1, 2, 3, 3, 2, 3, 3}));
  EXPECT_EQ(indices({"--index-kind", "tensor"}), longs({0, 1, 1, 2, 3, 3, 2, 3, 3}));
  EXPECT_EQ(indices({"--index-kind", "tensor_column"}), longs({0, 2, 2, 1, 3, 3, 1, 3, 3}));
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"i.npy", "x.npy", "y.npy"}));
}

TEST_F(Pool, EveryTypeFortranOrderAndBfloat16) {
  const Arguments pair{"--window", "2", "--stride", "2"};
  expect(array<std::uint16_t>("<f2", "(2,)", {0x3c00, 0x4000}), pair, array<std::uint16_t>("<f2", "(1,)", {0x4000}));
  expect(array<double>("<f8", "(2,)", {1, 2}), pair, array<double>("<f8", "(1,)", {2}));
  expect(array<std::int8_t>("|i1", "(2,)", {-1, -2}), pair, array<std::int8_t>("|i1", "(1,)", {-1}));
  expect(array<std::int16_t>("<i2", "(2,)", {-1, -2}), pair, array<std::int16_t>("<i2", "(1,)", {-1}));
  expect(array<std::int32_t>("<i4", "(2,)", {-1, -2}), pair, array<std::int32_t>("<i4", "(1,)", {-1}));
  const std::int64_t beyond = (std::int64_t{1} << 53) + 1;
  expect(array<std::int64_t>("<i8", "(2,)", {beyond, beyond - 1}), pair, array<std::int64_t>("<i8", "(1,)", {beyond}));
  expect(array<std::uint8_t>("|u1", "(2,)", {1, 255}), pair, array<std::uint8_t>("|u1", "(1,)", {255}));
  expect(array<std::uint16_t>("<u2", "(2,)", {1, 65535}), pair, array<std::uint16_t>("<u2", "(1,)", {65535}));
  expect(array<std::uint32_t>("<u4", "(2,)", {1, 4294967295u}), pair,
         array<std::uint32_t>("<u4", "(1,)", {4294967295u}));
  const auto largest = std::numeric_limits<std::uint64_t>::max();
  expect(array<std::uint64_t>("<u8", "(2,)", {1, largest}), pair, array<std::uint64_t>("<u8", "(1,)", {largest}));
  expect(array<std::uint8_t>("|b1", "(2,)", {0, 1}), pair, array<std::uint8_t>("|b1", "(1,)", {1}));
  expect(array<float>("<f4", "(2, 2)", {0, 2, 1, 3}, "True"), pair, floats("(2, 1)", {1, 3}));
  const Arguments bfloat{"--window", "2", "--reducer", "sum", "--type", "bf16"};
  expect(array<std::uint16_t>("<V2", "(2,)", {0x3f80, 0x4000}), bfloat, array<std::uint16_t>("<V2", "(1,)", {0x4040}));
}

TEST_F(Pool, ThreadsChangeNothingAndVerboseExplains) {
  expect(four_, {"--window", "2,2", "--threads", "1"}, floats("(3, 3)", {5, 6, 7, 9, 10, 11, 13, 14, 15}));
  expect(four_, {"--window", "2,2", "--threads", "5"}, floats("(3, 3)", {5, 6, 7, 9, 10, 11, 13, 14, 15}));
  const Outcome outcome = pool({"--window", "2,2", "-v"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.err.starts_with("max f32 4x4 k2x2")) << outcome.err;
}

TEST_F(Pool, AFileMayReplaceItsInput) {
  write_bytes(folder_ / "x.npy", four_);
  EXPECT_EQ(pool({"--window", "2,2", "--stride", "2"}, "x.npy", "x.npy").status, 0);
  EXPECT_EQ(read_bytes(folder_ / "x.npy"), floats("(2, 2)", {5, 7, 13, 15}));
}

TEST_F(Pool, PicturesOfBothDepths) {
  const auto pixels = [&](const std::string& path) {
    const Array picture = io::read_png(folder_ / path);
    std::vector<int> values;
    if (picture.type() == Type::u8) {
      values.assign(picture.values<std::uint8_t>().begin(), picture.values<std::uint8_t>().end());
    } else {
      values.assign(picture.values<std::uint16_t>().begin(), picture.values<std::uint16_t>().end());
    }
    return values;
  };
  io::write_png(folder_ / "grey.png", Array({2, 4}, std::vector<std::uint8_t>{0, 1, 2, 3, 100, 101, 200, 250}));
  EXPECT_EQ(pool({"--window", "2", "--stride", "2"}, "grey.png", "y.png").status, 0);
  EXPECT_EQ(pixels("y.png"), (std::vector<int>{101, 250}));
  EXPECT_EQ(pool({"--reducer", "avg", "--window", "2,2", "--stride", "2"}, "grey.png", "y.png").status, 0);
  EXPECT_EQ(pixels("y.png"), (std::vector<int>{50, 114}));  // 50.5 and 113.75: ties to even
  EXPECT_EQ(
      pool({"--reducer", "sum", "--dtype", "u32", "--window", "2,2", "--stride", "2"}, "grey.png", "y.png").status, 0);
  EXPECT_EQ(pixels("y.png"), (std::vector<int>{202, 255}));
  EXPECT_EQ(pool({"--global", "--reducer", "min"}, "grey.png", "y.png").status, 0);
  EXPECT_EQ(pixels("y.png"), (std::vector<int>{0}));
  EXPECT_EQ(pool({"--adaptive", "1,2"}, "grey.png", "y.png").status, 0);
  EXPECT_EQ(pixels("y.png"), (std::vector<int>{101, 250}));

  io::write_png(folder_ / "rgb.png", Array({1, 2, 3}, std::vector<std::uint8_t>{9, 20, 30, 10, 2, 3}));
  for (const Arguments& arguments : {Arguments{"--window", "1,2"}, Arguments{"--window", "1,2", "--channels-last"},
                                     Arguments{"--window", "2", "--axes", "1"}, Arguments{"--global"}}) {
    EXPECT_EQ(pool(arguments, "rgb.png", "y.PNG").status, 0);
    EXPECT_EQ(pixels("y.PNG"), (std::vector<int>{10, 20, 30}));
  }
  EXPECT_EQ(pool({"--window", "1,1,3"}, "rgb.png", "y.png").status, 0);
  EXPECT_EQ(pixels("y.png"), (std::vector<int>{30, 10}));

  io::write_png(folder_ / "deep.png", Array({1, 2}, std::vector<std::uint16_t>{1000, 50001}), Type::u16);
  EXPECT_EQ(pool({"--reducer", "avg", "--window", "1,2"}, "deep.png", "y.png").status, 0);
  EXPECT_EQ(pixels("y.png"), (std::vector<int>{25500}));  // still 16 bits
  EXPECT_EQ(pool({"--window", "1,2"}, "deep.png", "y.npy").status, 0);
  EXPECT_EQ(read_bytes(folder_ / "y.npy"), array<std::uint16_t>("<u2", "(1, 1)", {50001}));
  write_bytes(folder_ / "x.npy", floats("(1, 2)", {-3, 400.7f}));
  EXPECT_EQ(pool({"--window", "1,1"}, "x.npy", "y.png").status, 0);
  EXPECT_EQ(pixels("y.png"), (std::vector<int>{0, 255}));
}

TEST_F(Pool, MistakesOnTheCommandLineHaveStatusTwo) {
  write_bytes(folder_ / "x.npy", four_);
  const std::string help = " (see cenote pool --help)";
  expect_error({}, 2, "one of --window, --adaptive and --global is needed" + help);
  expect_error({"--window", "2,2", "--global"}, 2, "--window excludes --global" + help);
  expect_error({"--window", "2,2", "--adaptive", "2,2"}, 2, "--window excludes --adaptive" + help);
  expect_error({"--adaptive", "2,2", "--stride", "2"}, 2, "--stride requires --window" + help);
  expect_error({"--global", "--ceil"}, 2, "--ceil requires --window" + help);
  expect_error({"--window", "2,2", "--no-keepdims"}, 2, "--no-keepdims requires --global" + help);
  expect_error({"--window", "2,2", "--index-kind", "plane"}, 2, "--index-kind requires --indices" + help);
  expect_error({"--window", "2", "--axes", "0", "--channels-last"}, 2, "--axes excludes --channels-last" + help);
  expect_error({"--window"}, 2, "--window: 1 required LIST missing" + help);
  expect_error({"--window", "2,2", "--colour", "red"}, 2,
               "The following arguments were not expected: red --colour" + help);
  expect_error({"--window", "2,x"}, 2, "--window 2,x: 'x' is not a 64-bit integer");
  expect_error({"--window", "2,,2"}, 2, "--window 2,,2: '' is not a 64-bit integer");
  expect_error({"--window", "10000000000000000000"}, 2,
               "--window 10000000000000000000: '10000000000000000000' is not a 64-bit integer");
  expect_error({"--window", "1,1,1,1,1,1,1,1,1,1,1,1,1"}, 2, "--window 1,1,1,1,1,1,1,1,1,1,1,1,1: at most 12 values");
  expect_error({"--window", "2,2", "--padding", "some"}, 2, "--padding some: 'some' is not a 64-bit integer");
  expect_error({"--window", "2,2", "--padding", "1:2:3"}, 2,
               "--padding 1:2:3: valid, same, same_lower, N, or N or LOW:HIGH for each axis");
  expect_error({"--window", "2,2", "--reducer", "avg", "--divisor", "half"}, 2,
               "--divisor half: window, valid, clipped or a number");
  expect_error({"--window", "2,2", "--reducer", "smooth_max", "--beta", "x"}, 2, "--beta x: not a number");
  expect_error({"--window", "2,2", "--reducer", "smooth_max", "--pad", "one"}, 2, "--pad one: one of zero, ignore");
  expect_error({"--window", "2,2", "--ties", "last"}, 2, "--ties last: one of first, split");
  expect_error({"--window", "2,2", "--indices", "i.npy", "--index-kind", "x"}, 2,
               "--index-kind x: one of offset, plane, tensor, tensor_column");
  expect_error({"--window", "2,2", "--indices", "i.png"}, 2, "--indices i.png: the name must end in .npy");
  expect_error({"--window", "2,2", "--indices", "./y.npy"}, 2,
               "--indices ./y.npy: values and indices cannot go into one file");
  expect_error({"--window", "2,2", "--threads", "0"}, 2, "--threads 0: at least 1");
  expect_error({"--window", "2,2", "--threads", "two"}, 2, "Could not convert: --threads = two" + help);
  expect_error({"--window", "2,2"}, 2, "x.npz: the name must end in .npy or .png", "x.npz");
  expect_error({"--window", "2,2"}, 2, "y.txt: the name must end in .npy or .png", "x.npy", "y.txt");
}

TEST_F(Pool, OptionsOfOtherReducersAreRefused) {
  write_bytes(folder_ / "x.npy", four_);
  expect_error({"--window", "2", "--beta", "2"}, 2, "--beta is an option of smooth_max, not of max");
  expect_error({"--window", "2", "--pad", "zero"}, 2, "--pad is an option of smooth_max, not of max");
  expect_error({"--window", "2", "--p", "2"}, 2, "--p is an option of lp, not of max");
  expect_error({"--window", "2", "--divisor", "valid"}, 2, "--divisor is an option of avg, not of max");
  expect_error({"--window", "2", "--dtype", "f64"}, 2, "--dtype is an option of sum, not of max");
  expect_error({"--window", "2", "--reducer", "sum", "--indices", "i.npy"}, 2,
               "--indices is an option of max and min, not of sum");
  expect_error({"--window", "2", "--reducer", "lp", "--ties", "split"}, 2,
               "--ties is an option of max and min, not of lp");
}

TEST_F(Pool, RequestsThatTheLibraryRefusesHaveStatusTwo) {
  write_bytes(folder_ / "x.npy", four_);
  const auto refused = [&](const Arguments& arguments, const std::string& beginning) {
    const auto before = folder_.names();
    const Outcome outcome = pool(arguments);
    EXPECT_EQ(outcome.status, 2) << testing::PrintToString(arguments);
    EXPECT_TRUE(outcome.err.starts_with("cenote: " + beginning)) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(folder_.names(), before);
  };
  refused({"--window", "2,0"}, "[max_pool] window[1] = 0");
  refused({"--window", "-1,2"}, "[max_pool] window[0] = -1");
  refused({"--window", "2,2", "--stride", "0"}, "[max_pool] stride = 0");
  refused({"--window", "2,2", "--stride", "1,2,3"}, "[max_pool] stride");
  refused({"--window", "2,2", "--dilation", "-3"}, "[max_pool] dilation = -3");
  refused({"--window", "2,2", "--padding", "-1"}, "[max_pool] padding");
  refused({"--window", "5,5"}, "[max_pool] ");
  refused({"--window", "3,3", "--stride", "2", "--exact"}, "[max_pool] ");
  refused({"--window", "1,1,1"}, "[max_pool] ");
  refused({"--reducer", "median", "--window", "2"}, "[reducer] 'median'");
  refused({"--reducer", "sum", "--dtype", "f31", "--window", "2"}, "[type] 'f31'");
  refused({"--reducer", "smooth_max", "--beta", "0", "--window", "2"}, "[smooth_max_pool] beta = 0");
  refused({"--reducer", "smooth_max", "--beta", "1e300", "--window", "2"}, "[smooth_max_pool] beta = 1e+300");
  refused({"--reducer", "lp", "--p", "0", "--window", "2"}, "[lp_pool] p = 0");
  refused({"--reducer", "avg", "--divisor", "0", "--window", "2"}, "[avg_pool] divisor = 0");
  refused({"--adaptive", "0,1"}, "[adaptive_max_pool] ");
  refused({"--adaptive", "9132760301568586890,1"}, "[adaptive_max_pool] ");
  write_bytes(folder_ / "x.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "abcd"));
  refused({"--window", "1"}, "[max_pool] ");
  write_bytes(folder_ / "x.npy", array<std::uint8_t>("|b1", "(2,)", {0, 1}));
  refused({"--window", "1", "--reducer", "sum"}, "[sum_pool] type bool");
}

TEST_F(Pool, FilesThatFailHaveStatusOne) {
  expect_error({"--window", "2,2"}, 1, "x.npy: cannot open: No such file or directory");
  write_bytes(folder_ / "x.npy", "\x93NUMPY");
  expect_error({"--window", "2,2"}, 1, "x.npy: truncated inside the .npy header");
  write_bytes(folder_ / "x.npy", array<float>(">f4", "(4,)", counting(4)));
  expect_error({"--window", "2"}, 1, "x.npy: big-endian elements ('>f4'): only little-endian is read");
  write_bytes(folder_ / "x.npy", array<std::uint16_t>("<V2", "(1,)", {0}));
  expect_error({"--window", "1"}, 1, "x.npy: two-byte void ('<V2'): if these are bfloat16 numbers, ask for type bf16");
  write_bytes(folder_ / "x.npy", four_);
  expect_error({"--window", "1", "--type", "bf16"}, 1, "x.npy: holds f32, not bf16");
  expect_error({"--window", "1"}, 1, "no/y.npy: cannot create: No such file or directory", "x.npy", "no/y.npy");
  write_bytes(folder_ / "x.png", "not a picture");
  expect_error({"--window", "1"}, 1, "x.png: not a .png file: it does not begin with the PNG signature", "x.png");
  io::write_png(folder_ / "x.png", Array({1, 1}, std::vector<std::uint8_t>{1}));
  expect_error({"--window", "1", "--type", "u16"}, 1, "x.png: holds u8, not u16", "x.png");
}

TEST_F(Pool, ResultsThatAreNoPictureAreRefusedBeforeTheWork) {
  write_bytes(folder_ / "x.npy", floats("(1, 2, 2, 2)", counting(8)));
  expect_error({"--window", "1"}, 2,
               "[write_png] shape (1, 2, 2, 2): a picture is (height, width) or (height, width, 1 to 4 channels), each "
               "side from 1 to 1000000",
               "x.npy", "y.png");
}

TEST_F(Pool, AWriteThatFailsLeavesTheOldFileAndNoOther) {
  std::vector<float> noise;  // that no picture format packs into a kilobyte
  for (unsigned i = 0; i < 4096; ++i) noise.push_back(static_cast<float>(i * 2654435761u >> 24));
  write_bytes(folder_ / "x.npy", floats("(64, 64)", noise));
  write_bytes(folder_ / "y.npy", "old");
  const auto before = folder_.names();
  for (const std::string out : {"y.npy", "z.npy", "z.png"}) {
    const Surroundings narrow{.folder = folder_.path().string(), .file_limit = 1024};
    const Outcome outcome = run_cenote({"pool", "x.npy", out, "--window", "1,1"}, narrow);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err, "cenote: " + out + ": cannot write: File too large\n");
    EXPECT_EQ(folder_.names(), before);
    EXPECT_EQ(read_bytes(folder_ / "y.npy"), "old");
  }
  // Values that fit beside indices that do not: neither appears.
  const Surroundings narrow{.folder = folder_.path().string(), .file_limit = 20000};
  const Outcome outcome = run_cenote({"pool", "x.npy", "z.npy", "--window", "1,1", "--indices", "i.npy"}, narrow);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "cenote: i.npy: cannot write: File too large\n");
  EXPECT_EQ(folder_.names(), before);
}

TEST_F(Pool, ErrorsStayOnOneLine) {
  const Outcome outcome = pool({"--window", "1"}, "two\nlines.npy");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "cenote: two lines.npy: cannot open: No such file or directory\n");
}

}  // namespace
}  // namespace cenote::test
