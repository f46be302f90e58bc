// SPDX-License-Identifier: Apache-2.0
#include "server/net/request_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace foretoken::server {
namespace {

using ReaderState = RequestReader::State;

constexpr RequestReader::Limits kLimits{.header_bytes = 200, .body_bytes = 30};

// The result of reading the bytes of a connection, up to the end of its first request.
struct Seen {
  ReaderState state = ReaderState::kEmpty;
  std::size_t used = 0;
  int refusal = 0;
  HttpRequest request;
  bool operator==(const Seen& other) const {
    return state == other.state && used == other.used && refusal == other.refusal &&
           request.body == other.request.body && request.fields == other.request.fields &&
           request.path == other.request.path && request.host == other.request.host;
  }
};

// The bytes come in pieces: what was not used is given again, with what follows.
Seen InPieces(std::string_view input, std::size_t step) {
  RequestReader reader(kLimits);
  Seen seen;
  const auto decided = [&] {
    return reader.state() == ReaderState::kWhole || reader.state() == ReaderState::kRefused;
  };
  for (std::size_t come = std::min(step, input.size());;
       come = std::min(come + step, input.size())) {
    for (bool goes_on = true; goes_on && !decided();) {
      const ReaderState before = reader.state();
      const std::size_t used = reader.Read(input.substr(seen.used, come - seen.used));
      seen.used += used;
      goes_on = used > 0 || reader.state() != before;
    }
    if (decided() || come == input.size()) break;
  }
  seen.state = reader.state();
  seen.refusal = reader.refusal();
  if (seen.state == ReaderState::kRefused) seen.used = 0;  // the bytes read so far mean nothing
  if (seen.state != ReaderState::kRefused) seen.request = reader.request();
  return seen;
}

Seen AtOnce(std::string_view input) {
  return InPieces(input, input.size());
}

int Refusal(std::string_view input) {
  const Seen seen = InPieces(input, 1);
  EXPECT_EQ(AtOnce(input).refusal, seen.refusal) << input;
  return seen.refusal;
}

std::string Header(const std::string& fields) {
  return "POST /x HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

TEST(RequestReader, GivesTheRequest) {
  const Seen seen = AtOnce(
      "\r\nPOST /v1/x%41%?a=b HTTP/1.1\r\nHOST: Some.Name:80\r\nX-Y:  two words \r\n"
      "Content-Length: 5\r\n\r\nhelloGET");
  EXPECT_EQ(seen.state, ReaderState::kWhole);
  EXPECT_EQ(seen.request.method, "POST");
  EXPECT_EQ(seen.request.path, "/v1/xA%");
  EXPECT_EQ(seen.request.host, "some.name");
  EXPECT_EQ(seen.request.Field("x-y"), "two words");
  EXPECT_EQ(seen.request.Field("x-z"), "");
  EXPECT_EQ(seen.request.body, "hello");
}

TEST(RequestReader, KeepsACodedSlash) {
  const auto path = [](const std::string& text) {
    return AtOnce("GET " + text + " HTTP/1.1\r\nHost: a\r\n\r\n").request.path;
  };
  EXPECT_EQ(path("/v1%2Fx%2fy%2E"), "/v1%2Fx%2fy.");
  EXPECT_EQ(path("/%2%2F%"), "/%2%2F%");
}

TEST(RequestReader, TakesTargetsWithAHost) {
  const auto target = [](const std::string& text) {
    const Seen seen = AtOnce("GET " + text + " HTTP/1.1\r\nHost: other\r\n\r\n");
    return seen.state == ReaderState::kWhole ? seen.request.host + " " + seen.request.path
                                             : "refused";
  };
  EXPECT_EQ(target("http://Name:8080/health?x"), "name /health");
  EXPECT_EQ(target("HTTPS://[::1]:8080/"), "[::1] /");
  EXPECT_EQ(target("http://name"), "name /");
  EXPECT_EQ(target("http://name?x=/y"), "name /");
  EXPECT_EQ(target("/health"), "other /health");
  for (const char* const bad :
       {"http:///x", "http://", "ftp://name/", "name:80", "*", "http://a b/"})
    EXPECT_EQ(target(bad), "refused") << bad;
}

TEST(RequestReader, WantsOneHost) {
  const auto status = [](const std::string& version, const std::string& fields) {
    return AtOnce("GET / HTTP/" + version + "\r\n" + fields + "\r\n").refusal;
  };
  EXPECT_EQ(status("1.1", "Host: a:80\r\n"), 0);
  EXPECT_EQ(status("1.1", "Host: [::1]\r\n"), 0);
  EXPECT_EQ(status("1.0", ""), 0);
  EXPECT_EQ(status("1.1", ""), 400);
  EXPECT_EQ(status("1.1", "Host: a\r\nHost: a\r\n"), 400);
  for (const char* const bad : {"a b", "a/b", "a:x", "[::1", "[::1]x", "a@b", "a,b"})
    EXPECT_EQ(status("1.1", "Host: " + std::string(bad) + "\r\n"), 400) << bad;
}

TEST(RequestReader, TakesNoChunksOfHttp10) {
  const std::string chunks = " HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  EXPECT_EQ(Refusal("POST /" + chunks), 400);
}

TEST(RequestReader, PassesTrailersOver) {
  const Seen seen = AtOnce(Header("Transfer-Encoding: chunked\r\n") +
                           "5\r\nhello\r\n0\r\nAuthorization: Bearer x\r\nHost: b\r\n\r\n");
  EXPECT_EQ(seen.state, ReaderState::kWhole);
  EXPECT_EQ(seen.request.body, "hello");
  EXPECT_EQ(seen.request.Field("authorization"), "");
}

TEST(RequestReader, EndsWhereTheBodyDoes) {
  const std::vector<std::string> requests = {
      Header(""),
      Header("Content-Length: 0\r\n"),
      Header("content-length:  5 \r\n") + "hello",
      Header("Content-Length: 5\r\nContent-Length: 5\r\n") + "hello",
      Header("Transfer-Encoding: Chunked\r\n") + "0\r\n\r\n",
      Header("Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nA: b\r\n\r\n",
  };
  for (const std::string& request : requests) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{3}, request.size()}) {
      const Seen seen = InPieces(request, step);
      EXPECT_EQ(seen.state, ReaderState::kWhole) << request;
      EXPECT_EQ(seen.used, request.size()) << request;
    }
    const Seen followed = AtOnce(request + "POST /next");
    EXPECT_EQ(followed.state, ReaderState::kWhole) << request;
    EXPECT_EQ(followed.used, request.size()) << request;
    const Seen cut = AtOnce(std::string_view(request).substr(0, request.size() - 1));
    EXPECT_TRUE(cut.state == ReaderState::kHead || cut.state == ReaderState::kBody) << request;
  }
}

