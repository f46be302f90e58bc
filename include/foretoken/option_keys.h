// SPDX-License-Identifier: Apache-2.0
// foretoken/option_keys.h: the plain values of EngineOptions and the numbers of SamplingParameters, one row each:
// their names, ranges, flags and help, and what they need to have an effect. Checks, flags, fields of requests, keys of
// the C interface, schemas and documents are made from these rows. A new one is a member, a row, and the code
// that reads it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/request.h"

namespace foretoken {

// ---- Options of an engine -----------------------------------------------------------------------

struct EngineKey {
  using Value = std::variant<bool*, int*, std::string*, CacheType*, std::vector<std::int32_t>*>;
  // Both ends belong to it. If most is less than least, there is none.
  struct Range {
    int least = 0, most = -1;
    bool or_zero = false;  // 0 is allowed too

    constexpr bool is_set() const { return least <= most; }
  };
  // The verbs that have the flag: all that run a model, or those that ask for it by its key.
  enum class Verbs { kAll, kSome };
  struct Flag {
    std::array<std::string_view, 4> names = {};  // {"-c", "--ctx-size"}; none: there is no flag
    std::string_view value = {};                 // "N"; "" for a switch that turns it on
    std::string_view help = {};
    Verbs verbs = Verbs::kAll;
    Range range = {};         // where flags have another than the engine
    bool needs_text = false;  // "" is refused
  };

  std::string_view name;  // of the member, and its key in the C interface; it ends with a NUL
  Value (*find)(EngineOptions& options);  // where the value is
  Flag flag = {};
  Range range = {};            // of a number, as the engine checks it
  std::string_view noun = {};  // the beginning of that error
  bool in_c = true;

