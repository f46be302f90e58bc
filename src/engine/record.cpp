// SPDX-License-Identifier: Apache-2.0
// Tells the recorder what the engine does. Null without EngineOptions.record.
#include <fstream>

#include "engine/impl.h"
#include "foretoken/version.h"

namespace foretoken {
namespace {

// As the system names it; "" where it does not.
std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (const std::size_t colon = line.find(": ");
        line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  return "";
}

}  // namespace

Status Engine::Impl::OpenRecord() {
  if (options_.record.empty()) return {};
  const EngineSummary& s = summary_;
  TraceHeader header{.version = kVersion,
                     .cpu = ProcessorName(),
                     .isa = s.isa,
                     .threads = s.threads,
                     .model = s.target.path,
                     .model_type = s.target.type,
                     .draft_model = s.draft ? s.draft->path : "",
                     .draft_type = s.draft ? s.draft->type : "",
                     .method = s.method,
                     .strategy = s.strategy,
                     .lookahead = s.lookahead,
                     .num_speculative_tokens = s.num_speculative_tokens,
                     .context_size = context_size_,
                     .max_sequences = options_.max_sequences};
  FORETOKEN_TRY(recorder_, trace::RunRecorder::Create(options_.record, header));
  return {};
}

void Engine::Impl::RecordRequest(SeqId seq) {
  if (!recorder_) return;
  const engine::Sequence& s = *sequences_[static_cast<std::size_t>(seq)];
  const Request& request = s.request();
  const SamplingParameters& sampling = request.sampling;
  TracedRequest traced{.id = request.id,
                       .seed = request.seed,
                       .method = {},
                       .strategy = std::string(s.verifier->name()),
                       .lookahead = s.drafts() ? LookaheadOf(s) : options_.speculative.lookahead,
                       .num_speculative_tokens = s.most_drafts,
                       .temperature = sampling.temperature,
                       .top_p = sampling.top_p,
                       .min_p = sampling.min_p,
                       .top_k = sampling.top_k,
                       .prompt_tokens = s.sampler.position(),
                       .max_new_tokens = std::max(0, s.emitter.tokens_left())};
  for (const int d : s.drafters) {
    if (!traced.method.empty()) traced.method += ',';
    traced.method += drafters_[static_cast<std::size_t>(d)].name;
  }
  if (traced.method.empty()) traced.method = "none";
  recorder_->Begin(seq, traced);
}

// Before the verdicts: a sampler is then behind the newest committed token.
void Engine::Impl::RecordLaws() noexcept {
  if (!recorder_) return;
  for (const Work& work : work_)
    if (work.decodes)
      recorder_->ReadLaws(work.seq, work.proposal, {LogitsOf(work, 0), result_->logits_stride},
                          sequences_[static_cast<std::size_t>(work.seq)]->sampler,
                          judge_scratch_.data());
}

// After all that is timed, before ended sequences go.
void Engine::Impl::RecordPass(const StepTimes& times) noexcept {
  if (!recorder_) return;
  for (std::size_t i = 0; i < work_.size(); ++i) {
    const Work& work = work_[i];
    const engine::Sequence& s = *sequences_[static_cast<std::size_t>(work.seq)];
    if (work.again) continue;  // a trace knows one reading of a text
    const bool drafted = work.proposal.length() > 0;
    const auto drafter = static_cast<std::size_t>(std::max(0, work.drafter));
    recorder_->Add({.seq = work.seq,
                    .prefill = work.prefill,
                    .fed = work.n_feed,
                    .position = s.sampler.position() - work.n_committed,
                    .context = segments_[i].first_position,
                    .asked = work.prefill ? 0 : work.wanted,
                    .instant = drafted && drafters_[drafter].instant,
                    .evidence = drafted ? work.proposal.evidence : 0,
                    .drafter = drafted ? drafters_[drafter].name : std::string_view(),
                    .drafts = work.proposal.tokens,
                    .verdict = work.decodes ? &verdicts_[i] : nullptr,
                    .committed = work.n_committed,
                    .rest_us = 1000 * work.judge_ms,
                    .end = work.ended ? Name(*work.ended) : ""});
  }
  recorder_->EndPass({.rows = static_cast<int>(tokens_.size()),
                      .draft_us = 1000 * times.draft_ms,
                      .verify_us = 1000 * times.verify_ms});
}

// Drafts that were wanted for the plan; of made ones that are all taken, as many as were asked for,
// for then the drafter knew no more.
int Engine::Impl::Wanted(const draft_length::Plan& plan, int room) const noexcept {
  if (plan.offers.empty()) return 0;
  const draft_length::Offer& offer = plan.offers[static_cast<std::size_t>(plan.chosen)];
  if (!offer.made || plan.k < offer.most) return plan.k;
  return std::min(room, lookahead_->Most(plan.seq, static_cast<int>(plans_.size())));
}

// When nothing runs. A record that cannot be written harms no text: the first failure is a notice.
void Engine::Impl::PublishRecord() noexcept {
  if (!recorder_ || !waiting_.empty()) return;
  for (const auto& sequence : sequences_)
    if (sequence) return;
  const bool well = recorder_->status().has_value();
  if (const Status& status = recorder_->Publish(); well && !status) Notice(status.error().message);
}

}  // namespace foretoken
