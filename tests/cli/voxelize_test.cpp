// cenote voxelize as a process: small clouds by the points that are left, every mistake by its text and status.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <cenote/cenote.h>
#include <gtest/gtest.h>
#include <io/npy.h>
#include <io/ply.h>

#include "files.h"
#include "process.h"

namespace cenote::test {
namespace {

using Arguments = std::vector<std::string>;

class Voxelize : public testing::Test {
 protected:
  Outcome voxelize(const Arguments& arguments, const std::string& in = "x.ply", const std::string& out = "y.ply") {
    Arguments all{"voxelize", in, out};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run_cenote(all, {.folder = folder_.path().string()});
  }
  void write(const std::string& name, const std::string& bytes) { write_bytes(folder_ / name, bytes); }
  /// Thins `x` and expects the ASCII file `y`, and one line of text.
  void expect(const std::string& x, Arguments arguments, const std::string& y, const std::string& said) {
    write("x.ply", x);
    arguments.push_back("--ascii");
    const Outcome outcome = voxelize(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, said + "\n");
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(read_bytes(folder_ / "y.ply"), y) << testing::PrintToString(arguments);
    std::filesystem::remove(folder_ / "y.ply");
  }
  /// Expects a failure that says `text`, alone on one line, and leaves nothing behind.
  void expect_error(const Arguments& arguments, int status, const std::string& text, const std::string& in = "x.ply",
                    const std::string& out = "y.ply") {
    const auto before = folder_.names();
    const Outcome outcome = voxelize(arguments, in, out);
    EXPECT_EQ(outcome.status, status) << testing::PrintToString(arguments);
    EXPECT_EQ(outcome.err, "cenote: " + text + "\n");
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(folder_.names(), before);
  }

