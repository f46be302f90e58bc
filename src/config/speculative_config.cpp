// SPDX-License-Identifier: Apache-2.0
#include "foretoken/speculative_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "draft/methods.h"
#include "draft_length/registry.h"
#include "foretoken/catalogue.h"

namespace foretoken {
namespace {

// Each value as if it came from a file: the table knows the ranges.
Result<SpeculativeOptions> CheckRanges(const SpeculativeOptions& options) {
  SpeculativeOptions checked;
  for (const SpeculativeKey& key : SpeculativeKeys()) {
    if (Status status = key.set(checked, key.print(options)); !status)
      return Fail(std::move(status.error()).Of(key.name));
  }
  return checked;
}

Status CheckMethods(const SpeculativeOptions& o) {
  const auto all = AllDrafters();
  const bool reads = o.method.empty() || UsesMethod(o.method, "portfolio") ||
                     FileReader(o.method) != nullptr ||
                     std::any_of(all.begin(), all.end(), [&](const DrafterInfo* drafter) {
                       return drafter->copies_target && UsesMethod(o.method, drafter->name);
                     });
  if (o.draft_vocabulary.value_or(0) > 0 && !reads)
    return InvalidField("draft_vocabulary",
                        fmt::format("'{}' drafts without an output head; "
                                    "leave it out, or use a draft model, a head or self",
                                    o.method));
  if (!o.draft_vocabulary_sample.empty() && o.draft_vocabulary == 0)
    return InvalidField("draft_vocabulary_sample",
                        "draft_vocabulary is 0, so there is no reduced output; give a "
                        "number or leave the sample out");
  return {};
}

Status CheckLengths(const SpeculativeOptions& o) {
  const int ceiling = o.num_speculative_tokens.value_or(draft_length::DefaultCeiling(o));
  if (o.min_speculative_tokens > ceiling)
    return InvalidField("min_speculative_tokens",
                        fmt::format("{} is more than the {} that a round drafts at "
                                    "most; lower it or raise num_speculative_tokens",
                                    o.min_speculative_tokens, ceiling));
  const bool bent = o.acceptance_threshold != 0 || o.skip_sample_adjustment;
  const StrategyInfo* const strategy = FindStrategy(Name(o.strategy));  // null: auto
  const bool verifies_distributions = strategy != nullptr ? strategy->needs_q : bent;
  if (o.min_speculative_tokens > 0 && verifies_distributions && !o.synthetic_acceptance_rate)
    return InvalidField(
        "min_speculative_tokens",
        fmt::format(
            "under {} a drawn draft must be verified, and "
            "dropping short ones would bias the text; set it to 0 or use "
            "sample-match",
            Name(o.strategy == VerifyStrategy::kAuto ? VerifyStrategy::kResidual : o.strategy)));
  if (auto adaptive_lookahead = AdaptiveLookahead::Create(o.adaptive_lookahead);
      !adaptive_lookahead)
    return Fail(std::move(adaptive_lookahead).error());
  const auto& table = o.num_speculative_tokens_per_batch_size;
  if (o.controller == "batch-size" && table.empty())
    return InvalidField("lookahead",
                        "batch-size has no table; give num_speculative_tokens_per_batch_size");
  if (o.controller != "batch-size" && !table.empty())
    return InvalidField("num_speculative_tokens_per_batch_size",
                        fmt::format("lookahead is {}, which does not "
                                    "read it; write lookahead: batch-size or leave the table out",
                                    o.controller));
  for (const BatchDraftLength& row : table)
    if (o.num_speculative_tokens && row.num_speculative_tokens > *o.num_speculative_tokens)
      return InvalidField("num_speculative_tokens_per_batch_size",
                          fmt::format("{} is more than the {} of "
                                      "num_speculative_tokens; lower it or raise those",
                                      row.num_speculative_tokens, *o.num_speculative_tokens));
  if (o.num_speculative_tokens_mixed_batch.value_or(0) > ceiling)
    return InvalidField("num_speculative_tokens_mixed_batch",
                        fmt::format("{} is more than the {} that a round "
                                    "drafts at most; lower it or raise num_speculative_tokens",
                                    *o.num_speculative_tokens_mixed_batch, ceiling));
  const auto& widths = o.adaptive_speculative_widths;
  if (!widths.empty() && widths.back() > ceiling)
    return InvalidField("adaptive_speculative_widths",
                        fmt::format("{} is more than the {} that a round drafts at "
                                    "most; leave it out or raise num_speculative_tokens",
                                    widths.back(), ceiling));
  if (!widths.empty() && widths.back() < o.min_speculative_tokens)
    return InvalidField("adaptive_speculative_widths",
                        fmt::format("none is as long as the {} of "
                                    "min_speculative_tokens; lower that or add a longer one",
                                    o.min_speculative_tokens));
  if (o.ngram_min > o.ngram_max)
    return InvalidField("ngram_min",
                        fmt::format("{} is more than the {} of ngram_max; lower it or raise that",
                                    o.ngram_min, o.ngram_max));
  return {};
}

// Methods without distributions: every draft is certain.
bool AllCertain(const SpeculativeOptions& options) {
  const auto methods = MethodItems(options.method);
  return !methods.empty() && std::all_of(methods.begin(), methods.end(), [](std::string_view m) {
    const DrafterInfo* const drafter = FindDrafter(DrafterOf(m));
    return drafter != nullptr && !drafter->reports_q;
  });
}

Status CheckStrategy(const SpeculativeOptions& o) {
  const bool residual =
      o.strategy == VerifyStrategy::kAuto || o.strategy == VerifyStrategy::kResidual;
  for (const auto& [key, on] : {std::pair("acceptance_threshold", o.acceptance_threshold != 0),
                                {"skip_sample_adjustment", o.skip_sample_adjustment}}) {
    if (!on) continue;
    if (!residual)
      return InvalidField(
          key, fmt::format("{} does not read it, only residual does; leave one of them out",
                           Name(o.strategy)));
    if (AllCertain(o))
      return InvalidField(key, fmt::format("'{}' reports no distributions, and residual, which "
                                           "reads them, needs them; leave it out",
                                           o.method));
  }
  if (o.synthetic_acceptance_rate || !AllCertain(o)) return {};
  const StrategyInfo* const strategy = FindStrategy(Name(o.strategy));  // null: auto
  if (strategy != nullptr && strategy->needs_q)
    return InvalidField("rejection_sampling_strategy",
                        fmt::format("'{}' needs a drafter that reports its distributions, and "
                                    "'{}' reports none; use sample-match",
                                    Name(o.strategy), o.method));
  if (strategy != nullptr && strategy->needs_logits)
    return InvalidField("rejection_sampling_strategy",
                        fmt::format("'{}' needs a drafter that reports its logits, "
                                    "and '{}' reports none; use sample-match",
                                    strategy->name, o.method));
  return {};
}

}  // namespace

Result<SpeculativeConfig> SpeculativeConfig::Create(const SpeculativeOptions& options) {
  FORETOKEN_TRY(SpeculativeOptions checked, CheckRanges(options));
  FORETOKEN_CHECK_OK(CheckMethods(checked));
  FORETOKEN_CHECK_OK(CheckLengths(checked));
  FORETOKEN_CHECK_OK(CheckStrategy(checked));
  return SpeculativeConfig(std::move(checked));
}

Result<SpeculativeConfig> SpeculativeConfig::Load(const std::string& path, std::string_view section,
                                                  SpeculativeOptions base, ConfigDialect dialect) {
  FORETOKEN_TRY(dialect, ReadSpeculativeFile(path, section, base, dialect));
  auto config = Create(base);
  if (!config) return Fail(std::move(config).error().In(path));
  config->dialect_ = dialect;
  return config;
}

Result<SpeculativeConfig> SpeculativeConfig::With(std::string_view key,
                                                  const std::string& value) const {
  SpeculativeOptions changed = options_;
  FORETOKEN_CHECK_OK(SetSpeculativeOption(changed, key, value));
  FORETOKEN_TRY(SpeculativeConfig config, Create(changed));
  config.dialect_ = dialect_;
  return config;
}

bool SpeculativeConfig::lossless() const {
  const SpeculativeOptions& o = options_;
  const StrategyInfo* const strategy = FindStrategy(Name(o.strategy));  // null: auto
  return !o.synthetic_acceptance_rate && o.acceptance_threshold == 0 && !o.skip_sample_adjustment &&
         !o.use_relaxed_acceptance_for_thinking && (strategy == nullptr || strategy->lossless);
}

}  // namespace foretoken
