// SPDX-License-Identifier: Apache-2.0
// draft/networks/draft_model.h: the standalone drafter: a smaller model with its own cache. It drafts the
// tokens that its vocabulary and the target's share. If the text has a token without an embedding, the
// model reads another one instead; a model of another vocabulary reads the text in tokens of its own
// (own_text.h). Both cost acceptance but never exactness.
//
// Between rounds its cache holds c <= C - 1 of the C committed tokens (of its own tokens of these). A proposal first reads the C
// - c missing ones (1, or 2 after a draft that was accepted whole; the prompt at the first
// proposal), then its own drafts except the last. Observe removes rejected ones. All sequences that
// draft together share each pass. If Begin replaces a text that has not ended, the positions that
// both share stay in the cache. It leaves out the middle of a text that it would read for long, and may be
// wrong about what only that tells.
#pragma once

#include <memory>
#include <vector>

#include "draft/networks/chain.h"
#include "draft/networks/own_text.h"
#include "draft/networks/wide_logits.h"
#include "draft/registry.h"
#include "kernels/kernels.h"
#include "kv/block_tables.h"
#include "model/runner.h"

namespace foretoken::draft {

extern const DrafterSpec kStandaloneSpec;

// What a draft model reads of a long text. Where it lacks more than `most` tokens, it reads the first block of 32
// and the last `back` ones, as if nothing stood between; most 0: it reads all.
struct ReadingWindow {
  int pass = 0;  // the window of its passes (model/pass.h)
  int most = 0, back = 0;
};

class DraftModel final : public ListedDrafter {
 public:
  // runner: the draft model; its max_logit_rows is at least the number of sequences in `tables`,
  // which have as many blocks as the runner. shared: tokens that may be drafted. max_draft: tokens
  // of one proposal at most. keeps_cache: if false, each proposal computes the keys and values of
  // its texts again, except while it reads a long prompt in parts.
  DraftModel(std::unique_ptr<model::Runner> runner, const kv::TablesShape& tables,
             const SharedTokens& shared, int max_draft, const kernels::Kernels& kernels,
             bool keeps_cache = true, const ReadingWindow& reading = {});

  bool ReportsLogits() const override { return true; }
  void Begin(const SequenceStart& start) override;
  void Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept override;
  void Observe(std::span<const Observation> observations) noexcept override;
  void End(SeqId seq) noexcept override;
  int Missing(SeqId seq) const noexcept override;
  Work TakeWork() noexcept override;

  int cached(SeqId seq) const { return cache_.length(seq); }
  // Its own tokens of the text that the cache lacks, the newest one among them.
  int unread(SeqId seq) const {
    return sequences_[static_cast<std::size_t>(seq)].text.length() - cached(seq);
  }

 private:
  struct Sequence {
    Chain chain;
    OwnText text;  // of the chain, in the model's tokens
    bool prompt_read = false;
    bool reads_all = true;  // drafts are a function of the text alone
    int may_read = 0;       // rows in this proposal
  };

  void DropCaches() noexcept;
  // Whether the text is read from its last tokens, of which the cache has at most the first block.
  bool ReadsTheEnd(SeqId seq) const noexcept;
  void LeaveOut(SeqId seq) noexcept;
  int Common(const SequenceStart& start) const noexcept;
  void CatchUp() noexcept;
  bool Advance() noexcept;
  const model::PassResult& Run() noexcept;
  void Read(std::span<const Token> text) noexcept;

  std::unique_ptr<model::Runner> runner_;
  kv::BlockTables cache_;
  const bool keeps_cache_;
  const ReadingWindow reading_;
  WideLogits wide_;
  std::vector<Sequence> sequences_;
  // The pass that is being built; the constructor reserves the memory.
  std::vector<Token> tokens_;
  std::vector<kv::Segment> segments_;
  std::vector<int> logit_rows_, kept_;
  std::vector<SeqId> logit_seqs_;
  Work work_;
};

}  // namespace foretoken::draft
