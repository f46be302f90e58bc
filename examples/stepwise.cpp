// SPDX-License-Identifier: Apache-2.0
// stepwise TARGET DRAFT: one request, round by round, with a look at the drafts.
#include <algorithm>
#include <iostream>

#include "foretoken/speculative_decoder.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: stepwise TARGET DRAFT\n", 2;
  foretoken::EngineOptions options;
  options.model = argv[1];
  options.draft_model = argv[2];
  options.speculative.controller = "ewma";
  auto opened = foretoken::SpeculativeDecoder::Create(options);
  if (!opened) return std::cerr << opened.error().message << '\n', 1;
  foretoken::SpeculativeDecoder& decoder = **opened;

  foretoken::Request request;
  request.prompt = "Once upon a time";
  request.max_new_tokens = 60;
  request.sampling.temperature = 0;
  const auto first = decoder.Begin(request);  // prefills
  if (!first) return std::cerr << first.error().message << '\n', 1;
  std::cout << first->text << '\n';
  while (!decoder.done()) {
    const auto drafts = decoder.Draft({.logits = true});
    if (!drafts) return std::cerr << drafts.error().message << '\n', 1;
    for (int i = 0; i < drafts->logits.rows; ++i) {  // at temperature 0 drafts are the best tokens
      const auto row = drafts->logits.Row(i);
      if (std::max_element(row.begin(), row.end()) - row.begin() !=
          drafts->tokens[static_cast<std::size_t>(i)])
        return std::cerr << "stepwise: the drafter's logits do not give its draft\n", 1;
    }
    std::cout << "drafts:" << decoder.engine().Detokenize(drafts->tokens);
    const auto round = decoder.Verify();
    if (!round) return std::cerr << round.error().message << '\n', 1;
    std::cout << "  kept " << round->accepted << " of " << round->drafted << ", so:" << round->text
              << '\n';
  }
  const foretoken::Completion stepped = decoder.completion();
  const auto statistics = decoder.statistics();
  std::cout << stepped.text << '\n' << statistics.total_steps << " rounds";
  if (statistics.acceptance_rate) std::cout << ", acceptance " << *statistics.acceptance_rate;
  if (statistics.speedup_estimate) std::cout << ", estimate " << *statistics.speedup_estimate;
  std::cout << ", next draft " << decoder.adaptive_lookahead()->lookahead() << " tokens\n";

  decoder.ResetStats();  // the controller starts again, too
  if (decoder.acceptance_rate() != 0 || decoder.adaptive_lookahead()->observations() != 0)
    return std::cerr << "stepwise: the statistics are still there\n", 1;
  const auto whole = decoder.Generate(request);
  if (!whole || whole->text != stepped.text || statistics.total_accepted_tokens == 0)
    return std::cerr << "stepwise: the rounds do not give the text\n", 1;
}
