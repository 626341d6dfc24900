#include "core/npy.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "core/error.hpp"

namespace convmish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// What numpy.save of NumPy 2 writes: the dictionary padded with spaces to a multiple of 64 bytes, then the
/// data.
std::string npy(std::string header, const std::vector<float>& values, int version = 1) {
  const std::size_t length_bytes = version == 1 ? 2 : 4, before = 8 + length_bytes;
  while ((before + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) text += static_cast<char>(header.size() >> (8 * i) & 0xff);
  text += header;
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return text;
}

class Npy : public testing::Test {
 protected:
  ~Npy() override { std::filesystem::remove(path_); }

  NpyArray read(const std::string& contents) {
    std::ofstream(path_, std::ios::binary) << contents;
    return read_npy(path_);
  }
  /// Without the file's name.
  std::string refusal(const std::string& contents) {
    try {
      read(contents);
      return "accepted";
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_THAT(message, testing::StartsWith(path_.string() + ": "));
      return message.substr(std::min(message.size(), path_.string().size() + 2));
    }
  }

  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".npy");
};

constexpr const char* kMatrix = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

TEST_F(Npy, ReadsWhatNumpyWrites) {
  const NpyArray matrix = read(npy(kMatrix, {0, 1, 2, 3, 4, 5}));
  EXPECT_THAT(matrix.extents, ElementsAre(2, 3));
  EXPECT_THAT(matrix.values, ElementsAre(0, 1, 2, 3, 4, 5));
  const NpyArray vector = read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", {1.5f}));
  EXPECT_THAT(vector.extents, ElementsAre(1));
  EXPECT_EQ(to_tuple(vector.extents), "(1,)");
  const NpyArray scalar = read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", {3}));
  EXPECT_THAT(scalar.extents, IsEmpty());
  EXPECT_THAT(scalar.values, ElementsAre(3));
}

TEST_F(Npy, WritesWhatNumpyWrites) {
  for (const NpyArray& array : {NpyArray{{2, 3}, {0, -0.0f, 2, 3, 4, 5}}, NpyArray{{1}, {1.5f}}}) {
    write_npy(path_, array);
    std::ifstream file(path_, std::ios::binary);
    const std::string written{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(written, npy(fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}",
                                       to_tuple(array.extents)),
                           array.values));
  }
}

TEST_F(Npy, LeavesNoFileThatIsNotWhole) {
  const NpyArray array{{1}, {1.5f}};
  for (const char* const path : {"/dev/full", "/none/x.npy"})
    EXPECT_THROW(write_npy(path, array), InputError) << path;
  EXPECT_TRUE(std::filesystem::exists("/dev/full"));
}

TEST_F(Npy, ReadsEveryVersion) {
  for (const int version : {1, 2, 3})
    EXPECT_THAT(read(npy(kMatrix, {0, 1, 2, 3, 4, 5}, version)).values, ElementsAre(0, 1, 2, 3, 4, 5))
        << version;
  EXPECT_EQ(refusal(npy(kMatrix, {}, 4)), "is of NPY version 4; want 1, 2 or 3");
}

TEST_F(Npy, RefusesOtherArrays) {
  const std::vector<float> values(6);
  EXPECT_EQ(refusal(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", values)),
            "its dtype is <f8; want <f4: array.astype(\"<f4\")");
  EXPECT_EQ(refusal(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (6,), }", values)),
            "its dtype is >f4; want <f4: array.astype(\"<f4\")");
  EXPECT_EQ(refusal(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", values)),
            "is in Fortran order; want C order: numpy.ascontiguousarray(array)");
  EXPECT_EQ(refusal(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }", values)),
            "its header has no valid \"descr\"");
  EXPECT_EQ(
      refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", values)),
      "its shape (99999999999999999999,) is too large");
}

TEST_F(Npy, RefusesDataThatIsNotOfTheShape) {
  EXPECT_EQ(refusal(npy(kMatrix, {1, 2, 3})),
            "holds 12 bytes of data, which are not the float32 of its shape (2, 3)");
  EXPECT_EQ(refusal(npy(kMatrix, std::vector<float>(7))),
            "holds 28 bytes of data, which are not the float32 of its shape (2, 3)");
  EXPECT_EQ(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", {})),
            "holds 0 bytes of data, which are not the float32 of its shape (4611686018427387904, 4)");
  EXPECT_THAT(read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 0), }", {})).values, IsEmpty());
}

TEST_F(Npy, RefusesOtherFiles) {
  EXPECT_EQ(refusal("PK\x03\x04 what numpy.savez writes"), "is no NPY file; want what numpy.save writes");
  EXPECT_EQ(refusal(""), "is empty; want what numpy.save writes");
  EXPECT_EQ(refusal("\x93NUM"), "ends within its header");
  EXPECT_EQ(refusal(npy(kMatrix, {}).substr(0, 40)), "ends within its header");
  EXPECT_EQ(refusal(std::string("\x93NUMPY\x02\0\xff\xff\xff\x7f", 12)),
            "has a header of 2147483647 bytes; want at most 4096");
  try {
    read_npy("/nonexistent/x.npy");
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "/nonexistent/x.npy: cannot be read: No such file or directory");
  }
  try {
    read_npy("/");
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "/: is a directory; want what numpy.save writes");
  }
}

TEST_F(Npy, RefusesHeadersThatNumpyDoesNotWrite) {
  const auto of_shape = [](const std::string& shape) {
    return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  };
  const auto ones = [](int count) {
    std::string text = "(";
    for (int i = 0; i < count; ++i) text += "1, ";
    return text + ")";
  };
  for (const char* shape : {"(2, 3", "2, 3)", "(2 3)", "(2,, 3)", "(-2, 3)", "(,)", "[2, 3]", "(2., 3)", ""})
    EXPECT_EQ(refusal(npy(of_shape(shape), {})), "its header has no valid \"shape\"") << shape;
  EXPECT_THAT(read(npy(of_shape(ones(64)), {7})).values, ElementsAre(7));
  EXPECT_EQ(refusal(npy(of_shape(ones(65)), {7})), "its shape has more than 64 dimensions");
  EXPECT_THAT(refusal(npy(of_shape(ones(12'000)), {7})), HasSubstr("want at most 4096"));
  EXPECT_EQ(refusal(npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,), }", {7})),
            "its header has no valid \"fortran_order\"");
  EXPECT_EQ(refusal(npy("{'fortran_order': False, 'shape': (1,), }", {7})),
            "its header has no valid \"descr\"");
  EXPECT_EQ(refusal(npy("{'descr': '<f4, 'shape':", {7})),
            "its dtype is <f4, ; want <f4: array.astype(\"<f4\")");
}

}  // namespace
}  // namespace convmish
