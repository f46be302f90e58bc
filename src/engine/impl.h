// SPDX-License-Identifier: Apache-2.0
// engine/impl.h: the engine's parts and their life. Built whole by Open (open.cpp), moved by Step
// (step.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/machine/thread_pool.h"
#include "draft/drafter.h"
#include "draft_length/lookahead.h"
#include "draft_length/round_costs.h"
#include "engine/file_watch.h"
#include "engine/grammars.h"
#include "engine/job.h"
#include "engine/prompt_rows.h"
#include "engine/sequence.h"
#include "foretoken/engine.h"
#include "foretoken/no_memory.h"
#include "foretoken/verification.h"
#include "formats/checkpoint.h"
#include "kv/block_tables.h"
#include "model/runner.h"
#include "sampling/logprobs.h"
#include "text/tokenizer/tokenizer.h"
#include "trace/run_recorder.h"
#include "verify/rules.h"
#include "verify/verifier.h"

namespace foretoken {

inline constexpr int kMaxDraft = 64;  // of one proposal, whatever is asked for

class Engine::Impl {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Impl>> Open(EngineOptions options);

  [[nodiscard]] Result<std::vector<Completion>> Generate(std::span<const Request> requests,
                                                         const OnRound& on_round);
  [[nodiscard]] Result<Ticket> Begin(Request request, OnRound on_round);
  // One target pass for all running requests; false when there are none. Its halves: Draft makes
  // the drafts of the pass, and nothing where they are made; Verify REQUIRES them.
  struct DraftWants {
    std::optional<int> length;  // of each draft at most, in place of the controllers' choice
    bool logits = false;        // the drafter's, of each draft
  };
  bool Step() noexcept;
  bool Draft() noexcept { return Draft(DraftWants()); }
  bool Draft(const DraftWants& wants) noexcept;
  void Verify() noexcept;
  // In their place drafts of the caller's, which are certain; `drafts` must live until Verify.
  // Errors: kInvalidArgument (unknown tokens, more than may be committed, a strategy that judges by
  // laws).
  [[nodiscard]] Status Replace(Ticket ticket, std::span<const Token> drafts);
  const engine::Job* JobOf(Ticket ticket) const noexcept;
  const engine::Sequence* SequenceOf(Ticket ticket) const noexcept;
  void Pause(Ticket ticket, bool paused) noexcept;
  void Cancel(Ticket ticket) noexcept;
  std::optional<Completion> Take(Ticket ticket) noexcept;
  void Forget();
  // parts.cpp: what the decoder and the pipeline see of a pass. Plan chooses who takes part in the
  // next one, and nothing where its drafts are made.
  void Plan() noexcept;
  bool drafted() const { return drafted_; }
  // The committed tokens that the pass reads, and those that a draft model has yet to read.
  std::span<const Token> FeedOf(Ticket ticket) const noexcept;
  std::span<const Token> DraftFeedOf(Ticket ticket) const noexcept;
  // The drafts that were made; empty: plain decoding, or no part in the pass.
  round::Proposal ProposalOf(Ticket ticket) const noexcept;
  // While on_round runs: the target's logits of a round, a row for each draft and one more.
  TokenRows TargetRowsOf(Ticket ticket) const noexcept;
  // Rows of the proposal's numbers, where it has any.
  TokenRows RowsOf(const round::Proposal& proposal, const float* numbers) const noexcept;

  // For texts and logits of the caller's, while no request runs. Drafts are made by the first of
  // the default drafters that needs no more than a text; the views hold until anything is drafted
  // again. Errors: kInvalidArgument, kTooLarge.
  struct GivenText {
    std::span<const Token> text;
    const SamplingParameters& sampling;
    Noise noise;
  };
  [[nodiscard]] Result<round::Proposal> DraftAfter(const GivenText& given, const DraftWants& wants);
  // The draft-length controller, for them: it begins as for a request with the engine's settings.
  void BeginGiven() {
    lookahead_->Begin(0, {.most = *options_.speculative.num_speculative_tokens});
  }
  int GivenDraftLength() const noexcept { return lookahead_->Most(0, 1); }
  void ObserveGiven(int drafted, int accepted) noexcept;
  VerificationOptions VerificationFor(const SamplingParameters& sampling) const;

