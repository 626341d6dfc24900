#include "core/shape_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/error.hpp"

namespace convmish {
namespace {

using testing::HasSubstr;

constexpr Shape kHeadline{.n = 64, .c = 64, .h = 256, .w = 256, .k = 128};

std::string refusal(std::string_view text) {
  try {
    return "accepted as " + to_string(parse_shape(text));
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(ShapeText, ReadsLettersInAnyOrder) {
  EXPECT_EQ(parse_shape("n64c64h256w256k128"), kHeadline);
  EXPECT_EQ(parse_shape("k128w256h256c64n64"), kHeadline);
}

TEST(ShapeText, IsWrittenAsItIsRead) {
  EXPECT_EQ(to_string(kHeadline), "n64c64h256w256k128");
  EXPECT_EQ(to_string(parse_shape("k1w3h4c2n9")), "n9c2h4w3k1");
}

TEST(ShapeText, TakesTheSmallestShape) {
  const Shape smallest = parse_shape("n1c1h3w3k1");
  EXPECT_EQ(smallest.p(), 1);
  EXPECT_EQ(smallest.q(), 1);
}

struct Refused {
  const char* text;
  const char* why;
};

class RefusedShapeText : public testing::TestWithParam<Refused> {};

TEST_P(RefusedShapeText, SaysWhatIsWrong) {
  const std::string message = refusal(GetParam().text);
  EXPECT_EQ(message, std::string("shape \"") + GetParam().text + "\": " + GetParam().why);
  EXPECT_EQ(message.find('\n'), message.npos);
}

INSTANTIATE_TEST_SUITE_P(
    ShapeText, RefusedShapeText,
    testing::Values(
        Refused{"", "is empty; want each of n c h w k once, as in n64c64h256w256k128"},
        Refused{"64n", "begins with \"6\"; want a letter, as in n64c64h256w256k128"},
        Refused{"n64c64x256w256k128", "unknown letter \"x\"; closest: h; the letters are n c h w k"},
        Refused{"N64c64h256w256k128", "unknown letter \"N\"; closest: n; the letters are n c h w k"},
        Refused{"b64c64x256w256k128", "unknown letter \"b\"; the letters are n c h w k"},
        Refused{"n64c64h256w256", "k is missing; want each of n c h w k once, as in n64c64h256w256k128"},
        Refused{"n1n2c1h3w3k1", "n is given twice"},
        Refused{"nc1h3w3k1", "n has no number; want an integer of at least 1"},
        Refused{"n1c1h3w3k", "k has no number; want an integer of at least 1"},
        Refused{"n0c1h3w3k1", "n is 0; want an integer of at least 1"},
        Refused{"n-4c1h3w3k1", "n is -4; want an integer of at least 1"},
        Refused{"n1.5c1h3w3k1", "n is \"1.5\"; want an integer of at least 1"},
        Refused{"n1 c1h3w3k1", "n is \"1 \"; want an integer of at least 1"},
        Refused{"n+1c1h3w3k1", "n is \"+1\"; want an integer of at least 1"},
        Refused{"n1c1h2w3k1", "h is 2; want an integer of at least 3 (3x3 filter, no padding)"},
        Refused{"n1c1h3w2k1", "w is 2; want an integer of at least 3 (3x3 filter, no padding)"},
        Refused{"n9223372036854775808c1h3w3k1", "n is 9223372036854775808; want at most 9223372036854775807"},
        Refused{"n99999999999999999999999c1h3w3k1",
                "n is 99999999999999999999999; want at most 9223372036854775807"}));

TEST(CheckShape, AcceptsTheLargestTensorThatFits) {
  // x takes 36 n bytes; every other tensor less.
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max() / 36;
  EXPECT_EQ(check_shape({.n = largest, .c = 1, .h = 3, .w = 3, .k = 1}), std::nullopt);
  EXPECT_NE(check_shape({.n = largest + 1, .c = 1, .h = 3, .w = 3, .k = 1}), std::nullopt);
}

TEST(CheckShape, NamesTheTensorThatPasses63Bits) {
  const std::int64_t large = std::int64_t{1} << 58;
  EXPECT_THAT(check_shape({.n = large, .c = 1, .h = 3, .w = 3, .k = 1}).value(),
              HasSubstr("x (n c h w floats)"));
  EXPECT_THAT(check_shape({.n = 1, .c = 1, .h = 3, .w = 3, .k = large}).value(), HasSubstr("the filter"));
  EXPECT_THAT(check_shape({.n = large >> 4, .c = 1, .h = 3, .w = 3, .k = 512}).value(),
              HasSubstr("y (n k p q floats)"));
}

TEST(CheckShape, NamesTheDimensionThatIsTooSmall) {
  EXPECT_THAT(check_shape({.n = 1, .c = 1, .h = 3, .w = 1, .k = 1}).value(), HasSubstr("w is 1"));
  EXPECT_THAT(check_shape({.n = 1, .c = -1, .h = 3, .w = 3, .k = 1}).value(), HasSubstr("c is -1"));
}

}  // namespace
}  // namespace convmish
