// SPDX-License-Identifier: Apache-2.0
// foretoken/sampling_keys.h: the numbers of SamplingParameters, one row each: their names, ranges and help, and what
// they need to have an effect. Checks, flags, fields of requests, keys of the C interface, schemas and documents are
// made from these rows. A new number is a member of SamplingParameters, a row, and the code that reads it.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "foretoken/request.h"

namespace foretoken {

// Both ends belong to it.
struct NumberRange {
  double least = 0, most = 1;
};

struct SamplingKey {
  std::string_view name;    // its key in the C interface: "dry_window". It ends with a NUL.
  std::string_view member;  // of SamplingParameters: "dry.window"
  // Where the number is.
  std::variant<int*, float*> (*find)(SamplingParameters& sampling);
  // What SamplingParameters::Validate accepts. An end that is infinite stands for all finite numbers.
  NumberRange range;
  std::string_view advice;  // "0 to 1": the end of an error about the range
  // What flags and the fields of requests accept, where that is less. Fields have the range of flags if they have none.
  std::optional<NumberRange> in_flags = {}, in_fields = {};

  std::string_view flag, other_flag = {};
  std::string_view value;  // the word for the flag's value: "P"
  std::string_view help;   // of the flag
  std::string_view field, other_field = {};
  const char* about;  // the field, in a line of Markdown
  // The number without which this one has no effect: one that stands at its default, or "temperature" at 0.
  std::string_view needs = {};

