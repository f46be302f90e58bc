// SPDX-License-Identifier: Apache-2.0
// The rows of options, by the names of the members that they set. Settings of speculation have their own
// table (speculative_config.h), which is used as it is.
#include <algorithm>
#include <array>
#include <span>

#include "capi/option_values.h"
#include "capi/options.h"
#include "foretoken/speculative_config.h"
#include "foretoken/structured_output.h"

namespace foretoken::capi {
namespace {

using Options = foretoken_options;

// One row of the table.
struct OptionKey {
  std::string_view name;  // of a literal, so it ends with a NUL
  // Reads a value; the error says why it cannot be one.
  Status (*set)(Options& options, std::string_view text);
  // Null: not a list of tokens.
  Status (*set_tokens)(Options& options, std::span<const std::int32_t> tokens) = nullptr;
};

// The row of one member, which `Member` finds in the options.
template <auto Member>
constexpr OptionKey Sets(std::string_view name) {
  return {name, [](Options& options, std::string_view text) -> Status {
            return ReadValue(text, Member(options));
          }};
}

template <auto Member>
constexpr OptionKey SetsTokens(std::string_view name) {
  OptionKey key = Sets<Member>(name);
  key.set_tokens = [](Options& options, std::span<const std::int32_t> tokens) -> Status {
    Member(options) = std::vector<std::int32_t>(tokens.begin(), tokens.end());
    return {};
  };
  return key;
}

// A grammar that is made of the text.
template <auto Make>
constexpr OptionKey SetsGrammar(std::string_view name) {
  return {name, [](Options& options, std::string_view text) -> Status {
            FORETOKEN_TRY(options.request.sampling.grammar, Make(text));
            return {};
          }};
}

constexpr std::array kEngineRows = {Sets < [](Options & o) -> auto& {return o.engine.model;
}  // namespace
> ("model"), Sets < [](Options& o) -> auto& {
  return o.engine.draft_model;
}
> ("draft_model"), Sets < [](Options& o) -> auto& {
  return o.engine.find_drafters;
}
> ("find_drafters"), Sets < [](Options& o) -> auto& {
  return o.engine.context_size;
}
> ("context_size"), Sets < [](Options& o) -> auto& {
  return o.engine.max_sequences;
}
> ("max_sequences"), Sets < [](Options& o) -> auto& {
  return o.engine.cache_tokens;
}
> ("cache_tokens"), Sets < [](Options& o) -> auto& {
  return o.engine.prefix_cache;
}
> ("prefix_cache"), Sets < [](Options& o) -> auto& {
  return o.engine.state_checkpoint_tokens;
}
> ("state_checkpoint_tokens"), Sets < [](Options& o) -> auto& {
  return o.engine.cache_file;
}
> ("cache_file"), Sets < [](Options& o) -> auto& {
  return o.engine.cache_file_mb;
}
> ("cache_file_mb"), Sets < [](Options& o) -> auto& {
  return o.engine.threads;
}
> ("threads"), Sets < [](Options& o) -> auto& {
  return o.engine.pin_threads;
}
> ("pin_threads"), Sets < [](Options& o) -> auto& {
  return o.engine.cache_type_k;
}
> ("cache_type_k"), Sets < [](Options& o) -> auto& {
  return o.engine.cache_type_v;
}
> ("cache_type_v"), Sets < [](Options& o) -> auto& {
  return o.engine.kv_cache;
}
> ("kv_cache"), SetsTokens < [](Options& o) -> auto& {
  return o.engine.end_tokens;
}
> ("end_tokens"), Sets < [](Options& o) -> auto& {
  return o.engine.prefill_rows;
}
> ("prefill_rows"), Sets < [](Options& o) -> auto& {
  return o.engine.isa;
}
> ("isa"), Sets < [](Options& o) -> auto& {
  return o.engine.repack_cache;
}
> ("repack_cache"), Sets < [](Options& o) -> auto& {
  return o.engine.repack_cache_gb;
}
> ("repack_cache_gb"), Sets < [](Options& o) -> auto& {
  return o.engine.record;
}
> ("record"), Sets < [](Options& o) -> auto& {
  return o.max_waiting;
}
> ("max_waiting"),
};  // namespace foretoken::capi

constexpr std::array kRequestRows = {Sets < [](Options & o) -> auto& {return o.request.prompt;
}
> ("prompt"), SetsTokens < [](Options& o) -> auto& {
  return o.request.prompt_tokens;
}
> ("prompt_tokens"), Sets < [](Options& o) -> auto& {
  return o.request.add_special;
}
> ("add_special"), Sets < [](Options& o) -> auto& {
  return o.request.parse_special;
}
> ("parse_special"), Sets < [](Options& o) -> auto& {
  return o.request.ignore_eos;
}
> ("ignore_eos"), Sets < [](Options& o) -> auto& {
  return o.request.stop;
}
> ("stop"), SetsTokens < [](Options& o) -> auto& {
  return o.request.stop_token_ids;
}
> ("stop_token_ids"), Sets < [](Options& o) -> auto& {
  return o.request.control_texts;
}
> ("control_texts"), Sets < [](Options& o) -> auto& {
  return o.request.prediction;
}
> ("prediction"), Sets < [](Options& o) -> auto& {
  return o.request.logprobs;
}
> ("logprobs"), Sets < [](Options& o) -> auto& {
  return o.request.embedding;
}
> ("embedding"), Sets < [](Options& o) -> auto& {
  return o.request.reuse_prefix;
}
> ("reuse_prefix"), Sets < [](Options& o) -> auto& {
  return o.request.cache_salt;
}
> ("cache_salt"), SetsTokens < [](Options& o) -> auto& {
  return o.request.drafts;
}
> ("drafts"), SetsTokens < [](Options& o) -> auto& {
  return o.request.generated;
}
> ("generated"), Sets < [](Options& o) -> auto& {
  return o.deadline_ms;
}
> ("deadline_ms"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.grammar;
}
> ("grammar"), SetsGrammar<JsonSchemaGrammar>("json_schema"),
    SetsGrammar<RegexGrammar>("regex"), Sets < [](Options& o) -> auto& {
  return o.request.speculative.enabled;
}
> ("speculative"),
}
;

// For requests, sessions and verifications.
constexpr std::array kNoiseRows = {Sets < [](Options & o) -> auto& {return o.request.seed;
}
> ("seed"), Sets < [](Options& o) -> auto& {
  return o.request.id;
}
> ("request_id"),
}
;

constexpr std::array kLimitRows = {Sets < [](Options & o) -> auto& {return o.request.max_new_tokens;
}
> ("max_new_tokens"), Sets < [](Options& o) -> auto& {
  return o.request.min_new_tokens;
}
> ("min_new_tokens"),
}
;

constexpr std::array kSamplingRows = {
    Sets < [](Options & o) -> auto& {return o.request.sampling.temperature;
}
> ("temperature"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.top_k;
}
> ("top_k"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.top_p;
}
> ("top_p"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.min_p;
}
> ("min_p"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.typical_p;
}
> ("typical_p"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.eta;
}
> ("eta"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.repetition_penalty;
}
> ("repetition_penalty"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.repetition_window;
}
> ("repetition_window"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.frequency_penalty;
}
> ("frequency_penalty"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.presence_penalty;
}
> ("presence_penalty"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.dry.multiplier;
}
> ("dry_multiplier"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.dry.base;
}
> ("dry_base"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.dry.allowed_length;
}
> ("dry_allowed_length"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.dry.window;
}
> ("dry_window"), SetsTokens < [](Options& o) -> auto& {
  return o.request.sampling.dry.breakers;
}
> ("dry_breakers"), Sets < [](Options& o) -> auto& {
  return o.request.sampling.logit_bias;
}
> ("logit_bias"),
}
;

// A request's own settings of speculation, by the names of the engine's: their rows read them.
struct Override {
  std::string_view name;
  void (*copy)(SpeculativeParameters& request, const SpeculativeOptions& read);
};

constexpr std::array kOverrides = {
    Override{"speculative_method", [](auto& request, auto& read) { request.method = read.method; }},
    Override{"rejection_sampling_strategy",
             [](auto& request, auto& read) { request.strategy = read.strategy; }},
    Override{"num_speculative_tokens",
             [](auto& request, auto& read) {
               request.num_speculative_tokens = read.num_speculative_tokens;
             }},
    Override{"min_speculative_tokens",
             [](auto& request, auto& read) {
               request.min_speculative_tokens = read.min_speculative_tokens;
             }},
    Override{"first_target",
             [](auto& request, auto& read) { request.first_target = read.first_target; }},
    Override{"draft_p_min",
             [](auto& request, auto& read) { request.draft_p_min = read.draft_p_min; }},
};

constexpr std::array kChatRows = {Sets < [](Options & o) -> auto& {return o.chat.chat_template;
}
> ("chat_template"), Sets < [](Options& o) -> auto& {
  return o.chat.template_text;
}
> ("template_text"), Sets < [](Options& o) -> auto& {
  return o.chat.add_generation_prompt;
}
> ("add_generation_prompt"), Sets < [](Options& o) -> auto& {
  return o.chat.date;
}
> ("date"), Sets < [](Options& o) -> auto& {
  return o.chat.tools_json;
}
> ("tools_json"), Sets < [](Options& o) -> auto& {
  return o.chat.template_kwargs_json;
}
> ("template_kwargs_json"),
}
;

constexpr std::array kVocabularyRows = {Sets < [](Options & o) -> auto& {return o.vocabulary_size;
}
> ("vocabulary_size"), Sets < [](Options& o) -> auto& {
  return o.engine.isa;
}
> ("isa"),
}
;

constexpr std::array kSessionRows = {Sets < [](Options & o) -> auto& {return o.drafter;
}
> ("drafter"), Sets < [](Options& o) -> auto& {
  return o.engine.model;
}
> ("model"), Sets < [](Options& o) -> auto& {
  return o.engine.context_size;
}
> ("context_size"), Sets < [](Options& o) -> auto& {
  return o.engine.threads;
}
> ("threads"), Sets < [](Options& o) -> auto& {
  return o.engine.repack_cache;
}
> ("repack_cache"), Sets < [](Options& o) -> auto& {
  return o.shares_noise;
}
> ("shares_noise"), Sets < [](Options& o) -> auto& {
  return o.draft_p_min;
}
> ("draft_p_min"), SetsTokens < [](Options& o) -> auto& {
  return o.engine.end_tokens;
}
> ("end_tokens"),
}
;

using Rows = std::span<const OptionKey>;

// The rows of a kind, group by group.
std::vector<Rows> RowsOf(foretoken_kind kind) {
  switch (kind) {
    case FORETOKEN_ENGINE:
      return {kEngineRows};
    case FORETOKEN_REQUEST:
      return {kRequestRows, kLimitRows, kNoiseRows, kSamplingRows};
    case FORETOKEN_CHAT:
      return {kChatRows};
    case FORETOKEN_VERIFICATION:
      return {kVocabularyRows, kNoiseRows, kSamplingRows};
    case FORETOKEN_SESSION:
      return {kSessionRows, kVocabularyRows, kLimitRows, kNoiseRows, kSamplingRows};
    default:
      return {};
  }
}

bool HasSettings(foretoken_kind kind) {
  return kind == FORETOKEN_ENGINE || kind == FORETOKEN_VERIFICATION;
}

const OptionKey* FindRow(foretoken_kind kind, const std::string& name) {
  for (const Rows rows : RowsOf(kind))
    for (const OptionKey& row : rows)
      if (row.name == name) return &row;
  return nullptr;
}

std::string Canonical(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

Status UnknownKey(std::string_view key) {
  return FailField(ErrorCode::kNotFound, Shown(key),
                   "these options have no such key; foretoken_options_key lists those they have");
}

Status SetOverride(Options& options, const SpeculativeKey& setting, std::string_view key,
                   std::string_view text) {
  for (const Override& row : kOverrides) {
    if (row.name != setting.name) continue;
    SpeculativeOptions read;
    FORETOKEN_CHECK_OK(SetSpeculativeOption(read, key, std::string(text)));
    row.copy(options.request.speculative, read);
    return {};
  }
  return UnknownKey(key);
}

}  // namespace

Status SetOption(Options& options, std::string_view key, std::string_view text) {
  const std::string name = Canonical(key);
  if (const OptionKey* const row = FindRow(options.kind, name)) {
    if (Status status = row->set(options, text); !status)
      return Fail(std::move(status.error()).Of(name));
    return {};
  }
  const SpeculativeKey* const setting = FindSpeculativeKey(name);
  if (setting == nullptr) return UnknownKey(key);
  if (HasSettings(options.kind))
    return SetSpeculativeOption(options.engine.speculative, name, std::string(text));
  return options.kind == FORETOKEN_REQUEST ? SetOverride(options, *setting, name, text)
                                           : UnknownKey(key);
}

Status SetTokens(Options& options, std::string_view key, std::span<const std::int32_t> tokens) {
  const OptionKey* const row = FindRow(options.kind, Canonical(key));
  if (row == nullptr) return UnknownKey(key);
  if (row->set_tokens == nullptr)
    return InvalidField(std::string(row->name),
                        "it is no list of tokens; set it with foretoken_options_set");
  return row->set_tokens(options, tokens);
}

std::string_view KeyAt(foretoken_kind kind, std::size_t index) {
  for (const Rows rows : RowsOf(kind)) {
    if (index < rows.size()) return rows[index].name;
    index -= rows.size();
  }
  if (HasSettings(kind) && index < SpeculativeKeys().size()) return SpeculativeKeys()[index].name;
  if (kind == FORETOKEN_REQUEST && index < kOverrides.size()) return kOverrides[index].name;
  return {};
}

}  // namespace foretoken::capi
