// SPDX-License-Identifier: Apache-2.0
#include "capi/result.h"

#include <array>
#include <optional>
#include <string_view>
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

using Value = std::optional<double>;

struct StatRow {
  std::string_view key;
  Value (*value)(const ChoiceEnd& end);
};

// The row of a number that `Member` finds.
template <auto Member>
constexpr StatRow Shows(std::string_view key) {
  return {key, [](const ChoiceEnd& end) -> Value { return static_cast<double>(Member(end)); }};
}

constexpr std::array kStatRows = {
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.rounds; }>("rounds"),
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.draft_rounds; }>("draft_rounds"),
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.drafted; }>("drafted"),
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.accepted; }>("accepted"),
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.recovered; }>("recovered"),
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.bonus; }>("bonus"),
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.plain; }>("plain"),
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.emitted; }>("emitted"),
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.draft_forwards; }>(
        "draft_forwards"),
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.target_forwards; }>(
        "target_forwards"),
    StatRow{"acceptance_rate",
            [](const ChoiceEnd& e) { return e.completion.speculation.acceptance_rate(); }},
    StatRow{"mean_acceptance_length",
            [](const ChoiceEnd& e) { return e.completion.speculation.mean_acceptance_length(); }},
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.draft_ms; }>("draft_ms"),
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.verify_ms; }>("verify_ms"),
    Shows<[](const ChoiceEnd& e) { return e.completion.speculation.overhead_ms; }>("overhead_ms"),
    Shows<[](const ChoiceEnd& e) { return e.completion.timings.prompt_ms; }>("prompt_ms"),
    Shows<[](const ChoiceEnd& e) { return e.completion.timings.decode_ms; }>("decode_ms"),
    Shows<[](const ChoiceEnd& e) { return e.completion.timings.prompt_tokens; }>("prompt_tokens"),
    Shows<[](const ChoiceEnd& e) { return e.completion.timings.cached_prompt_tokens; }>(
        "cached_prompt_tokens"),
    Shows<[](const ChoiceEnd& e) { return e.completion.timings.decoded_tokens; }>("decoded_tokens"),
    Shows<[](const ChoiceEnd& e) { return e.queue_ms; }>("queue_ms"),
    Shows<[](const ChoiceEnd& e) { return e.first_token_ms; }>("first_token_ms"),
    Shows<[](const ChoiceEnd& e) { return e.total_ms; }>("total_ms"),
};

Status FindStat(const ChoiceEnd& end, const char* key, double& value) {
  for (const StatRow& row : kStatRows) {
    if (row.key != key) continue;
    const Value found = row.value(end);
    if (!found)
      return FailField(ErrorCode::kNotFound, std::string(row.key),
                       "nothing was drafted, so there is no such rate; read it where drafted > 0");
    value = *found;
    return {};
  }
  return FailField(ErrorCode::kNotFound, Shown(key),
                   "a result has no such key; foretoken.h lists those it has");
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

void foretoken_result_free(foretoken_result* result) {
  delete result;
}

}  // extern "C"
