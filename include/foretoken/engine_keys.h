// SPDX-License-Identifier: Apache-2.0
// foretoken/engine_keys.h: the plain values of EngineOptions, one row each: their names, ranges, flags and help.
// Checks, flags, keys of the C interface and documents are made from these rows. A new one is a member of
// EngineOptions, a row, and the code that reads it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "foretoken/options.h"

namespace foretoken {

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
inline constexpr int kMostTokens = 1 << 24, kMostCache = 1 << 30;

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
                          {0, kMostTokens}, "context size"),
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
        {0, kMostTokens}, "state checkpoints"),
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

}  // namespace foretoken
