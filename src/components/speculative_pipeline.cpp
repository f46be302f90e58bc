// SPDX-License-Identifier: Apache-2.0
#include "foretoken/speculative_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/parts.h"
#include "foretoken/result.h"
#include "foretoken/speculative_config.h"
#include "round/stats_total.h"

namespace foretoken {
namespace {

void AddRow(RaggedBatch& batch, const std::string& id, std::span<const Token> tokens,
            std::span<const Token> more = {}) {
  batch.request_ids.push_back(id);
  batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
  batch.tokens.insert(batch.tokens.end(), more.begin(), more.end());
  batch.row_offsets.push_back(static_cast<int>(batch.tokens.size()));
}

std::vector<float> Copied(const TokenRows& rows) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(rows.rows) *
                 static_cast<std::size_t>(rows.vocabulary_size));
  for (int i = 0; i < rows.rows; ++i)
    values.insert(values.end(), rows.Row(i).begin(), rows.Row(i).end());
  return values;
}

std::vector<std::optional<double>> Rates(const std::vector<std::int64_t>& part,
                                         const std::vector<std::int64_t>& whole) {
  std::vector<std::optional<double>> rates(whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (whole[i] > 0) rates[i] = static_cast<double>(part[i]) / static_cast<double>(whole[i]);
  return rates;
}

}  // namespace

class StandaloneSpeculativeDecodingPipeline::Impl {
 public:
  Impl(std::unique_ptr<Engine> engine, int max_requests)
      : engine_(std::move(engine)), max_requests_(max_requests) {}

  Status Select(std::span<const TextGenerationBatch> replicas);
  PreparedBatch Prepared() const;
  Result<std::map<std::string, Drafts>> Draft(const DraftOptions& options);
  Result<std::map<std::string, TextGenerationOutput>> Verify(const VerifyOptions& options);
  Result<Completion> Release(const std::string& id);

  SpeculationStats Stats() const { return total_.Read(Running()); }
  void ResetStats() { total_.Reset(Running()); }
  const Engine& engine() const { return *engine_; }

 private:
  // A request from its first step to its release.
  struct Entry {
    Ticket ticket = 0;
    TextGenerationOutput output;           // of the running step
    std::optional<Completion> completion;  // once it is done
    bool fresh = false;                    // it is just beginning
  };

  EngineParts::Impl& parts() const { return EngineParts::Of(engine_); }
  Result<std::vector<std::string>> Flatten(std::span<const TextGenerationBatch> replicas) const;
  Status BeginNew(std::span<const TextGenerationBatch> replicas);
  OnRound Watch(Entry& entry);
  void Collect();
  SpeculationStats Running() const;

  std::unique_ptr<Engine> engine_;
  const int max_requests_;
  std::map<std::string, Entry> entries_;
  std::vector<std::string> current_;  // of the step in hand
  bool prepared_ = false, drafted_ = false;
  VerifyOptions wanted_;  // of the running verification
  round::StatsTotal total_;
};

Result<std::vector<std::string>> StandaloneSpeculativeDecodingPipeline::Impl::Flatten(
    std::span<const TextGenerationBatch> replicas) const {
  std::vector<std::string> ids;
  std::set<std::string_view> seen;
  std::size_t unfinished = 0;
  for (const TextGenerationBatch& batch : replicas)
    for (const auto& [id, request] : batch) {
      if (!seen.insert(id).second)
        return InvalidArgument(
            fmt::format("request '{}': it is in two batches; put it into one", Shown(id)));
      unfinished += !entries_.contains(id);
      ids.push_back(id);
    }
  for (const auto& [id, entry] : entries_) unfinished += !entry.completion;
  if (unfinished > static_cast<std::size_t>(max_requests_))
    return Fail(ErrorCode::kTooLarge,
                fmt::format("requests: {} would have begun and not be done, and this pipeline "
                            "holds {}; release some or raise max_sequences",
                            unfinished, max_requests_));
  return ids;
}

// Who takes part in the next step.
Status StandaloneSpeculativeDecodingPipeline::Impl::Select(
    std::span<const TextGenerationBatch> replicas) {
  FORETOKEN_TRY(auto ids, Flatten(replicas));
  if (current_.empty()) drafted_ = false;  // the requests of these drafts were released
  if (drafted_) {
    if (ids == current_) return {};
    return InvalidArgument("batches: drafts of other requests wait; verify them first");
  }
  FORETOKEN_CHECK_OK(BeginNew(replicas));
  current_ = std::move(ids);
  for (const auto& [id, entry] : entries_) parts().Pause(entry.ticket, true);
  for (const std::string& id : current_) {
    Entry& entry = entries_.at(id);
    parts().Pause(entry.ticket, false);
    entry.output = {};
  }
  parts().Plan();
  Collect();
  prepared_ = true;
  return {};
}

