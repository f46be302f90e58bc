// SPDX-License-Identifier: Apache-2.0
// Feeds bytes of a connection to the reader of requests, at once and in pieces: both must agree on
// which requests there are. Needs no corpus.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "server/net/request_reader.h"

namespace {

using foretoken::server::HttpRequest;
using foretoken::server::RequestReader;
using State = RequestReader::State;

constexpr RequestReader::Limits kLimits{.header_bytes = 300, .body_bytes = 64};

struct Seen {
  std::vector<HttpRequest> requests;
  bool refused = false;
};

// In pieces of `step` bytes, as a connection reads them.
Seen Read(std::string_view input, std::size_t step) {
  RequestReader reader(kLimits);
  Seen seen;
  std::size_t used = 0;
  for (std::size_t come = std::min(step, input.size());;
       come = std::min(come + step, input.size())) {
    for (bool goes_on = true; goes_on;) {
      const State before = reader.state();
      const std::size_t n = reader.Read(input.substr(used, come - used));
      FORETOKEN_CHECK(n <= come - used);
      used += n;
      if (reader.state() == State::kRefused) {
        FORETOKEN_CHECK(reader.refusal() >= 400 && reader.refusal() < 500);
        seen.refused = true;
        return seen;
      }
      goes_on = n > 0 || reader.state() != before;
      if (reader.state() != State::kWhole) continue;
      FORETOKEN_CHECK(reader.request().body.size() <= kLimits.body_bytes);
      FORETOKEN_CHECK(!reader.request().path.empty());
      reader.keeps_connection();
      reader.expects_continue();
      seen.requests.push_back(reader.request());
      reader.Restart();
    }
    if (come == input.size()) return seen;
  }
}

bool Same(const HttpRequest& a, const HttpRequest& b) {
  return a.method == b.method && a.path == b.path && a.body == b.body && a.host == b.host &&
         a.fields == b.fields;
}

constexpr std::string_view kSeeds[] = {
    "\x03POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}GET / "
    "HTTP/1.1\r\nHost: a:80\r\n\r\n",
    "\x05POST http://b/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: "
    "100-continue\r\n\r\n5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\n",
    "\x01POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0;a\r\nA: "
    "b\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "\x01GET /%41?b HTTP/1.0\r\n\r\n"};

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  if (size < 8) {
    const std::string_view from = kSeeds[seed % std::size(kSeeds)];
    size = std::min(from.size(), max_size);
    std::memcpy(data, from.data(), size);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Seen whole = Read(input, std::max<std::size_t>(1, input.size()));
  for (const std::size_t step : {std::size_t{1}, std::size_t{1} + data[0] % 64}) {
    const Seen pieces = Read(input, step);
    // A fault may be noticed later when the bytes come in pieces, but the requests must be the
    // same.
    FORETOKEN_CHECK(pieces.requests.size() == whole.requests.size());
    FORETOKEN_CHECK(whole.refused || !pieces.refused);
    for (std::size_t i = 0; i < whole.requests.size(); ++i)
      FORETOKEN_CHECK(Same(whole.requests[i], pieces.requests[i]));
  }
  return 0;
}
