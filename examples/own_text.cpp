// SPDX-License-Identifier: Apache-2.0
// own_text TARGET DRAFT: foretoken's drafters on your own text, without an engine, and then the
// same draft model as an engine's drafter.
#include <iomanip>
#include <iostream>

#include "foretoken/built_in_drafters.h"
#include "foretoken/draft_session.h"
#include "foretoken/engine.h"

namespace {

int Fail(const std::string& message) {
  std::cerr << "own_text: " << message << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::cerr << "usage: own_text TARGET DRAFT\n", 2;
  auto drafter = foretoken::OpenDrafter(argv[2]);
  if (!drafter) return Fail(drafter.error().message);
  auto session = foretoken::DraftSession::Create(*drafter);
  if (!session) return Fail(session.error().message);

  // Drafts for a text, with the probability of each.
  const auto text = (*drafter)->Tokenize("Once upon a time there was a little", true);
  if (const auto begun = (*session)->Begin({.prompt = text, .seed = 7}); !begun)
    return Fail(begun.error().message);
  for (int round = 0; round < 4; ++round) {
    const auto drafts = (*session)->Propose(4);
    if (!drafts) return Fail(drafts.error().message);
    for (std::size_t i = 0; i < drafts->tokens.size(); ++i)
      std::cout << std::quoted((*drafter)->Detokenize({&drafts->tokens[i], 1})) << ' '
                << std::setprecision(2) << drafts->probabilities[i] << "  ";
    std::cout << '\n';
    // Here all drafts are taken as the text; a verifier would decide.
    if (const auto seen = (*session)->Observe(drafts->tokens); !seen)
      return Fail(seen.error().message);
  }
  std::cout << (*drafter)->Detokenize((*session)->text()) << '\n';
  (*session)->End();

  // The same object in an engine. "fixed" drafts in each round, whatever it costs, and under
  // sample-match a seed gives one text, with drafts and without.
  foretoken::EngineOptions options;
  options.model = argv[1];
  options.drafter = *drafter;
  options.speculative.strategy = foretoken::VerifyStrategy::kSampleMatch;
  options.speculative.controller = "fixed";
  auto engine = foretoken::Engine::Open(options);
  if (!engine) return Fail(engine.error().message);
  foretoken::Request request;
  request.prompt = "Once upon a time there was a little";
  request.seed = 7;
  const auto drafted = (*engine)->Generate(request);
  request.speculative.method = "none";
  const auto plain = (*engine)->Generate(request);
  if (!drafted || !plain) return Fail("a request was refused");
  std::cout << drafted->text << "\n[" << drafted->speculation.accepted << " of "
            << drafted->speculation.drafted << " drafts accepted]\n";
  if (drafted->token_ids != plain->token_ids) return Fail("the text is not the target's");
}
