// Point clouds: .ply files in every encoding come back as they were, and every damaged file is refused.
#include <io/ply.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <cenote/cenote.h>
#include <gtest/gtest.h>

#include "cli/files.h"

namespace cenote::test {
namespace {

using io::PlyEncoding;
using io::PointCloud;

const std::string xyz = "property float x\nproperty float y\nproperty float z\n";

/// A file whose header has these lines between "ply" and "end_header".
std::string ply(const std::string& format, const std::string& header, const std::string& body) {
  return "ply\nformat " + format + " 1.0\n" + header + "end_header\n" + body;
}

PointCloud read(const std::string& bytes) {
  const TemporaryFolder folder;
  write_bytes(folder / "x.ply", bytes);
  return io::read_ply(folder / "x.ply");
}

std::string error_of(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.ply";
  write_bytes(path, bytes);
  try {
    io::read_ply(path);
  } catch (const FileError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with(path + ": ")) << text;
    return text.substr(std::min(text.size(), path.size() + 2));
  }
  ADD_FAILURE() << "no FileError for " << bytes;
  return {};
}

std::string text_of(const PointCloud& cloud, PlyEncoding encoding) {
  const TemporaryFolder folder;
  io::write_ply(folder / "x.ply", cloud, encoding);
  return read_bytes(folder / "x.ply");
}

template <class T>
std::vector<T> values(const PointCloud& cloud, std::string_view name) {
  const int at = cloud.find(name);
  if (at < 0) throw std::runtime_error("no property " + std::string(name));
  const auto all = cloud.properties[static_cast<std::size_t>(at)].values.values<T>();
  return {all.begin(), all.end()};
}

PointCloud every_type() {
  PointCloud cloud;
  cloud.properties.push_back({"x", Array({2}, {500000.125, -1e300})});
  cloud.properties.push_back({"y", Array({2}, {0.1f, std::numeric_limits<float>::denorm_min()})});
  cloud.properties.push_back({"z", Array({2}, {std::int8_t{-128}, std::int8_t{127}})});
  cloud.properties.push_back({"red", Array({2}, {std::uint8_t{0}, std::uint8_t{255}})});
  cloud.properties.push_back({"a", Array({2}, {std::int16_t{-32768}, std::int16_t{32767}})});
  cloud.properties.push_back({"b", Array({2}, {std::uint16_t{0}, std::uint16_t{65535}})});
  cloud.properties.push_back({"c", Array({2}, {std::int32_t{INT32_MIN}, std::int32_t{INT32_MAX}})});
  cloud.properties.push_back({"d", Array({2}, {std::uint32_t{0}, std::uint32_t{UINT32_MAX}})});
  return cloud;
}

void expect_same(const PointCloud& a, const PointCloud& b) {
  ASSERT_EQ(a.properties.size(), b.properties.size());
  for (std::size_t i = 0; i < a.properties.size(); ++i) {
    EXPECT_EQ(a.properties[i].name, b.properties[i].name);
    ASSERT_EQ(a.properties[i].values.type(), b.properties[i].values.type());
    ASSERT_EQ(a.properties[i].values.size(), b.properties[i].values.size());
    EXPECT_EQ(std::memcmp(a.properties[i].values.data(), b.properties[i].values.data(), a.properties[i].values.bytes()),
              0)
        << a.properties[i].name;
  }
}

TEST(Ply, EveryTypeComesBackInBothEncodings) {
  for (const PlyEncoding encoding : {PlyEncoding::ascii, PlyEncoding::binary}) {
    expect_same(read(text_of(every_type(), encoding)), every_type());
  }
}

TEST(Ply, IsWrittenAsEveryProgramReadsIt) {
  PointCloud cloud;
  cloud.properties.push_back({"x", Array({2}, {1.5, 5000000.02})});
  cloud.properties.push_back({"y", Array({2}, {2.0f, -0.1f})});
  cloud.properties.push_back({"z", Array({2}, {3.0f, std::numeric_limits<float>::infinity()})});
  cloud.properties.push_back({"red", Array({2}, {std::uint8_t{7}, std::uint8_t{65}})});
  const std::string header =
      "element vertex 2\nproperty double x\nproperty float y\nproperty float z\nproperty uchar red\n";
  EXPECT_EQ(text_of(cloud, PlyEncoding::ascii), ply("ascii", header, "1.5 2 3 7\n5000000.02 -0.1 inf 65\n"));
  EXPECT_EQ(text_of(cloud, PlyEncoding::binary),
            ply("binary_little_endian", header,
                bytes_of<double>({1.5}) + bytes_of<float>({2, 3}) + "\x07" + bytes_of<double>({5000000.02}) +
                    bytes_of<float>({-0.1f, std::numeric_limits<float>::infinity()}) + "A"));
}

TEST(Ply, BothSpellingsOfTypesAreRead) {
  const PointCloud cloud = read(ply(
      "ascii",
      "element vertex 1\nproperty float64 x\nproperty double y\nproperty float32 z\nproperty int8 a\nproperty uint8 b\n"
      "property int16 c\nproperty uint16 d\nproperty int32 e\nproperty uint32 f\n",
      "1 2 3 4 5 6 7 8 9\n"));
  const Type types[] = {Type::f64, Type::f64, Type::f32, Type::i8, Type::u8,
                        Type::i16, Type::u16, Type::i32, Type::u32};
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(cloud.properties[i].values.type(), types[i]);
}

TEST(Ply, CommentsBlanksAndLineEndsOfOtherSystemsAreRead) {
  const std::string file =
      "ply\r\ncomment made by hand\r\nformat  ascii 1.0\r\nobj_info nothing\r\nelement vertex 3\r\n"
      "property float x \r\nproperty\tfloat y\r\n\r\nproperty float z\r\nend_header\r\n"
      "1 2 3\r\n\r\n  +4\t5e0   6.0 \r\n1e-60 nan -inf";
  const PointCloud cloud = read(file);
  EXPECT_EQ(values<float>(cloud, "x"), (std::vector<float>{1, 4, 0}));
  EXPECT_TRUE(std::isnan(values<float>(cloud, "y")[2]));
  EXPECT_EQ(values<float>(cloud, "z")[2], -std::numeric_limits<float>::infinity());
  const std::string binary =
      "ply\r\nformat binary_little_endian 1.0\r\nelement vertex 1\r\nproperty uchar x\r\nproperty uchar y\r\n"
      "property uchar z\r\nend_header\r\n\n\r\x03";
  EXPECT_EQ(values<std::uint8_t>(read(binary), "x"), std::vector<std::uint8_t>{'\n'});
}

TEST(Ply, OtherElementsArePassedOver) {
  const std::string before =
      "element camera 2\nproperty float focus\nproperty list uchar short marks\nelement nothing 5\n"
      "element scale 1\nproperty double s\n";
  const std::string after = "element face 1\nproperty list uchar int vertex_indices\n";
  const std::string points = "element vertex 2\n" + xyz;
  const PointCloud ascii =
      read(ply("ascii", before + points + after, "0.5 2 7 8\n0.25 0\n1.5\n1 2 3\n4 5 6\n3 0 1 0\n"));
  EXPECT_EQ(values<float>(ascii, "x"), (std::vector<float>{1, 4}));
  const std::string body = bytes_of<float>({.5f}) + "\x02" + bytes_of<std::int16_t>({7, 8}) + bytes_of<float>({.25f}) +
                           std::string(1, '\0') + bytes_of<double>({1.5}) + bytes_of<float>({1, 2, 3, 4, 5, 6}) + "?";
  const PointCloud binary = read(ply("binary_little_endian", before + points + after, body));
  EXPECT_EQ(values<float>(binary, "z"), (std::vector<float>{3, 6}));
  const std::string large = ply("binary_little_endian", before + points, body.substr(0, 8));
  EXPECT_EQ(error_of(large), "truncated, or a bad list, in element 'camera' 0");
}

TEST(Ply, BigEndianFilesAreRead) {
  const std::string header = "element part 1\nproperty list ushort uchar marks\nelement vertex 1\nproperty double x\n" +
                             std::string("property float y\nproperty ushort z\nproperty uchar red\n");
  const PointCloud cloud = read(ply("binary_big_endian", header, from_hex("0001ff3ff8000000000000c00000000102ff")));
  EXPECT_EQ(values<double>(cloud, "x"), std::vector<double>{1.5});
  EXPECT_EQ(values<float>(cloud, "y"), std::vector<float>{-2});
  EXPECT_EQ(values<std::uint16_t>(cloud, "z"), std::vector<std::uint16_t>{258});
  EXPECT_EQ(values<std::uint8_t>(cloud, "red"), std::vector<std::uint8_t>{255});
}

TEST(Ply, CloudsWithoutPointsAreClouds) {
  for (const char* format : {"ascii", "binary_little_endian"}) {
    const PointCloud cloud = read(ply(format, "element vertex 0\n" + xyz, ""));
    EXPECT_EQ(cloud.size(), 0);
    EXPECT_EQ(cloud.properties.size(), 3u);
  }
}

TEST(Ply, BadHeadersAreRefused) {
  const std::string points = "element vertex 1\n" + xyz;
  EXPECT_EQ(error_of(""), "not a .ply file: its first line is not 'ply'");
  EXPECT_EQ(error_of("plywood\n"), "not a .ply file: its first line is not 'ply'");
  EXPECT_EQ(error_of("\x89PNG\r\n"), "not a .ply file: its first line is not 'ply'");
  EXPECT_EQ(error_of("ply\nformat ascii 1.0\n" + points), "truncated inside the .ply header: there is no end_header");
  EXPECT_EQ(error_of("ply\n" + points + "end_header\n1 2 3\n"), "bad .ply header: it has no format line");
  const auto bad = [&](const std::string& line) { return error_of(ply("ascii", points + line + "\n", "1 2 3\n")); };
  EXPECT_EQ(bad("format ascii 1.0"), "bad .ply header: 'format ascii 1.0': a second format line");
  EXPECT_EQ(bad("property half h"),
            "bad .ply header: 'property half h': 'half' is no type: char, uchar, short, ushort, "
            "int, uint, float, double, or int8 to float64");
  EXPECT_EQ(bad("property float"), "bad .ply header: 'property float': a type and a name expected");
  EXPECT_EQ(bad("property float x"), "bad .ply header: 'property float x': a second property of that name");
  EXPECT_EQ(bad("property float a b"), "bad .ply header: 'property float a b': too many words");
  EXPECT_EQ(bad("property list float int i"),
            "bad .ply header: 'property list float int i': the length of a list must be an integer");
  EXPECT_EQ(bad("property list uchar int i"), "property 'i' of vertex is a list: only numbers are read");
  EXPECT_EQ(bad("element vertex 2"), "bad .ply header: 'element vertex 2': a second element of that name");
  EXPECT_EQ(bad("element face -1"), "bad .ply header: 'element face -1': a count must be at least 0");
  EXPECT_EQ(bad("element face many"), "bad .ply header: 'element face many': a name and a count expected");
  EXPECT_EQ(bad("element face 99999999999999999999"),
            "bad .ply header: 'element face 99999999999999999999': the count exceeds 64 bits");
  EXPECT_EQ(bad("import os"),
            "bad .ply header: 'import os': format, element, property, comment, obj_info or end_header "
            "expected");
  EXPECT_EQ(error_of(ply("ascii", "property float x\n", "")),
            "bad .ply header: 'property float x': a property of no element");
  EXPECT_EQ(error_of(ply("middle_endian", points, "")),
            "bad .ply header: 'format middle_endian 1.0': ascii, "
            "binary_little_endian and binary_big_endian are read");
  EXPECT_EQ(error_of("ply\nformat ascii 2.0\nend_header\n"),
            "bad .ply header: 'format ascii 2.0': version 1.0 is read");
  EXPECT_EQ(error_of(ply("ascii", "element face 0\n", "")), "it has no element vertex");
  EXPECT_EQ(error_of(ply("ascii", "element vertex 1\nproperty float x\nproperty float z\n", "1 2\n")),
            "its vertices have no property y");
}

TEST(Ply, CountsAreHeldAgainstTheFileBeforeMemoryIsTaken) {
  const std::string huge = "element vertex 4611686018427387904\n" + xyz;
  for (const char* format : {"ascii", "binary_little_endian", "binary_big_endian"}) {
    EXPECT_TRUE(error_of(ply(format, huge, "1 2 3\n"))
                    .starts_with("truncated: 4611686018427387904 elements 'vertex' cannot be in the "))
        << format;
    EXPECT_TRUE(error_of(ply(format, "element e 9000000000000000000\nproperty double q\n" + huge, ""))
                    .starts_with("truncated: 9000000000000000000 elements 'e' cannot be in the "))
        << format;
  }
}

TEST(Ply, BadVerticesAreRefused) {
  const auto error = [](const std::string& body) {
    return error_of(ply("ascii", "element vertex 2\n" + xyz + "property uchar red\n", body));
  };
  EXPECT_EQ(error("1 2 3 4\n1 2 3\n"), "vertex 1: no value for 'red'");
  EXPECT_EQ(error("1 2 3 4 5\n1 2 3 4\n"), "vertex 0: too many values, from '5'");
  EXPECT_EQ(error("1 2 3 4\n1 two 3 4\n"), "vertex 1: 'y' = 'two': not of type float");
  EXPECT_EQ(error("1 2 3 256\n1 2 3 4\n"), "vertex 0: 'red' = '256': not of type uchar");
  EXPECT_EQ(error("1 2 3 1.5\n1 2 3 4\n"), "vertex 0: 'red' = '1.5': not of type uchar");
  EXPECT_EQ(error("1 2 1e99 1\n1 2 3 4\n"), "vertex 0: 'z' = '1e99': not of type float");
  EXPECT_EQ(error("1.000000 2.0000 3.00000 4\n"), "vertex 1: truncated: 2 vertices are announced");
}

TEST(Ply, TruncatedFilesAreRefused) {
  const TemporaryFolder folder;
  for (const PlyEncoding encoding : {PlyEncoding::ascii, PlyEncoding::binary}) {
    const std::string whole = text_of(every_type(), encoding);
    // The last number of an ASCII file may be cut without a trace.
    const std::size_t end = whole.size() - (encoding == PlyEncoding::ascii ? 12 : 1);
    for (std::size_t length = 0; length <= end; ++length) {
      write_bytes(folder / "x.ply", whole.substr(0, length));
      EXPECT_THROW(io::read_ply(folder / "x.ply"), FileError) << length;
    }
  }
}

TEST(Ply, OnlyCloudsAreWritten) {
  const auto error = [](io::PointProperty property) {
    PointCloud cloud;
    cloud.properties.push_back({"x", Array({2}, {1.0, 2.0})});
    cloud.properties.push_back(std::move(property));
    const TemporaryFolder folder;
    try {
      io::write_ply(folder / "x.ply", cloud);
    } catch (const std::invalid_argument& caught) {
      EXPECT_TRUE(folder.names().empty());
      return std::string(caught.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(error({"y", Array::zeros(Type::i64, {2})}),
            "[write_ply] property 'y' of i64: must be i8, u8, i16, u16, i32, u32, f32 or f64");
  EXPECT_EQ(error({"y", Array::zeros(Type::f32, {3})}), "[write_ply] property 'y' of shape (3,): must be (2,)");
  EXPECT_EQ(error({"a b", Array::zeros(Type::f32, {2})}), "[write_ply] property 'a b': a name must be one word");
}

}  // namespace
}  // namespace cenote::test
