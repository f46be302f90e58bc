// SPDX-License-Identifier: Apache-2.0
#include "settings/idle_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "foretoken/catalogue.h"
#include "foretoken/option_keys.h"
#include "foretoken/speculative_config.h"

namespace foretoken::settings {
namespace {

constexpr const char* kGreedy = "temperature 0 takes the most probable token";
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
// "--dry-multiplier is 0", if it has its default, which turns it off.
std::string WhyOff(const SamplingKey& key, const SamplingParameters& sampling) {
  const double value = key.Of(sampling);
  return value == key.Of(SamplingParameters()) ? fmt::format("{} is {}", key.flag.name, value) : "";
}
std::string OfDraws(const GenerateSettings&, const SpeculativeUse& use) {
  return use.sampled || use.sampled_drafts ? "" : kGreedy;
}
std::string OfPredictions(const GenerateSettings&, const SpeculativeUse& use) {
  return WhyNoPrediction(use);
}
std::string OfBreakers(const GenerateSettings& settings, const SpeculativeUse&) {
  return WhyOff(*FindSamplingKey("dry_multiplier"), settings.request.sampling);
}
std::string OfPromptTexts(const GenerateSettings& settings, const SpeculativeUse&) {
  return settings.prompt_ids ? kIds : "";
}
std::string OfPlainPrompts(const GenerateSettings& settings, const SpeculativeUse& use) {
  return settings.chat ? "the chat template begins and ends the prompt"
                       : OfPromptTexts(settings, use);
}

// A flag that belongs neither to SpeculativeKeys() nor to SamplingKeys().
struct OtherFlag {
  const char* name;
  bool (*given)(const GenerateSettings& settings);
  std::string (*idle)(const GenerateSettings& settings, const SpeculativeUse& use);
};
using S = GenerateSettings;
constexpr auto kDraftingFlags = std::to_array<OtherFlag>({
    {"-md", [](const S& s) { return s.draft_model_given; }, OfDraftModels},
    {"--draft-temp", [](const S& s) { return s.draft_temperature.has_value(); }, OfDraftModels},
    {"--draft-top-k", [](const S& s) { return s.draft_top_k.has_value(); }, OfDrawnDrafts},
    {"--draft-top-p", [](const S& s) { return s.draft_top_p.has_value(); }, OfDrawnDrafts},
    {"--draft-min-p", [](const S& s) { return s.draft_min_p.has_value(); }, OfDrawnDrafts},
    {"--prediction", [](const S& s) { return !s.request.prediction.empty() && !s.prediction_file; },
     OfPredictions},
    {"--prediction-file", [](const S& s) { return s.prediction_file.has_value(); }, OfPredictions},
});
constexpr auto kTextFlags = std::to_array<OtherFlag>({
    {"--dry-sequence-breaker", [](const S& s) { return !s.dry_breakers.empty(); }, OfBreakers},
    {"--special", [](const S& s) { return s.request.parse_special; }, OfPromptTexts},
    {"--no-bos", [](const S& s) { return !s.request.add_special; }, OfPlainPrompts},
});

// Why a number of sampling has no effect; empty: it has one, or it was not given.
std::string WhyIdle(const SamplingKey& key, const GenerateSettings& settings,
                    const SpeculativeUse& use) {
  const SamplingParameters& sampling = settings.request.sampling;
  if (key.needs.empty() || key.Of(sampling) == key.Of(SamplingParameters())) return "";
  return key.needs == "temperature" ? OfDraws(settings, use)
                                    : WhyOff(*FindSamplingKey(key.needs), sampling);
}

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
  const auto add = [&](std::string name, std::string why) {
    if (!why.empty()) idle.push_back({std::move(name), std::move(why)});
  };
  const auto add_others = [&](std::span<const OtherFlag> flags) {
    for (const OtherFlag& flag : flags)
      if (flag.given(settings)) add(flag.name, flag.idle(settings, use));
  };
  add_others(kDraftingFlags);
  for (const SamplingKey& key : SamplingKeys())
    add(std::string(key.flag.name), WhyIdle(key, settings, use));
  add_others(kTextFlags);
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
