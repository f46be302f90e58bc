// SPDX-License-Identifier: Apache-2.0
// draft/chain.h: the drafts of one sequence in the making: which token is drawn next from a model's
// logits, by the drafter's own sampling parameters, and when to stop.
//
// The sampler's text holds the committed tokens; drafts are pushed onto it while a proposal is
// made and popped when it is finished. Start allocates; nothing else does.
//
// NOISE. Where the target's noise is shared (Stream::kTarget), a draft is the winner of the
// target's own race at its position, run over the drafter's law. Else it is drawn with a uniform
// number of its position and of its proposal (index = the position the proposal began at): a
// verifier may let drafts behind the kept ones decide, so their noise must not serve again when
// their positions are drafted anew.
#pragma once

#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "draft/drafter.h"
#include "kernels/kernels.h"
#include "sampling/sampler.h"

namespace foretoken::draft {

class Chain {
 public:
  // vocabulary: tokens that may be drafted, ids [0, vocabulary). max_draft: of one proposal at
  // most.
  Chain(int vocabulary, int max_draft, const kernels::Kernels& kernels);

  void Start(const SequenceStart& start);
  void Stop() noexcept { sampler_.reset(); }

  // Begins a proposal of up to n tokens; n <= 0: none. with_logits: it keeps the logits of all its
  // drafts; the first such proposal allocates, and where memory is refused it has none. Where
  // `proposal` is given, it draws them and takes each (Ask::proposal); it must live until Finish.
  void BeginProposal(int n, bool with_logits = false, DraftProposal* proposal = nullptr) noexcept;
  bool drafting() const { return left_ > 0; }
  // No draft follows those that were made.
  void EndDraft() noexcept { left_ = 0; }

  // Draws the next draft from the law of these logits, [vocabulary]; ends the drafting where it is
  // the last that was wanted, an end token, or, without a token, where no token has draft_p_min.
  // Whether to stop is decided before the draw, so that no drawn token is ever dropped for its own
  // value.
  void Draw(const float* logits) noexcept;

  // Takes the drafts off the text. A view, valid until the next BeginProposal.
  round::Proposal Finish() noexcept;

  void Commit(std::span<const Token> tokens) noexcept;

  bool started() const { return sampler_ != nullptr; }
  std::span<const Token> text() const { return sampler_->text(); }  // drafts included
  int position() const { return sampler_->position(); }             // its length
  int max_draft() const { return max_draft_; }

 private:
  bool MakeRoomForLogits() noexcept;
  Token Drawn(const float* law) noexcept;  // kNoToken: the proposal takes no more
  double OwnNoise() const noexcept;        // of the next draft
  float* Law(std::size_t i) noexcept {
    return laws_.data() + static_cast<std::int64_t>(i) * vocabulary_;
  }

  int vocabulary_, max_draft_;
  const kernels::Kernels* kernels_;
  std::unique_ptr<sampling::Sampler> sampler_;
  std::vector<Token> end_tokens_, drafts_;
  std::vector<float> raw_logits_;  // of the drafts, as the model gave them
  AlignedBuffer<float> laws_;      // [max_draft, vocabulary]: that sampled drafts were drawn from
  AlignedBuffer<float> logits_;    // [max_draft, vocabulary]: of this proposal, where wanted
  bool with_logits_ = false;
  Stream stream_ = Stream::kDraft;
  float draft_p_min_ = 0;
  Pos begin_ = 0;  // position of the proposal's first draft
  int left_ = 0;   // drafts still to make in this proposal
  DraftProposal* proposal_ = nullptr;
};

}  // namespace foretoken::draft
