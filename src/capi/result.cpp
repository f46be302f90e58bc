// SPDX-License-Identifier: Apache-2.0
#include "capi/result.h"

#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "capi/errors.h"

foretoken_result::foretoken_result(foretoken::ChoiceEnd ended) : end(std::move(ended)) {
  const foretoken::Completion& c = end.completion;
  view = {.text = c.text.c_str(),
          .text_size = c.text.size(),
          .tokens = c.token_ids.data(),
          .token_count = c.token_ids.size(),
          .prompt_tokens = c.prompt_token_ids.data(),
          .prompt_token_count = c.prompt_token_ids.size(),
          .embedding = c.embedding.data(),
          .embedding_count = c.embedding.size(),
          .finish_reason = foretoken::Name(c.finish_reason),
          .strategy = c.strategy.c_str(),
          .controller = c.controller.c_str(),
          .seed = c.seed,
          .lossless = c.lossless ? 1 : 0};
  // The lists have one row for each token, or there are none.
  if (c.logprobs.empty() || c.logprobs.size() != c.token_ids.size()) return;
  for (const foretoken::TokenLogprobs& row : c.logprobs) {
    logprobs.push_back(row.logprob);
    top_offsets.push_back(top_tokens.size());
    for (const auto& [token, logprob] : row.top) {
      top_tokens.push_back(token);
      top_logprobs.push_back(logprob);
    }
  }
  top_offsets.push_back(top_tokens.size());
  view.logprobs = logprobs.data();
  view.top_offsets = top_offsets.data();
  view.top_tokens = top_tokens.data();
  view.top_logprobs = top_logprobs.data();
}

namespace foretoken::capi {
namespace {

// Calls visit(key, value) for each statistic that is one number; rates without a denominator have no value.
void VisitStats(const ChoiceEnd& end, const auto& visit) {
  const SpeculationStats& speculation = end.completion.speculation;
  SpeculationStats::VisitFields([&](const char* key, auto member) {
    if constexpr (std::is_member_function_pointer_v<decltype(member)>)
      visit(key, (speculation.*member)());
    else if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(speculation.*member)>>)
      visit(key, std::optional(static_cast<double>(speculation.*member)));
  });
  const auto number = [&](const char* key, double value) { visit(key, std::optional(value)); };
  const Timings& timings = end.completion.timings;
  number("prompt_ms", timings.prompt_ms), number("decode_ms", timings.decode_ms);
  number("prompt_tokens", timings.prompt_tokens);
  number("cached_prompt_tokens", timings.cached_prompt_tokens);
  number("decoded_tokens", timings.decoded_tokens);
  number("queue_ms", end.queue_ms), number("first_token_ms", end.first_token_ms);
  number("total_ms", end.total_ms);
}

Status FindStat(const ChoiceEnd& end, std::string_view key, double& value) {
  bool known = false;
  std::optional<double> found;
  VisitStats(end, [&](std::string_view name, const std::optional<double>& number) {
    if (name == key) known = true, found = number;
  });
  if (!known)
    return FailField(ErrorCode::kNotFound, Shown(key),
                     "a result has no such key; foretoken_result_key lists those it has");
  if (!found)
    return FailField(ErrorCode::kNotFound, std::string(key),
                     "nothing was drafted, so there is no such rate; read it where drafted > 0");
  value = *found;
  return {};
}

}  // namespace
}  // namespace foretoken::capi

extern "C" {

const foretoken_result_view* foretoken_result_get(const foretoken_result* result) {
  return result == nullptr ? nullptr : &result->view;
}

foretoken_status foretoken_result_stat(const foretoken_result* result, const char* key,
                                       double* value, foretoken_error** error) {
  namespace capi = foretoken::capi;
  return capi::Guarded(error, [&]() -> foretoken::Status {
    FORETOKEN_CHECK_OK(capi::Needs(result, "result"));
    FORETOKEN_CHECK_OK(capi::Needs(key, "key"));
    FORETOKEN_CHECK_OK(capi::Needs(value, "value"));
    *value = 0;
    return capi::FindStat(result->end, key, *value);
  });
}

const char* foretoken_result_key(size_t index) {
  const char* found = nullptr;
  foretoken::capi::Guarded(nullptr, [&]() -> foretoken::Status {
    foretoken::capi::VisitStats({}, [&](const char* key, const auto&) {
      if (index-- == 0) found = key;
    });
    return {};
  });
  return found;
}

void foretoken_result_free(foretoken_result* result) {
  delete result;
}

}  // extern "C"
