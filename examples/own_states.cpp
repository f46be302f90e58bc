// SPDX-License-Identifier: Apache-2.0
// own_states TARGET DRAFT: a head drafts behind hidden states that the program gives it (here a
// scorer computes them), until the text ends. The head is found beside TARGET; DRAFT is not used.
#include <algorithm>
#include <iostream>

#include "foretoken/scorer.h"
#include "foretoken/speculative_decoder.h"

namespace {

int Fail(const std::string& message) {
  std::cerr << "own_states: " << message << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: own_states TARGET DRAFT\n", 2;
  auto decoder = foretoken::SpeculativeDecoder::Create(
      {.model = argv[1],
       .speculative = {.method = "mtp", .num_speculative_tokens = 3, .controller = "fixed"}});
  if (!decoder) return Fail(decoder.error().message);
  const foretoken::EngineSummary& summary = (*decoder)->engine().summary();
  auto target = foretoken::Scorer::Create({.model = argv[1]}, summary.hidden_states);
  if (!target) return Fail(target.error().message);

  auto text = (*decoder)->engine().Tokenize("Once upon a time", true, false);
  std::vector<float> states;  // of all tokens before the last
  const auto& ends = summary.target.end_tokens;
  foretoken::GivenSampling given;
  given.sampling.temperature = 0;
  if (const auto read = (*target)->Score(std::span(text).first(text.size() - 1)); !read)
    return Fail(read.error().message);
  states.assign((*target)->hidden_states().begin(), (*target)->hidden_states().end());
  const auto width = static_cast<std::size_t>(summary.hidden_states.width);
  while (text.size() < 100 && std::find(ends.begin(), ends.end(), text.back()) == ends.end()) {
    given.hidden_states = states;
    const auto drafts = (*decoder)->Draft(text, given);
    if (!drafts) return Fail(drafts.error().message);
    std::vector<std::int32_t> query = {text.back()};
    query.insert(query.end(), drafts->tokens.begin(), drafts->tokens.end());
    const auto logits = (*target)->Score(query);
    if (!logits) return Fail(logits.error().message);
    const auto verified = (*decoder)->Verify(drafts->tokens, *logits);
    if (!verified) return Fail(verified.error().message);
    // What was kept, and its hidden states; the last token has none yet.
    const auto kept = static_cast<std::size_t>(verified->accepted) + 1;
    const auto rows = (*target)->hidden_states().first(kept * width);
    states.insert(states.end(), rows.begin(), rows.end());
    if (!(*target)->Truncate(0, static_cast<int>(text.size() - 1 + kept))) return 1;
    text.insert(text.end(), query.begin() + 1, query.begin() + static_cast<std::ptrdiff_t>(kept));
    text.push_back(verified->next);
  }
  std::cout << (*decoder)->engine().Detokenize(text) << "\n[acceptance "
            << (*decoder)->acceptance_rate() << ", " << (*decoder)->statistics().total_steps
            << " passes]\n";
  if ((*decoder)->acceptance_rate() < 0.2) return Fail("the head does not draft the target's text");
}
