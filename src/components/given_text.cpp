// SPDX-License-Identifier: Apache-2.0
#include "components/given_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foretoken {

Result<round::Proposal> GivenText::DraftAfter(std::span<const Token> text,
                                              const SamplingParameters& sampling, Noise noise,
                                              const engine::DraftWants& wants) {
  const engine::Opened& opened = parts_.opened();
  loader::DrafterSet& drafters = parts_.drafters();
  Request request;
  request.prompt_tokens.assign(text.begin(), text.end());
  request.sampling = sampling;
  request.max_new_tokens = 0;
  FORETOKEN_CHECK_OK(parts_.preparation().Check(request, text));
  request.sampling = parts_.preparation().Drawable(std::move(request.sampling));
  FORETOKEN_TRY(const auto grammar, parts_.preparation().GrammarOf(sampling));
  const auto drafts_alone = [&](int d) {
    const loader::DrafterEntry& entry = drafters[d];
    const draft::DrafterSpec* const spec = entry.spec;
    return !entry.reads_features() &&
           (spec == nullptr || spec->joins_others || spec->Serves(request));
  };
  const auto found =
      std::find_if(drafters.defaults().begin(), drafters.defaults().end(), drafts_alone);
  if (found == drafters.defaults().end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("drafts: '{}' does not draft from a text alone; open the decoder with "
                            "standalone, ngram, suffix or a drafter of your own",
                            opened.summary.method));
  draft::Drafter& drafter = *drafters[*found].drafter;
  const bool shares = parts_.speculation().VerifierFor(request).SharesNoise();
  drafter.Begin({.seq = kSeq,
                 .prompt = text,
                 .max_new_tokens = opened.context - static_cast<int>(text.size()),
                 .sampling = request.sampling,
                 .end_tokens = opened.end_tokens,
                 .noise = noise,
                 .stream = shares ? Stream::kTarget : Stream::kDraft,
                 .draft_p_min = opened.options.speculative.draft_p_min,
                 .prediction = {},
                 .grammar = grammar});
  const draft::Ask ask{kSeq, wants.length.value_or(0), wants.logits};
  round::Proposal proposal;
  int before = 0;
  do {  // a long text is read in parts
    before = drafter.Missing(kSeq);
    drafter.Propose({&ask, 1}, {&proposal, 1});
  } while (ask.max_tokens > 0 && proposal.length() == 0 && drafter.Missing(kSeq) < before);
  drafter.TakeWork();
  drafter.End(kSeq);
  return proposal;
}

// The cost model learns only from passes, and a given text has none.
void GivenText::Observe(int drafted, int accepted) noexcept {
  if (parts_.opened().options.speculative.lookahead != "cost-model")
    parts_.controller().Observe(kSeq, {.drafted = drafted, .accepted = accepted});
}

VerificationOptions GivenText::VerificationFor(const SamplingParameters& sampling) const {
  const engine::Opened& opened = parts_.opened();
  VerificationOptions options{.vocabulary_size = opened.vocabulary,
                              .speculative = opened.options.speculative,
                              .sampling = parts_.preparation().Drawable(sampling),
                              .verifier = opened.options.verifier,
                              .isa = opened.options.isa};
  Request request;
  request.sampling = sampling;
  const verify::Verifier& verifier = parts_.speculation().VerifierFor(request);
  for (const auto& rule : parts_.speculation().verifiers().rules)
    if (&verifier == rule.get())
      options.speculative.strategy = *VerifyStrategy::Named(rule->name());
  return options;
}

}  // namespace foretoken
