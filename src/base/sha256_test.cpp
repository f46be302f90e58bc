// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

std::string HexOf(const std::string& first, const std::string& second = "") {
  std::string text;
  for (const std::byte byte :
       Sha256Of(std::as_bytes(std::span(first)), std::as_bytes(std::span(second))))
    for (const int shift : {4, 0})
      text += "0123456789abcdef"[std::to_integer<int>(byte) >> shift & 15];
  return text;
}

// The values of FIPS 180-4's examples.
TEST(Sha256Test, HasTheStandardsValues) {
  EXPECT_EQ(HexOf(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(HexOf("abcdbcdecdefdefgefghfghighij", "hijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace foretoken