  // Feeds tokens to the cache of sequences that no request has, and hands out the logits of each.
  struct Feed {
    SeqId seq = 0;
    std::span<const Token> tokens;  // as many as the sequence has room for
  };
  using OnRow = std::function<void(std::size_t feed, int token, const float* logits)>;
  // Errors: kInvalidFile (logits that are not finite); then the sequences hold what was read.
  [[nodiscard]] Status ReadRows(std::span<const Feed> feeds, const OnRow& on_row);
  int CachedPositions(SeqId seq) const noexcept { return cache_->length(seq); }
  int MissingCacheBlocks(SeqId seq, int n) const noexcept { return cache_->MissingBlocks(seq, n); }
  void TruncateCache(SeqId seq, int length) noexcept { cache_->Truncate(seq, length); }
  int context_size() const { return context_size_; }
  int vocabulary() const { return vocabulary_; }
  // The request ends here, whatever it is about to do, and can be taken: "cancelled".
  void End(Ticket ticket) noexcept;
  AdaptiveLookahead* Adaptive(SeqId seq) const noexcept { return lookahead_->Adaptive(seq); }
  void ResetLookahead(SeqId seq) noexcept { lookahead_->Reset(seq); }
  [[nodiscard]] Result<std::vector<float>> Score(std::span<const Token> tokens);
  [[nodiscard]] Result<Measurements> Measure(const MeasureOptions& options);
  SpeculativeUse UseFor(const Request& request) const;
  SpeculativeUse UseForAny() const;
  [[nodiscard]] Status PrepareGrammar(SamplingParameters& sampling) {
    FORETOKEN_TRY(sampling.prepared_grammar, grammars_->Of(sampling));
    return {};
  }
  // Tells the cost model what passes and drafts cost: by the options' profile, else measured in
  // less than half a second. Errors: a profile that cannot be read.
  [[nodiscard]] Status LearnCostsAtStart();

  [[nodiscard]] Result<std::vector<Token>> FormatChat(std::span<const ChatMessage> messages,
                                                      const ChatOptions& options) const;
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  const EngineSummary& summary() const { return summary_; }
  EngineLoad load() const noexcept;
  const EngineCounts& counts() const { return counts_; }
  const engine::FileWatch& files() const { return files_; }
  std::vector<RowCost> PassCosts() const;
  double PlainStepUs(int requests) const noexcept;
  Status record_status() const { return recorder_ ? recorder_->status() : Status(); }

 private:
  friend class EngineOpener;
  class Measurer;       // measure.cpp
  class StartMeasurer;  // measure_at_start.cpp
  using Clock = std::chrono::steady_clock;

  // One that drafts. Where several files draft by one method, names tell them apart.
  struct DrafterEntry {
    std::string method;     // "standalone"
    std::string name;       // in statistics: "standalone", of several "standalone:tales-1m"
    std::string full_name;  // "standalone:tales-1m", or the method's where there is no file
    std::string file;       // that its model or head comes from; empty: none
    std::unique_ptr<draft::Drafter> drafter;
    bool instant = false;  // its drafts cost next to nothing and are certain: they are looked at
                           // before it is decided how many to verify
    // Where in a row of the target's features each part lies that it reads; empty: it reads none.
    std::vector<int> feature_parts = {};

    bool noted_not_finite = false;

    bool reads_features() const { return !feature_parts.empty(); }
    bool Answers(std::string_view asked) const {
      return asked == "portfolio" || asked == method || asked == name || asked == full_name;
    }
  };