  constexpr const Range& flag_range() const { return flag.range.is_set() ? flag.range : range; }
  // What `use` makes of the value.
  auto Visit(EngineOptions& options, const auto& use) const {
    return std::visit([&](auto* value) { return use(*value); }, find(options));
  }
};

namespace engine_keys {

using E = EngineOptions;
using Range = EngineKey::Range;
inline constexpr auto kAll = EngineKey::Verbs::kAll, kSome = EngineKey::Verbs::kSome;
inline constexpr int kMostCache = 1 << 30;

// The row of a member.
template <auto Member>
constexpr EngineKey Row(std::string_view name, EngineKey::Flag flag = {}, Range range = {},
                        std::string_view noun = {}, bool in_c = true) {
  return {name, [](E& options) -> EngineKey::Value { return &(options.*Member); },
          flag, range,
          noun, in_c};
}

// In the order in which help names them.
inline constexpr EngineKey kRows[] = {
    Row<&E::model>("model",
                   {{"-m", "--model"},
                    "PATH",
                    "a GGUF file or folder; default: the bundled model with its own drafter",
                    kAll,
                    {},
                    true}),
    Row<&E::draft_model>(
        "draft_model",
        {{"-md", "--model-draft", "--spec-draft-model", "--draft-models"},
         "PATH",
         "the drafter: a small model of the same family, or a head that was trained for the model; "
         "may be repeated; default: those beside the model",
         kSome}),
    Row<&E::find_drafters>("find_drafters"),
    Row<&E::context_size>("context_size",
                          {{"-c", "--ctx-size"},
                           "N",
                           "size of the context, for prompt and text together, in tokens; default "
                           "0: the model's own"},
                          {0, kMaxTextTokens}, "context size"),
    Row<&E::max_sequences>(
        "max_sequences",
        {{"-np", "--parallel"},
         "N",
         "requests that are decoded together, each with a cache of its own; default 1",
         kSome,
         {1, 256}},
        {1, 1024}, "sequences"),
    Row<&E::prefill_rows>("prefill_rows", {}, {1, 4096}, "prefill rows"),
    Row<&E::threads>("threads",
                     {{"-t", "--threads"},
                      "N",
                      "number of threads; default 0: $FORETOKEN_THREADS, or else one for each core "
                      "that this process may use",
                      kAll,
                      {0, 512}}),
    Row<&E::pin_threads>(
        "pin_threads",
        {{"--pin-threads"},
         "",
         "keep each thread except the main one on a core of its own; for a machine that does "
         "nothing else"}),
    Row<&E::cache_type_k>(
        "cache_type_k",
        {{"-ctk", "--cache-type-k"},
         "TYPE",
         "number type of the keys in the cache: f32, f16, bf16, q8_0 or q4_0; default f16"}),
    Row<&E::cache_type_v>("cache_type_v", {{"-ctv", "--cache-type-v"},
                                           "TYPE",
                                           "number type of the values in the cache; default f16"}),
    Row<&E::cache_tokens>(
        "cache_tokens",
        {{"--cache-tokens"},
         "N",
         "tokens that the cache holds for all requests together; default 0: one context for each "
         "request that runs at the same time",
         kAll,
         {0, kMostCache}},
        {128, kMostCache, true}, "cache tokens"),  // a whole draft fits, and a little text
    Row<&E::prefix_cache>("prefix_cache",
                          {{"--prefix-cache"},
                           "on|off",
                           "whether requests with a shared prefix share its cache; default on"}),
    Row<&E::state_checkpoint_tokens>(
        "state_checkpoint_tokens",
        {{"--state-checkpoint-tokens"},
         "N",
         "positions between two copies of a recurrent state, from which texts with a shared prefix "
         "go on; default 8192; 0: no copies"},
        {0, kMaxTextTokens}, "state checkpoints"),
    Row<&E::cache_file>(
        "cache_file",
        {{"--cache-file", "--prompt-cache"},
         "FILE",
         "file beside the cache's memory: what has no more room in memory, or is kept at the end, "
         "comes back from there when a text begins with it, also in later runs; it has the tokens "
         "of prompts; default: none"}),
    Row<&E::cache_file_mb>(
        "cache_file_mb",
        {{"--cache-file-mb"},
         "N",
         "the most megabytes of that file: what was not used for the longest time goes; also of "
         "all files of slots; default 16384"},
        {1, 1 << 30}, "megabytes of the cache file"),
    Row<&E::slot_folder>(
        "slot_folder",
        {{"--slot-save-path"},
         "FOLDER",
         "this user's folder for what POST /slots/N?action=save writes: the cache of the text that "
         "ended last in a slot, which restore brings back; files have the tokens of prompts, and "
         "all together --cache-file-mb at most; default: none",
         kSome},
        {}, {}, false),
    Row<&E::repack_cache>(
        "repack_cache",
        {{"--repack-cache"},
         "FOLDER",
         "folder for a copy of the weights in the kernels' layout, which makes the next start "
         "fast, and for what passes and drafts cost; off: neither; default auto: the user's cache "
         "folder"}),
    Row<&E::repack_cache_gb>(
        "repack_cache_gb",
        {{"--repack-cache-gb"},
         "N",
         "the most gigabytes of such copies in that folder: those not used for the longest time "
         "are deleted; default 0: a tenth of the disk, at least 32"},
        {0, 1 << 24}, "gigabytes of repacked weights"),
    Row<&E::record>(
        "record",
        {{"--record"},
         "FILE",
         "write a trace of every round to FILE, as JSON lines; `foretoken replay FILE` reads it",
         kSome,
         {},
         true}),
    Row<&E::kv_cache>("kv_cache",
                      {{"--kv-cache"},
                       "on|off",
                       "off: each round computes the whole text anew; the same text, slowly, for "
                       "tests and teaching; default on",
                       kSome}),
    Row<&E::end_tokens>("end_tokens"),
    Row<&E::isa>("isa"),
};

}  // namespace engine_keys

constexpr std::span<const EngineKey> EngineKeys() {
  return engine_keys::kRows;
}

// Null if there is none of this name.
constexpr const EngineKey* FindEngineKey(std::string_view name) {
  for (const EngineKey& key : EngineKeys())
    if (key.name == name) return &key;
  return nullptr;
}

// ---- Numbers of sampling ------------------------------------------------------------------------

// Both ends belong to it.
struct NumberRange {
  double least = 0, most = 1;
};

struct SamplingKey {
  struct Ranges {
    NumberRange
        all;  // what SamplingParameters::Validate accepts; an infinite end: all finite numbers
    // What flags and fields of requests accept, where that is less. Fields have the range of flags if
    // they have none.
    std::optional<NumberRange> flags = {}, fields = {};
  };
  struct Flag {
    std::string_view name, value, help;  // "--min-p", "P", ...
    std::string_view other_name = {};
  };
  struct Field {
    std::string_view name;
    const char* about;  // a line of Markdown
    std::string_view other_name = {};
  };

