// Files: .npy byte for byte as NumPy writes it, pictures, outputs that appear whole, and every damaged file refused.
#include <io/npy.h>
#include <io/png.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include <cenote/cenote.h>
#include <gtest/gtest.h>

#include "cli/files.h"

namespace cenote::test {
namespace {

// The text of the FileError that f throws; fails the test when it throws none.
template <class F>
std::string file_error(F f) {
  try {
    f();
  } catch (const FileError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no FileError";
  return {};
}

std::string dictionary(const std::string& descr, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

std::string read_error(const std::string& bytes, std::optional<Type> as = std::nullopt) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  write_bytes(path, bytes);
  const std::string text = file_error([&] { io::NpyFile(path, as); });
  EXPECT_TRUE(text.starts_with(path + ": ")) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  return text.substr(std::min(text.size(), path.size() + 2));
}

const std::pair<Type, const char*> spellings[] = {
    {Type::f16, "<f2"}, {Type::bf16, "<V2"}, {Type::f32, "<f4"},    {Type::f64, "<f8"}, {Type::i8, "|i1"},
    {Type::i16, "<i2"}, {Type::i32, "<i4"},  {Type::i64, "<i8"},    {Type::u8, "|u1"},  {Type::u16, "<u2"},
    {Type::u32, "<u4"}, {Type::u64, "<u8"},  {Type::boolean, "|b1"}};

Array counted(Type type, const Extents& shape) {
  Array array(type, shape);
  auto* bytes = static_cast<unsigned char*>(array.data());
  for (std::size_t i = 0; i < array.bytes(); ++i)
    bytes[i] = static_cast<unsigned char>(type == Type::boolean ? i % 2 : i);
  return array;
}

TEST(Npy, IsWrittenByteForByteAsNumPyDoes) {
  for (const auto& [type, descr] : spellings) {
    const TemporaryFolder folder;
    const Array array = counted(type, {2, 3});
    io::write_npy(folder / "x.npy", array);
    const std::string elements(static_cast<const char*>(array.data()), array.bytes());
    EXPECT_EQ(read_bytes(folder / "x.npy"), npy(dictionary(descr, "(2, 3)"), elements)) << descr;
  }
}

TEST(Npy, HeadersAreNumPysForEveryRank) {
  EXPECT_EQ(io::npy_header(Type::f64, {}), npy(dictionary("<f8", "()"), ""));
  EXPECT_EQ(io::npy_header(Type::f32, {5}), npy(dictionary("<f4", "(5,)"), ""));
  EXPECT_EQ(io::npy_header(Type::f32, {0, 3}), npy(dictionary("<f4", "(0, 3)"), ""));
  // NumPy leaves room for 21 digits of the first extent, and pads by 64 where nothing is missing.
  EXPECT_EQ(io::npy_header(Type::i64, {1, 10, 10, 10, 10, 10, 10, 10, 0, 1, 1, 1}),
            npy(dictionary("<i8", "(1, 10, 10, 10, 10, 10, 10, 10, 0, 1, 1, 1)"), "", 128));
  EXPECT_EQ(io::npy_header(Type::i64, {1, 10, 10, 10, 10, 10, 10, 10, 10, 0, 1, 1}),
            npy(dictionary("<i8", "(1, 10, 10, 10, 10, 10, 10, 10, 10, 0, 1, 1)"), "", 192));
}

TEST(Npy, EveryTypeComesBack) {
  for (const auto& [type, descr] : spellings) {
    const TemporaryFolder folder;
    const Array array = counted(type, {2, 1, 3});
    io::write_npy(folder / "x.npy", array);
    io::NpyFile file(folder / "x.npy", type);
    const io::NpyFile moved = std::move(file);
    EXPECT_EQ(moved.view().type, type);
    EXPECT_EQ(moved.view().shape, array.shape());
    EXPECT_EQ(moved.view().strides, row_major_strides(array.shape()));
    EXPECT_EQ(std::memcmp(moved.view().data, array.data(), array.bytes()), 0) << descr;
  }
}

TEST(Npy, StridedViewsAreWrittenInRowMajorOrder) {
  const TemporaryFolder folder;
  const std::vector<std::int16_t> values{1, 2, 3, 4, 5, 6};
  io::write_npy(folder / "x.npy", View(values.data(), Type::i16, {3, 2}, {1, 3}));
  EXPECT_EQ(read_bytes(folder / "x.npy"),
            npy(dictionary("<i2", "(3, 2)"), bytes_of(std::vector<std::int16_t>{1, 4, 2, 5, 3, 6})));
}

TEST(Npy, FortranOrderIsAMatterOfStrides) {
  const TemporaryFolder folder;
  write_bytes(folder / "x.npy",
              npy(dictionary("<i4", "(2, 3)", "True"), bytes_of(std::vector<std::int32_t>{0, 3, 1, 4, 2, 5})));
  const io::NpyFile file(folder / "x.npy");
  EXPECT_EQ(file.view().strides, (Extents{1, 2}));
  const Array rows(file.view());
  const auto values = rows.values<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(values.begin(), values.end()), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Npy, LaterVersionsOddSpellingsAndTrailingBytesAreRead) {
  const TemporaryFolder folder;
  const std::string elements = bytes_of(std::vector<float>{1, 2, 3});
  const auto first = [&](const std::string& bytes) {
    write_bytes(folder / "x.npy", bytes);
    const io::NpyFile file(folder / "x.npy");
    EXPECT_EQ(file.view().shape, Extents{3});
    const Array copy(file.view());
    return copy.values<float>()[2];
  };
  const std::string header = dictionary("<f4", "(3,)") + "\n";
  for (const char version : {'\x02', '\x03'}) {
    const std::string prefix = std::string("\x93NUMPY") + version + std::string("\0", 1);
    const std::string length{static_cast<char>(header.size()), '\0', '\0', '\0'};
    EXPECT_EQ(first(prefix + length + header + elements), 3) << "elements at an odd address are copied";
  }
  EXPECT_EQ(first(npy(dictionary("<f4", "(3,)"), elements + "more")), 3);
  EXPECT_EQ(first(npy(dictionary("=f4", "(3L,)"), elements)), 3);
  EXPECT_EQ(first(npy("{\"shape\":(3,),\"fortran_order\":True,\"descr\":\"f4\"}", elements)), 3);
}

TEST(Npy, ScalarsAndEmptyArraysAreRead) {
  const TemporaryFolder folder;
  write_bytes(folder / "scalar.npy", npy(dictionary("<f8", "()"), bytes_of(std::vector<double>{4})));
  EXPECT_EQ(io::NpyFile(folder / "scalar.npy").view().rank(), 0);
  write_bytes(folder / "empty.npy", npy(dictionary("<f8", "(3, 0, 1000000000)"), ""));
  EXPECT_EQ(io::NpyFile(folder / "empty.npy").view().shape, (Extents{3, 0, 1000000000}));
}

TEST(Npy, VoidIsBfloat16OnlyWhenAsked) {
  const TemporaryFolder folder;
  const std::string elements = bytes_of(std::vector<std::uint16_t>{0x3f80, 0xc000});
  write_bytes(folder / "x.npy", npy(dictionary("<V2", "(2,)"), elements));
  const io::NpyFile file(folder / "x.npy", Type::bf16);
  EXPECT_EQ(static_cast<float>(static_cast<const bf16*>(file.view().data)[1]), -2.0f);
  EXPECT_EQ(read_error(npy(dictionary("|V2", "(2,)"), elements)),
            "two-byte void ('|V2'): if these are bfloat16 numbers, ask for type bf16");
  EXPECT_EQ(read_error(npy(dictionary("<f4", "(1,)"), elements), Type::bf16), "holds f32, not bf16");
}

TEST(Npy, TypesThatAreNoNumbersAreRefused) {
  const std::string known = ": f16, bf16, f32, f64, i8 to i64, u8 to u64 and bool are read";
  const std::string eight(8, '\0');
  EXPECT_EQ(read_error(npy(dictionary("|O", "(1,)"), eight)), "Python objects ('|O')" + known);
  EXPECT_EQ(read_error(npy(dictionary("<c8", "(1,)"), eight)), "complex numbers ('<c8')" + known);
  EXPECT_EQ(read_error(npy(dictionary("<U2", "(1,)"), eight)), "text ('<U2')" + known);
  EXPECT_EQ(read_error(npy(dictionary("<M8[ns]", "(1,)"), eight)), "dates ('<M8[ns]')" + known);
  EXPECT_EQ(read_error(npy(dictionary("|V8", "(1,)"), eight)), "void ('|V8')" + known);
  EXPECT_EQ(read_error(npy(dictionary("", "(1,)"), eight)), "elements of an unknown kind ('')" + known);
  EXPECT_EQ(read_error(npy(dictionary(">f4", "(2,)"), eight)),
            "big-endian elements ('>f4'): only little-endian is read");
  EXPECT_EQ(read_error(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", eight)),
            "structured elements: only plain numbers and bool are read");
}

TEST(Npy, ShapesThatCannotBeAreRefused) {
  const auto shape = [](const std::string& text) { return read_error(npy(dictionary("<f4", text), "abcdefgh")); };
  EXPECT_EQ(shape("(3,)"), "truncated: shape (3,) of f32 needs 12 bytes of elements, the file has 8");
  EXPECT_EQ(shape("(1000000000000, 1000)"),
            "truncated: shape (1000000000000, 1000) of f32 needs 4000000000000000 bytes of elements, the file has 8");
  EXPECT_EQ(shape("(4294967296, 4294967296)"), "shape (4294967296, 4294967296) exceeds 64 bits");
  EXPECT_EQ(shape("(0, 4294967296, 4294967296)"), "shape (0, 4294967296, 4294967296) exceeds 64 bits");
  EXPECT_TRUE(shape("(9223372036854775808,)").starts_with("an extent of the shape exceeds 64 bits: 92233720368547758"));
  EXPECT_TRUE(shape("(2, -1)").starts_with("negative extent in the shape: -1), }"));
  EXPECT_EQ(shape("(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"), "more than 12 axes");
}

TEST(Npy, HeadersThatAreNotADictionaryOfLiteralsAreRefused) {
  const auto header = [](const std::string& text) { return read_error(npy(text, "abcdefgh")); };
  const std::string bad = "bad .npy header: ";
  EXPECT_TRUE(header("").starts_with(bad + "'{' expected")) << header("");
  EXPECT_TRUE(header("__import__('os').system('true')").starts_with(bad + "'{' expected, found '__import__"));
  EXPECT_TRUE(header("{'descr': __import__('os'), }").starts_with(bad + "a string expected, found '__import__"));
  EXPECT_TRUE(header(dictionary("<f4", "(1+1,)")).starts_with(bad + "',' expected, found '+1,)"));
  EXPECT_TRUE(header(dictionary("<f4", "(2)")).starts_with(bad + "',' expected, found ')"));
  EXPECT_TRUE(header(dictionary("<f4", "(2 3)")).starts_with(bad + "',' expected, found '3)"));
  EXPECT_TRUE(header(dictionary("<f4", "(1.5,)")).starts_with(bad + "',' expected, found '.5"));
  EXPECT_TRUE(header(dictionary("<f4", "2")).starts_with(bad + "'(' expected"));
  EXPECT_TRUE(header(dictionary("<f4", "(,)")).starts_with(bad + "an integer expected"));
  EXPECT_TRUE(header(dictionary("<f4", "(2,)", "0")).starts_with(bad + "True or False expected, found '0"));
  EXPECT_TRUE(header(dictionary("<f4", "(2,)") + "x").starts_with(bad + "the end expected, found 'x"));
  EXPECT_EQ(header("{'descr': '<f4', 'fortran_order': False}"),
            bad + "it lacks one of 'descr', 'fortran_order', 'shape'");
  EXPECT_EQ(header("{'descr': '<f4', 'descr': '<f4'}"), bad + "unknown or repeated key 'descr'");
  EXPECT_EQ(header("{'descr': '<f4', 'evil\x01': 1}"), bad + "unknown or repeated key 'evil?'");
  EXPECT_EQ(header("{'descr"), bad + "a plain string expected, found '?'");
  EXPECT_TRUE(header("{'descr': '\\x3cf4'}").starts_with(bad + "a plain string expected, found '\\x3cf4"));
}

TEST(Npy, WrongBeginningsAndEveryTruncationAreRefused) {
  EXPECT_EQ(read_error(""), "not a .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(read_error("PK\x03\x04 a zip file, as np.savez writes it"),
            "not a .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(read_error(std::string("\x93NUMPY\x04\x00v\x00", 10)), ".npy version 4.0: 1.0, 2.0 and 3.0 are read");
  const std::string whole = npy(dictionary("<f4", "(3,)"), bytes_of(std::vector<float>{1, 2, 3}));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string text = read_error(whole.substr(0, length));
    EXPECT_NE(text.find(length == 0 ? "not a .npy file" : "truncated"), std::string::npos) << length << ": " << text;
  }
}

TEST(Npy, DamagedBytesNeverDoMoreThanFail) {
  const TemporaryFolder folder;
  const std::string whole = npy(dictionary("<i8", "(2, 3)"), std::string(48, '\x07'));
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = whole;
    for (int j = 0; j <= i % 3; ++j) damaged[random() % 64] = static_cast<char>(random());
    write_bytes(folder / "x.npy", damaged);
    try {
      const io::NpyFile file(folder / "x.npy");
      const Array copy(file.view());
      EXPECT_LE(copy.bytes(), whole.size());
    } catch (const FileError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
}

TEST(Npy, MissingFilesFoldersAndPipesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_EQ(file_error([&] { io::NpyFile(folder / "none.npy"); }),
            (folder / "none.npy") + ": cannot open: No such file or directory");
  EXPECT_EQ(file_error([&] { io::NpyFile(folder.path().string()); }), folder.path().string() + ": is a directory");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(file_error([&] { io::NpyFile(folder / "pipe"); }),
            (folder / "pipe") + ": is not a regular file, which mapping needs");
}

TEST(Output, AppearsOnlyWhenCommitted) {
  const TemporaryFolder folder;
  write_bytes(folder / "out", "old");
  {
    io::OutputFile file(folder / "out");
    file.write(std::string("half"));
    EXPECT_EQ(folder.names().size(), 2u);
    EXPECT_EQ(read_bytes(folder / "out"), "old");
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"out"});
  EXPECT_EQ(read_bytes(folder / "out"), "old");
  io::OutputFile file(folder / "out");
  file.write(std::string("new"));
  file.commit();
  EXPECT_EQ(read_bytes(folder / "out"), "new");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"out"});
}

TEST(Output, KeepsPermissionsAndFollowsLinks) {
  const TemporaryFolder folder;
  write_bytes(folder / "real", "old");
  ASSERT_EQ(::chmod((folder / "real").c_str(), 0640), 0);
  std::filesystem::create_symlink("real", folder / "link");
  io::OutputFile file(folder / "link");
  file.write(std::string("new"));
  file.commit();
  EXPECT_EQ(read_bytes(folder / "real"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  struct stat status {};
  ASSERT_EQ(::stat((folder / "real").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST(Output, SaysWhyItCannotBeWrittenAndNeverReplacesADevice) {
  const TemporaryFolder folder;
  EXPECT_EQ(file_error([&] { io::OutputFile(folder / "no/out"); }),
            (folder / "no/out") + ": cannot create: No such file or directory");
  EXPECT_EQ(file_error([&] { io::OutputFile(folder.path().string()); }), folder.path().string() + ": is a directory");
  EXPECT_EQ(file_error([&] { io::OutputFile("/dev/full").write(std::string("x")); }),
            "/dev/full: cannot write: No space left on device");
  io::OutputFile file("/dev/null");
  file.write(std::string("x"));
  file.commit();
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

template <class T>
std::vector<T> values(const Array& array) {
  return {array.values<T>().begin(), array.values<T>().end()};
}

TEST(Png, BothDepthsAndAllChannelsComeBack) {
  const TemporaryFolder folder;
  for (const Type depth : {Type::u8, Type::u16}) {
    for (std::int64_t channels = 0; channels <= 4; ++channels) {
      Extents shape{3, 5};
      if (channels > 0) shape.push_back(channels);
      const Array pixels = counted(depth, shape);
      io::write_png(folder / "x.png", pixels, depth);
      const Array back = io::read_png(folder / "x.png");
      EXPECT_EQ(back.type(), depth);
      EXPECT_EQ(back.shape(), channels == 1 ? (Extents{3, 5}) : shape);
      EXPECT_EQ(std::memcmp(back.data(), pixels.data(), pixels.bytes()), 0) << to_string(shape);
    }
  }
}

TEST(Png, ValuesAreRoundedAndClamped) {
  const TemporaryFolder folder;
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Array x({2, 5}, {-1.0f, 0.5f, 1.5f, 2.49f, 254.6f, 300.0f, inf, -inf, nan, 65534.7f});
  io::write_png(folder / "x.png", x);
  EXPECT_EQ(values<std::uint8_t>(io::read_png(folder / "x.png")),
            (std::vector<std::uint8_t>{0, 0, 2, 2, 255, 255, 255, 0, 0, 255}));
  io::write_png(folder / "x.png", x, Type::u16);
  EXPECT_EQ(values<std::uint16_t>(io::read_png(folder / "x.png")),
            (std::vector<std::uint16_t>{0, 0, 2, 2, 255, 300, 65535, 0, 0, 65535}));
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min(), highest = std::numeric_limits<std::int64_t>::max();
  io::write_png(folder / "x.png", Array({1, 4}, {lowest, std::int64_t{7}, std::int64_t{256}, highest}));
  EXPECT_EQ(values<std::uint8_t>(io::read_png(folder / "x.png")), (std::vector<std::uint8_t>{0, 7, 255, 255}));
  io::write_png(folder / "x.png", Array({1, 2}, {f16(1.5f), f16(1000.0f)}));
  EXPECT_EQ(values<std::uint8_t>(io::read_png(folder / "x.png")), (std::vector<std::uint8_t>{2, 255}));
  io::write_png(folder / "x.png", Array({1, 2}, {false, true}));
  EXPECT_EQ(values<std::uint8_t>(io::read_png(folder / "x.png")), (std::vector<std::uint8_t>{0, 255}));
}

struct Foreign {
  const char* hex;
  Extents shape;
  std::vector<int> pixels;
};

TEST(Png, PalettesBitsInterlacingAndTransparencyBecomeSamples) {
  const Foreign files[] = {
      {"89504e470d0a1a0a0000000d4948445200000003000000020203000000e01a8e890000000c504c5445ff000000ff000000ff0a141e2288"
       "29040000000c49444154789c639060380200011000dd11e50f220000000049454e44ae426082",
       {2, 3, 3},
       {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 255, 0, 0, 0, 255, 0}},
      {"89504e470d0a1a0a0000000d4948445200000005000000020100000000b8112bf00000000c49444154789c6358c060000002140"
       "0d1f94f043c0000000049454e44ae426082",
       {2, 5},
       {255, 0, 255, 0, 0, 0, 0, 255, 255, 0}},
      {"89504e470d0a1a0a0000000d49484452000000030000000308000000010444daf50000001749444154789c6360601061b00960e06270639"
       "0"
       "d330020008a701693ddf97620000000049454e44ae426082",
       {3, 3},
       {0, 10, 20, 30, 40, 50, 60, 70, 80}},
      {"89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd0000000674524e53000400050006748ec68f0000000f4"
       "9"
       "444154789c636064626661650300003f001621bad4540000000049454e44ae426082",
       {1, 2, 4},
       {1, 2, 3, 255, 4, 5, 6, 0}},
      {"89504e470d0a1a0a0000000d4948445200000002000000021000000000074d8ebb0000001249444154789c631032f9ff9f81819191010"
       "00f44024738a536980000000049454e44ae426082",
       {2, 2},
       {0x1234, 0xffff, 0x0001, 0x0100}}};
  const TemporaryFolder folder;
  for (const Foreign& foreign : files) {
    write_bytes(folder / "x.png", from_hex(foreign.hex));
    const Array read = io::read_png(folder / "x.png");
    EXPECT_EQ(read.shape(), foreign.shape);
    std::vector<int> pixels;
    if (read.type() == Type::u8) {
      pixels.assign(read.values<std::uint8_t>().begin(), read.values<std::uint8_t>().end());
    } else {
      pixels.assign(read.values<std::uint16_t>().begin(), read.values<std::uint16_t>().end());
    }
    EXPECT_EQ(pixels, foreign.pixels);
  }
}

TEST(Png, DamagedFilesAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.png";
  const auto error = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    const std::string text = file_error([&] { io::read_png(path); });
    EXPECT_TRUE(text.starts_with(path + ": ")) << text;
    return text.substr(std::min(text.size(), path.size() + 2));
  };
  EXPECT_EQ(error(""), "not a .png file: it does not begin with the PNG signature");
  EXPECT_EQ(error("GIF89a and so on"), "not a .png file: it does not begin with the PNG signature");
  // 100000 x 100000 pixels promised by 68 bytes: refused before anything of that size is allocated.
  EXPECT_EQ(
      error(from_hex("89504e470d0a1a0a0000000d49484452000186a0000186a0080200000027309c9f0000000b49444154789c636080"
                     "0100000a00017f80745e0000000049454e44ae426082")),
      "truncated: 100000 x 100000 pixels cannot be in 68 bytes");
  io::write_png(path, counted(Type::u8, {7, 9, 3}));
  const std::string whole = read_bytes(path);
  for (std::size_t length = 8; length < whole.size(); ++length) error(whole.substr(0, length));
  std::string damaged = whole;
  damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 0x10);
  EXPECT_TRUE(error(damaged).starts_with("not a readable .png file: ")) << error(damaged);
}

TEST(Png, OnlyPicturesAreWritten) {
  const TemporaryFolder folder;
  for (const Extents& shape : {Extents{5}, Extents{2, 3, 5}, Extents{1, 2, 3, 4}, Extents{0, 3}, Extents{3, 3, 0}}) {
    try {
      io::write_png(folder / "x.png", Array::zeros(Type::u8, shape));
      ADD_FAILURE() << to_string(shape);
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(), "[write_png] shape " + to_string(shape) +
                                  ": a picture is (height, width) or (height, width, 1 to 4 channels), each side from "
                                  "1 to 1000000");
    }
  }
  EXPECT_THROW(io::write_png(folder / "x.png", Array::zeros(Type::f32, {2, 2}), Type::f32), std::invalid_argument);
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace cenote::test
