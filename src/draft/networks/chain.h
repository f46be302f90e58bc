// SPDX-License-Identifier: Apache-2.0
// draft/networks/chain.h: builds the drafts of one sequence: draws each token from a model's logits, with
// the drafter's own sampling parameters, and decides when to stop.
//
// The sampler's text has the committed tokens. Drafts are pushed onto it while a proposal is made,
// and popped when it is finished. Start allocates; nothing else does.
//
// NOISE. If the target's noise is shared (Stream::kTarget), a draft is the winner of the target's
// own race at its position, run over the drafter's distribution. Otherwise it is drawn with a
// uniform number of its position and of its proposal (index = the position at which the proposal
// began): under some strategies drafts behind the kept ones decide too, so their noise must not be
// used again when their positions are drafted again.
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
  // vocabulary: tokens that may be drafted, ids [0, vocabulary). max_draft: the most drafts of a
  // proposal.
  Chain(int vocabulary, int max_draft, const kernels::Kernels& kernels);

  void Start(const SequenceStart& start);
  void Stop() noexcept { sampler_.reset(); }

  // Begins a proposal of up to n tokens; n <= 0: none. with_logits: keeps the logits of all its
  // drafts; the first such proposal allocates, and without memory it has none. If `proposal` is
  // given, it draws and takes each draft (Ask::proposal); it must live until Finish.
  void BeginProposal(int n, bool with_logits = false, DraftProposal* proposal = nullptr) noexcept;
  bool drafting() const { return left_ > 0; }
  // Ends the draft.
  void EndDraft() noexcept { left_ = 0; }

  // Draws the next draft from the distribution of these logits, [vocabulary]. The draft ends with
  // the last token that was wanted, with an end token, or, without a token, where no token has
  // draft_p_min. It is decided before the draw whether to stop, so that no drawn token is ever
  // dropped for its own value. certainty: decides in place of the most probable token's probability,
  // where it is not negative.
  void Draw(const float* logits, float certainty = -1) noexcept;

  // Removes the drafts from the text. The result is a view, valid until the next BeginProposal.
  round::Proposal Finish() noexcept;

  void Commit(std::span<const Token> tokens) noexcept;

  bool started() const { return sampler_ != nullptr; }
  std::span<const Token> text() const { return sampler_->text(); }  // drafts included
  int position() const { return sampler_->position(); }             // its length
  // These belong to the last proposal that was finished.
  std::span<const Token> drafts() const { return drafts_; }
  int max_draft() const { return max_draft_; }

 private:
  bool MakeRoomForLogits() noexcept;
  bool Unsure(const float* logits, float* distribution) const noexcept;
  Token Drawn(const float* distribution) noexcept;  // kNoToken: the proposal takes no more
  double OwnNoise() const noexcept;                 // of the next draft
  float* Distribution(std::size_t i) noexcept {
    return distributions_.data() + static_cast<std::int64_t>(i) * vocabulary_;
  }

  int vocabulary_, max_draft_;
  const kernels::Kernels* kernels_;
  std::unique_ptr<sampling::Sampler> sampler_;
  std::vector<Token> end_tokens_, drafts_;
  std::vector<float> raw_logits_;  // of the drafts, as the model gave them
  AlignedBuffer<float>
      distributions_;            // [max_draft, vocabulary]: that sampled drafts were drawn from
  AlignedBuffer<float> logits_;  // [max_draft, vocabulary]: of this proposal, where wanted
  bool with_logits_ = false;
  Stream stream_ = Stream::kDraft;
  float draft_p_min_ = 0;
  Pos begin_ = 0;  // position of the proposal's first draft
  int left_ = 0;   // drafts still to make in this proposal
  DraftProposal* proposal_ = nullptr;
};

}  // namespace foretoken::draft
