// SPDX-License-Identifier: Apache-2.0
// own_loop TARGET DRAFT: a speculative loop from two scorers and verification, nothing else.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <vector>

#include "foretoken/engine.h"
#include "foretoken/scorer.h"
#include "foretoken/verification.h"

namespace {

using Tokens = std::vector<std::int32_t>;

// Reads the text that the scorer has not read yet; the last row predicts what follows.
foretoken::Result<foretoken::TokenRows> Read(foretoken::Scorer& scorer, const Tokens& text) {
  return scorer.Score(std::span(text).subspan(static_cast<std::size_t>(scorer.length())));
}

// Four drafts, each the draft model's best token; then removes them from its cache.
foretoken::Result<Tokens> Draft(foretoken::Scorer& drafter, Tokens text) {
  Tokens drafts;
  for (int i = 0; i < 4; ++i) {
    FORETOKEN_TRY(const auto rows, Read(drafter, text));
    const auto row = rows.Row(rows.rows - 1);
    drafts.push_back(
        static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
    text.push_back(drafts.back());
  }
  return drafts;
}

foretoken::Result<Tokens> Generate(foretoken::Scorer& target, foretoken::Scorer& drafter,
                                   const foretoken::Request& request, int& rounds) {
  foretoken::VerificationOptions options;
  options.vocabulary_size = target.engine().summary().target.vocabulary_size;
  options.speculative.strategy = foretoken::VerifyStrategy::kSampleMatch;
  options.sampling = request.sampling;
  options.seed = request.seed;
  FORETOKEN_TRY(auto verification, foretoken::DraftVerification::Create(options));
  Tokens text = target.engine().Tokenize(request.prompt, true, false);
  const std::size_t prompt = text.size(),
                    wanted = prompt + static_cast<std::size_t>(request.max_new_tokens);
  for (rounds = 0; text.size() < wanted; ++rounds) {
    FORETOKEN_TRY(const Tokens drafts, Draft(drafter, text));
    Tokens with_drafts = text;
    with_drafts.insert(with_drafts.end(), drafts.begin(), drafts.end());
    FORETOKEN_TRY(const auto rows, Read(target, with_drafts));
    const int first = rows.rows - 1 - static_cast<int>(drafts.size());  // behind the text
    FORETOKEN_TRY(const auto verified,
                  verification.Verify({.text = text,
                                       .n_generated = static_cast<int>(text.size() - prompt),
                                       .drafts = drafts,
                                       .target_logits = {rows.Row(first).data(), rows.rows - first,
                                                         rows.vocabulary_size, rows.stride}}));
    const auto kept = static_cast<int>(text.size()) + verified.accepted;
    text.insert(text.end(), drafts.begin(), drafts.begin() + verified.accepted);
    text.push_back(verified.next);
    // Rejected drafts leave the caches; the newest token is read with the next ones.
    FORETOKEN_CHECK_OK(target.Truncate(0, kept));
    FORETOKEN_CHECK_OK(drafter.Truncate(0, std::min(drafter.length(), kept)));
  }
  text.resize(wanted);
  text.erase(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(prompt));
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: own_loop TARGET DRAFT\n", 2;
  auto target = foretoken::Scorer::Create({.model = argv[1]}),
       drafter = foretoken::Scorer::Create({.model = argv[2]});
  auto engine = foretoken::Engine::Open({.model = argv[1]});
  for (const auto* scorer : {&target, &drafter})
    if (!*scorer) return std::cerr << scorer->error().message << '\n', 1;
  if (!engine) return std::cerr << engine.error().message << '\n', 1;
  for (const float temperature : {0.0f, 0.8f}) {
    foretoken::Request request;
    request.prompt = "Once upon a time";
    request.max_new_tokens = 60;
    request.ignore_eos = true;
    request.sampling.temperature = temperature;
    request.seed = 5;
    request.speculative.method = "none";
    int rounds = 0;
    const auto text = Generate(**target, **drafter, request, rounds);
    if (!text) return std::cerr << text.error().message << '\n', 1;
    std::cout << (*engine)->Detokenize(*text) << "\n[" << text->size() << " tokens in " << rounds
              << " rounds]\n";
    // The engine's plain text, token by token.
    const auto plain = (*engine)->Generate(request);
    if (!plain || plain->token_ids != *text || rounds >= 60)
      return std::cerr << "own_loop: that is not the target's text\n", 1;
    for (auto* scorer : {&target, &drafter})
      if (!(**scorer)->Truncate(0, 0)) return 1;
  }
}
