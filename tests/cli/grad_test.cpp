// cenote grad as a process: derivatives by the bytes it writes, every mistake by its text and status.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <io/npy.h>
#include <io/png.h>

#include "files.h"
#include "process.h"

namespace cenote::test {
namespace {

using Arguments = std::vector<std::string>;

class Grad : public testing::Test {
 protected:
  Outcome grad(const Arguments& arguments, const std::string& in = "x.npy", const std::string& out = "d.npy") {
    Arguments all{"grad", in, "-o", out};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_cenote(all, {.folder = folder_.path().string()});
  }
  void write(const std::string& name, const std::string& bytes) { write_bytes(folder_ / name, bytes); }
  /// Differentiates at `x` and expects the file `derivative`, byte for byte.
  void expect(const std::string& x, const Arguments& arguments, const std::string& derivative) {
    write("x.npy", x);
    const Outcome outcome = grad(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "");
    ASSERT_TRUE(std::filesystem::exists(folder_ / "d.npy"));
    EXPECT_EQ(read_bytes(folder_ / "d.npy"), derivative) << testing::PrintToString(arguments);
    std::filesystem::remove(folder_ / "d.npy");
  }
  /// The same for f64 numbers that are known to ten digits.
  void expect_near(const std::string& x, const Arguments& arguments, const std::vector<double>& derivative) {
    write("x.npy", x);
    const Outcome outcome = grad(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const Array found(io::NpyFile(folder_ / "d.npy").view());
    ASSERT_EQ(found.values<double>().size(), derivative.size());
    for (std::size_t i = 0; i < derivative.size(); ++i) EXPECT_NEAR(found.values<double>()[i], derivative[i], 1e-9);
  }
  /// Expects a failure that says `text`, alone on one line, and leaves nothing behind.
  void expect_error(const Arguments& arguments, int status, const std::string& text, const std::string& in = "x.npy",
                    const std::string& out = "d.npy") {
    const auto before = folder_.names();
    const Outcome outcome = grad(arguments, in, out);
    EXPECT_EQ(outcome.status, status) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.err, "cenote: " + text + "\n");
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(folder_.names(), before);
  }
  std::vector<int> pixels(const std::string& name) {
    const Array picture = io::read_png(folder_ / name);
    return {picture.values<std::uint8_t>().begin(), picture.values<std::uint8_t>().end()};
  }

