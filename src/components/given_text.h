// SPDX-License-Identifier: Apache-2.0
// components/given_text.h: drafts after texts that belong to no request, with the drafters and the
// draft-length controller of an engine that runs no request meanwhile.
#pragma once

#include <span>

#include "base/ids.h"
#include "engine/parts.h"
#include "foretoken/verification.h"
#include "round/proposal.h"

namespace foretoken {

class GivenText {
 public:
  using Parts = EngineParts::Impl;

  // The controller begins as for a request with the engine's settings.
  explicit GivenText(Parts& parts) : parts_(parts) {
    parts.controller().Begin(kSeq,
                             {.most = *parts.opened().options.speculative.num_speculative_tokens});
  }

  // The first default drafter that needs only a text drafts after it. The views hold until the next
  // drafts. Errors: kInvalidArgument, kTooLarge.
  [[nodiscard]] Result<round::Proposal> DraftAfter(std::span<const Token> text,
                                                   const SamplingParameters& sampling, Noise noise,
                                                   const engine::DraftWants& wants);

  int DraftLength() const noexcept { return parts_.controller().Most(kSeq, 1); }
  void Observe(int drafted, int accepted) noexcept;

  // By the rule that the engine would use.
  VerificationOptions VerificationFor(const SamplingParameters& sampling) const;

 private:
  static constexpr SeqId kSeq = 0;
  Parts& parts_;
};

}  // namespace foretoken
