// SPDX-License-Identifier: Apache-2.0
#include "engine/step/verification.h"

#include <algorithm>

#include "verify/strategies/greedy.h"

namespace foretoken::engine {

Verification::Verification(int vocabulary)
    : scratch_(2 * static_cast<std::size_t>((vocabulary + 15) / 16 * 16)) {}

void Verification::Verify(const PassPlan& plan, const Proposals& drafts, const FlatPass& pass,
                          const model::PassResult& result, const Sequences& sequences,
                          Verdicts& verdicts) noexcept {
  verdicts.entries.clear(), verdicts.kept.clear();
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const PlannedSequence& planned = plan.entries[i];
    SequenceVerdict& verdict = verdicts.entries.emplace_back();
    VerifyOne(planned, drafts.entries[i].proposal, pass.entries[i], result,
              sequences.At(planned.seq), verdict);
    verdicts.kept.push_back(planned.n_feed + verdict.verdict.accepted);
  }
}

// A row that is not finite ends the request only if it is needed: for the log-probabilities of a
// prompt, or for the token after the accepted drafts.
void Verification::VerifyOne(const PlannedSequence& planned, const round::Proposal& drafted,
                             const SequenceRows& rows, const model::PassResult& result, Sequence& s,
                             SequenceVerdict& out) noexcept {
  const int n_text = rows.first_position + planned.n_feed;  // tokens before the first verified row
  const auto finite = [&](int i) { return result.Finite(rows.first_logit + i); };
  for (int i = -rows.n_prompt_logits; i < 0; ++i)
    if (!finite(i)) out.not_finite = n_text + i;
  if (!planned.decodes) return;
  int n_finite = 0;
  while (n_finite <= drafted.length() && finite(n_finite)) ++n_finite;
  round::Verdict& verdict = out.verdict;
  if (n_finite > 0) {
    round::Proposal proposal = drafted;
    const auto shorten = [&proposal](int n) {
      proposal.tokens = proposal.tokens.first(static_cast<std::size_t>(n));
    };
    shorten(std::min(n_finite, proposal.length()));
    s.sampler.TakeProcessorFault();  // clears faults of distributions that were only recorded
    s.sampler.TakeGrammarFailure(0);
    const auto verify = [&] {
      verdict = VerifyParts(
          proposal,
          {result.Logits(rows.first_logit), result.logits_stride, result.Chosen(rows.first_logit)},
          s);
    };
    verify();
    // If the grammar cannot be followed behind the accepted drafts, those are kept, and the next
    // round fails, as plain decoding would.
    while (proposal.length() > 0 &&
           s.sampler.TakeGrammarFailure(verdict.accepted) != grammar::GrammarFailure::kNone) {
      shorten(std::max(verdict.accepted - 1, 0));
      verify();
    }
    if (s.sampler.TakeProcessorFault()) out.processor_fault = n_text + verdict.accepted;
  }
  if (verdict.accepted == n_finite) out.not_finite = n_text + n_finite;
}

// Drafts of parts that think have their own verifier. A draft is divided where such a part begins or
// ends. What follows is verified if everything before it was accepted, so each token behind the
// committed text comes from the verifier of its own part.
round::Verdict Verification::VerifyParts(const round::Proposal& proposal,
                                         const verify::LogitsView& logits, Sequence& s) noexcept {
  if (!s.thinking.relaxes())
    return s.verifier->Verify(proposal, logits, s.sampler, scratch_.data());
  text::ThinkingPlace place = s.thinking.place;
  round::Verdict verdict;
  int accepted = 0;
  for (bool more = true; more;) {
    const bool thinks = place.thinks;
    int n = 0;  // drafts of this part
    while (accepted + n < proposal.length() && place.thinks == thinks)
      s.thinking.marks->Follow(proposal.tokens[static_cast<std::size_t>(accepted + n++)], place);
    const verify::Verifier& verifier = thinks ? *s.thinking.verifier : *s.verifier;
    const round::Proposal part = proposal.Part(accepted, n);
    verdict = verifier.Verify(part, logits.From(accepted), s.sampler, scratch_.data());
    more = verdict.accepted == n && place.thinks != thinks;
    accepted += verdict.accepted;
    for (int i = 0; i < verdict.accepted; ++i)
      s.sampler.Push(part.tokens[static_cast<std::size_t>(i)]);
  }
  return verify::EndWalk(proposal, accepted, verdict.next, s.sampler);
}

}  // namespace foretoken::engine
