// SPDX-License-Identifier: Apache-2.0
// Feeds bytes of a connection to the reader of where a request ends, at once and in pieces: both
// must agree on whether one has come whole, and on its end. Needs no corpus.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "server/framing.h"

namespace {

using foretoken::server::Framing;

constexpr Framing::Limits kLimits{.header_bytes = 300, .body_bytes = 64};

struct Seen {
  Framing::State state = Framing::State::kIncomplete;
  std::size_t size = 0;  // where it is whole
};

// In pieces of `step` bytes.
Seen See(std::string_view input, std::size_t step) {
  Framing framing(kLimits);
  for (std::size_t n = std::min(step, input.size()); n > 0; n = std::min(n + step, input.size())) {
    const Framing::State state = framing.See(input.substr(0, n));
    if (state == Framing::State::kWhole) return {state, framing.size()};
    if (state != Framing::State::kIncomplete) return {state};
    if (n == input.size()) break;
  }
  return {};
}

constexpr std::string_view kSeeds[] = {
    "\x03POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\n",
    "\x05POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: "
    "100-continue\r\n\r\n5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\n",
    "\x01GET / HTTP/1.0\r\n\r\n"};

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
  const Seen whole = See(input, std::max<std::size_t>(1, input.size()));
  if (whole.state == Framing::State::kWhole)
    FORETOKEN_CHECK(whole.size > 0 && whole.size <= input.size());
  for (const std::size_t step : {std::size_t{1}, std::size_t{1} + data[0] % 64}) {
    const Seen pieces = See(input, step);
    const bool ended = pieces.state == Framing::State::kWhole;
    FORETOKEN_CHECK(ended == (whole.state == Framing::State::kWhole));
    FORETOKEN_CHECK(!ended || pieces.size == whole.size);
  }
  return 0;
}