  constexpr NumberRange flag_range() const { return in_flags.value_or(range); }
  constexpr NumberRange field_range() const { return in_fields.value_or(flag_range()); }
  // What `use` makes of the number.
  auto Visit(SamplingParameters& sampling, const auto& use) const {
    return std::visit([&](auto* number) { return use(*number); }, find(sampling));
  }
  auto Visit(const SamplingParameters& sampling, const auto& use) const {
    return std::visit([&](const auto* number) { return use(*number); },
                      find(const_cast<SamplingParameters&>(sampling)));
  }
  double Of(const SamplingParameters& sampling) const {
    return Visit(sampling, [](auto number) { return static_cast<double>(number); });
  }
};

namespace sampling_keys {

template <auto Member>
std::variant<int*, float*> Find(SamplingParameters& sampling) {
  if constexpr (requires { sampling.*Member; })
    return &(sampling.*Member);
  else
    return &(sampling.dry.*Member);
}

inline constexpr double kAny = std::numeric_limits<double>::infinity();
inline constexpr double kMostInt = std::numeric_limits<int>::max();
inline constexpr double kMostTokens = 1 << 24;  // keeps numbers sane
inline constexpr NumberRange kShare = {0, 1};

// In the order in which help and errors name them.
inline constexpr SamplingKey kRows[] = {
    {.name = "temperature",
     .member = "temperature",
     .find = Find<&SamplingParameters::temperature>,
     .range = {0, 2},
     .advice = "0 to 2",
     .flag = "--temp",
     .other_flag = "--temperature",
     .value = "T",
     .help = "temperature, 0 to 2; 0 always takes the most probable token; default 0.8",
     .field = "temperature",
     .other_field = "temp",
     .about =
         "1 draws as the model says, less makes likely tokens likelier, 0 takes the likeliest"},
    {.name = "top_k",
     .member = "top_k",
     .find = Find<&SamplingParameters::top_k>,
     .range = {-1, kMostInt},
     .advice = "1 or more, or 0 to turn it off",
     .in_flags = NumberRange{-1, kMostTokens},
     .flag = "--top-k",
     .value = "K",
     .help = "keep only the K most probable tokens; default 0: all",
     .field = "top_k",
     .about = "keeps the k likeliest tokens; 0 and -1: all",
     .needs = "temperature"},
    {.name = "top_p",
     .member = "top_p",
     .find = Find<&SamplingParameters::top_p>,
     .range = kShare,
     .advice = "0 to 1",
     .flag = "--top-p",
     .value = "P",
     .help = "keep only the most probable tokens whose probabilities add up to P; default 1: all",
     .field = "top_p",
     .about = "keeps the likeliest tokens that have this probability together",
     .needs = "temperature"},
    {.name = "min_p",
     .member = "min_p",
     .find = Find<&SamplingParameters::min_p>,
     .range = kShare,
     .advice = "0 to 1",
     .flag = "--min-p",
     .value = "P",
     .help = "keep only tokens at least P times as probable as the best one; default 0: all",
     .field = "min_p",
     .about = "keeps tokens with at least this part of the likeliest one's probability",
     .needs = "temperature"},
    {.name = "typical_p",
     .member = "typical_p",
     .find = Find<&SamplingParameters::typical_p>,
     .range = kShare,
     .advice = "0 to 1",
     .flag = "--typical-p",
     .other_flag = "--typical",
     .value = "P",
     .help = "locally typical sampling: keep the typical tokens whose probabilities add up to P; "
             "default 1: off",
     .field = "typical_p",
     .other_field = "typ_p",
     .about = "keeps tokens whose surprise is near to the mean, with this probability together",
     .needs = "temperature"},
    {.name = "eta",
     .member = "eta",
     .find = Find<&SamplingParameters::eta>,
     .range = {0, 1.0f - std::numeric_limits<float>::epsilon() / 2},
     .advice = "0 to below 1, or 0 to turn it off",
     .in_flags = NumberRange{0, 0.999999},
     .flag = "--eta",
     .value = "E",
     .help = "drop tokens less probable than E and than sqrt(E) * exp(-entropy); default 0: off",
     .field = "eta",
     .about = "drops tokens below a threshold that falls with the entropy (eta sampling)",
     .needs = "temperature"},
    {.name = "repetition_penalty",
     .member = "repetition_penalty",
     .find = Find<&SamplingParameters::repetition_penalty>,
     .range = {std::numeric_limits<float>::denorm_min(), kAny},
     .advice = "more than 0, or 1 to turn it off",
     .in_flags = NumberRange{1e-3, 1e3},
     .flag = "--repeat-penalty",
     .value = "R",
     .help = "above 1: tokens that occurred before become less probable; default 1: off",
     .field = "repetition_penalty",
     .other_field = "repeat_penalty",
     .about = "divides the logits of tokens that the whole text has; as `repeat_penalty`, of the "
              "last 64"},
    {.name = "repetition_window",
     .member = "repetition_window",
     .find = Find<&SamplingParameters::repetition_window>,
     .range = {-1, kMostInt},
     .advice = "0 or more, or -1 for the whole text",
     .in_flags = NumberRange{-1, kMostTokens},
     .flag = "--repeat-last-n",
     .value = "N",
     .help = "number of last tokens that --repeat-penalty looks at; default -1: all",
     .field = "repeat_last_n",
     .about = "the last tokens that the penalty for repetition counts; -1: the whole text; 0: no "
              "penalty",
     .needs = "repetition_penalty"},
    {.name = "frequency_penalty",
     .member = "frequency_penalty",
     .find = Find<&SamplingParameters::frequency_penalty>,
     .range = {-kAny, kAny},
     .advice = "0 to turn it off",
     .in_flags = NumberRange{-100, 100},
     .in_fields = NumberRange{-2, 2},
     .flag = "--frequency-penalty",
     .value = "F",
     .help = "subtracted from a token's logit for each time it occurred in the generated text; "
             "default 0",
     .field = "frequency_penalty",
     .about = "is subtracted from a token's logit for each time it was generated"},
    {.name = "presence_penalty",
     .member = "presence_penalty",
     .find = Find<&SamplingParameters::presence_penalty>,
     .range = {-kAny, kAny},
     .advice = "0 to turn it off",
     .in_flags = NumberRange{-100, 100},
     .in_fields = NumberRange{-2, 2},
     .flag = "--presence-penalty",
     .value = "F",
     .help = "subtracted once from the logit of each token that occurred in the generated text; "
             "default 0",
     .field = "presence_penalty",
     .about = "is subtracted once from the logit of each token that was generated"},
    {.name = "dry_multiplier",
     .member = "dry.multiplier",
     .find = Find<&DryPenalty::multiplier>,
     .range = {0, kAny},
     .advice = "more than 0, or 0 to turn it off",
     .in_flags = NumberRange{0, 100},
     .flag = "--dry-multiplier",
     .value = "M",
     .help =
         "above 0: tokens that would make a repetition longer become less probable, the more the "
         "longer it is already; default 0: off",
     .field = "dry_multiplier",
     .about = "how much DRY lowers tokens that would go on with a repetition; 0: off"},
    {.name = "dry_base",
     .member = "dry.base",
     .find = Find<&DryPenalty::base>,
     .range = {1, kAny},
     .advice = "1 or more",
     .in_flags = NumberRange{1, 100},
     .flag = "--dry-base",
     .value = "B",
     .help = "factor of this penalty for each further token of the repetition; default 1.75",
     .field = "dry_base",
     .about = "by what that grows with each token of the repetition",
     .needs = "dry_multiplier"},
    {.name = "dry_allowed_length",
     .member = "dry.allowed_length",
     .find = Find<&DryPenalty::allowed_length>,
     .range = {1, kMostInt},
     .advice = "1 or more",
     .in_flags = NumberRange{1, kMostTokens},
     .flag = "--dry-allowed-length",
     .value = "N",
     .help = "shorter repetitions are not penalised; default 2",
     .field = "dry_allowed_length",
     .about = "the longest repetition that costs nothing",
     .needs = "dry_multiplier"},
    {.name = "dry_window",
     .member = "dry.window",
     .find = Find<&DryPenalty::window>,
     .range = {-1, kMostInt},
     .advice = "0 or more, or -1 for the whole text",
     .in_flags = NumberRange{-1, kMostTokens},
     .flag = "--dry-penalty-last-n",
     .value = "N",
     .help = "number of last tokens that are searched for repetitions; default -1: all",
     .field = "dry_penalty_last_n",
     .about = "the last tokens in which repetitions are looked for; -1: all",
     .needs = "dry_multiplier"},
};

}  // namespace sampling_keys

constexpr std::span<const SamplingKey> SamplingKeys() {
  return sampling_keys::kRows;
}

// Null if there is none of this name.
constexpr const SamplingKey* FindSamplingKey(std::string_view name) {
  for (const SamplingKey& key : SamplingKeys())
    if (key.name == name) return &key;
  return nullptr;
}

// The range of a number of sampling that flags accept. REQUIRES: there is such a key.
constexpr NumberRange FlagRange(std::string_view name) {
  return FindSamplingKey(name)->flag_range();
}

}  // namespace foretoken
