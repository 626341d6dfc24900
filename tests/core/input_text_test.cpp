#include "core/input_text.hpp"

#include <gtest/gtest.h>

namespace convmish {
namespace {

const std::vector<std::string> kNames{"naive", "tiled", "coarsened_1x2", "cudnn_unfused", "cudnn_fused_mish"};

TEST(NearestWord, FindsOneSlip) {
  EXPECT_EQ(nearest_word("naiv", kNames), "naive");    // left out
  EXPECT_EQ(nearest_word("naaive", kNames), "naive");  // put in
  EXPECT_EQ(nearest_word("native", kNames), "naive");  // replaced
  EXPECT_EQ(nearest_word("tilde", kNames), "tiled");   // swapped
  EXPECT_EQ(nearest_word("cudnn_fusedmish", kNames), "cudnn_fused_mish");
}

TEST(NearestWord, TakesABeginningForItsWord) {
  EXPECT_EQ(nearest_word("coarsened", kNames), "coarsened_1x2");
  EXPECT_EQ(nearest_word("cudnn_u", kNames), "cudnn_unfused");
}

TEST(NearestWord, IsSilentWhereNothingIsNear) {
  EXPECT_EQ(nearest_word("winograd", kNames), "");
  EXPECT_EQ(nearest_word("", kNames), "");
  EXPECT_EQ(nearest_word("x", {"n", "c"}), "");
  EXPECT_EQ(nearest_word("naive", {}), "");
}

TEST(Advice, ListsAllWhereNothingIsNear) {
  EXPECT_EQ(advice("tilde", {"tiled"}), "; closest: tiled");
  EXPECT_EQ(advice("winograd", {"naive", "tiled"}), "; want one of naive, tiled");
}

TEST(ReadNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(read_integer("-12"), -12);
  EXPECT_EQ(read_unsigned("18446744073709551615"), 18446744073709551615u);
  EXPECT_EQ(read_real("2.5e-1"), 0.25);
  for (const char* const text : {"", " 1", "1 ", "1x", "0x10", "+1", "--1", "99999999999999999999999"}) {
    EXPECT_EQ(read_integer(text), std::nullopt) << text;
    EXPECT_EQ(read_unsigned(text), std::nullopt) << text;
  }
  EXPECT_EQ(read_unsigned("-1"), std::nullopt);
  EXPECT_EQ(read_real("1,5"), std::nullopt);
}

TEST(ParseWord, KnowsEverySpelling) {
  for (const auto& word : Words<Fill>::list) EXPECT_EQ(parse_word<Fill>(word.text), word.value);
  EXPECT_EQ(spellings<MathClass>(), (std::vector<std::string>{"fp32", "tf32", "fp16", "bf16"}));
}

TEST(ParseWord, NamesTheNearestSpelling) {
  try {
    parse_word<Fill>("nromal");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "unknown fill \"nromal\"; closest: normal");
  }
}

}  // namespace
}  // namespace convmish