  // What one sequence does in this step.
  struct Work {
    SeqId seq = 0;
    int n_feed = 0;          // committed tokens the cache lacks and that this pass reads
    bool decodes = false;    // the pass reaches the newest token: a verdict follows
    bool prefill = false;    // it reads the prompt, or again a text whose blocks were given back
    bool again = false;      // of these the latter
    bool may_draft = false;  // it decodes, or its first draft is verified with the prompt
    int max_draft = 0;
    int wanted = 0;                                 // drafts, by whoever chose
    int withheld = 0;                               // that were made and are too few to be sent
    int drafter = -1;                               // whose proposal it is
    bool given = false;                             // it is the caller's
    PlainReason why_plain = PlainReason::kNoDraft;  // where there are no drafts
    std::optional<ProbeKind> probe;
    round::Proposal proposal;
    int first_row = 0, first_logit = 0;
    int n_prompt_logits = 0;  // rows before first_logit, for the prompt's log-probabilities
    int n_committed = 0, n_accepted = 0;  // after the verdict, cut by the request's end
    std::optional<FinishReason> ended;
    // Tokens before a row of logits that the request needs and that is not finite; -1: none is.
    int not_finite = -1;
    int processor_fault = -1;  // the same where a logits processor left what is no number
    double judge_ms = 0;       // from the end of the pass until all of this was done
  };
  struct StepTimes {
    double draft_ms = 0, verify_ms = 0;
    double predicted_draft_us = 0;  // by what was known before
    bool reads = false;             // prompts, too
    Clock::time_point judged_at;
  };
  // What a pass verifies and reads.
  struct PassShape {
    int rows = 0, prompt_rows = 0;
    int context = 0;  // before a round's row, in the mean
  };

  Impl() = default;
  [[nodiscard]] Status Check(const Request& request, std::span<const Token> prompt) const;
  [[nodiscard]] Status CheckSpeculation(const Request& request) const;
  [[nodiscard]] Status CheckLeastDrafts(const Request& request) const;
  [[nodiscard]] Status Check(const MeasureOptions& options) const;
  std::vector<Token> PromptTokens(const Request& request) const;
  Result<std::unique_ptr<engine::Job>> MakeJob(Request request, OnRound on_round);
  Ticket Enqueue(std::unique_ptr<engine::Job> job);
  void Admit(engine::Job& job, SeqId seq);
  // Calls what may need memory for one request, or is the request's own callback; false where there
  // is no memory or the callback threw: then the request has its error and must be finished.
  template <typename Call>
  bool TryFor(engine::Job& job, Call&& call) noexcept;
  static void Blame(engine::Job& job, Error error) noexcept;  // the first error stays
  static Error ThrownBy(std::string_view what) noexcept;      // a callback
  Error NotFinite(int n_tokens) const;
  static Error ProcessorFault(int n_tokens);
  void BeginDrafters(engine::Sequence& s, SeqId seq, int max_new);
  std::string LookaheadOf(const engine::Sequence& s) const;
  // Indices of the drafters of a method: one, several with commas between, "portfolio" or "none".
  [[nodiscard]] Result<std::vector<int>> DraftersOf(std::string_view methods) const;
  std::vector<int> DraftersFor(const Request& request) const;
  std::vector<std::string> NoticesOf(const Request& request) const;
  bool ReadsDrafts(const Request& request) const;
  VerifyStrategy StrategyOf(const Request& request) const {
    return request.speculative.strategy.value_or(options_.speculative.strategy);
  }
  // Those that some drafter of the engine fits.
  std::vector<std::string> StrategyNames() const;
  const verify::Verifier& VerifierFor(const Request& request) const;
  int LeastDraftsOf(const Request& request) const;
  // Whether its drafts are drawn from distributions that its strategy reads.
  bool JudgesLaws(const Request& request) const;
  bool FollowsDrafts(const Request& request, const verify::Verifier& verifier) const;
  const verify::Verifier& VerifierOf(VerifyStrategy strategy) const { return rules_->Of(strategy); }

