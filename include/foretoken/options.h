// SPDX-License-Identifier: Apache-2.0
// foretoken/options.h: how an engine is opened.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foretoken/adaptive_lookahead.h"
#include "foretoken/request.h"
#include "foretoken/verify_strategy.h"

namespace foretoken {

class Drafter;   // drafter.h
class Verifier;  // verifier.h

enum class CacheType { kF32, kF16, kBF16, kQ8_0 };

// Which n-gram contexts are stored: of every length from ngram_max - 1 down, or of the longest
// only.
enum class NgramStorage { kMultiLevel, kSingleLevel };

// K for a batch of `least` to `most` sequences that decode together.
struct BatchDraftLength {
  int least = 1, most = 1, num_speculative_tokens = 0;
};

// How an engine speculates: plain values, as flags, files and programs give them. SpeculativeConfig
// (speculative_config.h) checks them, reads them from a file and answers questions about them.
struct SpeculativeOptions {
  // "none", "standalone" (a draft model), "eagle" and "mtp" (a head of the target's; an MTP head
  // may lie in the target's own file), "ngram", "suffix", "prediction" (text that comes with the
  // request), "grammar" (what a request's grammar forces, which is drafted beside any other method
  // too), "portfolio" (all that there are) or several of them with commas between: each round
  // drafts with what promises the most tokens per second. Where several files draft by one method,
  // "standalone" means all of them and "standalone:NAME" one, NAME being its file's name without
  // folder and .gguf. Empty: what the draft files are, ngram without any.
  std::string method = {};
  // Paths of draft models and heads, beside EngineOptions::draft_model.
  std::vector<std::string> draft_models = {};
  VerifyStrategy strategy = VerifyStrategy::kAuto;
  // K, [0, 64]: what a round drafts, or, where a controller chooses, the most it may. Not given: 16
  // for cost-model and by-text; fixed 4, ewma 12, heuristic 8.
  std::optional<int> num_speculative_tokens = {};
  // A draft of fewer tokens is not worth a wider pass: a round drafts none or at least as many, and
  // a draft that ends sooner by itself is not sent. Not with laws under residual or block, where
  // dropping drawn tokens would bias the text; a strategy that is left open is then sample-match.
  // [0, K]
  int min_speculative_tokens = 0;
  // How each request's draft length is chosen: "cost-model" (what promises the most tokens per
  // second, none included); "fixed"; "ewma" (AdaptiveLookahead); "heuristic" (two more after a
  // draft accepted whole, else one less); "batch-size" (by num_speculative_tokens_per_batch_size);
  // "by-text" (as cost-model, but by costs from a table or profile and each request by itself, so
  // that lengths depend on its text alone). Requests whose text depends on the drafts (residual,
  // block, target-probability and the lossy strategies above temperature 0, a program's own
  // verifier) have by-text in place of cost-model and batch-size: a seed gives one text.
  std::string lookahead = "cost-model";
  AdaptiveLookaheadConfig ewma = {};
  std::vector<BatchDraftLength> num_speculative_tokens_per_batch_size = {};
  float draft_p_min = 0.0f;
  // The pass over the prompt yields the first token. False: that token may be drafted, too; the
  // first draft is verified together with the prompt. Heads (eagle, mtp) read what that pass gives
  // and draft after it, as do draft models that have not read a long prompt yet, and requests for
  // the log-probabilities of their prompt.
  bool first_target = true;
  // Tokens that a standalone draft model's output head keeps, the most frequent ones: a head of
  // 128,000 rows may be most of a small model's work. 0: all. Exact all the same: the target
  // decides. `draft_vocabulary_sample` is the path of a text that shows which are frequent; without
  // it single ASCII characters come first, then the vocabulary's own order.
  int draft_vocabulary = 0;
  std::string draft_vocabulary_sample = {};
  // Benchmarks only: this share of the drafted tokens is accepted at random, whatever they are and
  // however many a round has, in [0, 1]. It overrides the strategy; the text is not the model's.
  std::optional<double> synthetic_acceptance_rate = {};
  // residual: accept with probability max(0, min(1, p/q) - acceptance_threshold), in [0, 1]; not
  // lossless unless 0.
  float acceptance_threshold = 0.0f;
  // residual: draw the token after a rejection from p itself, not the residual; not lossless.
  bool skip_sample_adjustment = false;
  float typical_epsilon = 0.09f, typical_delta = 0.3f;  // typical-acceptance; each in [0, 1]
  int relaxed_top_n = 10;                               // relaxed; >= 1
  float relaxed_delta = 0.6f;                           // relaxed; [0, 1]
  int ngram_max = 3;  // n-gram: contexts of ngram_max tokens down to ngram_min
  int ngram_min = 1;
  NgramStorage ngram_storage = NgramStorage::kMultiLevel;
  // n-gram: the target's k most probable tokens count as continuations at each verified position.
  // 1: off.
  int ngram_filler_top_k = 1;
  bool ngram_keep = false;          // n-gram: what a request taught serves the next ones too
  std::string ngram_corpus = {};    // n-gram: path of a text that is known from the start
  int suffix_max_tokens = 1 << 20;  // suffix: of earlier outputs that are remembered, at most
  // Path of a profile that `foretoken tune` wrote; measured costs of this machine and these models.
  // One of another machine or model is ignored with a notice.
  std::string profile = {};
};

struct LoadProgress {
  std::string what;     // "target.gguf"
  double fraction = 0;  // [0, 1]
};

struct EngineOptions {
  std::string model = {};        // path of the target's GGUF
  std::string draft_model = {};  // path of a draft model's or head's GGUF; empty: none
                                 // but those of speculative.draft_models
  SpeculativeOptions speculative = {};
  int context_size = 0;   // tokens per sequence; 0: the model's
  int max_sequences = 1;  // requests that run together
  // Positions that the target's cache holds, for all sequences together; 0: context_size for each.
  // With fewer, requests wait while it is full, and the youngest gives its part back and reads its
  // text again later; with more, more texts of earlier requests are kept.
  int cache_tokens = 0;
  // Requests whose texts begin like those of others, running or ended, go on from their cache. Not
  // those that draft with a head: it needs the target's hidden states at the prompt.
  bool prefix_cache = true;
  int threads = 0;  // 0: FORETOKEN_THREADS, else the cores, not hyperthreads, that
                    // the process may use: by its affinity and its cgroup's quota
  // Each of the engine's own threads stays on one core; the caller's thread is left alone. For a
  // machine that this engine has to itself: beside others a thread could not evade a busy core.
  bool pin_threads = false;
  CacheType cache_type_k = CacheType::kF16;
  CacheType cache_type_v = CacheType::kF16;
  // False: keys and values are computed anew for each round, of the whole text; the same text, bit
  // for bit, and slow. For tests and for teaching. A text that does not fit one pass is read in
  // several; a head reads its rows anew each round and keeps them while it drafts. Not with
  // `record`; `prefix_cache` is then off.
  bool kv_cache = true;
  // Tokens that end every request, in place of those that the model's file names; empty: the
  // file's. Request.stop_token_ids and ignore_eos are a single request's.
  std::vector<std::int32_t> end_tokens = {};
  int prefill_rows = 256;  // rows of one pass at most; fewer where requests wait for each other
  std::string isa = {};    // cap: "scalar", "neon", "avx2", "avxvnni", "avx512", "amx"; empty:
                           // FORETOKEN_ISA, else the best
  // Where repacked weights are kept, so that the next start maps them: a folder, "off", or "auto":
  // foretoken/ in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache), for models so large
  // that repacking takes time (64 MB and more). A file there is used only if it is whole and made
  // of this very model file, and replaced otherwise.
  std::string repack_cache = "auto";
  // Path of a trace that is written while requests run (replay.h reads it); empty: none. It is
  // replaced when the first requests have ended, and grows with the next ones. Engine::RecordStatus
  // tells whether that went well.
  std::string record = {};
  // Of the program's own, beside or in place of foretoken's. A drafter's name is a method, the
  // default one where speculative.method is empty. A verifier judges every request;
  // speculative.strategy is then kAuto. Null: none.
  std::shared_ptr<Drafter> drafter = {};
  std::shared_ptr<Verifier> verifier = {};
  std::function<void(const LoadProgress&)> on_load_progress = {};

  // Paths of all draft models and heads: draft_model, then those of speculative.draft_models.
  std::vector<std::string> DraftFiles() const {
    std::vector<std::string> files = speculative.draft_models;
    if (!draft_model.empty()) files.insert(files.begin(), draft_model);
    return files;
  }
};

}  // namespace foretoken
