// SPDX-License-Identifier: Apache-2.0
// server/api/body_limits.h: how long the lists and texts of a body may be, and the ranges of numbers that
// several APIs have. Readers use the constants. The texts of the schema (field_texts.cpp) name them in
// angle brackets: "maxItems":<stops>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "foretoken/drafts.h"

namespace foretoken::server {

inline constexpr std::size_t kMostMessages = 4096;
inline constexpr std::size_t kMostTools = 1024, kMostToolNameBytes = 256;
inline constexpr std::size_t kMostStops = 16, kMostStopBytes = 1024;
inline constexpr std::size_t kMostBreakers = 64, kMostBreakerBytes = 64;
inline constexpr std::size_t kMostResponseFields = 64, kMostSamplers = 44;
inline constexpr std::size_t kMostSaltBytes = 256;
inline constexpr std::size_t kMostInputs = 2048;  // texts of a request for embeddings or ranks
// The most tokens beside each token of an answer whose log-probabilities a request may ask for, as in
// OpenAI's API.
inline constexpr int kMostAlternatives = 20;
inline constexpr int kMostBias = 100;  // to either side
// OpenAI's default for /v1/completions without max_tokens.
inline constexpr int kCompletionTokens = 16;

struct BodyLimit {
  std::string_view name;
  std::int64_t most;
};
inline constexpr BodyLimit kBodyLimits[] = {
    {"messages", kMostMessages},
    {"tools", kMostTools},
    {"tool_name_bytes", kMostToolNameBytes},
    {"stops", kMostStops},
    {"stop_bytes", kMostStopBytes},
    {"breakers", kMostBreakers},
    {"breaker_bytes", kMostBreakerBytes},
    {"response_fields", kMostResponseFields},
    {"samplers", kMostSamplers},
    {"salt_bytes", kMostSaltBytes},
    {"inputs", kMostInputs},
    {"documents", kMostInputs - 1},  // and the query
    {"alternatives", kMostAlternatives},
    {"bias", kMostBias},
    {"completion_tokens", kCompletionTokens},
    {"drafts", kMaxDraft},
};

}  // namespace foretoken::server