  std::string_view name;    // its key in the C interface: "dry_window". It ends with a NUL.
  std::string_view member;  // of SamplingParameters: "dry.window"
  std::variant<int*, float*> (*find)(SamplingParameters& sampling);  // where the number is
  Ranges ranges;
  std::string_view advice;  // "0 to 1": the end of an error about the range
  Flag flag;
  Field field;
  // The number without which this one has no effect: one that stands at its default, or "temperature" at 0.
  std::string_view needs = {};

  constexpr NumberRange flag_range() const { return ranges.flags.value_or(ranges.all); }
  constexpr NumberRange field_range() const { return ranges.fields.value_or(flag_range()); }
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
inline constexpr double kBelowOne = 1.0f - std::numeric_limits<float>::epsilon() / 2;
inline constexpr double kAboveZero = std::numeric_limits<float>::denorm_min();
inline constexpr SamplingKey::Ranges kZeroToOne = {{0, 1}};
inline constexpr SamplingKey::Ranges kWindow = {{-1, kMostInt}, NumberRange{-1, kMaxTextTokens}};
inline constexpr SamplingKey::Ranges kPenalty = {
    {-kAny, kAny}, NumberRange{-100, 100}, NumberRange{-2, 2}};

inline constexpr std::string_view kDraws = "temperature",
                                  kDry = "dry_multiplier";  // SamplingKey::needs

// The row of a member. Those of `dry` have two names.
template <auto Member>
constexpr SamplingKey Row(std::string_view name, SamplingKey::Ranges ranges,
                          std::string_view advice, SamplingKey::Flag flag, SamplingKey::Field field,
                          std::string_view needs = {}, std::string_view member = {}) {
  return {name, member.empty() ? name : member, Find<Member>, ranges, advice, flag, field, needs};
}

using S = SamplingParameters;
using D = DryPenalty;

// In the order in which help and errors name them.
inline constexpr SamplingKey kRows[] = {
    Row<&S::temperature>(
        "temperature", {{0, 2}}, "0 to 2",
        {"--temp", "T", "temperature, 0 to 2; 0 always takes the most probable token; default 0.8",
         "--temperature"},
        {"temperature",
         "1 draws as the model says, less makes likely tokens likelier, 0 takes the likeliest",
         "temp"}),
    Row<&S::top_k>("top_k", kWindow, "1 or more, or 0 to turn it off",
                   {"--top-k", "K", "keep only the K most probable tokens; default 0: all"},
                   {"top_k", "keeps the k likeliest tokens; 0 and -1: all"}, kDraws),
    Row<&S::top_p>(
        "top_p", kZeroToOne, "0 to 1",
        {"--top-p", "P",
         "keep only the most probable tokens whose probabilities add up to P; default 1: all"},
        {"top_p", "keeps the likeliest tokens that have this probability together"}, kDraws),
    Row<&S::min_p>(
        "min_p", kZeroToOne, "0 to 1",
        {"--min-p", "P",
         "keep only tokens at least P times as probable as the best one; default 0: all"},
        {"min_p", "keeps tokens with at least this part of the likeliest one's probability"},
        kDraws),
    Row<&S::typical_p>(
        "typical_p", kZeroToOne, "0 to 1",
        {"--typical-p", "P",
         "locally typical sampling: keep the typical tokens whose probabilities add up to P; "
         "default 1: off",
         "--typical"},
        {"typical_p",
         "keeps tokens whose surprise is near to the mean, with this probability together",
         "typ_p"},
        kDraws),
    Row<&S::eta>(
        "eta", {{0, kBelowOne}, NumberRange{0, 0.999999}}, "0 to below 1, or 0 to turn it off",
        {"--eta", "E",
         "drop tokens less probable than E and than sqrt(E) * exp(-entropy); default 0: off"},
        {"eta", "drops tokens below a threshold that falls with the entropy (eta sampling)"},
        kDraws),
    Row<&S::repetition_penalty>(
        "repetition_penalty", {{kAboveZero, kAny}, NumberRange{1e-3, 1e3}},
        "more than 0, or 1 to turn it off",
        {"--repeat-penalty", "R",
         "above 1: tokens that occurred before become less probable; default 1: off"},
        {"repetition_penalty",
         "divides the logits of tokens that the whole text has; as `repeat_penalty`, of the last "
         "64",
         "repeat_penalty"}),
    Row<&S::repetition_window>(
        "repetition_window", kWindow, "0 or more, or -1 for the whole text",
        {"--repeat-last-n", "N",
         "number of last tokens that --repeat-penalty looks at; default -1: all"},
        {"repeat_last_n",
         "the last tokens that the penalty for repetition counts; -1: the whole text; 0: no "
         "penalty"},
        "repetition_penalty"),
    Row<&S::frequency_penalty>(
        "frequency_penalty", kPenalty, "0 to turn it off",
        {"--frequency-penalty", "F",
         "subtracted from a token's logit for each time it occurred in the generated text; default "
         "0"},
        {"frequency_penalty", "is subtracted from a token's logit for each time it was generated"}),
    Row<&S::presence_penalty>(
        "presence_penalty", kPenalty, "0 to turn it off",
        {"--presence-penalty", "F",
         "subtracted once from the logit of each token that occurred in the generated text; "
         "default 0"},
        {"presence_penalty", "is subtracted once from the logit of each token that was generated"}),
    Row<&D::multiplier>(
        "dry_multiplier", {{0, kAny}, NumberRange{0, 100}}, "more than 0, or 0 to turn it off",
        {"--dry-multiplier", "M",
         "above 0: tokens that would make a repetition longer become less probable, the more the "
         "longer it is already; default 0: off"},
        {"dry_multiplier", "how much DRY lowers tokens that would go on with a repetition; 0: off"},
        "", "dry.multiplier"),
    Row<&D::base>("dry_base", {{1, kAny}, NumberRange{1, 100}}, "1 or more",
                  {"--dry-base", "B",
                   "factor of this penalty for each further token of the repetition; default 1.75"},
                  {"dry_base", "by what that grows with each token of the repetition"}, kDry,
                  "dry.base"),
    Row<&D::allowed_length>(
        "dry_allowed_length", {{1, kMostInt}, NumberRange{1, kMaxTextTokens}}, "1 or more",
        {"--dry-allowed-length", "N", "shorter repetitions are not penalised; default 2"},
        {"dry_allowed_length", "the longest repetition that costs nothing"}, kDry,
        "dry.allowed_length"),
    Row<&D::window>(
        "dry_window", kWindow, "0 or more, or -1 for the whole text",
        {"--dry-penalty-last-n", "N",
         "number of last tokens that are searched for repetitions; default -1: all"},
        {"dry_penalty_last_n", "the last tokens in which repetitions are looked for; -1: all"},
        kDry, "dry.window"),
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