// All or none.
Status StandaloneSpeculativeDecodingPipeline::Impl::BeginNew(
    std::span<const TextGenerationBatch> replicas) {
  Status begun = CatchNoMemory("batches", [&]() -> Status {
    for (const TextGenerationBatch& batch : replicas)
      for (const auto& [id, request] : batch) {
        const auto [at, added] = entries_.try_emplace(id, Entry{.fresh = true});
        if (!added) continue;
        auto ticket = parts().Begin(request, Watch(at->second));
        if (!ticket)
          return Fail(std::move(ticket).error().In(fmt::format("request '{}'", Shown(id))));
        at->second.ticket = *ticket;
      }
    return {};
  });
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = at->second;
    const bool undo = std::exchange(entry.fresh, false) && !begun;
    if (undo) parts().End(entry.ticket), parts().Take(entry.ticket);
    at = undo ? entries_.erase(at) : std::next(at);
  }
  return begun;
}

// The entry stays where it is until its request has ended.
OnRound StandaloneSpeculativeDecodingPipeline::Impl::Watch(Entry& entry) {
  return [this, &entry](const RoundEvent& round) {
    TextGenerationOutput& output = entry.output;
    for (const TokenEvent& event : round.events) {
      output.tokens.push_back(event.id);
      output.text += event.text;
      output.accepted += event.origin == TokenOrigin::kAccepted;
      if (event.origin == TokenOrigin::kRecovered) output.recovered_token = event.id;
      if (event.origin == TokenOrigin::kBonus) output.bonus_token = event.id;
      if (event.logprobs != nullptr) output.logprobs.push_back(*event.logprobs);
    }
    output.drafted = round.drafted;
    output.vocabulary_size = parts().vocabulary();
    if (wanted_.target_logits) output.target_logits = Copied(parts().TargetRowsOf(entry.ticket));
    return true;
  };
}

void StandaloneSpeculativeDecodingPipeline::Impl::Collect() {
  for (const std::string& id : current_) {
    Entry& entry = entries_.at(id);
    if (entry.completion) continue;
    entry.completion = parts().Take(entry.ticket);
    if (entry.completion) total_.Add(entry.completion->speculation);
  }
}

PreparedBatch StandaloneSpeculativeDecodingPipeline::Impl::Prepared() const {
  PreparedBatch batch;
  batch.target.row_offsets = batch.draft.row_offsets = {0};
  for (const std::string& id : current_) {
    const Ticket ticket = entries_.at(id).ticket;
    AddRow(batch.target, id, parts().FeedOf(ticket), parts().ProposalOf(ticket).tokens);
    AddRow(batch.draft, id, drafted_ ? std::span<const Token>() : parts().DraftFeedOf(ticket));
  }
  return batch;
}

Result<std::map<std::string, Drafts>> StandaloneSpeculativeDecodingPipeline::Impl::Draft(
    const DraftOptions& options) {
  if (!prepared_) return InvalidArgument("drafts: nothing is prepared; call PrepareBatch first");
  FORETOKEN_TRY(const auto wants, EngineParts::WantsOf(options));
  parts().Draft(wants);
  drafted_ = true;
  std::map<std::string, Drafts> drafts;
  for (const std::string& id : current_) {
    const round::Proposal proposal = parts().ProposalOf(entries_.at(id).ticket);
    Drafts& out = drafts[id];
    out.tokens.assign(proposal.tokens.begin(), proposal.tokens.end());
    for (int i = 0; proposal.q != nullptr && i < proposal.length(); ++i)
      out.probabilities.push_back(
          proposal.Distribution(i)[proposal.tokens[static_cast<std::size_t>(i)]]);
    out.vocabulary_size = parts().vocabulary();
    if (options.distributions) out.distributions = Copied(parts().RowsOf(proposal, proposal.q));
    if (options.logits) out.logits = Copied(parts().RowsOf(proposal, proposal.logits));
  }
  return drafts;
}

Result<std::map<std::string, TextGenerationOutput>>
StandaloneSpeculativeDecodingPipeline::Impl::Verify(const VerifyOptions& options) {
  if (!drafted_)
    return InvalidArgument("verify: no drafts were generated; call GenerateDraftTokens first");
  wanted_ = options;
  if (options.target_logits) parts().KeepRowsWhole();
  if (parts().drafted()) parts().Verify();  // not where all are done
  prepared_ = drafted_ = false;
  Collect();
  std::map<std::string, TextGenerationOutput> outputs;
  for (const std::string& id : current_) {
    Entry& entry = entries_.at(id);
    entry.output.done = entry.completion.has_value();
    if (entry.completion) entry.output.finish_reason = entry.completion->finish_reason;
    outputs[id] = std::move(entry.output);
  }
  return outputs;
}

