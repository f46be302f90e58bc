// SPDX-License-Identifier: Apache-2.0
// components/given_text.h: drafts after texts that belong to no request, and their verification on
// the caller's logits, with the drafters, the rules and the draft-length controller of an engine that
// runs no request meanwhile.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/parts.h"
#include "foretoken/speculative_decoder.h"
#include "round/proposal.h"

namespace foretoken {

class GivenText {
 public:
  using Parts = EngineParts::Impl;

  explicit GivenText(Parts& parts) : parts_(parts) { BeginController(false); }

  // A request takes the place of the text.
  void Leave() noexcept;

  // The first default drafter that fits drafts after `context`, as many tokens as `wants` or the
  // controller say, `most` at most. It reads only what its cache lacks of the context. Until they are
  // verified, more drafts after the same context have the controller's same length. The views hold
  // until the next drafts. Errors: kInvalidArgument, kTooLarge.
  [[nodiscard]] Result<round::Proposal> DraftAfter(std::span<const Token> context,
                                                   const GivenSampling& given,
                                                   const engine::DraftWants& wants, int most);

  // Verifies drafts behind the context of the last DraftAfter, once; otherwise behind the last
  // verified token, whose text is not known. Drafts that begin those of DraftAfter have their
  // distributions; others are certain. given: null: that of DraftAfter. Errors: kInvalidArgument.
  [[nodiscard]] Result<VerifiedDrafts> Verify(std::span<const Token> drafts,
                                              const TokenRows& target_logits,
                                              const GivenSampling* given);

  // Passes of the draft model since the last call.
  std::int64_t TakeForwards() noexcept { return std::exchange(forwards_, 0); }
  void Reset() noexcept;

 private:
  static constexpr SeqId kSeq = 0;

  // What waits to be verified.
  struct Round {
    bool open = false;
    std::vector<Token> context;
    GivenSampling given;
    int drafter = -1, length = 0;  // length: that the controller or the caller chose
    round::Proposal proposal;
  };

  void BeginController(bool by_text);
  Result<Request> Checked(std::span<const Token> context, const GivenSampling& given) const;
  Result<int> DrafterFor(const Request& request, const GivenSampling& given, std::size_t n) const;
  Status BeginDrafter(const Request& request, std::span<const Token> context,
                      const GivenSampling& given);
  void EndDrafter() noexcept;
  void Close() noexcept;
  round::Proposal Ask(int n, bool logits);
  int Choose(int n_made, int room);
  VerificationOptions VerificationFor(const GivenSampling& given) const;
  void Observe(int drafted, int accepted) noexcept;
  draft::Drafter& drafter() const { return *parts_.drafters()[round_.drafter].drafter; }

  Parts& parts_;
  Round round_;
  int begun_ = -1;  // the drafter that has a text
  bool controls_ = false, by_text_ = false;
  Pos position_ = 0;  // behind the last token that was verified
  std::int64_t forwards_ = 0;
};

}  // namespace foretoken