  // schedule.cpp: who takes part in a pass.
  void AdmitWaiting() noexcept;
  bool MayJoin(const engine::Job& job) const noexcept;
  void EndCancelled() noexcept;
  void PlanWork() noexcept;
  void Resume() noexcept;
  int PlanDecoding(int rows) noexcept;
  void PlanPrompts(int rows) noexcept;
  double PlainPassUs() const noexcept;
  void SettleBlocks() noexcept;
  int BlocksOf(const Work& work) const noexcept;
  int BlocksOfPass() const noexcept;
  int SpareBlocks() const noexcept;
  SeqId YoungestHolder(SeqId seq) const noexcept;
  void Preempt(SeqId seq) noexcept;
  bool Reads(const engine::Sequence& s) const noexcept;
  int MostDecodingRows() const noexcept;
  int MostDrafts(const engine::Sequence& s, int rows) const noexcept;
  int MissingRows(const engine::Sequence& s) const noexcept;
  std::span<const Token> SharableText(const engine::Sequence& s) const noexcept;
  void SharePrefix(engine::Sequence& s) noexcept;
  // Positions that one request can have: its context, or all of a smaller cache.
  int MostPositions() const noexcept {
    return std::min(context_size_, cache_->n_blocks() * tensor::kKvBlock);
  }
  engine::Sequence& At(SeqId seq) const { return *sequences_[static_cast<std::size_t>(seq)]; }

  const Work* WorkOf(Ticket ticket) const noexcept;
  void Propose() noexcept;
  void MakeOffers() noexcept;
  void AskInstantDrafter(int drafter) noexcept;
  void AskDrafter(int drafter) noexcept;
  void NoteNotFinite(DrafterEntry& entry) noexcept;
  void TakePlan(Work& work, const draft_length::Plan& plan) noexcept;
  int WantedOf(SeqId seq, int n_decoding) const noexcept;
  void ChooseLengths() noexcept;
  void WithholdShortDrafts() noexcept;
  bool Uses(const Work& work, int drafter) const noexcept;
  void Flatten() noexcept;
  // The model files are what they were; else its error.
  [[nodiscard]] Status CheckFiles();
  void EndAll() noexcept;  // with that error
  void JudgeAll() noexcept;
  round::Verdict Judge(Work& work, const kv::Segment& segment) noexcept;
  void CommitAll(const StepTimes& times) noexcept;
  bool FollowsGrammar(engine::Sequence& s, const round::Verdict& verdict);
  void CommitOne(std::size_t i, const StepTimes& times);
  void Time(Work& work, const round::Verdict& verdict, const StepTimes& times) noexcept;
  void TellLookahead(const Work& work, const round::Verdict& verdict, const StepTimes& times,
                     double us) noexcept;
  std::string_view DrafterName(const Work& work) const noexcept;
  bool Report(const Work& work) const;
  void NoteObservations(std::size_t i);
  void Commit(Work& work, const round::Verdict& verdict);
  void Count(const Work& work, const round::Verdict& verdict);
  PassShape ShapeOfPass() const noexcept;
  void LearnCosts(const PassShape& pass, const StepTimes& times) noexcept;
  // engine_counts.cpp
  PlainReason WhyNoOffers(const Work& work) const noexcept;
  PlainReason WhyNotDrafted(const draft_length::Plan& plan) const noexcept;
  void CountPass(const PassShape& pass, const StepTimes& times) noexcept;
  void CountRound(const Work& work, double us) noexcept;
  void CountPrediction(const PassShape& pass, const StepTimes& times, double rest_us) noexcept;
  // prompt_logprobs.cpp
  bool ReadsPromptLogprobs(const engine::Sequence& s) const noexcept;
  void AskPromptLogits(Work& work) noexcept;
  void ReadPromptLogprobs(Work& work);
  // record.cpp; they do nothing where nothing is recorded.
  [[nodiscard]] Status OpenRecord();
  void RecordRequest(SeqId seq);
  int Wanted(const draft_length::Plan& plan, int room) const noexcept;
  void RecordLaws() noexcept;
  void RecordPass(const StepTimes& times) noexcept;
  void PublishRecord() noexcept;
  void Finish(engine::Job& job, FinishReason reason) noexcept;
  void Notice(std::string_view text) noexcept;
  // Logits of the work's i-th judged row: row 0 follows the newest committed token.
  const float* LogitsOf(const Work& work, int i) const {
    return result_->Logits(work.first_logit + i);
  }

