// SPDX-License-Identifier: Apache-2.0
// engine/impl.h: the parts of an engine. Open makes all of them (open/), and a step hands the values of a
// pass from one part to the next (step.cpp).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "calibrate/kept_costs.h"
#include "comm/ranks.h"
#include "engine/open/drafters.h"
#include "engine/open/opened.h"
#include "engine/recorder.h"
#include "engine/requests/admission.h"
#include "engine/requests/preparation.h"
#include "engine/requests/speculation_rules.h"
#include "engine/step/accounting.h"
#include "engine/step/commit.h"
#include "engine/step/drafting.h"
#include "engine/step/estimates.h"
#include "engine/step/scheduler.h"
#include "engine/step/verification.h"
#include "foretoken/engine.h"
#include "foretoken/verification.h"
#include "loader/drafts/drafter_set.h"
#include "loader/file_watch.h"

namespace foretoken {

class Engine::Impl {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Impl>> Open(EngineOptions options);
  ~Impl();  // keeps what was learned of the costs, for the next engine of these models
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Any thread.
  [[nodiscard]] Result<PreparedRequest> Prepare(Request request) const;
  [[nodiscard]] Result<Ticket> Begin(PreparedRequest request, OnRound on_round);
  [[nodiscard]] Result<Ticket> Begin(Request request, OnRound on_round);
  [[nodiscard]] Result<std::vector<Completion>> Generate(std::span<const Request> requests,
                                                         const OnRound& on_round);
  // Runs one target pass for all running requests; false if there are none. Its halves: Draft makes
  // the drafts of the pass, unless they are made already. Verify REQUIRES drafts.
  bool Step() noexcept;
  bool Draft(const engine::DraftWants& wants) noexcept;
  void Verify() noexcept;

  const engine::Sequence* SequenceOf(Ticket ticket) const noexcept {
    return admission_->SequenceOf(ticket);
  }
  void Pause(Ticket ticket, bool paused) noexcept { admission_->Pause(ticket, paused); }
  void Cancel(Ticket ticket) noexcept { admission_->Cancel(ticket); }
  std::optional<Completion> Take(Ticket ticket) noexcept { return admission_->Take(ticket); }
  // Ends the request at once, as "cancelled", so that Take finds it.
  void End(Ticket ticket) noexcept;
  void Forget();
  [[nodiscard]] Status KeepCache();
  Status CacheFileStatus() const {
    return opened_.store ? opened_.store->file().status() : Status();
  }
  // slots.cpp:
  [[nodiscard]] Result<SlotCounts> SaveSlot(int slot, const std::string& name,
                                            const std::string& cache_salt);
  [[nodiscard]] Result<SlotCounts> RestoreSlot(int slot, const std::string& name,
                                               const std::string& cache_salt);
  [[nodiscard]] Result<int> EraseSlot(int slot, const std::string& cache_salt);

  // parts.cpp: what the decoder and the pipeline see of a pass. Plan chooses the sequences of the
  // next pass, unless its drafts are made already.
  void Plan() noexcept;
  bool drafted() const { return step_->drafted; }
  // Replaces the drafts that were made by the caller's, which count as certain. `drafts` must live
  // until Verify. Errors: kInvalidArgument (unknown tokens, more than may be committed, a
  // strategy that compares a drafter's logits), kTooLarge (the cache has no room).
  [[nodiscard]] Status Replace(Ticket ticket, std::span<const Token> drafts);
  // The committed tokens that the pass reads, and those that a draft model has not read yet.
  std::span<const Token> FeedOf(Ticket ticket) const noexcept;
  std::span<const Token> DraftFeedOf(Ticket ticket) const noexcept;
  // The drafts that were made; empty for plain decoding and for requests outside of the pass.
  round::Proposal ProposalOf(Ticket ticket) const noexcept;
  // The target's logits of a round, a row for each draft and one more. Valid while on_round runs, if
  // KeepRowsWhole was called before the pass.
  void KeepRowsWhole() noexcept { step_->pass.chooses = false; }
  TokenRows TargetRowsOf(Ticket ticket) const noexcept;
  // The proposal's numbers as rows; empty if it has none.
  TokenRows RowsOf(const round::Proposal& proposal, const float* numbers) const noexcept;

  AdaptiveLookahead* Adaptive(SeqId seq) const noexcept { return controller().Adaptive(seq); }

