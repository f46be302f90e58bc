// SPDX-License-Identifier: Apache-2.0
#include "cli/sampling_texts.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/input.h"

namespace foretoken::cli {
namespace {

Result<std::string> GrammarOf(const settings::GenerateSettings& settings) {
  const std::string& given = settings.request.sampling.grammar;
  if (settings.grammar_file.empty()) return given;
  if (!given.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "--grammar: --grammar-file gives one too; drop one of them");
  return ReadText(settings.grammar_file);
}

Result<std::int32_t> TokenOf(const Engine& engine, const std::string& text) {
  // Behind a letter, so that no space is put before it; the letter may not become a part of it.
  const auto letter = engine.Tokenize("a", false, false);
  auto tokens = engine.Tokenize("a" + text, false, false);
  const bool apart =
      tokens.size() > letter.size() && std::equal(letter.begin(), letter.end(), tokens.begin());
  if (apart)
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(letter.size()));
  if (!apart || tokens.size() != 1) tokens = engine.Tokenize(text, false, false);
  if (tokens.size() == 1) return tokens.front();
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("--dry-sequence-breaker: '{}' is {} tokens of this model; give a text "
                          "that is one",
                          text, tokens.size()));
}

}  // namespace

Status ReadSamplingTexts(const Engine& engine, settings::GenerateSettings& settings) {
  SamplingParameters& sampling = settings.request.sampling;
  FORETOKEN_TRY(sampling.grammar, GrammarOf(settings));
  for (const std::string& text : settings.dry_breakers) {
    FORETOKEN_TRY(const std::int32_t token, TokenOf(engine, text));
    sampling.dry.breakers.push_back(token);
  }
  if (auto& draft = settings.request.speculative.draft_sampling) {
    draft->grammar = sampling.grammar;
    draft->dry.breakers = sampling.dry.breakers;
  }
  return {};
}

}  // namespace foretoken::cli