  TemporaryFolder folder_;
};

std::string doubles(const std::string& shape, const std::vector<double>& values) { return array("<f8", shape, values); }

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

TEST_F(Grad, OfMaxGoesToTheFirstWinner) {
  expect(floats("(3, 3)", {0, 10, 8, 2, 7, 3, 5, 7, 20}), {"--window", "2,2"},
         floats("(3, 3)", {0, 2, 0, 0, 1, 0, 0, 0, 1}));
  const std::string sevens = floats("(3, 3)", std::vector<float>(9, 7));
  for (const char* reducer : {"max", "min"})
    expect(sevens, {"--reducer", reducer, "--window", "2,2"}, floats("(3, 3)", {1, 1, 0, 1, 1, 0, 0, 0, 0}));
  expect(floats("(1, 3, 3, 1)", counting(9)), {"--window", "2,2", "--channels-last"},
         floats("(1, 3, 3, 1)", {0, 0, 0, 0, 1, 1, 0, 1, 1}));
  expect(floats("(4, 4)", counting(16, 1)), {"--window", "2,2", "--dilation", "2"},
         floats("(4, 4)", {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1}));
  expect(floats("(4,)", {1, nan_value, 5, 6}), {"--window", "4"}, floats("(4,)", {0, 1, 0, 0}));
}

TEST_F(Grad, OfMaxLeavesPaddingOut) {
  expect(floats("(1, 1)", {-3}), {"--window", "2,2", "--padding", "1"}, floats("(1, 1)", {4}));
  expect(floats("(1, 1, 1)", {-3}), {"--window", "2,2,2", "--padding", "1"}, floats("(1, 1, 1)", {8}));
  expect(floats("(2, 2)", {-3, -1, -2, -5}), {"--window", "3,3", "--padding", "1"}, floats("(2, 2)", {0, 4, 0, 0}));
  expect(floats("(1,)", {5}), {"--window", "2", "--dilation", "2", "--padding", "1"}, floats("(1,)", {0}));
}

TEST_F(Grad, SharesTiesWhenAsked) {
  const Arguments split{"--window", "3", "--ties", "split"};
  expect(floats("(3,)", {2, 2, 1}), split, floats("(3,)", {.5f, .5f, 0}));
  expect(floats("(3,)", {nan_value, 1, nan_value}), split, floats("(3,)", {.5f, 0, .5f}));
  expect(floats("(3,)", {nan_value, 1, nan_value}), {"--window", "3", "--ties", "first"}, floats("(3,)", {1, 0, 0}));
}

TEST_F(Grad, OfSumAndAverage) {
  const std::string twos = floats("(3, 3)", std::vector<float>(9, 2));
  expect(twos, {"--reducer", "avg", "--window", "2,2"},
         floats("(3, 3)", {.25f, .5f, .25f, .5f, 1, .5f, .25f, .5f, .25f}));
  expect(twos, {"--reducer", "sum", "--window", "2,2"}, floats("(3, 3)", {1, 2, 1, 2, 4, 2, 1, 2, 1}));
  const std::string four = floats("(2, 2)", counting(4, 1));
  const Arguments same{"--reducer", "avg", "--window", "2,2", "--padding", "same", "--divisor"};
  const auto divided = [&](const std::string& divisor) {
    Arguments all = same;
    all.push_back(divisor);
    return all;
  };
  expect(four, divided("window"), floats("(2, 2)", {.25f, .5f, .5f, 1}));
  expect(four, divided("valid"), floats("(2, 2)", {.25f, .75f, .75f, 2.25f}));
  expect(floats("(1, 2, 2, 1)", counting(4)), {"--reducer", "avg", "--global", "--no-keepdims"},
         floats("(1, 2, 2, 1)", {.5f, .5f, .5f, .5f}));
  expect(floats("(2,)", {1, 2}), {"--reducer", "sum", "--window", "2", "--dtype", "f64"}, floats("(2,)", {1, 1}));
}

TEST_F(Grad, OfSmoothMaxAndLp) {
  const Arguments smooth{"--reducer", "smooth_max", "--window", "3"};
  const std::string line = doubles("(3,)", {1, 2, 3});
  expect_near(line, smooth, {.0900305732, .2447284711, .6652409558});
  expect_near(
      doubles("(3, 3)", {1, 2, 3, 4, 5, 6, 7, 8, 9}), {"--reducer", "smooth_max", "--beta", "0.5", "--window", "2,2"},
      {.0688730543, .1824255238, .1135524695, .3775406688, 1, .6224593312, .3086676145, .8175744762, .5089068617});
  expect_near(doubles("(1,)", {-3}), {"--reducer", "smooth_max", "--window", "2", "--padding", "1"}, {.0948517464});
  expect_near(doubles("(2,)", {3, 4}), {"--reducer", "lp", "--window", "2"}, {.6, .8});
  expect_near(doubles("(3,)", {1, -2, 2}), {"--reducer", "lp", "--p", "3", "--window", "3"},
              {.1512518583, -.6050074331, .6050074331});
}

TEST_F(Grad, WeighsOutputsByTheCotangent) {
  write("g.npy", floats("(2, 2)", {1, 10, 100, 1000}));
  expect(floats("(3, 3)", {0, 10, 8, 2, 7, 3, 5, 7, 20}), {"--window", "2,2", "--cotangent", "g.npy"},
         floats("(3, 3)", {0, 11, 0, 0, 100, 0, 0, 0, 1000}));
  write("g.npy", doubles("(1,)", {3}));
  expect(floats("(2,)", {1, 2}), {"--reducer", "sum", "--window", "2", "--dtype", "f64", "--cotangent", "g.npy"},
         floats("(2,)", {3, 3}));
  write("g.npy", array<float>("<f4", "(2, 2)", {1, 100, 10, 1000}, "True"));
  expect(floats("(2, 2)", {1, 2, 3, 4}), {"--window", "1,1", "--cotangent", "g.npy"},
         floats("(2, 2)", {1, 10, 100, 1000}));
}

TEST_F(Grad, GoesForwardAlongATangent) {
  write("dx.npy", floats("(2, 2)", {10, 20, 30, 40}));
  const Arguments along{"--window", "2,2", "--tangent", "dx.npy"};
  expect(floats("(2, 2)", {1, 0, 5, 3}), along, floats("(1, 1)", {30}));
  expect(floats("(2, 2)", {2, 2, 1, 2}), along, floats("(1, 1)", {10}));
  expect(floats("(2, 2)", {2, 2, 1, 1}), {"--window", "2,2", "--tangent", "dx.npy", "--ties", "split"},
         floats("(1, 1)", {15}));
  expect(floats("(2, 2)", {2, 2, 1, 2}), {"--reducer", "avg", "--window", "2,2", "--tangent", "dx.npy"},
         floats("(1, 1)", {25}));
}

TEST_F(Grad, KnowsTheSecondDerivative) {
  write("v.npy", doubles("(3,)", {1, 0, 0}));
  expect_near(doubles("(3,)", {1, 2, 3}), {"--reducer", "smooth_max", "--window", "3", "--second", "v.npy"},
              {.0819250691, -.0220330446, -.0598920245});
  write("g.npy", doubles("(1,)", {10}));
  expect_near(doubles("(3,)", {1, 2, 3}),
              {"--reducer", "smooth_max", "--window", "3", "--second", "v.npy", "--cotangent", "g.npy"},
              {.819250691, -.220330446, -.598920245});
  expect(doubles("(3,)", {1, 2, 3}), {"--window", "3", "--second", "v.npy"}, doubles("(3,)", {0, 0, 0}));
}

TEST_F(Grad, OfHalves) {
  const auto halves = [](const std::string& descr, const std::string& shape, const std::vector<std::uint16_t>& bits) {
    return array(descr, shape, bits);
  };
  write("g.npy", halves("<f2", "(1,)", {0x4000}));
  expect(halves("<f2", "(2,)", {0x3c00, 0x4000}), {"--window", "2", "--cotangent", "g.npy"},
         halves("<f2", "(2,)", {0, 0x4000}));
  write("g.npy", halves("<V2", "(1,)", {0x4000}));
  expect(halves("<V2", "(2,)", {0x3f80, 0x4000}),
         {"--reducer", "avg", "--window", "2", "--type", "bf16", "--cotangent", "g.npy"},
         halves("<V2", "(2,)", {0x3f80, 0x3f80}));
}

TEST_F(Grad, ThreadsChangeNothingAndVerboseExplains) {
  const std::string x = floats("(3, 3)", {0, 10, 8, 2, 7, 3, 5, 7, 20});
  for (const char* threads : {"1", "5"})
    expect(x, {"--window", "2,2", "--threads", threads}, floats("(3, 3)", {0, 2, 0, 0, 1, 0, 0, 0, 1}));
  const Outcome outcome = grad({"--window", "2,2", "-v"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.err.starts_with("max f32 3x3 k2x2 vjp -> (3, 3) f32: routed, ")) << outcome.err;
}

TEST_F(Grad, OfPicturesAndAsPictures) {
  io::write_png(folder_ / "grey.png", Array({2, 4}, std::vector<std::uint8_t>{0, 1, 2, 3, 100, 101, 200, 250}));
  EXPECT_EQ(grad({"--window", "2", "--stride", "2"}, "grey.png").status, 0);
  EXPECT_EQ(read_bytes(folder_ / "d.npy"), floats("(2, 4)", {0, 0, 0, 0, 0, 1, 0, 1}));
  EXPECT_EQ(grad({"--window", "2", "--stride", "2"}, "grey.png", "d.png").status, 0);
  EXPECT_EQ(pixels("d.png"), (std::vector<int>{0, 0, 0, 0, 0, 255, 0, 255}));
  // A cotangent of 1 and -4: magnitudes, against the largest.
  write("g.npy", floats("(1, 2)", {1, -4}));
  EXPECT_EQ(grad({"--window", "2", "--stride", "2", "--cotangent", "g.npy"}, "grey.png", "d.png").status, 0);
  EXPECT_EQ(pixels("d.png"), (std::vector<int>{0, 0, 0, 0, 0, 64, 0, 255}));
  io::write_png(folder_ / "g.png", Array({1, 2}, std::vector<std::uint8_t>{3, 7}));
  EXPECT_EQ(grad({"--window", "2", "--stride", "2", "--cotangent", "g.png"}, "grey.png").status, 0);
  EXPECT_EQ(read_bytes(folder_ / "d.npy"), floats("(2, 4)", {0, 0, 0, 0, 0, 3, 0, 7}));
  EXPECT_EQ(grad({"--window", "2", "--stride", "2", "--tangent", "grey.png"}, "grey.png", "d.png").status, 0);
  EXPECT_EQ(pixels("d.png"), (std::vector<int>{103, 255}));

  io::write_png(folder_ / "rgb.png", Array({1, 2, 3}, std::vector<std::uint8_t>{9, 20, 30, 10, 2, 3}));
  EXPECT_EQ(grad({"--window", "1,2"}, "rgb.png", "d.png").status, 0);
  EXPECT_EQ(pixels("d.png"), (std::vector<int>{0, 255, 255, 255, 0, 0}));
  io::write_png(folder_ / "rgba.png", Array({1, 2, 4}, std::vector<std::uint8_t>{9, 20, 30, 5, 10, 2, 3, 4}));
  EXPECT_EQ(grad({"--window", "1,2"}, "rgba.png", "d.png").status, 0);
  EXPECT_EQ(pixels("d.png"), (std::vector<int>{0, 255, 255, 255, 255, 0, 0, 255}));

  // Nothing at all is black, NaN too, and infinities are white.
  io::write_png(folder_ / "deep.png", Array({1, 2}, std::vector<std::uint16_t>{1000, 50001}), Type::u16);
  write("g.npy", floats("(1, 1)", {0}));
  EXPECT_EQ(grad({"--window", "1,2", "--cotangent", "g.npy"}, "deep.png", "d.png").status, 0);
  EXPECT_EQ(pixels("d.png"), (std::vector<int>{0, 0}));
  write("x.npy", floats("(1, 4)", {1, 2, 3, 4}));
  write("g.npy", floats("(1, 4)", {nan_value, -INFINITY, 2, 4}));
  EXPECT_EQ(grad({"--window", "1", "--cotangent", "g.npy"}, "x.npy", "d.png").status, 0);
  EXPECT_EQ(pixels("d.png"), (std::vector<int>{0, 255, 128, 255}));
}

TEST_F(Grad, MistakesOnTheCommandLineHaveStatusTwo) {
  write("x.npy", floats("(4, 4)", counting(16)));
  const std::string help = " (see cenote grad --help)";
  expect_error({}, 2, "one of --window, --adaptive and --global is needed" + help);
  expect_error({"--window", "2,2", "--tangent", "a.npy", "--cotangent", "b.npy"}, 2,
               "--cotangent excludes --tangent" + help);
  expect_error({"--window", "2,2", "--tangent", "a.npy", "--second", "b.npy"}, 2, "--tangent excludes --second" + help);
  expect_error({"--window", "2,2", "--indices", "i.npy"}, 2,
               "The following arguments were not expected: i.npy --indices" + help);
  expect_error({"--window", "2,2", "--ties", "last"}, 2, "--ties last: one of first, split");
  expect_error({"--window", "2,2", "--reducer", "avg", "--ties", "split"}, 2,
               "--ties is an option of max and min, not of avg");
  expect_error({"--window", "2,2", "--cotangent", "g.txt"}, 2, "g.txt: the name must end in .npy or .png");
  expect_error({"--window", "2,2"}, 2, "d.txt: the name must end in .npy or .png", "x.npy", "d.txt");
  expect_error({"--window", "2,2", "--threads", "0"}, 2, "--threads 0: at least 1");
  const Outcome outcome = run_cenote({"grad", "x.npy", "--window", "2"}, {.folder = folder_.path().string()});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "cenote: --output is required" + help + "\n");
}

TEST_F(Grad, ArraysThatDoNotBelongTogetherAreRefused) {
  write("x.npy", floats("(4, 4)", counting(16)));
  write("row.npy", floats("(4,)", counting(4)));
  write("wide.npy", doubles("(3, 3)", std::vector<double>(9, 1)));
  write("square.npy", floats("(4, 4)", counting(16)));
  expect_error({"--window", "2,2", "--cotangent", "row.npy"}, 2,
               "--cotangent row.npy: shape (4,): must be (3, 3), that of the output");
  expect_error({"--window", "2,2", "--cotangent", "square.npy"}, 2,
               "--cotangent square.npy: shape (4, 4): must be (3, 3), that of the output");
  expect_error({"--window", "2,2", "--cotangent", "wide.npy"}, 2,
               "--cotangent wide.npy: type f64: must be f32, that of the output");
  expect_error({"--window", "2,2", "--tangent", "row.npy"}, 2,
               "--tangent row.npy: shape (4,): must be (4, 4), that of the input");
  expect_error({"--window", "2,2", "--second", "row.npy"}, 2,
               "--second row.npy: shape (4,): must be (4, 4), that of the input");
  const Outcome outcome = grad({"--window", "5,5"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(outcome.err.starts_with("cenote: [max_pool] window of extent 5 does not fit")) << outcome.err;
}

TEST_F(Grad, IntegersHaveNoDerivative) {
  write("x.npy", array<std::int32_t>("<i4", "(4,)", {1, 2, 3, 4}));
  expect_error({"--window", "2"}, 2, "max i32 4 k2 axes=0 vjp: a derivative needs f16, bf16, f32 or f64, not i32");
  write("x.npy", array<std::uint8_t>("|b1", "(4,)", {0, 1, 1, 0}));
  expect_error({"--window", "2"}, 2, "max bool 4 k2 axes=0 vjp: a derivative needs f16, bf16, f32 or f64, not bool");
}

TEST_F(Grad, FilesThatFailHaveStatusOne) {
  expect_error({"--window", "2,2"}, 1, "x.npy: cannot open: No such file or directory");
  write("x.npy", floats("(4, 4)", counting(16)));
  expect_error({"--window", "2,2", "--cotangent", "g.npy"}, 1, "g.npy: cannot open: No such file or directory");
  write("g.npy", "\x93NUMPY");
  expect_error({"--window", "2,2", "--cotangent", "g.npy"}, 1, "g.npy: truncated inside the .npy header");
  expect_error({"--window", "1"}, 1, "no/d.npy: cannot create: No such file or directory", "x.npy", "no/d.npy");
}

TEST_F(Grad, ResultsThatAreNoPictureAreRefusedBeforeTheWork) {
  write("x.npy", floats("(1, 2, 2, 2)", counting(8)));
  expect_error({"--window", "1"}, 2,
               "[write_png] shape (1, 2, 2, 2): a picture is (height, width) or (height, width, 1 to 4 channels), each "
               "side from 1 to 1000000",
               "x.npy", "d.png");
}

TEST_F(Grad, AWriteThatFailsLeavesTheOldFileAndNoOther) {
  write("x.npy", floats("(64, 64)", counting(4096)));
  write("d.npy", "old");
  const auto before = folder_.names();
  const Outcome outcome = run_cenote({"grad", "x.npy", "-o", "d.npy", "--window", "1,1"},
                                     {.folder = folder_.path().string(), .file_limit = 1024});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "cenote: d.npy: cannot write: File too large\n");
  EXPECT_EQ(folder_.names(), before);
  EXPECT_EQ(read_bytes(folder_ / "d.npy"), "old");
}

}  // namespace
}  // namespace cenote::test
