// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/safetensors.h"

#include <gtest/gtest.h>

#include "base/failure_testing.h"
#include "fixtures/model_folder.h"

namespace foretoken::formats::huggingface {
namespace {

Result<std::vector<SafeTensor>> Parse(const std::string& bytes) {
  return ParseSafetensors(std::as_bytes(std::span(bytes)), "m.safetensors");
}

Result<std::vector<SafeTensor>> ParseWith(const std::string& header, std::size_t data_bytes) {
  // The tensors point into bytes that are gone: tests read their sizes only.
  return Parse(fixtures::SafetensorsBytes(header, data_bytes));
}

TEST(Safetensors, TensorsComeInTheOrderOfTheirData) {
  const auto tensors = Got(ParseWith(
      R"({"__metadata__": {"format": "pt"},
          "a": {"dtype": "BF16", "shape": [3, 2], "data_offsets": [8, 20]},
          "b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
          "c": {"dtype": "I64", "shape": [], "data_offsets": [20, 28]},
          "d": {"dtype": "F16", "shape": [0, 4], "data_offsets": [28, 28]}})",
      28));
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[0].name, "b");
  EXPECT_EQ(tensors[1].name, "a");
  EXPECT_EQ(tensors[1].dtype, "BF16");
  EXPECT_EQ(tensors[1].shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(tensors[1].data.size(), 12u);
  EXPECT_EQ(tensors[2].n_values(), 1);
}

struct Hostile {
  const char *header, *word;  // the message has it
  std::size_t data_bytes = 8;
};
const Hostile kHostile[] = {
    {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]})", "not JSON"},
    {R"([1, 2])", "not a JSON object"},
    {"{\"\xff\": 1}", "not JSON"},
    {R"({"a": 5})", "dtype"},
    {R"({"a": {"shape": [2], "data_offsets": [0, 8]}})", "dtype"},
    {R"({"a": {"dtype": 7, "shape": [2], "data_offsets": [0, 8]}})", "not a string"},
    {R"({"a": {"dtype": "F12", "shape": [2], "data_offsets": [0, 8]}})", "F12"},
    {R"({"a": {"dtype": "F32", "data_offsets": [0, 8]}})", "shape"},
    {R"({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}})", "shape"},
    {R"({"a": {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]}})", "shape"},
    {R"({"a": {"dtype": "F32", "shape": ["2"], "data_offsets": [0, 8]}})", "shape"},
    {R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 8]}})",
     "more than 2^63"},
    {R"({"a": {"dtype": "F32", "shape": [9223372036854775808], "data_offsets": [0, 8]}})",
     "more than 2^63"},
    {R"({"a": {"dtype": "F32", "shape": [1,1,1,1,1,1,1,1,2], "data_offsets": [0, 8]}})",
     "dimensions"},
    {R"({"a": {"dtype": "F32", "shape": [2]}})", "data_offsets"},
    {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0]}})", "two numbers"},
    {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}})", "not within"},
    {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}})", "not within"},
    {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 9223372036854775808]}})",
     "not within"},
    {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [18446744073709551608, 8]}})",
     "not within"},
    {R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}})", "8 bytes"},
    {R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
         "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
     "overlap"},
    {R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})", "belong to no tensor"},
    {R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", "belong to no tensor"},
    {R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
         "a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
     "twice"},
    {R"({"a": {"dtype": "F32", "shape": [[[2]]], "data_offsets": [0, 8]}})", "nested"},
};

TEST(Safetensors, AHostileHeaderIsAnErrorThatNamesTheFile) {
  for (const Hostile& hostile : kHostile) {
    const auto tensors = ParseWith(hostile.header, hostile.data_bytes);
    ASSERT_FALSE(tensors) << hostile.header;
    EXPECT_TRUE(tensors.error().message.starts_with("m.safetensors: ")) << tensors.error().message;
    EXPECT_NE(tensors.error().message.find(hostile.word), std::string::npos)
        << hostile.header << "\n"
        << tensors.error().message;
    EXPECT_NE(tensors.error().message.find("; "), std::string::npos) << tensors.error().message;
  }
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string whole = fixtures::SafetensorsBytes(
      R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 8);
  ASSERT_TRUE(Parse(whole));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(Parse(whole.substr(0, size))) << size;
}

TEST(Safetensors, AHeaderSizeBeyondTheFileIsAnError) {
  for (const char last : {'\x00', '\x7f', '\xff'}) {
    std::string bytes = fixtures::SafetensorsBytes("{}", 64);
    bytes[7] = last;
    bytes[4] = 1;
    EXPECT_TRUE(Fails(Parse(bytes), "does not fit"));
  }
}

}  // namespace
}  // namespace foretoken::formats::huggingface
