// SPDX-License-Identifier: Apache-2.0
// settings/generate_flags.h: the flags of `generate`, as EngineOptions and Request.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/chat.h"
#include "foretoken/options.h"
#include "foretoken/request.h"
#include "settings/flag_set.h"
#include "settings/speculative_sources.h"

namespace foretoken::settings {

struct GenerateSettings {
  EngineOptions engine;
  Request request;
  std::optional<std::string> prompt;       // -p; "-" is standard input
  std::optional<std::string> prompt_file;  // -f; "-" is standard input
  // Neither of them: standard input holds the prompt, if there is one.
  bool prompt_is_piped = false;
  bool chat = false;        // --chat: the prompt is a user's message, written by chat_format
  ChatOptions chat_format;  // --chat-template
  std::string system;       // --system: a message before it; "" is none
  std::optional<float> draft_temperature;
  std::optional<int> draft_top_k;
  std::optional<float> draft_top_p, draft_min_p;
  std::optional<std::string> prediction_file;  // for Request.prediction
  std::vector<std::string> dry_breakers;  // --dry-sequence-breaker: one token each, of the model's
  std::vector<std::string> stop_tokens;   // --stop-token: ids with commas, or a token's text
  std::string grammar_file;               // --grammar-file
  std::string json_schema, json_schema_file;  // --json-schema, --json-schema-file
  // Settings of speculation that a file, a variable or a flag gave.
  std::vector<GivenSetting> given;
  bool draft_model_given = false;  // -md
  bool prompt_ids = false;         // --prompt-tokens
  bool seed_given = false;
  bool trace = false;
  bool compare = false;
  bool json = false;
  bool stats = false;
  bool quiet = false;
  bool raw = false;  // a terminal gets texts as they are
};

// The flags write into `settings`, which must live as long as the FlagSet.
FlagSet GenerateFlags(GenerateSettings& settings);

// After Parse: checks that concern several flags. Fills in the seed, the drafter's temperature and,
// if no model is named, the bundled ones. Errors: no prompt or two, a strategy that does not fit
// the temperature, a method without its file, bundled models that are not found.
[[nodiscard]] Status Finish(GenerateSettings& settings);

// The groups that other verbs use too.
FlagGroup ModelFlags(EngineOptions& options);
// Its first flags name the settings file. Parse reads it, then the environment, then the other
// flags.
FlagGroup SpeculationFlags(GenerateSettings& settings);
FlagGroup DraftingFlags(GenerateSettings& settings);
FlagGroup SamplingFlags(GenerateSettings& settings);
// --chat-template and --chat-template-file.
std::vector<Flag> TemplateFlags(ChatOptions& format);
FlagGroup ChatFormatFlags(GenerateSettings& settings);
// The flag of an option of the engine, by its key (option_keys.h). REQUIRES: it has one.
Flag EngineFlag(std::string_view key, EngineOptions& options);
Flag RawFlag(bool& raw);
Flag StopTokenFlag(GenerateSettings& settings);

}  // namespace foretoken::settings
