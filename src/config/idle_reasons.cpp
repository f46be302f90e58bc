// SPDX-License-Identifier: Apache-2.0
#include "config/idle_reasons.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "draft/methods.h"
#include "foretoken/catalogue.h"
#include "foretoken/speculative_config.h"

namespace foretoken {
namespace idle {
namespace {

constexpr const char* kNothingDrafts = "nothing drafts";

bool Meets(const std::vector<std::string>& used, Names readers) {
  return std::any_of(used.begin(), used.end(), [readers](const std::string& name) {
    return std::find(readers.begin(), readers.end(), name) != readers.end();
  });
}

std::string OnlyReadBy(Names readers) {
  return fmt::format("only {} {} it", fmt::join(readers, ", "),
                     readers.size() == 1 ? "reads" : "read");
}

std::string OwnTextDecides(const Use& use) {
  return fmt::format("with {} a request's drafts depend on its own text alone",
                     fmt::join(use.strategies, ", "));
}

}  // namespace

std::string WhereDrafted(const Options&, const Use& use) {
  return use.methods.empty() ? kNothingDrafts : "";
}

std::string OfMethods(Names readers, const Use& use) {
  return Meets(use.methods, readers) ? "" : OnlyReadBy(readers);
}

std::string OfStrategies(Names readers, const Options& options, const Use& use) {
  if (use.methods.empty()) return kNothingDrafts;
  if (Meets(use.strategies, readers)) return "";
  const bool greedy = use.strategies == std::vector<std::string>{"greedy"};
  const bool asked =
      std::find(readers.begin(), readers.end(), Name(options.strategy)) != readers.end();
  return greedy && asked ? "at temperature 0 every strategy is greedy" : OnlyReadBy(readers);
}

std::string OfLookaheads(Names readers, const Use& use) {
  if (use.methods.empty()) return kNothingDrafts;
  return std::find(readers.begin(), readers.end(), use.controller) != readers.end()
             ? ""
             : fmt::format("only lookahead {} {} it", fmt::join(readers, ", "),
                           readers.size() == 1 ? "reads" : "read");
}

std::string IdleDraftModels(const Options&, const Use& use) {
  const auto readers = NamesWith(AllDrafters(), &DrafterInfo::reads_file, true);
  return Meets(use.methods, readers) ? "" : OnlyReadBy(readers);
}

std::string IdleForNetworks(const Options&, const Use& use) {
  std::vector<std::string_view> readers;
  for (const DrafterInfo* const drafter : AllDrafters())
    if (drafter->reads_file || drafter->copies_target) readers.push_back(drafter->name);
  return Meets(use.methods, readers) ? "" : OnlyReadBy(readers);
}

std::string IdleCopy(const Options& options, const Use& use) {
  if (options.method.empty() && options.self_draft == "off") return "";
  const auto readers = NamesWith(AllDrafters(), &DrafterInfo::copies_target, true);
  return Meets(use.methods, readers) ? "" : OnlyReadBy(readers);
}

std::string IdleBestBlocks(const Options& options, const Use& use) {
  if (options.draft_window == 0) return "without draft_window drafts see all of a text";
  return IdleCopy(options, use);
}

std::string ForCostModels(const Options&, const Use& use) {
  return OfLookaheads(NamesWith(AllControllers(), &ControllerInfo::weighs_costs, true), use);
}

std::string IdleMethod(const Options& options, const Use& use) {
  if (options.method == "none" || options.method.empty()) return "";
  for (const std::string_view method : MethodItems(options.method)) {
    const DrafterInfo* const drafter = FindDrafter(method);
    if (drafter != nullptr && !drafter->drafts_from.empty() &&
        !Meets(use.methods, std::array{method}))
      return fmt::format("{} drafts from {}, and there is none", method, drafter->drafts_from);
  }
  return WhereDrafted(options, use);
}

std::string IdleStrategy(const Options& options, const Use& use) {
  const std::string_view strategy = Name(options.strategy);
  if (options.strategy == VerifyStrategy::kAuto) return "";
  if (use.methods.empty()) return kNothingDrafts;
  if (Meets(use.strategies, std::array{strategy})) return "";
  return use.sampled ? fmt::format("{} verifies", fmt::join(use.strategies, ", "))
                     : "at temperature 0 every strategy is greedy";
}

std::string IdleTokens(const Options& options, const Use& use) {
  if (use.methods.empty()) return options.num_speculative_tokens == 0 ? "" : kNothingDrafts;
  if (use.controller != "batch-size" ||
      Meets(use.strategies, std::array<std::string_view, 1>{"synthetic"}))
    return "";
  int covered = 0;  // batch sizes 1 to this are in the table
  for (const BatchDraftLength& row : options.num_speculative_tokens_per_batch_size)
    if (row.least == covered + 1) covered = row.most;
  return covered >= use.max_sequences ? "the table of batch sizes decides" : "";
}

std::string IdleMixedTokens(const Options& options, const Use& use) {
  if (use.methods.empty()) return kNothingDrafts;
  if (!options.num_speculative_tokens_mixed_batch) return "";
  if (!use.learns_from_others) return OwnTextDecides(use);
  return use.max_sequences == 1 && options.first_target ? "one request runs at a time" : "";
}

// Drafters that know no probability of their tokens.
std::string IdleProbability(const Options&, const Use& use) {
  for (const std::string& method : use.methods) {
    const DrafterInfo* const drafter = FindDrafter(method);
    if (drafter == nullptr || drafter->reads_p_min) return "";
  }
  return use.methods.empty()
             ? kNothingDrafts
             : fmt::format("{} knows no probabilities", fmt::join(use.methods, ", "));
}

// Heads read what the pass over the prompt gives.
std::string IdleFirstTarget(const Options& options, const Use& use) {
  if (options.first_target) return "";
  for (const std::string& method : use.methods) {
    const DrafterInfo* const drafter = FindDrafter(method);
    if (drafter == nullptr || !drafter->reads_features) return "";
  }
  return use.methods.empty()
             ? kNothingDrafts
             : fmt::format("{} drafts behind the first token", fmt::join(use.methods, ", "));
}

// Synthetic acceptance takes the best token where nothing is drafted, too.
std::string IdleSynthetic(const Options&, const Use& use) {
  return use.methods.empty() && !use.sampled ? kNothingDrafts : "";
}

std::string IdleSyntheticEach(const Options& options, const Use& use) {
  if (use.methods.empty()) return kNothingDrafts;
  return options.synthetic_acceptance_rate ? "" : "only synthetic_acceptance_rate reads it";
}

std::string IdleThinking(const Options& options, const Use& use) {
  if (!options.use_relaxed_acceptance_for_thinking || use.relaxes_thinking)
    return use.methods.empty() ? kNothingDrafts : "";
  if (use.methods.empty()) return kNothingDrafts;
  return use.strategies == std::vector<std::string>{"greedy"}
             ? "at temperature 0 every strategy is greedy"
             : fmt::format("{} verifies the whole text", fmt::join(use.strategies, ", "));
}

std::string IdleMark(const Options&, const Use& use) {
  return use.relaxes_thinking ? "" : "only use_relaxed_acceptance_for_thinking reads it";
}

std::string IdleNgramMin(const Options& options, const Use& use) {
  if (options.ngram_storage == NgramStorage::kSingleLevel)
    return "single-level storage has contexts of ngram_max only";
  return OfMethods(std::array<std::string_view, 1>{"ngram"}, use);
}

// What earlier requests taught.
std::string OfLaterRequests(Names readers, const Use& use) {
  const std::string why = OfMethods(readers, use);
  if (!why.empty()) return why;
  if (!use.several_requests) return "there is one request";
  return use.learns_from_others ? "" : OwnTextDecides(use);
}

}  // namespace idle

std::string WhyNoPrediction(const SpeculativeUse& use) {
  constexpr std::array<std::string_view, 1> kPrediction = {"prediction"};
  return use.methods.empty()                     ? idle::kNothingDrafts
         : idle::Meets(use.methods, kPrediction) ? ""
                                                 : idle::OnlyReadBy(kPrediction);
}

}  // namespace foretoken