  TemporaryFolder folder_;
};

std::string ascii(int count, const std::string& properties, const std::string& body) {
  return "ply\nformat ascii 1.0\nelement vertex " + std::to_string(count) + "\n" + properties + "end_header\n" + body;
}

const std::string coloured =
    "property uchar red\nproperty double x\nproperty double y\nproperty double z\nproperty float intensity\n";

// Three points in one voxel of side 1, one in another, in turns.
const std::string four = ascii(4, coloured,
                               "10 0.25 0.5 0.5 1\n"
                               "7 -0.5 0.5 0.5 8\n"
                               "201 0.5 0.5 0.75 2\n"
                               "200 0.75 0.125 0.25 6\n");

TEST_F(Voxelize, MakesOnePointOfEachVoxel) {
  const auto expect_mode = [&](const std::string& mode, const std::string& body) {
    expect(four, {"--voxel", "1", "--mode", mode}, ascii(2, coloured, body), "4 points became 2");
  };
  expect_mode("avg", "137 0.5 0.375 0.5 3\n7 -0.5 0.5 0.5 8\n");
  expect_mode("first", "10 0.25 0.5 0.5 1\n7 -0.5 0.5 0.5 8\n");
  expect_mode("sum", "255 0.5 0.5 0.5 9\n7 -0.5 0.5 0.5 8\n");
  expect_mode("max", "201 0.5 0.5 0.5 6\n7 -0.5 0.5 0.5 8\n");
  expect_mode("min", "10 0.5 0.5 0.5 1\n7 -0.5 0.5 0.5 8\n");
  expect(four, {"--voxel", "1"}, ascii(2, coloured, "137 0.5 0.375 0.5 3\n7 -0.5 0.5 0.5 8\n"), "4 points became 2");
}

TEST_F(Voxelize, TakesThreeSidesAndAnOrigin) {
  const std::string flat = "property float x\nproperty float y\nproperty float z\n";
  const std::string x = ascii(3, flat, "0 0 0\n1 1 1\n3 1 9\n");
  expect(x, {"--voxel", "2,4,10", "--mode", "max"}, ascii(2, flat, "1 2 5\n3 2 5\n"), "3 points became 2");
  expect(x, {"--voxel", "2,4,10", "--mode", "max", "--origin", "-1,0,0"}, ascii(3, flat, "0 2 5\n2 2 5\n4 2 5\n"),
         "3 points became 3");
}

TEST_F(Voxelize, RoundsIntegersToNearestAndClampsThem) {
  const std::string ints = "property int x\nproperty int y\nproperty int z\nproperty char a\nproperty ushort b\n";
  const std::string x = ascii(2, ints, "0 0 0 -100 65535\n1 3 2 -101 65534\n");
  expect(x, {"--voxel", "10"}, ascii(1, ints, "0 2 1 -100 65534\n"), "2 points became 1");
  expect(x, {"--voxel", "10", "--mode", "sum"}, ascii(1, ints, "5 5 5 -128 65535\n"), "2 points became 1");
}

TEST_F(Voxelize, LosesNothingFarFromTheOrigin) {
  // UTM: metres from the equator, with the digits of a millimetre.
  const std::string exact = "property double x\nproperty double y\nproperty double z\n";
  expect(ascii(1, exact, "691607.3250000001 5335898.123456789 519.0000000001\n"), {"--voxel", "0.05"},
         ascii(1, exact, "691607.3250000001 5335898.123456789 519.0000000001\n"), "1 points became 1");
  expect(ascii(1, exact, "-0.013 -7.1 -0.1\n"), {"--voxel", "0.05"}, ascii(1, exact, "-0.013 -7.1 -0.1\n"),
         "1 points became 1");
  const std::string many = [] {
    std::string body;
    for (int i = 0; i < 1000; ++i) body += i % 2 == 0 ? "5335898.001 1 1\n" : "5335898.003 1 1\n";
    return body;
  }();
  write("x.ply", ascii(1000, exact, many));
  EXPECT_EQ(voxelize({"--voxel", "0.05"}).status, 0);
  const io::PointCloud cloud = io::read_ply(folder_ / "y.ply");
  ASSERT_EQ(cloud.size(), 1);
  EXPECT_NEAR(cloud.properties[0].values.values<double>()[0], 5335898.002, 2e-9);
}

TEST_F(Voxelize, ReadsAndWritesArraysToo) {
  write("x.npy", floats("(3, 4)", {.5f, .5f, .5f, 1, 3.5f, .5f, .5f, 2, .25f, .25f, .25f, 3}));
  EXPECT_EQ(voxelize({"--voxel", "1"}, "x.npy", "y.npy").out, "3 points became 2\n");
  EXPECT_EQ(read_bytes(folder_ / "y.npy"), floats("(2, 4)", {.375f, .375f, .375f, 2, 3.5f, .5f, .5f, 2}));
  EXPECT_EQ(voxelize({"--voxel", "1", "--ascii"}, "x.npy", "y.ply").status, 0);
  EXPECT_EQ(read_bytes(folder_ / "y.ply"),
            ascii(2, "property float x\nproperty float y\nproperty float z\nproperty float column_3\n",
                  "0.375 0.375 0.375 2\n3.5 0.5 0.5 2\n"));
  write("x.ply", four);
  EXPECT_EQ(voxelize({"--voxel", "1"}, "x.ply", "y.npy").status, 0);
  EXPECT_EQ(read_bytes(folder_ / "y.npy"), array<double>("<f8", "(2, 5)", {.5, .375, .5, 137, 3, -.5, .5, .5, 7, 8}));
  write("x.npy", array<std::int64_t>("<i8", "(2, 3)", {1, 2, 3, 1, 2, 5}));
  EXPECT_EQ(voxelize({"--voxel", "4", "--mode", "first", "--ascii"}, "x.npy", "y.ply").status, 0);
  EXPECT_EQ(read_bytes(folder_ / "y.ply"),
            ascii(2, "property double x\nproperty double y\nproperty double z\n", "1 2 3\n1 2 5\n"));
}

TEST_F(Voxelize, WritesBinaryUnlessToldOtherwise) {
  write("x.ply", four);
  EXPECT_EQ(voxelize({"--voxel", "1", "--threads", "1"}).status, 0);
  EXPECT_TRUE(read_bytes(folder_ / "y.ply").starts_with("ply\nformat binary_little_endian 1.0\nelement vertex 2\n"));
  const io::PointCloud cloud = io::read_ply(folder_ / "y.ply");
  EXPECT_EQ(cloud.properties[0].values.values<std::uint8_t>()[0], 137);
}

TEST_F(Voxelize, NamesPointsWithoutAPlace) {
  const std::string flat = "property float x\nproperty float y\nproperty float z\n";
  const std::string x = ascii(3, flat, "0 0 0\n1 nan 1\n0 0 -inf\n");
  write("x.ply", x);
  expect_error({"--voxel", "1"}, 1, "x.ply: vertex 1: y = nan: must be finite (--skip-invalid leaves such points out)");
  expect(x, {"--voxel", "1", "--skip-invalid"}, ascii(1, flat, "0 0 0\n"),
         "3 points became 1; 2 without a position were left out");
  expect(ascii(0, flat, ""), {"--voxel", "1"}, ascii(0, flat, ""), "0 points became 0");
}

TEST_F(Voxelize, SaysWhatItRead) {
  write("x.ply", four);
  const Outcome outcome = voxelize({"--voxel", "1", "-v"});
  EXPECT_EQ(outcome.err,
            "x.ply: 4 points with red u8, x f64, y f64, z f64, intensity f32; voxels from (-1, 0, 0) to (0, 0, 0)\n");
}

TEST_F(Voxelize, RefusesWhatIsNoRequest) {
  write("x.ply", four);
  expect_error({}, 2, "--voxel is required (see cenote voxelize --help)");
  expect_error({"--voxel", "0"}, 2, "--voxel 0: must be finite and more than 0");
  expect_error({"--voxel", "1,-1,1"}, 2, "--voxel 1,-1,1: must be finite and more than 0");
  expect_error({"--voxel", "inf"}, 2, "--voxel inf: must be finite and more than 0");
  expect_error({"--voxel", "nan"}, 2, "--voxel nan: must be finite and more than 0");
  expect_error({"--voxel", "1,2"}, 2, "--voxel 1,2: must be one number or three");
  expect_error({"--voxel", "5cm"}, 2, "--voxel 5cm: must be one number or three");
  expect_error({"--voxel", "1", "--origin", "0,0,inf"}, 2, "--origin 0,0,inf: must be finite");
  expect_error({"--voxel", "1", "--mode", "median"}, 2, "--mode median: one of avg, sum, max, min, first");
  expect_error({"--voxel", "1", "--threads", "0"}, 2, "--threads 0: at least 1");
  expect_error({"--voxel", "1", "--ascii"}, 2, "--ascii y.npy: is for names that end in .ply", "x.ply", "y.npy");
  expect_error({"--voxel", "1"}, 2, "y.pcd: the name must end in .ply or .npy", "x.ply", "y.pcd");
  expect_error({"--voxel", "1"}, 2, "x.las: the name must end in .ply or .npy", "x.las");
  expect_error({"--voxel", "1e-300"}, 2,
               "--voxel 1e-300: vertex 0 is in voxel 2.5e+299 along x: an index must fit 64 bits");
  write("x.npy", array<double>("<f8", "(2, 3)", {0, 0, 0, 0x1p60, 0x1p60, 0x1p60}));
  expect_error({"--voxel", "1"}, 2,
               "--voxel 1: voxels (0, x, y, z) in [0, 0] x [0, 1152921504606846976] x [0, 1152921504606846976] x [0, "
               "1152921504606846976]: their keys need 183 bits and must fit 128",
               "x.npy");
  expect_error({"--voxel", "1"}, 1, "z.ply: cannot open: No such file or directory", "z.ply");
  write("x.npy", floats("(3, 2)", counting(6)));
  expect_error({"--voxel", "1"}, 1, "x.npy: shape (3, 2): points are (points, 3 or more)", "x.npy");
  write("x.ply", "ply\nformat ascii 1.0\n");
  expect_error({"--voxel", "1"}, 1, "x.ply: truncated inside the .ply header: there is no end_header");
}

}  // namespace
}  // namespace cenote::test
