// SPDX-License-Identifier: Apache-2.0
#include "server/framing.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace foretoken::server {
namespace {

using State = Framing::State;

constexpr Framing::Limits kLimits{.header_bytes = 200, .body_bytes = 30};

std::string Header(const std::string& fields) {
  return "POST /x HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

// As the bytes come one by one: the state at the first that decides.
State ByBytes(const std::string& input, std::size_t* size = nullptr) {
  Framing framing(kLimits);
  for (std::size_t n = 1; n <= input.size(); ++n) {
    const State state = framing.See(std::string_view(input).substr(0, n));
    if (state == State::kIncomplete) continue;
    if (state == State::kWhole && size != nullptr) *size = framing.size();
    return state;
  }
  return State::kIncomplete;
}

State AtOnce(const std::string& input) {
  return Framing(kLimits).See(input);
}

TEST(Framing, EndsWhereTheBodyDoes) {
  const std::vector<std::string> requests = {
      Header(""),
      Header("Content-Length: 0\r\n"),
      Header("content-length:  5 \r\n") + "hello",
      Header("Content-Length: 5\r\nContent-Length: 5\r\n") + "hello",
      Header("Transfer-Encoding: Chunked\r\n") + "0\r\n\r\n",
      Header("Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nA: b\r\n\r\n",
  };
  for (const std::string& request : requests) {
    std::size_t size = 0;
    EXPECT_EQ(ByBytes(request, &size), State::kWhole) << request;
    EXPECT_EQ(size, request.size()) << request;
    Framing framing(kLimits);
    EXPECT_EQ(framing.See(request + "POST /next"), State::kWhole) << request;
    EXPECT_EQ(framing.size(), request.size()) << request;
    EXPECT_EQ(AtOnce(request.substr(0, request.size() - 1)), State::kIncomplete) << request;
  }
}

TEST(Framing, RefusesWhatTwoReadersCouldTakeDifferently) {
  const std::vector<std::string> fields = {
      "Content-Length: 4\r\nContent-Length: 5\r\n",
      "Content-Length: 5, 5\r\n",
      "Content-Length: +5\r\n",
      "Content-Length: -1\r\n",
      "Content-Length: 0x5\r\n",
      "Content-Length:\r\n",
      "Content-Length: 99999999999999999999999\r\n",
      "Content-Length : 5\r\n",
      "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: gzip, chunked\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
      "A: b\r\n c\r\n",
      "A\r\n",
      std::string("A: \0\r\n", 6),
      "A: b\nContent-Length : 5\r\n\r\n",
  };
  for (const std::string& field : fields) {
    EXPECT_EQ(AtOnce(Header(field)), State::kMalformed) << field;
    EXPECT_EQ(ByBytes(Header(field)), State::kMalformed) << field;
  }
}

TEST(Framing, RefusesOtherProtocolsAtTheFirstLine) {
  for (const std::string line : {"GET /\r\n", "GET / HTTP/2.0\r\n", "GET / HTTP/1.1\n", "\x16\x03"})
    EXPECT_EQ(ByBytes(line), State::kMalformed) << line;
  EXPECT_EQ(ByBytes("GET / HTTP/1.0\r\n"), State::kIncomplete);
}

TEST(Framing, RefusesChunksThatAreNone) {
  for (const std::string body :
       {"zz\r\n", "\r\n", "-5\r\nhello\r\n", "5\r\nhelloo\r\n", "fffffffffffffffffffff\r\n"}) {
    EXPECT_EQ(ByBytes(Header("Transfer-Encoding: chunked\r\n") + body), State::kMalformed) << body;
  }
}

TEST(Framing, KeepsToItsLimits) {
  EXPECT_EQ(ByBytes(std::string(300, 'A')), State::kHeaderTooLarge);
  EXPECT_EQ(ByBytes(Header("A: " + std::string(300, 'a') + "\r\n")), State::kHeaderTooLarge);
  EXPECT_EQ(AtOnce(Header("Content-Length: 30\r\n")), State::kIncomplete);
  EXPECT_EQ(AtOnce(Header("Content-Length: 31\r\n")), State::kBodyTooLarge);
  const std::string chunked = Header("Transfer-Encoding: chunked\r\n");
  EXPECT_EQ(AtOnce(chunked + "1e\r\n"), State::kIncomplete);
  EXPECT_EQ(AtOnce(chunked + "1f\r\n"), State::kBodyTooLarge);
  EXPECT_EQ(AtOnce(chunked + "ffffffffffffffff\r\n"), State::kBodyTooLarge);
  std::string frames = chunked;
  for (int i = 0; i < 20; ++i) frames += "1;aaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n";
  EXPECT_EQ(AtOnce(frames), State::kBodyTooLarge);
}

TEST(Framing, SeesWhoWaitsToBeAsked) {
  Framing framing(kLimits);
  EXPECT_EQ(framing.See(Header("Expect: 100-Continue\r\nContent-Length: 5\r\n")),
            State::kIncomplete);
  EXPECT_TRUE(framing.expects_continue());
  framing.Restart();
  EXPECT_EQ(framing.See(Header("")), State::kWhole);
  EXPECT_FALSE(framing.expects_continue());
}

// Requests put together at random, most of them wrong: how they are cut into pieces on their way
// changes nothing.
TEST(Framing, DecidesTheSameHoweverTheBytesCome) {
  const std::vector<std::string> parts = {"GET / HTTP/1.1\r\n",
                                          "POST /x HTTP/1.1\r\n",
                                          "Content-Length: 5\r\n",
                                          "A: b\r\n",
                                          "Content-Length: 31\r\n",
                                          "Transfer-Encoding: chunked\r\n",
                                          "\r\n",
                                          "5\r\nhello\r\n",
                                          "hello",
                                          "0\r\n",
                                          "1f;a\r\n",
                                          "\n",
                                          ":",
                                          "f"};
  std::mt19937 random(1);
  int whole = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string input = "POST /x HTTP/1.1\r\n";
    for (auto n = random() % 12; n > 0; --n) input += parts[random() % parts.size()];
    std::size_t size = 0;
    Framing framing(kLimits);
    const State at_once = framing.See(input);
    ASSERT_EQ(ByBytes(input, &size), at_once) << input;
    if (at_once != State::kWhole) continue;
    ++whole;
    ASSERT_EQ(framing.size(), size) << input;
    ASSERT_LE(size, input.size()) << input;
  }
  EXPECT_GT(whole, 1000);
}

}  // namespace
}  // namespace foretoken::server
