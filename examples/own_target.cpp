// SPDX-License-Identifier: Apache-2.0
// own_target TARGET DRAFT: the target is the program's own (here a scorer stands for it). The decoder
// drafts behind a text and verifies the drafts on the logits that the target gives for them.
#include <iostream>

#include "foretoken/scorer.h"
#include "foretoken/speculative_decoder.h"

namespace {

using Tokens = std::vector<std::int32_t>;

// The target's logits behind the text and behind each draft.
foretoken::Result<foretoken::TokenRows> Run(foretoken::Scorer& target, Tokens text,
                                            std::span<const std::int32_t> drafts) {
  text.insert(text.end(), drafts.begin(), drafts.end());
  FORETOKEN_TRY(const auto rows,
                target.Score(std::span(text).subspan(static_cast<std::size_t>(target.length()))));
  return rows.Last(1 + static_cast<int>(drafts.size()));
}

foretoken::Result<Tokens> Generate(foretoken::SpeculativeDecoder& decoder,
                                   foretoken::Scorer& target, const foretoken::Request& request) {
  Tokens text = target.engine().Tokenize(request.prompt, true, false);
  const std::size_t prompt = text.size(),
                    wanted = prompt + static_cast<std::size_t>(request.max_new_tokens);
  foretoken::GivenSampling given{.sampling = request.sampling, .seed = request.seed};
  while (text.size() < wanted) {
    given.n_generated = static_cast<int>(text.size() - prompt);  // for the penalties
    FORETOKEN_TRY(const auto drafted, decoder.Draft(text, given));
    const Tokens drafts(drafted.tokens.begin(), drafted.tokens.end());
    FORETOKEN_TRY(const auto logits, Run(target, text, drafts));
    FORETOKEN_TRY(const auto verified, decoder.Verify(drafts, logits));
    text.insert(text.end(), drafts.begin(), drafts.begin() + verified.accepted);
    FORETOKEN_CHECK_OK(target.Truncate(0, static_cast<int>(text.size())));
    text.push_back(verified.next);
  }
  text.resize(wanted);
  return Tokens(text.begin() + static_cast<std::ptrdiff_t>(prompt), text.end());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: own_target TARGET DRAFT\n", 2;
  auto target = foretoken::Scorer::Create({.model = argv[1]});
  auto decoder = foretoken::SpeculativeDecoder::Create(
      {.model = argv[1],
       .draft_model = argv[2],
       .speculative = {.strategy = foretoken::VerifyStrategy::kSampleMatch, .controller = "ewma"}});
  if (!target) return std::cerr << target.error().message << '\n', 1;
  if (!decoder) return std::cerr << decoder.error().message << '\n', 1;
  foretoken::Request request;
  request.prompt = "Once upon a time";
  request.max_new_tokens = 80;
  request.ignore_eos = true;
  request.seed = 5;
  request.sampling.temperature = 0.8f;
  request.sampling.frequency_penalty = 0.2f;
  const auto text = Generate(**decoder, **target, request);
  if (!text) return std::cerr << text.error().message << '\n', 1;
  const auto statistics = (*decoder)->statistics();
  std::cout << (*decoder)->engine().Detokenize(*text) << "\n[" << statistics.total_steps
            << " passes, acceptance " << (*decoder)->acceptance_rate() << ", estimate "
            << (*decoder)->speedup_estimate() << "]\n";
  // The same text as within a request, in fewer passes than tokens.
  const auto whole = (*decoder)->Generate(request);
  if (!whole || whole->token_ids != *text)
    return std::cerr << "own_target: that is not the target's text\n", 1;
  if (statistics.total_steps > 60 || (*decoder)->acceptance_rate() < 0.2)
    return std::cerr << "own_target: the drafts lost their distributions\n", 1;
}
