// SPDX-License-Identifier: Apache-2.0
// engine/impl.h: the engine's parts and their life. Built whole by Open (open.cpp), moved by Step
// (step.cpp).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "draft/drafter.h"
#include "engine/logprobs.h"
#include "engine/round_costs.h"
#include "engine/sequence.h"
#include "foretoken/engine.h"
#include "formats/checkpoint.h"
#include "kv/cache.h"
#include "model/model.h"
#include "text/tokenizer.h"
#include "verify/verifier.h"

namespace foretoken {

inline constexpr int kMaxDraft = 64;  // of one proposal, whatever is asked for

class Engine::Impl {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Impl>> Open(EngineOptions options);

  [[nodiscard]] Result<std::vector<Completion>> Generate(std::span<const Request> requests,
                                                         const OnRound& on_round);
  [[nodiscard]] Result<std::vector<float>> Score(std::span<const Token> tokens);
  [[nodiscard]] Result<Measurements> Measure(const MeasureOptions& options);

  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  const EngineSummary& summary() const { return summary_; }

 private:
  friend class EngineOpener;
  class Measurer;  // measure.cpp
  using Clock = std::chrono::steady_clock;

  // What one sequence does in this step.
  struct Work {
    SeqId seq = 0;
    int n_feed = 0;        // committed tokens the cache lacks and that this pass reads
    bool decodes = false;  // the pass reaches the newest token: a verdict follows
    bool prefill = false;  // it reads the prompt
    int max_draft = 0;
    round::Proposal proposal;
    int first_row = 0, first_logit = 0;
    int n_committed = 0, n_accepted = 0;  // after the verdict, cut by the request's end
    std::optional<FinishReason> ended;
  };
  struct StepTimes {
    double draft_ms = 0, verify_ms = 0;
    Clock::time_point judged_at;
  };

  Impl() = default;
  [[nodiscard]] Status Check(const Request& request, std::span<const Token> prompt) const;
  [[nodiscard]] Status Check(const MeasureOptions& options) const;
  std::vector<Token> PromptTokens(const Request& request) const;
  void Admit(const Request& request, std::size_t index, std::vector<Token> prompt, SeqId seq);
  const verify::Verifier& VerifierFor(const Request& request) const;

  // One target pass for all running requests; false when there are none.
  bool Step(const OnRound& on_round);
  void PlanWork() noexcept;
  void Propose() noexcept;
  void Flatten() noexcept;
  void JudgeAll() noexcept;
  void CommitAll(const OnRound& on_round, const StepTimes& times);
  void Commit(Work& work, const round::Verdict& verdict);
  void Count(const Work& work, const round::Verdict& verdict);
  void LearnCosts(const StepTimes& times) noexcept;
  void Finish(SeqId seq, FinishReason reason);
  // Logits of the work's i-th judged row: row 0 follows the newest committed token.
  const float* LogitsOf(const Work& work, int i) const {
    return target_->logits() + (work.first_logit + i) * target_->logits_stride();
  }

  EngineOptions options_;
  EngineSummary summary_;
  std::unique_ptr<formats::Checkpoint> checkpoint_, draft_checkpoint_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<ThreadPool> pool_;
  const kernels::Kernels* kernels_ = nullptr;
  std::unique_ptr<model::Model> target_;
  std::optional<kv::Cache> cache_;
  std::unique_ptr<draft::Drafter> drafter_;
  std::unique_ptr<verify::Verifier> greedy_, residual_, sample_match_;
  std::unique_ptr<verify::Verifier> synthetic_;  // null but for benchmarks: then it judges all
  int vocabulary_ = 0, context_size_ = 0;
  std::vector<Token> end_tokens_;

  // What draft lengths are chosen by.
  std::optional<engine::RoundCosts> costs_;
  engine::Survival survival_;   // over all requests
  double draft_prompt_ms_ = 0;  // of the last proposals' time

  // Running requests by sequence id; null where free.
  std::vector<std::unique_ptr<engine::Sequence>> sequences_;
  std::vector<Completion>* completions_ = nullptr;

  // The step being put together; capacities are taken at Open.
  std::vector<Work> work_;
  std::vector<draft::Ask> asks_;
  std::vector<round::Proposal> proposals_;
  std::vector<Token> tokens_;
  std::vector<model::Segment> segments_;
  std::vector<int> logit_rows_, kept_;
  std::vector<kv::Transaction::Rows> rows_;
  std::vector<round::Verdict> verdicts_;
  std::vector<draft::Observation> observations_;
  std::vector<TokenEvent> events_;
  AlignedBuffer<float> judge_scratch_;  // [2, vocabulary]
  std::optional<engine::LogprobReader> logprobs_;
};

}  // namespace foretoken
