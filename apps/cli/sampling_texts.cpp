// SPDX-License-Identifier: Apache-2.0
#include "cli/sampling_texts.h"

#include <fmt/format.h>

#include <utility>

#include "cli/input.h"
#include "foretoken/structured_output.h"
#include "settings/values.h"

namespace foretoken::cli {
namespace {

Result<std::string> GrammarOf(const settings::GenerateSettings& settings) {
  const std::string& grammar = settings.request.sampling.grammar;
  const std::pair<const char*, const std::string*> given[] = {
      {"--grammar", &grammar},
      {"--grammar-file", &settings.grammar_file},
      {"--json-schema", &settings.json_schema},
      {"--json-schema-file", &settings.json_schema_file}};
  const char* name = nullptr;
  for (const auto& [flag, text] : given) {
    if (text->empty()) continue;
    if (name != nullptr)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: {} gives one too; drop one of them", name, flag));
    name = flag;
  }
  if (!settings.grammar_file.empty()) return ReadText(settings.grammar_file);
  std::string schema = settings.json_schema;
  if (!settings.json_schema_file.empty()) {
    FORETOKEN_TRY(schema, ReadText(settings.json_schema_file));
  }
  if (schema.empty()) return grammar;
  auto converted = JsonSchemaGrammar(schema);
  if (!converted) return Fail(std::move(converted).error().In(name));
  return converted;
}

// "2,5" is two ids; anything else is the text of a token.
Status ReadStopTokens(const Engine& engine, settings::GenerateSettings& settings) {
  std::vector<std::int32_t>& ids = settings.request.stop_token_ids;
  for (const std::string& text : settings.stop_tokens) {
    if (const auto given = settings::ParseTokenIds(text)) {
      ids.insert(ids.end(), given->begin(), given->end());
      continue;
    }
    auto token = engine.TokenOf(text, true);
    if (!token) return Fail(std::move(token).error().In("--stop-token"));
    ids.push_back(*token);
  }
  return {};
}

Status ReadGrammar(settings::GenerateSettings& settings) {
  SamplingParameters& sampling = settings.request.sampling;
  FORETOKEN_TRY(sampling.grammar, GrammarOf(settings));
  if (auto& draft = settings.request.speculative.draft_sampling) draft->grammar = sampling.grammar;
  return {};
}

Status ReadPrediction(settings::GenerateSettings& settings) {
  if (!settings.prediction_file) return {};
  FORETOKEN_TRY(settings.request.prediction, ReadText(*settings.prediction_file));
  return {};
}

}  // namespace

Status ReadSamplingTexts(settings::GenerateSettings& settings) {
  FORETOKEN_CHECK_OK(ReadPrediction(settings));
  if (!settings.dry_breakers.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "--dry-sequence-breaker: it is not read here; leave it out");
  return ReadGrammar(settings);
}

Status ReadSamplingTexts(const Engine& engine, settings::GenerateSettings& settings) {
  FORETOKEN_CHECK_OK(ReadPrediction(settings));
  FORETOKEN_CHECK_OK(ReadGrammar(settings));
  FORETOKEN_CHECK_OK(ReadStopTokens(engine, settings));
  SamplingParameters& sampling = settings.request.sampling;
  for (const std::string& text : settings.dry_breakers) {
    auto token = engine.TokenOf(text);
    if (!token) return Fail(std::move(token).error().In("--dry-sequence-breaker"));
    sampling.dry.breakers.push_back(*token);
  }
  if (auto& draft = settings.request.speculative.draft_sampling)
    draft->dry.breakers = sampling.dry.breakers;
  return {};
}

}  // namespace foretoken::cli