  // Feeds tokens to sequences that no request has, and hands out the logits after each token, and its
  // hidden states where the target keeps them.
  struct Feed {
    SeqId seq = 0;
    std::span<const Token> tokens;  // as many as the sequence has room for
  };
  using OnRow =
      std::function<void(std::size_t feed, int token, const float* logits, const float* hidden)>;
  // Errors: kInvalidFile (logits that are not finite). The sequences then hold what was read.
  [[nodiscard]] Status ReadRows(std::span<const Feed> feeds, const OnRow& on_row);
  [[nodiscard]] Result<std::vector<float>> Score(std::span<const Token> tokens);
  int CachedPositions(SeqId seq) const noexcept { return opened_.cache->length(seq); }
  int MissingCacheBlocks(SeqId seq, int n) const noexcept {
    return opened_.cache->MissingBlocks(seq, n);
  }
  // Returns the new length (BlockTables::Truncate).
  int TruncateCache(SeqId seq, int length) noexcept { return opened_.cache->Truncate(seq, length); }

  [[nodiscard]] Result<Measurements> Measure(const MeasureOptions& options);
  [[nodiscard]] Result<std::string> ChatTemplateText(const ChatOptions& options) const;
  [[nodiscard]] Result<std::string> WriteChat(std::span<const ChatMessage> messages,
                                              const ChatOptions& options) const;
  [[nodiscard]] Result<std::vector<Token>> FormatChat(std::span<const ChatMessage> messages,
                                                      const ChatOptions& options) const;

  int context_size() const { return opened_.context; }
  int vocabulary() const { return opened_.vocabulary; }
  const text::Tokenizer& tokenizer() const { return *opened_.tokenizer; }
  const EngineSummary& summary() const { return opened_.summary; }
  const engine::Opened& opened() const { return opened_; }
  loader::DrafterSet& drafters() { return drafters_; }
  const engine::Preparation& preparation() const { return *preparation_; }
  const engine::SpeculationRules& speculation() const { return *speculation_; }
  draft_length::Controller& controller() const { return *estimates_->controller; }
  const draft_length::RoundCosts& costs() const { return estimates_->costs; }
  const engine::Accounting& accounting() const { return *accounting_; }
  // Any thread. Why the engine cannot go on, a rank that is lost or a model file that is not what Open found;
  // no error where it can.
  [[nodiscard]] Status WhyNot() const;
  EngineLoad load() const noexcept;
  CopyProgress copy() const;
  Status record_status() const { return recorder_->status(); }

 private:
  friend class EngineOpener;

  // The values of a pass, from its plan to its commit. The buffers serve every pass.
  struct StepValues {
    bool drafted = false;  // true between Draft and Verify
    engine::PassPlan plan;
    engine::Proposals drafts;
    engine::FlatPass pass;
    engine::Verdicts verdicts;
    engine::Commits commits;
    engine::PassTimes times;
    const model::PassResult* result = nullptr;

    StepValues(int sequences, int max_rows, engine::Commits room);
  };

  Impl() = default;
  void MakeParts(int max_rows, int max_logit_rows);
  std::optional<std::size_t> EntryOf(Ticket ticket) const noexcept;
  void FinishEnded() noexcept;
  // For the thread of the passes, after each of them and before a request begins. Once false, it stays so.
  bool CanGoOn() noexcept;
  void EndAll() noexcept;
  void PublishRecord() noexcept;
  void NoteCacheFile() noexcept;
  Result<engine::SlotTexts::Text*> SlotOf(int slot, const kv::BlockKey& owner);
  void Notice(std::string_view text) noexcept;
  void KeepCopyFigure() const;
  std::size_t FillPass(std::span<const Feed> feeds, std::vector<std::size_t>& done,
                       std::vector<std::pair<std::size_t, int>>& row_of);

  engine::Opened opened_;
  loader::DrafterSet drafters_;
  std::optional<engine::SpeculationRules> speculation_;
  std::optional<engine::Preparation> preparation_;
  std::optional<engine::Estimates> estimates_;
  std::optional<engine::Recorder> recorder_;
  std::optional<engine::Admission> admission_;
  std::optional<engine::Scheduler> scheduler_;
  std::optional<engine::Drafting> drafting_;
  std::optional<engine::Verification> verification_;
  std::optional<engine::Commit> commit_;
  std::optional<engine::Accounting> accounting_;
  std::optional<StepValues> step_;
  bool cache_file_fails_ = false;
  calibrate::CostFile kept_costs_;
  engine::OwnCopy copy_;
  const comm::Ranks* ranks_ = nullptr;  // that compute the target together
  loader::FileWatch files_;  // last, so that its thread, which reads the models, ends first
};

}  // namespace foretoken
