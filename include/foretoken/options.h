// SPDX-License-Identifier: Apache-2.0
// foretoken/options.h: how an engine is opened.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foretoken/request.h"

namespace foretoken {

enum class CacheType { kF32, kF16, kBF16, kQ8_0 };

// How drafts are judged; docs/speculation.md has the rules. kAuto: greedy at temperature 0, else
// residual for drafters that report their law and sample-match for deterministic ones.
enum class VerifyStrategy { kAuto, kGreedy, kResidual, kSampleMatch };

struct SpeculativeOptions {
  // "none", "standalone" (a draft model), "eagle" and "mtp" (a head of the target's; an MTP head
  // may lie in the target's own file), "ngram"; empty: what draft_model's file is, ngram without
  // one.
  std::string method = {};
  VerifyStrategy strategy = VerifyStrategy::kAuto;
  // K, [0, 64]: what a round drafts, or, where a controller chooses, the most it may. Not given: 4;
  // ewma 12, heuristic 8.
  std::optional<int> num_speculative_tokens = {};
  // How each request's draft length is chosen: "fixed"; "ewma" (AdaptiveLookahead); "heuristic"
  // (two more after a draft accepted whole, else one less); "cost-model" (what promises the most
  // tokens per second, none included).
  std::string lookahead = "fixed";
  float draft_p_min = 0.0f;
  // Tokens that a standalone draft model's output head keeps, the most frequent ones: a head of
  // 128,000 rows may be most of a small model's work. 0: all. Exact all the same: the target
  // decides. `draft_vocabulary_sample` is the path of a text that shows which are frequent; without
  // it single ASCII characters come first, then the vocabulary's own order.
  int draft_vocabulary = 0;
  std::string draft_vocabulary_sample = {};
  // Benchmarks only: this share of the drafted tokens is accepted by lot, whatever they are, in
  // [0, 1]. It overrides the strategy; the text is not the model's.
  std::optional<double> synthetic_acceptance_rate = {};
  int ngram_max = 3;  // n-gram: contexts of ngram_max tokens down to ngram_min
  int ngram_min = 1;
};

struct LoadProgress {
  std::string what;     // "target.gguf"
  double fraction = 0;  // [0, 1]
};

struct EngineOptions {
  std::string model = {};        // path of the target's GGUF
  std::string draft_model = {};  // path of a draft model's or head's GGUF; empty: none
  SpeculativeOptions speculative = {};
  int context_size = 0;   // tokens per sequence; 0: the model's
  int max_sequences = 1;  // requests that run together
  int threads = 0;        // 0: FORETOKEN_THREADS, else the cores, not hyperthreads, that
                          // the process may use: by its affinity and its cgroup's quota
  // Each of the engine's own threads stays on one core; the caller's thread is left alone. For a
  // machine that this engine has to itself: beside others a thread could not evade a busy core.
  bool pin_threads = false;
  CacheType cache_type_k = CacheType::kF16;
  CacheType cache_type_v = CacheType::kF16;
  int prefill_rows = 256;  // rows of one pass at most
  std::string isa = {};    // cap: "scalar", "neon", "avx2", "avxvnni", "avx512", "amx"; empty:
                           // FORETOKEN_ISA, else the best
  // Where repacked weights are kept, so that the next start maps them: a folder, "off", or "auto":
  // foretoken/ in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache), for models so large
  // that repacking takes time (64 MB and more). A file there is used only if it is whole and made
  // of this very model file, and replaced otherwise.
  std::string repack_cache = "auto";
  std::function<void(const LoadProgress&)> on_load_progress = {};
};

}  // namespace foretoken