TEST(RequestReader, RefusesWhatTwoReadersCouldTakeDifferently) {
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
  for (const std::string& field : fields) EXPECT_EQ(Refusal(Header(field)), 400) << field;
}

TEST(RequestReader, RefusesOtherProtocolsAtTheFirstLine) {
  for (const std::string line :
       {"GET /\r\n", "GET / HTTP/2.0\r\n", "GET / HTTP/1.1\nA", "\x16\x03"})
    EXPECT_EQ(AtOnce(line).refusal, 400) << line;
  EXPECT_EQ(AtOnce("GET / HTTP/1.0\r\n").state, ReaderState::kHead);
}

TEST(RequestReader, RefusesChunksThatAreNone) {
  for (const std::string body : {"zz\r\nhello", "\r\nhello\r\n", "-5\r\nhello\r\n",
                                 "5\r\nhelloo\r\n0\r\n\r\n", "fffffffffffffffffffff\r\n"})
    EXPECT_EQ(Refusal(Header("Transfer-Encoding: chunked\r\n") + body), 400) << body;
}

TEST(RequestReader, KeepsToItsLimits) {
  EXPECT_EQ(Refusal(std::string(300, 'A')), 431);
  EXPECT_EQ(Refusal(Header("A: " + std::string(300, 'a') + "\r\n")), 431);
  const std::string most(200 - Header("A: \r\n").size(), 'a');
  EXPECT_EQ(Refusal(Header("A: " + most + "\r\n")), 0);
  EXPECT_EQ(Refusal(Header("A: " + most + "a\r\n")), 431);
  EXPECT_EQ(Refusal(Header("Content-Length: 30\r\n")), 0);
  EXPECT_EQ(Refusal(Header("Content-Length: 31\r\n")), 413);
  const std::string chunked = Header("Transfer-Encoding: chunked\r\n");
  EXPECT_EQ(Refusal(chunked + "1e\r\n"), 0);
  EXPECT_EQ(Refusal(chunked + "1f\r\na"), 413);
  EXPECT_EQ(Refusal(chunked + "ffffffffffffffff\r\n"), 413);
  EXPECT_EQ(Refusal(chunked + "5;" + std::string(2000, 'a')), 400);
  EXPECT_EQ(Refusal(chunked + "0\r\nA: " + std::string(2000, 'a')), 431);
  std::string frames = chunked;
  for (int i = 0; i < 20; ++i) frames += "1;aaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n";
  EXPECT_EQ(Refusal(frames), 413);
}

TEST(RequestReader, SeesWhoWaitsToBeAskedAndWhoGoesOn) {
  RequestReader reader(kLimits);
  const auto read = [&reader](const std::string& text) {
    reader.Restart();
    EXPECT_EQ(reader.Read(text), text.size());
  };
  read(Header("Expect: 100-Continue\r\nContent-Length: 5\r\n"));
  EXPECT_EQ(reader.state(), ReaderState::kBody);
  EXPECT_TRUE(reader.expects_continue());
  EXPECT_TRUE(reader.keeps_connection());
  read(Header("connection: foo, Close\r\n"));
  EXPECT_EQ(reader.state(), ReaderState::kWhole);
  EXPECT_FALSE(reader.expects_continue());
  EXPECT_FALSE(reader.keeps_connection());
  read("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_FALSE(reader.expects_continue());
  EXPECT_FALSE(reader.keeps_connection());
  read("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
  EXPECT_TRUE(reader.keeps_connection());
}

// Random requests, most of them wrong: the result does not depend on how their bytes are cut into
// pieces.
TEST(RequestReader, DecidesTheSameHoweverTheBytesCome) {
  const std::vector<std::string> parts = {"GET / HTTP/1.1\r\n",
                                          "Host: a\r\n",
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
    std::string input = "POST /x HTTP/1.1\r\nHost: a\r\n";
    for (auto n = random() % 12; n > 0; --n) input += parts[random() % parts.size()];
    input += "\r\n\r\n0\r\n\r\n" + std::string(40, 'x');  // so that each is decided
    const Seen at_once = AtOnce(input);
    for (const std::size_t step : {1, 2, 7}) {
      const Seen seen = InPieces(input, step);
      // If there are several faults, the one that is reported may depend on the order of the bytes'
      // arrival.
      ASSERT_EQ(seen.state, at_once.state) << input;
      ASSERT_TRUE(seen.state != ReaderState::kWhole || seen == at_once) << input;
    }
    whole += at_once.state == ReaderState::kWhole;
  }
  EXPECT_GT(whole, 1000);
}

}  // namespace
}  // namespace foretoken::server