  EngineOptions options_;
  EngineSummary summary_;
  std::unique_ptr<formats::Checkpoint> checkpoint_;
  std::vector<std::unique_ptr<formats::Checkpoint>> draft_checkpoints_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<ThreadPool> pool_;
  const kernels::Kernels* kernels_ = nullptr;
  std::unique_ptr<model::Runner> target_;
  const model::PassResult* result_ = nullptr;  // of the target's last pass
  std::optional<kv::BlockTables> cache_;
  std::vector<DrafterEntry> drafters_;
  std::vector<int> default_drafters_;  // of requests that name no method
  std::optional<verify::Rules> rules_;
  std::unique_ptr<verify::Verifier> synthetic_;     // null but for benchmarks: then it judges all
  std::unique_ptr<verify::Verifier> own_verifier_;  // the program's, in their place; or null
  int vocabulary_ = 0, context_size_ = 0;
  std::vector<Token> end_tokens_;

  std::optional<engine::Grammars> grammars_;

  // What draft lengths are chosen by.
  std::optional<draft_length::RoundCosts> costs_;
  // They never change, and come from a profile or from the files' sizes: for the lengths of
  // requests whose text depends on them.
  std::optional<draft_length::RoundCosts> fixed_costs_;
  std::unique_ptr<draft_length::Lookahead> lookahead_;

  // Requests from Begin to Take, and those of them that wait for a sequence.
  std::map<Ticket, std::unique_ptr<engine::Job>> jobs_;
  std::deque<engine::Job*> waiting_;
  Ticket last_ticket_ = 0;
  // Running requests by sequence id; null where free.
  std::vector<std::unique_ptr<engine::Sequence>> sequences_;
  std::optional<engine::PromptRows> prompt_rows_;
  EngineLoad totals_;  // of it what is counted, not read off
  EngineCounts counts_;
  int last_context_ = 0;  // of the last pass that decoded

  // The step being put together; capacities are taken at Open.
  bool drafted_ = false;  // between Draft and Verify
  DraftWants wants_;      // of this step
  StepTimes times_;
  std::vector<SeqId> order_, prompts_;  // sequences that are not paused, oldest first; of them
                                        // those that read, in the order in which they get rows
  std::vector<Work> work_;
  std::vector<draft_length::Plan> plans_;
  std::vector<draft_length::Offer> offers_;  // of all plans, one after the other
  std::vector<round::Proposal> offered_;     // [offers_]: of instant drafters
  std::vector<int> asked_;                   // work or offers that the asks are for
  std::vector<draft::Ask> asks_;
  std::vector<round::Proposal> proposals_;
  std::vector<Token> tokens_;
  std::vector<kv::Segment> segments_;
  std::vector<int> logit_rows_, kept_;
  std::vector<round::Verdict> verdicts_;
  std::vector<std::vector<draft::Observation>> observations_;  // by drafter
  std::vector<Token> likely_;  // [decoding rows, n_likely_]: the target's best tokens
  int n_likely_ = 0;           // the most that a drafter wants
  int n_likely_rows_ = 0;      // of this step so far
  std::vector<TokenEvent> events_;
  AlignedBuffer<float> judge_scratch_;  // [2, vocabulary]
  std::optional<sampling::LogprobReader> logprobs_;
  std::unique_ptr<trace::RunRecorder> recorder_;  // null: nothing is recorded
  engine::FileWatch files_;                       // ends first: its thread reads the models
};

template <typename Call>
bool Engine::Impl::TryFor(engine::Job& job, Call&& call) noexcept {
  try {
    call();
    return true;
  } catch (const std::exception& e) {
    Blame(job, SaysNoMemory(e) ? std::move(job.no_memory) : ThrownBy(e.what()));
  } catch (...) {
    Blame(job, ThrownBy("no std::exception"));
  }
  return false;
}

}  // namespace foretoken
