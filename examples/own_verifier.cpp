// SPDX-License-Identifier: Apache-2.0
// own_verifier TARGET DRAFT: two verifiers of your own, a lossless one and a lossy one.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>

#include "foretoken/engine.h"
#include "foretoken/verifier.h"

namespace {

// Draws the target's token as plain decoding would, and accepts a draft if it is that token.
class Match final : public foretoken::Verifier {
 public:
  std::string_view name() const override { return "match"; }
  bool lossless() const override { return true; }
  foretoken::Verdict Verify(foretoken::DraftsToVerify& draft) override {
    for (int i = 0;; ++i) {
      const std::int32_t own = draft.Sample(i);
      if (i == draft.length() || own != draft.tokens()[static_cast<std::size_t>(i)])
        return {i, own};
    }
  }
};

// Accepts a draft that the target finds at least a quarter as probable as its best token. This is
// faster, and the distribution is not the target's.
class Lenient final : public foretoken::Verifier {
 public:
  std::string_view name() const override { return "lenient"; }
  bool lossless() const override { return false; }
  foretoken::Verdict Verify(foretoken::DraftsToVerify& draft) override {
    for (int i = 0; i < draft.length(); ++i) {
      const auto p = draft.TargetDistribution(i);
      const auto token = static_cast<std::size_t>(draft.tokens()[static_cast<std::size_t>(i)]);
      if (p[token] < 0.25f * *std::max_element(p.begin(), p.end())) return {i, draft.Sample(i)};
    }
    return {draft.length(), draft.Sample(draft.length())};
  }
};

foretoken::Result<foretoken::Completion> Tell(char** paths,
                                              std::shared_ptr<foretoken::Verifier> verifier,
                                              int k) {
  foretoken::EngineOptions options;
  options.model = paths[0];
  options.draft_model = paths[1];
  options.speculative.controller = "fixed";
  options.verifier = std::move(verifier);
  FORETOKEN_TRY(const auto engine, foretoken::Engine::Open(options));
  foretoken::Request request;
  request.prompt = "Once upon a time";
  request.sampling.temperature = 0.8f;
  request.speculative.num_speculative_tokens = k;
  return engine->Generate(request);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: own_verifier TARGET DRAFT\n", 2;
  const auto plain = Tell(argv + 1, nullptr, 0),
             match = Tell(argv + 1, std::make_shared<Match>(), 4),
             lenient = Tell(argv + 1, std::make_shared<Lenient>(), 4);
  for (const auto* told : {&plain, &match, &lenient}) {
    if (!*told) return std::cerr << told->error().message << '\n', 1;
    std::cout << (*told)->text << "\n[" << (*told)->strategy << ": "
              << (*told)->speculation.accepted << " of " << (*told)->speculation.drafted
              << " drafts accepted]\n";
  }
  // The same noise draws the same text, with and without drafts.
  if (match->token_ids != plain->token_ids || match->strategy != "match")
    return std::cerr << "own_verifier: 'match' changed the text\n", 1;
  if (!(*lenient->speculation.acceptance_rate() > *match->speculation.acceptance_rate()))
    return std::cerr << "own_verifier: 'lenient' keeps no more than 'match'\n", 1;
}
