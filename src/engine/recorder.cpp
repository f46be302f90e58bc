// SPDX-License-Identifier: Apache-2.0
#include "engine/recorder.h"

#include <algorithm>

#include "base/machine/cpus.h"
#include "foretoken/catalogue.h"

namespace foretoken::engine {
Status Recorder::Open(const EngineSummary& s, int vocabulary) {
  if (options_.record.empty()) return {};
  const TraceHeader header{.version = kVersion,
                           .cpu = CpuName(),
                           .isa = s.isa,
                           .threads = s.threads,
                           .model = s.target.path,
                           .model_type = s.target.type,
                           .draft_model = s.draft_model ? s.draft_model->path : "",
                           .draft_type = s.draft_model ? s.draft_model->type : "",
                           .method = s.method,
                           .strategy = s.strategy,
                           .controller = s.controller,
                           .num_speculative_tokens = s.num_speculative_tokens,
                           .context_size = options_.context_size,
                           .max_sequences = options_.max_sequences};
  FORETOKEN_TRY(recorder_, trace::RunRecorder::Create(options_.record, header));
  scratch_ = AlignedBuffer<float>(2 * static_cast<std::size_t>((vocabulary + 15) / 16 * 16));
  return {};
}

void Recorder::Begin(SeqId seq, const Sequence& s, const std::string& controller) {
  if (!recorder_) return;
  const Request& request = s.request();
  const SamplingParameters& sampling = request.sampling;
  TracedRequest traced{.id = request.id,
                       .seed = request.seed,
                       .method = {},
                       .strategy = std::string(s.verifier->name()),
                       .controller = s.drafts() ? controller : options_.speculative.controller,
                       .num_speculative_tokens = s.most_drafts,
                       .temperature = sampling.temperature,
                       .top_p = sampling.top_p,
                       .min_p = sampling.min_p,
                       .top_k = sampling.top_k,
                       .prompt_tokens = s.sampler.position(),
                       .max_new_tokens = std::max(0, s.emitter.tokens_left())};
  for (const int d : s.drafters) {
    if (!traced.method.empty()) traced.method += ',';
    traced.method += drafters_[d].name;
  }
  if (traced.method.empty()) traced.method = "none";
  recorder_->Begin(seq, traced);
}

void Recorder::ReadDistributions(const PassPlan& plan, const Proposals& drafts,
                                 const FlatPass& pass, const model::PassResult& result,
                                 const Sequences& sequences) noexcept {
  if (!recorder_) return;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const PlannedSequence& planned = plan.entries[i];
    if (!planned.decodes) continue;
    recorder_->ReadDistributions(planned.seq, drafts.entries[i].proposal,
                                 {result.Logits(pass.entries[i].first_logit), result.logits_stride},
                                 sequences.At(planned.seq).sampler, scratch_.data());
  }
}

void Recorder::Add(const PassRecord& record, const PassTimes& times) noexcept {
  if (!recorder_) return;
  for (std::size_t i = 0; i < record.plan.size(); ++i) {
    const PlannedSequence& planned = record.plan.entries[i];
    if (planned.again) continue;  // a trace holds the first reading of a text only
    const Sequence& s = record.sequences.At(planned.seq);
    const DraftedSequence& drafted = record.drafts.entries[i];
    const CommittedSequence& committed = record.commits.entries[i];
    const bool has_drafts = drafted.length() > 0;
    const loader::DrafterEntry& drafter = drafters_[std::max(0, drafted.drafter)];
    recorder_->Add(
        {.seq = planned.seq,
         .prefill = planned.prefill,
         .fed = planned.n_feed,
         .position = s.sampler.position() - committed.n_committed,
         .context = record.pass.entries[i].first_position,
         .asked = planned.prefill ? 0 : drafted.wanted,
         .instant = has_drafts && drafter.instant,
         .at_once = has_drafts && drafter.drafter->DraftsAtOnce(),
         .evidence = has_drafts ? drafted.proposal.evidence : 0,
         .drafter = has_drafts ? std::string_view(drafter.name) : std::string_view(),
         .drafts = drafted.proposal.tokens,
         .verdict = planned.decodes ? &record.verdicts.entries[i].verdict : nullptr,
         .committed = committed.n_committed,
         .rest_us = committed.whole ? 1000 * committed.MillisecondsAfter(times.passed) : 0,
         .end = committed.ended ? Name(*committed.ended) : ""});
  }
  recorder_->EndPass({.rows = record.pass.n_rows(),
                      .draft_us = 1000 * times.draft_ms,
                      .verify_us = 1000 * times.verify_ms});
}

// A trace that cannot be written does not stop the requests.
Status Recorder::Publish() noexcept {
  if (!recorder_) return {};
  const bool well = recorder_->status().has_value();
  const Status& status = recorder_->Publish();
  return well ? status : Status();
}

}  // namespace foretoken::engine
