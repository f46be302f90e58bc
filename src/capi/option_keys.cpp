// SPDX-License-Identifier: Apache-2.0
// The rows of options, by the names of the members that they set. Options of engines and settings of
// speculation have their own tables (option_keys.h, speculative_config.h), which are used as they are.
#include <algorithm>
#include <array>
#include <span>
#include <tuple>

#include "capi/option_values.h"
#include "capi/options.h"
#include "foretoken/option_keys.h"
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

// A member of the options, or of a part of them.
template <typename Part, typename T>
T& Field(Options& o, T Part::*member) {
  SamplingParameters& sampling = o.request.sampling;
  return std::get<Part&>(std::tie(o, o.engine, o.request, sampling, sampling.dry,
                                  o.request.speculative, o.chat, o.engine.speculative)).*
         member;
}

// The row of one member.
template <auto Member>
constexpr OptionKey Sets(std::string_view name) {
  return {name, [](Options& options, std::string_view text) -> Status {
            return ReadValue(text, Field(options, Member));
          }};
}

template <auto Member>
constexpr OptionKey SetsTokens(std::string_view name) {
  OptionKey key = Sets<Member>(name);
  key.set_tokens = [](Options& options, std::span<const std::int32_t> tokens) -> Status {
    Field(options, Member) = std::vector<std::int32_t>(tokens.begin(), tokens.end());
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

// Beside the options of an engine, which have their own table (option_keys.h).
constexpr std::array kEngineRows = {
    Sets<&Options::max_waiting>("max_waiting"),
};

constexpr std::array kRequestRows = {
    Sets<&Request::prompt>("prompt"),
    SetsTokens<&Request::prompt_tokens>("prompt_tokens"),
    Sets<&Request::add_special>("add_special"),
    Sets<&Request::parse_special>("parse_special"),
    Sets<&Request::ignore_eos>("ignore_eos"),
    Sets<&Request::stop>("stop"),
    SetsTokens<&Request::stop_token_ids>("stop_token_ids"),
    Sets<&Request::control_texts>("control_texts"),
    Sets<&Request::prediction>("prediction"),
    Sets<&Request::logprobs>("logprobs"),
    Sets<&Request::embedding>("embedding"),
    Sets<&Request::reuse_prefix>("reuse_prefix"),
    Sets<&Request::cache_salt>("cache_salt"),
    SetsTokens<&Request::drafts>("drafts"),
    SetsTokens<&Request::generated>("generated"),
    Sets<&Options::deadline_ms>("deadline_ms"),
    Sets<&SamplingParameters::grammar>("grammar"),
    SetsGrammar<JsonSchemaGrammar>("json_schema"),
    SetsGrammar<RegexGrammar>("regex"),
    Sets<&SpeculativeParameters::enabled>("speculative"),
};

// For requests, sessions and verifications.
constexpr std::array kNoiseRows = {
    Sets<&Request::seed>("seed"),
    Sets<&Request::id>("request_id"),
};

constexpr std::array kLimitRows = {
    Sets<&Request::max_new_tokens>("max_new_tokens"),
    Sets<&Request::min_new_tokens>("min_new_tokens"),
};

// Behind the numbers of sampling, which have their own table (option_keys.h).
constexpr std::array kSamplingLists = {
    SetsTokens<&DryPenalty::breakers>("dry_breakers"),
    Sets<&SamplingParameters::logit_bias>("logit_bias"),
};

// A request's own settings of speculation, by the names of the engine's: their rows read them.
struct Override {
  std::string_view name;
  void (*copy)(SpeculativeParameters& request, const SpeculativeOptions& read);
};
template <auto Own, auto Read>
constexpr Override Overrides(std::string_view name) {
  return {name, [](auto& request, auto& read) { request.*Own = read.*Read; }};
}

using P = SpeculativeParameters;
using O = SpeculativeOptions;
constexpr std::array kOverrides = {
    Overrides<&P::method, &O::method>("speculative_method"),
    Overrides<&P::strategy, &O::strategy>("rejection_sampling_strategy"),
    Overrides<&P::num_speculative_tokens, &O::num_speculative_tokens>("num_speculative_tokens"),
    Overrides<&P::min_speculative_tokens, &O::min_speculative_tokens>("min_speculative_tokens"),
    Overrides<&P::first_target, &O::first_target>("first_target"),
    Overrides<&P::draft_p_min, &O::draft_p_min>("draft_p_min"),
};

constexpr std::array kChatRows = {
    Sets<&ChatOptions::chat_template>("chat_template"),
    Sets<&ChatOptions::template_text>("template_text"),
    Sets<&ChatOptions::add_generation_prompt>("add_generation_prompt"),
    Sets<&ChatOptions::date>("date"),
    Sets<&ChatOptions::tools_json>("tools_json"),
    Sets<&ChatOptions::template_kwargs_json>("template_kwargs_json"),
};

constexpr std::array kVocabularyRows = {
    Sets<&Options::vocabulary_size>("vocabulary_size"),
    Sets<&EngineOptions::isa>("isa"),
};

constexpr std::array kSessionRows = {
    Sets<&Options::drafter>("drafter"),
    Sets<&EngineOptions::model>("model"),
    Sets<&EngineOptions::context_size>("context_size"),
    Sets<&EngineOptions::threads>("threads"),
    Sets<&EngineOptions::repack_cache>("repack_cache"),
    Sets<&SpeculativeOptions::draft_window>("draft_window"),
    Sets<&Options::shares_noise>("shares_noise"),
    Sets<&Options::draft_p_min>("draft_p_min"),
    SetsTokens<&EngineOptions::end_tokens>("end_tokens"),
};

using Rows = std::span<const OptionKey>;

// The rows of a kind before the numbers of sampling, group by group.
std::vector<Rows> RowsOf(foretoken_kind kind) {
  switch (kind) {
    case FORETOKEN_ENGINE:
      return {kEngineRows};
    case FORETOKEN_REQUEST:
      return {kRequestRows, kLimitRows, kNoiseRows};
    case FORETOKEN_CHAT:
      return {kChatRows};
    case FORETOKEN_VERIFICATION:
      return {kVocabularyRows, kNoiseRows};
    case FORETOKEN_SESSION:
      return {kSessionRows, kVocabularyRows, kLimitRows, kNoiseRows};
    default:
      return {};
  }
}

bool HasSettings(foretoken_kind kind) {
  return kind == FORETOKEN_ENGINE || kind == FORETOKEN_VERIFICATION;
}

bool Samples(foretoken_kind kind) {
  return kind == FORETOKEN_REQUEST || kind == FORETOKEN_VERIFICATION || kind == FORETOKEN_SESSION;
}

const OptionKey* FindRow(foretoken_kind kind, const std::string& name) {
  std::vector<Rows> groups = RowsOf(kind);
  if (Samples(kind)) groups.push_back(kSamplingLists);
  for (const Rows rows : groups)
    for (const OptionKey& row : rows)
      if (row.name == name) return &row;
  return nullptr;
}

const SamplingKey* FindNumber(foretoken_kind kind, const std::string& name) {
  return Samples(kind) ? FindSamplingKey(name) : nullptr;
}

const EngineKey* FindEngineOption(foretoken_kind kind, const std::string& name) {
  const EngineKey* const key = kind == FORETOKEN_ENGINE ? FindEngineKey(name) : nullptr;
  return key != nullptr && key->in_c ? key : nullptr;
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
  const auto of_name = [&](Status status) -> Status {
    if (!status) return Fail(std::move(status.error()).Of(name));
    return {};
  };
  if (const EngineKey* const option = FindEngineOption(options.kind, name))
    return of_name(
        option->Visit(options.engine, [&](auto& value) { return ReadValue(text, value); }));
  if (const OptionKey* const row = FindRow(options.kind, name))
    return of_name(row->set(options, text));
  if (const SamplingKey* const number = FindNumber(options.kind, name))
    return of_name(number->Visit(options.request.sampling,
                                 [&](auto& value) { return ReadValue(text, value); }));
  const SpeculativeKey* const setting = FindSpeculativeKey(name);
  if (setting == nullptr) return UnknownKey(key);
  if (HasSettings(options.kind))
    return SetSpeculativeOption(options.engine.speculative, name, std::string(text));
  return options.kind == FORETOKEN_REQUEST ? SetOverride(options, *setting, name, text)
                                           : UnknownKey(key);
}

Status SetTokens(Options& options, std::string_view key, std::span<const std::int32_t> tokens) {
  const std::string name = Canonical(key);
  const EngineKey* const option = FindEngineOption(options.kind, name);
  const OptionKey* const row = FindRow(options.kind, name);
  if (option == nullptr && row == nullptr && FindNumber(options.kind, name) == nullptr)
    return UnknownKey(key);
  if (option != nullptr) {
    const EngineKey::Value value = option->find(options.engine);
    if (const auto* const list = std::get_if<std::vector<std::int32_t>*>(&value)) {
      (*list)->assign(tokens.begin(), tokens.end());
      return {};
    }
  }
  if (row == nullptr || row->set_tokens == nullptr)
    return InvalidField(name, "it is no list of tokens; set it with foretoken_options_set");
  return row->set_tokens(options, tokens);
}

std::string_view KeyAt(foretoken_kind kind, std::size_t index) {
  if (kind == FORETOKEN_ENGINE)
    for (const EngineKey& key : EngineKeys())
      if (key.in_c && index-- == 0) return key.name;
  for (const Rows rows : RowsOf(kind)) {
    if (index < rows.size()) return rows[index].name;
    index -= rows.size();
  }
  if (Samples(kind)) {
    const std::span<const SamplingKey> numbers = SamplingKeys();
    if (index < numbers.size()) return numbers[index].name;
    index -= numbers.size();
    if (index < kSamplingLists.size()) return kSamplingLists[index].name;
    index -= kSamplingLists.size();
  }
  if (HasSettings(kind) && index < SpeculativeKeys().size()) return SpeculativeKeys()[index].name;
  if (kind == FORETOKEN_REQUEST && index < kOverrides.size()) return kOverrides[index].name;
  return {};
}

}  // namespace foretoken::capi
