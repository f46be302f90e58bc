// SPDX-License-Identifier: Apache-2.0
// foretoken/stream.h: what a caller sees while a request runs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// Why a request ended. kStop: an end token or a stop string. kLength: it has all the tokens that it
// asked for, or its context is full. kError: see Completion::error. kVerified: its drafts were
// verified (Request::drafts), and its text goes on.
enum class FinishReason { kStop, kLength, kCancelled, kError, kVerified };
const char* Name(FinishReason reason);

// Where a token came from.
enum class TokenOrigin : std::uint8_t { kPlain, kAccepted, kRecovered, kBonus };

struct TokenLogprobs {
  float logprob = 0;  // of the chosen token: natural logarithm, raw distribution (T = 1)
  std::vector<std::pair<std::int32_t, float>> top;  // best first, ties by id
};

// One committed token. `text` is whole UTF-8 characters. It may be empty while a character or a
// possible stop string is held back.
struct TokenEvent {
  std::int32_t id = 0;
  TokenOrigin origin = TokenOrigin::kPlain;
  std::string text;
  const TokenLogprobs* logprobs = nullptr;  // if asked for
};

// What one round of one request did: `events` in order; `rejected` are the drafted tokens that the
// target rejected or did not verify.
struct RoundEvent {
  std::uint64_t request_id = 0;
  std::span<const TokenEvent> events;
  std::span<const std::int32_t> rejected;
  int drafted = 0;
  std::string_view drafter;                        // "ngram"; empty if nothing was drafted
  std::span<const TokenLogprobs> prompt_logprobs;  // with the first events, if asked for
};

// Called on the engine's thread after each pass that a request took part in (without events during
// its prefill). Return false to cancel the request (finish reason "cancelled").
using OnRound = std::function<bool(const RoundEvent&)>;

}  // namespace foretoken