Result<Completion> StandaloneSpeculativeDecodingPipeline::Impl::Release(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end())
    return Fail(ErrorCode::kNotFound,
                fmt::format("request '{}': it is not known; execute it first", Shown(id)));
  Entry& entry = found->second;
  if (!entry.completion) {
    parts().End(entry.ticket);
    entry.completion = parts().Take(entry.ticket);
    total_.Add(entry.completion->speculation);
  }
  Completion completion = *std::move(entry.completion);
  entries_.erase(found);
  std::erase(current_, id);
  if (completion.error) return Fail(*std::move(completion.error));
  return completion;
}

SpeculationStats StandaloneSpeculativeDecodingPipeline::Impl::Running() const {
  SpeculationStats sum;
  for (const auto& [id, entry] : entries_)
    if (const engine::Sequence* const s =
            entry.completion ? nullptr : parts().SequenceOf(entry.ticket))
      sum.Add(s->completion.speculation);
  return sum;
}

StandaloneSpeculativeDecodingPipeline::StandaloneSpeculativeDecodingPipeline(
    std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
StandaloneSpeculativeDecodingPipeline::~StandaloneSpeculativeDecodingPipeline() = default;

Result<std::unique_ptr<StandaloneSpeculativeDecodingPipeline>>
StandaloneSpeculativeDecodingPipeline::Create(EngineOptions options) {
  if (options.DraftFiles().empty())
    return InvalidArgument(
        "draft model: none is given, and this pipeline drafts with one; give its path");
  if (options.speculative.method.empty()) options.speculative.method = "standalone";
  const std::string method = options.speculative.method;
  const int max_sequences = options.max_sequences;
  FORETOKEN_TRY(auto engine, Engine::Open(std::move(options)));
  if (engine->summary().method != "standalone")
    return InvalidField("speculative_method",
                        fmt::format("'{}' is not what this pipeline drafts with; use "
                                    "standalone",
                                    method));
  return std::unique_ptr<StandaloneSpeculativeDecodingPipeline>(
      new StandaloneSpeculativeDecodingPipeline(
          std::make_unique<Impl>(std::move(engine), max_sequences)));
}

Result<std::map<std::string, TextGenerationOutput>> StandaloneSpeculativeDecodingPipeline::Execute(
    std::span<const TextGenerationBatch> replicas) {
  return CatchNoMemory("pipeline", [&]() -> Result<std::map<std::string, TextGenerationOutput>> {
    FORETOKEN_CHECK_OK(impl_->Select(replicas));
    FORETOKEN_CHECK_OK(impl_->Draft({}));
    return impl_->Verify({});
  });
}

Result<PreparedBatch> StandaloneSpeculativeDecodingPipeline::PrepareBatch(
    std::span<const TextGenerationBatch> replicas) {
  return CatchNoMemory("pipeline", [&]() -> Result<PreparedBatch> {
    FORETOKEN_CHECK_OK(impl_->Select(replicas));
    return impl_->Prepared();
  });
}

Result<std::map<std::string, Drafts>> StandaloneSpeculativeDecodingPipeline::GenerateDraftTokens(
    const DraftOptions& options) {
  return CatchNoMemory("pipeline", [&] { return impl_->Draft(options); });
}

Result<std::map<std::string, Drafts>> StandaloneSpeculativeDecodingPipeline::GenerateDraftTokens(
    std::span<const TextGenerationBatch> replicas, int num_steps, DraftOptions options) {
  return CatchNoMemory("pipeline", [&]() -> Result<std::map<std::string, Drafts>> {
    FORETOKEN_CHECK_OK(impl_->Select(replicas));
    options.num_steps = num_steps;
    return impl_->Draft(options);
  });
}

Result<std::map<std::string, TextGenerationOutput>>
StandaloneSpeculativeDecodingPipeline::VerifyDraftTokensWithTargetModel(
    const VerifyOptions& options) {
  return CatchNoMemory("pipeline", [&] { return impl_->Verify(options); });
}

SpeculativeDecodingMetrics StandaloneSpeculativeDecodingPipeline::SpecDecodeMetrics() const {
  const SpeculationStats s = impl_->Stats();
  return {.rounds = s.rounds,
          .draft_rounds = s.draft_rounds,
          .drafted = s.drafted,
          .accepted = s.accepted,
          .emitted = s.emitted,
          .drafted_per_position = s.drafted_per_position,
          .accepted_per_position = s.accepted_per_position,
          .acceptance_rate = s.acceptance_rate(),
          .acceptance_rate_per_position = Rates(s.accepted_per_position, s.drafted_per_position),
          .conditional_acceptance_rate_per_position =
              Rates(s.accepted_per_position, s.verified_per_position),
          .mean_acceptance_length = s.mean_acceptance_length()};
}

void StandaloneSpeculativeDecodingPipeline::ResetMetrics() {
  impl_->ResetStats();
}

Result<Completion> StandaloneSpeculativeDecodingPipeline::Release(const std::string& request_id) {
  return CatchNoMemory("pipeline", [&] { return impl_->Release(request_id); });
}

const Engine& StandaloneSpeculativeDecodingPipeline::engine() const {
  return impl_->engine();
}

}  // namespace foretoken
