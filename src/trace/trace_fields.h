// SPDX-License-Identifier: Apache-2.0
// trace/trace_fields.h: the fields of the lines of a trace that are read (base/json/json_record.h) and written by
// one description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "foretoken/drafts.h"
#include "foretoken/option_keys.h"
#include "foretoken/tools/replay.h"

namespace foretoken::trace {

inline constexpr int kTraceVersion = 2;
inline constexpr std::size_t kMostText = std::size_t{1} << 28;  // no more than a file has
inline constexpr int kMostToken = std::numeric_limits<int>::max();

inline constexpr auto kHeaderFields = [](auto& fields, auto& header) {
  fields.Text("version", kMostText, header.version);
  fields.Text("cpu", kMostText, header.cpu);
  fields.Text("isa", kMostText, header.isa);
  fields.Integer("threads", 0, 1 << 16, header.threads);
  fields.Text("model", kMostText, header.model);
  fields.Text("model_type", kMostText, header.model_type);
  fields.Text("draft_model", kMostText, header.draft_model);
  fields.Text("draft_type", kMostText, header.draft_type);
  fields.Text("method", kMostText, header.method);
  fields.Text("strategy", kMostText, header.strategy);
  fields.Text("lookahead", kMostText, header.controller);
  fields.Integer("num_speculative_tokens", 0, kMaxDraft, header.num_speculative_tokens);
  fields.Integer("context_size", 1, kMaxTextTokens, header.context_size);
  fields.Integer("max_sequences", 1, FindEngineKey("max_sequences")->range.most,
                 header.max_sequences);
};

inline constexpr auto kRequestFields = [](auto& fields, auto& request) {
  const auto sampling = [&](const char* name, auto& number) {
    const auto [least, most] = FindSamplingKey(name)->ranges.all;
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(number)>>)
      fields.Integer(name, static_cast<int>(least), static_cast<int>(most), number);
    else
      fields.Number(name, least, most, number);
  };
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  fields.Integer("id", 0, kMost, request.id);
  fields.Integer("seed", 0, kMost, request.seed);
  fields.Text("method", kMostText, request.method);
  fields.Text("strategy", kMostText, request.strategy);
  fields.Text("lookahead", kMostText, request.controller);
  fields.Integer("num_speculative_tokens", 0, kMaxDraft, request.num_speculative_tokens);
  sampling("temperature", request.temperature), sampling("top_k", request.top_k);
  sampling("top_p", request.top_p), sampling("min_p", request.min_p);
  fields.Integer("prompt_tokens", 1, kMaxTextTokens, request.prompt_tokens);
  fields.Integer("max_new_tokens", 0, kMaxTextTokens, request.max_new_tokens);
};

}  // namespace foretoken::trace
