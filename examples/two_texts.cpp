// SPDX-License-Identifier: Apache-2.0
// two_texts TARGET DRAFT: one drafter drafts for two texts, each with its own session, in shared
// passes. TARGET is not used.
#include <iostream>

#include "foretoken/built_in_drafters.h"
#include "foretoken/draft_session.h"

namespace {

using Text = std::vector<std::int32_t>;

int Fail(const std::string& message) {
  std::cerr << "two_texts: " << message << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: two_texts TARGET DRAFT\n", 2;
  auto drafter = foretoken::OpenDrafter(argv[2], {.max_sequences = 2});
  if (!drafter) return Fail(drafter.error().message);
  std::vector<std::unique_ptr<foretoken::DraftSession>> sessions;
  std::vector<foretoken::DraftSession*> both;
  for (const char* prompt :
       {"Once upon a time there was a girl named Lily", "One day a dog named Max"}) {
    auto session = foretoken::DraftSession::Create(*drafter);
    if (!session) return Fail(session.error().message);
    foretoken::SessionText request{.prompt = (*drafter)->Tokenize(prompt, true)};
    request.sampling.temperature = 0;
    request.end_tokens = (*drafter)->summary().end_tokens;
    if (const auto begun = (*session)->Begin(request); !begun) return Fail(begun.error().message);
    both.push_back(session->get());
    sessions.push_back(*std::move(session));
  }
  for (int round = 0; round < 6; ++round) {
    const auto drafts = foretoken::DraftSession::ProposeAll(both, 4, {.logits = true});
    if (!drafts) return Fail(drafts.error().message);
    for (std::size_t i = 0; i < both.size(); ++i) {
      const auto vocabulary = static_cast<std::size_t>((*drafter)->summary().vocabulary_size);
      if ((*drafts)[i].logits.size() != (*drafts)[i].tokens.size() * vocabulary)
        return Fail("there are no logits");
      if (const auto seen = both[i]->Observe((*drafts)[i].tokens); !seen)
        return Fail(seen.error().message);
    }
  }
  // A third text has no sequence.
  auto third = foretoken::DraftSession::Create(*drafter);
  const auto refused =
      (*third)->Begin({.prompt = Text(both[0]->text().begin(), both[0]->text().end())});
  if (refused) return Fail("a third text began with a drafter for two");
  std::cout << refused.error().message << '\n';
  // Each text is what it is alone.
  for (const foretoken::DraftSession* const session : both) {
    const Text text(session->text().begin(), session->text().end());
    std::cout << (*drafter)->Detokenize(text) << '\n';
  }
  const Text lily(both[0]->text().begin(), both[0]->text().end());
  for (auto* const session : both) session->End();
  foretoken::SessionText alone{.prompt = {lily.begin(), lily.end() - 4}};
  alone.sampling.temperature = 0;
  if (const auto begun = (*third)->Begin(alone); !begun) return Fail(begun.error().message);
  const auto again = (*third)->Propose(4);
  if (!again || again->tokens != Text(lily.end() - 4, lily.end()))
    return Fail("the texts were mixed");
}
