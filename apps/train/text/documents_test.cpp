// SPDX-License-Identifier: Apache-2.0
#include "train/text/documents.h"

#include <gtest/gtest.h>

#include "base/failure_testing.h"
#include "train/written_testing.h"

namespace foretoken::train {
namespace {

std::string ErrorOf(const std::string& text) {
  const auto documents = ReadDocuments(WriteText(text));
  return documents ? "none" : documents.error().message;
}

TEST(Documents, ArePartedByTheirSeparatorAndCutOfWhiteSpace) {
  const auto documents = Got(ReadDocuments(
      WriteText("\n One day.\r\n<|endoftext|>\n\n<|endoftext|>Caf\xC3\xA9 \xF0\x9F\x90\xA6"
                "\n\ttwo\n<|endoftext|>last")));
  EXPECT_EQ(documents,
            (std::vector<std::string>{"One day.", "Caf\xC3\xA9 \xF0\x9F\x90\xA6\n\ttwo", "last"}));
}

TEST(Documents, OfNoTextAreRefused) {
  for (const std::string text : {"", " \n\t\n", "<|endoftext|>\n<|endoftext|>"})
    EXPECT_NE(ErrorOf(text).find("holds no text"), std::string::npos) << text;
}

TEST(Documents, OfBinaryFilesAreRefusedWithThePlace) {
  EXPECT_NE(ErrorOf(std::string("plain\0text", 10)).find("byte 0x00 at 5 "), std::string::npos);
  EXPECT_NE(ErrorOf("GGUF\x03").find("byte 0x03 at 4 "), std::string::npos);
  EXPECT_NE(ErrorOf("a\x7f").find("byte 0x7f at 1 "), std::string::npos);
}

TEST(Documents, OfOtherEncodingsAreRefusedWithThePlace) {
  EXPECT_NE(ErrorOf("caf\xE9 noir").find("byte 0xe9 at 3 "), std::string::npos);  // Latin-1
  EXPECT_NE(ErrorOf("\xFF\xFEo\0k").find("byte 0xff at 0 "), std::string::npos);  // UTF-16
  EXPECT_NE(ErrorOf("cut \xF0\x9F\x90").find("byte 0xf0 at 4 "), std::string::npos);
  EXPECT_NE(ErrorOf("lone \x80").find("byte 0x80 at 5 "), std::string::npos);
}

TEST(Documents, ThatAreNotThereAreNamed) {
  EXPECT_TRUE(Fails(ReadDocuments("/no/such/text"), ErrorCode::kNotFound, "/no/such/text"));
}

}  // namespace
}  // namespace foretoken::train
