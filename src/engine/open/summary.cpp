// SPDX-License-Identifier: Apache-2.0
#include "engine/open/summary.h"

#include <fmt/format.h>

#include <memory>

#include "foretoken/drafts.h"
#include "loader/load_model.h"

namespace foretoken::engine {
namespace {

constexpr const char* kPairTemplate = "tokenizer.chat_template.rerank";

// kLast where the file says nothing, or what is not known here.
Pooling PoolingOfFile(const Opened& opened) {
  const auto type =
      opened.checkpoint->metadata().Int(opened.summary.target.architecture + ".pooling_type");
  const bool known = type && *type >= 0 && *type <= static_cast<int>(Pooling::kRank);
  return known ? static_cast<Pooling>(*type) : Pooling::kLast;
}

void NoteThinking(Opened& opened, const SummarySources& from) {
  if (!opened.thinking || from.rules.verifiers().one_for_all()) return;
  opened.summary.notices.push_back(
      fmt::format("parts that think, from '{}' to '{}', are not exact above temperature 0: "
                  "relaxed verifies their drafts",
                  opened.thinking->begin(), opened.thinking->end()));
}

// Where a rule is set for all requests whose text depends on the drafts.
void NoteByText(Opened& opened, const SummarySources& from) {
  const auto& o = opened.options.speculative;
  Request warm;
  warm.sampling.temperature = 1;
  const bool set =
      o.strategy != VerifyStrategy::kAuto || from.rules.verifiers().own || opened.thinking;
  if (!set || from.drafters.defaults().empty() || !FindController(o.controller)->follows_load ||
      !from.rules.FollowsDrafts(warm, from.rules.VerifierFor(warm)))
    return;
  opened.summary.notices.push_back(fmt::format(
      "draft lengths: with {} the text depends on the drafts; above temperature 0 "
      "by-text chooses lengths in place of {}, so that a seed gives the same text "
      "again; a profile (SpeculativeOptions::profile) tells it what passes cost here",
      opened.thinking ? "relaxed acceptance" : "'" + opened.summary.strategy + "'", o.controller));
}

// kAuto may choose residual, and else what is lossless in any case.
bool StrategyIsLossless(const Opened& opened, const SummarySources& from) {
  const VerifyStrategy set = opened.options.speculative.strategy;
  return from.rules.verifiers()
      .Of(set == VerifyStrategy::kAuto ? VerifyStrategy::kResidual : set)
      .Lossless();
}

}  // namespace

void Summarise(Opened& opened, const SummarySources& from) {
  EngineSummary& s = opened.summary;
  const verify::Verifiers& verifiers = from.rules.verifiers();
  loader::Summarise(from.target, *opened.checkpoint,
                    loader::ResidentWeights(from.memory, opened.target->info()), opened.vocabulary,
                    s.target);
  s.target.end_tokens = opened.end_tokens;
  s.pooling = PoolingOfFile(opened);
  s.scores_pairs = opened.rerank_head != nullptr;
  if (const auto* const text = opened.checkpoint->metadata().String(kPairTemplate))
    s.pair_template = *text;
  for (const loader::DraftPart& draft : from.files.drafts) {
    DrafterSummary& summary = s.drafters.emplace_back();
    summary.name = draft.name;
    summary.method = draft.spec->info.name;
    loader::Summarise(draft.part, *draft.file, from.draft_bytes[s.drafters.size() - 1],
                      draft.shared.drafter, summary.model);
  }
  if (!s.drafters.empty()) s.draft_model = std::make_unique<ModelSummary>(s.drafters.front().model);
  s.memory = from.memory.needs;
  s.memory.scratch = from.scratch_bytes;
  s.available_bytes = from.memory.available;
  s.experts_paged = from.memory.paged;
  s.isa = opened.kernels->isa;
  s.threads = opened.options.threads;
  s.ranks = from.target.options.division.size();
  s.max_sequences = opened.options.max_sequences;
  s.method = opened.options.speculative.method;
  s.strategy = Name(opened.options.speculative.strategy);
  if (verifiers.synthetic) s.strategy = verifiers.synthetic->name();
  s.lossless = !verifiers.synthetic && StrategyIsLossless(opened, from) && !opened.thinking;
  if (verifiers.own && !verifiers.synthetic) {
    s.strategy = verifiers.own->name();
    s.lossless = verifiers.own->Lossless();
  }
  for (const loader::DrafterEntry& entry : from.drafters) s.methods.push_back(entry.name);
  s.methods.insert(s.methods.end(), {"portfolio", "none"});
  s.strategies = from.rules.StrategyNames();
  s.controller = opened.options.speculative.controller;
  NoteThinking(opened, from);
  NoteByText(opened, from);
  s.num_speculative_tokens =
      s.method == "none" ? 0 : *opened.options.speculative.num_speculative_tokens;
}

}  // namespace foretoken::engine
