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
  std::optional<int> num_speculative_tokens = {};  // K, [0, 64]; not given: 4
  float draft_p_min = 0.0f;
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
  int threads = 0;        // 0: FORETOKEN_THREADS, else the cores
  CacheType cache_type_k = CacheType::kF16;
  CacheType cache_type_v = CacheType::kF16;
  int prefill_rows = 256;  // rows of one pass at most
  std::string isa = {};    // cap: "scalar", "avx2", "avx512"; empty: FORETOKEN_ISA, else the best
  std::function<void(const LoadProgress&)> on_load_progress = {};
};

}  // namespace foretoken
