// The command line's way from files to sparse rows and clouds and back, without the process around it: what sanitizers
// see of it.
#include "../cli/sparse_rows.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <cenote/cenote.h>
#include <gtest/gtest.h>
#include <io/npy.h>

#include "../cli/arguments.h"
#include "../cli/clouds.h"
#include "../cli/numbers.h"
#include "cli/files.h"

namespace cenote::test {
namespace {

std::string error_of(const auto& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

template <class T>
std::vector<T> elements(const Array& array) {
  const auto values = array.values<T>();
  return {values.begin(), values.end()};
}

class SparseRowFiles : public testing::Test {
 protected:
  cli::SparseRows read(const std::string& bytes, int dimension) {
    write_bytes(folder_ / "x.npy", bytes);
    return cli::read_rows({.path = folder_ / "x.npy", .dimension = dimension});
  }
  TemporaryFolder folder_;
};

TEST_F(SparseRowFiles, OneArrayIsTakenApartAndJoined) {
  const auto rows = read(floats("(2, 5)", {0, 3, -4, 1.5f, 2, 1, 7, 8, 9, 10}), 2);
  EXPECT_EQ(elements<std::int64_t>(rows.coords), (std::vector<std::int64_t>{0, 3, -4, 1, 7, 8}));
  EXPECT_EQ(elements<float>(rows.feats), (std::vector<float>{1.5f, 2, 9, 10}));
  EXPECT_EQ(elements<float>(cli::joined(rows.coords, rows.feats)),
            (std::vector<float>{0, 3, -4, 1.5f, 2, 1, 7, 8, 9, 10}));
  EXPECT_EQ(read(floats("(0, 5)", {}), 2).coords.shape(), (Extents{0, 3}));
  EXPECT_EQ(elements<float>(read(array("<f4", "(2, 3)", counting(6), "True"), 1).feats), (std::vector<float>{4, 5}));
}

TEST_F(SparseRowFiles, EveryTypeOfNumberIsReadExactlyOrRefused) {
  EXPECT_EQ(elements<double>(read(array<std::int8_t>("|i1", "(1, 3)", {0, -128, 127}), 1).feats), std::vector{127.0});
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(elements<std::int64_t>(read(array<std::int64_t>("<i8", "(1, 3)", {0, large, 1}), 1).coords)[1], large);
  EXPECT_NE(error_of([&] { read(array<std::int64_t>("<i8", "(1, 3)", {0, 1, large}), 1); }), "");
  EXPECT_NE(error_of([&] { read(array<std::uint64_t>("<u8", "(1, 3)", {0, UINT64_MAX, 1}), 1); }), "");
  EXPECT_NE(error_of([&] { read(array<double>("<f8", "(1, 3)", {0, 0x1p63, 1}), 1); }), "");
  EXPECT_NE(error_of([&] { read(floats("(1, 2)", {0, 1}), 1); }), "");
  EXPECT_NE(error_of([&] { read(floats("(3,)", {0, 1, 2}), 1); }), "");
  EXPECT_NE(error_of([&] { read("\x93NUMPY", 1); }), "");
}

TEST_F(SparseRowFiles, TwoArraysMustHaveAsManyRows) {
  write_bytes(folder_ / "c.npy", array<std::int32_t>("<i4", "(2, 2)", {0, 5, 1, 6}));
  write_bytes(folder_ / "x.npy", floats("(2, 1)", {1, 2}));
  const cli::RowSource source{.path = folder_ / "x.npy", .coords = folder_ / "c.npy"};
  EXPECT_EQ(elements<std::int32_t>(cli::read_rows(source).coords), (std::vector<std::int32_t>{0, 5, 1, 6}));
  write_bytes(folder_ / "x.npy", floats("(3, 1)", {1, 2, 3}));
  EXPECT_NE(error_of([&] { cli::read_rows(source); }).find("2 rows: must be 3"), std::string::npos);
}

TEST_F(SparseRowFiles, CloudsGoFromOneFormatToTheOther) {
  write_bytes(folder_ / "x.npy", array<std::int64_t>("<i8", "(2, 4)", {1, 2, 3, 4, 5, 6, 7, 8}));
  const io::PointCloud cloud = cli::read_cloud(folder_ / "x.npy");
  ASSERT_EQ(cloud.size(), 2);
  for (const std::string name : {"y.ply", "y.npy"}) {
    io::OutputFile file(folder_ / name);
    cli::write_cloud(file, cloud, io::PlyEncoding::binary);
    file.commit();
    const io::PointCloud back = cli::read_cloud(folder_ / name);
    EXPECT_EQ(elements<double>(cli::to_doubles("z", back.properties[2].values)), (std::vector<double>{3, 7}));
    EXPECT_EQ(back.properties[3].name, "column_3");
  }
  EXPECT_NE(error_of([] { cli::require_cloud("x.las"); }), "");
}

TEST(Numbers, AreRoundedAndClampedToIntegers) {
  const double inf = std::numeric_limits<double>::infinity();
  const Array x({6}, {0.5, 1.5, -1.0, 300.0, inf, std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(elements<std::uint8_t>(cli::from_doubles(x, Type::u8)), (std::vector<std::uint8_t>{0, 2, 0, 255, 255, 0}));
}

TEST(Words, OfTheLibraryBecomeThoseOfTheCommandLine) {
  const cli::Words words{{"kernel.size", "--kernel"}, {"p =", "--p ="}};
  EXPECT_EQ(cli::in_options("[relate] kernel.size[1] = 0: at least 1", words), "--kernel[1] = 0: at least 1");
  EXPECT_EQ(cli::in_options("[lp_pool] p = 0: at least 1", words), "--p = 0: at least 1");
  EXPECT_EQ(cli::in_options("[a] step = 1", words), "step = 1");
  EXPECT_EQ(cli::in_options("no function", words), "no function");
}

}  // namespace
}  // namespace cenote::test
