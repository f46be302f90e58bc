// SPDX-License-Identifier: Apache-2.0
#include "settings/idle_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "foretoken/catalogue.h"
#include "foretoken/speculative_config.h"

namespace foretoken::settings {
namespace {

constexpr const char* kGreedy = "temperature 0 takes the most probable token";
constexpr const char* kNoDry = "--dry-multiplier is 0";
constexpr const char* kIds = "the prompt is given as token ids";

// Whether a model, a head or your own drafter drafts: these draw their drafts.
bool ModelDrafts(const SpeculativeUse& use) {
  return std::any_of(use.methods.begin(), use.methods.end(), [](const std::string& method) {
    const DrafterInfo* const drafter = FindDrafter(method);
    return drafter == nullptr || !drafter->lookup_only;
  });
}

std::string OfDraftModels(const GenerateSettings&, const SpeculativeUse& use) {
  return ModelDrafts(use) ? "" : "no model drafts";
}
std::string OfDrawnDrafts(const GenerateSettings& settings, const SpeculativeUse& use) {
  if (use.sampled_drafts) return "";
  return ModelDrafts(use) ? "the drafter's temperature is 0" : OfDraftModels(settings, use);
}
std::string OfDraws(const GenerateSettings&, const SpeculativeUse& use) {
  return use.sampled || use.sampled_drafts ? "" : kGreedy;
}
std::string OfPredictions(const GenerateSettings&, const SpeculativeUse& use) {
  return WhyNoPrediction(use);
}
std::string OfRepetitions(const GenerateSettings& settings, const SpeculativeUse&) {
  return settings.request.sampling.repetition_penalty == 1 ? "--repeat-penalty is 1" : "";
}
std::string OfDry(const GenerateSettings& settings, const SpeculativeUse&) {
  return settings.request.sampling.dry.multiplier == 0 ? kNoDry : "";
}
std::string OfPromptTexts(const GenerateSettings& settings, const SpeculativeUse&) {
  return settings.prompt_ids ? kIds : "";
}
std::string OfPlainPrompts(const GenerateSettings& settings, const SpeculativeUse& use) {
  return settings.chat ? "the chat template begins and ends the prompt"
                       : OfPromptTexts(settings, use);
}

// A flag that does not belong to SpeculativeKeys().
struct OtherFlag {
  const char* name;
  bool (*given)(const GenerateSettings& settings);
  std::string (*idle)(const GenerateSettings& settings, const SpeculativeUse& use);
};
using S = GenerateSettings;
constexpr auto kOtherFlags = std::to_array<OtherFlag>({
    {"-md", [](const S& s) { return s.draft_model_given; }, OfDraftModels},
    {"--draft-temp", [](const S& s) { return s.draft_temperature.has_value(); }, OfDraftModels},
    {"--draft-top-k", [](const S& s) { return s.draft_top_k.has_value(); }, OfDrawnDrafts},
    {"--draft-top-p", [](const S& s) { return s.draft_top_p.has_value(); }, OfDrawnDrafts},
    {"--draft-min-p", [](const S& s) { return s.draft_min_p.has_value(); }, OfDrawnDrafts},
    {"--prediction", [](const S& s) { return !s.request.prediction.empty() && !s.prediction_file; },
     OfPredictions},
    {"--prediction-file", [](const S& s) { return s.prediction_file.has_value(); }, OfPredictions},
    {"--top-k", [](const S& s) { return s.request.sampling.top_k > 0; }, OfDraws},
    {"--top-p", [](const S& s) { return s.request.sampling.top_p < 1; }, OfDraws},
    {"--min-p", [](const S& s) { return s.request.sampling.min_p > 0; }, OfDraws},
    {"--typical-p", [](const S& s) { return s.request.sampling.typical_p < 1; }, OfDraws},
    {"--eta", [](const S& s) { return s.request.sampling.eta > 0; }, OfDraws},
    {"--repeat-last-n", [](const S& s) { return s.request.sampling.repetition_window != -1; },
     OfRepetitions},
    {"--dry-base", [](const S& s) { return s.request.sampling.dry.base != DryPenalty().base; },
     OfDry},
    {"--dry-allowed-length",
     [](const S& s) {
       return s.request.sampling.dry.allowed_length != DryPenalty().allowed_length;
     },
     OfDry},
    {"--dry-penalty-last-n", [](const S& s) { return s.request.sampling.dry.window != -1; }, OfDry},
    {"--dry-sequence-breaker", [](const S& s) { return !s.dry_breakers.empty(); }, OfDry},
    {"--special", [](const S& s) { return s.request.parse_special; }, OfPromptTexts},
    {"--no-bos", [](const S& s) { return !s.request.add_special; }, OfPlainPrompts},
});

bool IsDefault(const SpeculativeKey& key, const SpeculativeOptions& options) {
  return key.print(options) == key.print(SpeculativeOptions());
}

}  // namespace

std::vector<IdleSetting> IdleSettings(const GenerateSettings& settings, const SpeculativeUse& use) {
  const SpeculativeOptions& options = settings.engine.speculative;
  std::vector<IdleSetting> idle;
  for (const SpeculativeKey& key : SpeculativeKeys()) {
    // If several name a key, the last one counts.
    const auto given = std::find_if(settings.given.rbegin(), settings.given.rend(),
                                    [&](const GivenSetting& g) { return g.key == &key; });
    if (given == settings.given.rend() || (given->in_file && IsDefault(key, options))) continue;
    if (std::string why = key.idle(options, use); !why.empty())
      idle.push_back({given->name, std::move(why)});
  }
  for (const OtherFlag& flag : kOtherFlags) {
    if (!flag.given(settings)) continue;
    if (std::string why = flag.idle(settings, use); !why.empty())
      idle.push_back({flag.name, std::move(why)});
  }
  return idle;
}

std::string IdleNotice(const GenerateSettings& settings, const SpeculativeUse& use,
                       std::vector<IdleSetting> more) {
  std::vector<IdleSetting> idle = IdleSettings(settings, use);
  std::move(more.begin(), more.end(), std::back_inserter(idle));
  std::string list;
  for (const auto& [name, why] : idle)
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", name, why);
  return list.empty() ? list
                      : fmt::format("without effect here: {}; leave {} out", list,
                                    idle.size() == 1 ? "it" : "them");
}

}  // namespace foretoken::settings
