// SPDX-License-Identifier: Apache-2.0
// foretoken/options.h: how an engine is opened.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/adaptive_lookahead.h"
#include "foretoken/request.h"
#include "foretoken/verifier.h"

namespace foretoken {

class Drafter;    // drafter.h
class RankGroup;  // ranks.h
class Verifier;   // verifier.h

// Tokens of a text, prompt and answer together, whatever a file, a flag or a request says.
inline constexpr int kMaxTextTokens = 1 << 24;
inline constexpr int kMaxNgram = 16;  // SpeculativeOptions::ngram_max and ngram_min

enum class CacheType { kF32, kF16, kBF16, kQ8_0, kQ4_0 };
inline constexpr std::array<std::string_view, 5> kCacheTypeNames = {"f32", "f16", "bf16", "q8_0",
                                                                    "q4_0"};
[[nodiscard]] inline Result<CacheType> ParseCacheType(std::string_view name) {
  for (std::size_t i = 0; i < kCacheTypeNames.size(); ++i)
    if (kCacheTypeNames[i] == name) return static_cast<CacheType>(i);
  return InvalidArgument("'" + Shown(name) +
                         "' is not a cache type; choose f32, f16, bf16, q8_0 or q4_0");
}

// Which n-gram contexts are stored: those of all lengths, or only the longest.
enum class NgramStorage { kMultiLevel, kSingleLevel };

// K for `least` to `most` sequences that decode together.
struct BatchDraftLength {
  int least = 1, most = 1, num_speculative_tokens = 0;
};

// How an engine speculates, as plain values. Flags, files and programs fill them in.
// SpeculativeConfig (speculative_config.h) checks them, reads them from a file and answers
// questions about them.
struct SpeculativeOptions {
  // The methods: "none", "standalone" (a draft model), "eagle" and "mtp" (a head of the target; an
  // MTP head may be in the target's own file), "self" (the target, with a copy of its weights in
  // fewer bits), "ngram", "suffix", "prediction" (text that comes with the request), "grammar" (what
  // a request's grammar forces; it also joins every other method), "portfolio" (all that there are),
  // or several of them separated by commas: each round
  // then uses the one that promises the most tokens per second. If several files use one method,
  // "standalone" means all of them and "standalone:NAME" the file NAME.gguf. Empty: the method of
  // the draft files, named or found (EngineOptions::find_drafters); ngram if there are none.
  std::string method = {};
  // Paths of draft models and heads, in addition to EngineOptions::draft_model.
  std::vector<std::string> draft_models = {};
  VerifyStrategy strategy = VerifyStrategy::kAuto;
  // K, [0, 64]: the number of drafts of a round, or the most of them if a controller chooses.
  // Default: 16 for cost-model and by-text; fixed 4, ewma 12, heuristic 8.
  std::optional<int> num_speculative_tokens = {};
  // The shortest draft: a round drafts no tokens or at least this many, and a draft that ends
  // sooner by itself is not sent. Not under residual or block with drafters that report
  // distributions, where dropping drawn tokens would bias the text; if no strategy is named,
  // sample-match is used. [0, K]
  int min_speculative_tokens = 0;
  // The draft-length controller: "cost-model" (the length that promises the most tokens per second,
  // possibly 0); "fixed"; "ewma" (with `adaptive_lookahead` below); "heuristic" (two more after a draft accepted
  // whole, else one less); "batch-size" (from num_speculative_tokens_per_batch_size); "by-text" (as
  // cost-model, but with costs from a table or profile and each request by itself, so that lengths
  // depend on its text alone). Requests whose text depends on the drafts (residual, block,
  // target-probability and the lossy strategies above temperature 0, your own verifier) use by-text
  // instead of cost-model and batch-size, so that a seed gives one text.
  std::string controller = "cost-model";
  AdaptiveLookaheadConfig adaptive_lookahead = {};
  std::vector<BatchDraftLength> num_speculative_tokens_per_batch_size = {};
  // cost-model, by-text: the only lengths that they choose, besides 0; each in [1, K], ascending. A
  // draft that ends by itself, at an end token for example, is shorter. Empty: all from 1 to K.
  std::vector<int> adaptive_speculative_widths = {};
  // [0, K]: the most drafts of a sequence in a pass that also reads a prompt (a mixed batch); unset: as
  // in other passes. Not for requests whose text depends on the drafts; if no strategy is named,
  // sample-match is used, whose text does not.
  std::optional<int> num_speculative_tokens_mixed_batch = {};
  float draft_p_min = 0.0f;
  // True: the prefill gives the first token. False: that token may be drafted too, and the first
  // draft is verified together with the prompt. Heads (eagle, mtp) need the result of the prefill,
  // so they draft after it; so do draft models that have not read a long prompt yet, and requests
  // for the log-probabilities of their prompt.
  bool first_target = true;
  // How many tokens a drafter's reduced output has, the most frequent ones; 0: there is none. An output
  // head of 128,000 rows may be most of a drafter's work. The text stays exact, because the target
  // decides. A draft model then has this output alone. Heads (eagle, mtp, dflash) and self have it beside
  // the whole one, and the controller chooses. Unset: 32,768 for these with a larger vocabulary, 0 for draft
  // models. `draft_vocabulary_sample` is the path of a text that shows which tokens are frequent;
  // without it single ASCII characters come first, then the vocabulary's own order.
  std::optional<int> draft_vocabulary = {};
  std::string draft_vocabulary_sample = {};
  // Draft models, heads and "self" see the last so many positions of a text, the few before them in their
  // block of 32, and the first block, wherever their layers see more: a draft in a long text then costs
  // what it costs in a short one. Which tokens are drafted depends on it, the text does not. Heads read their
  // prompts so, too, and draft models read what they see alone. 0: they see all; but of a text of which it
  // lacks more than 4,096 tokens a draft model reads the first 32 and the last 1,024, and "self" sees those
  // where that pays. A window as long as the context: all, in any case.
  int draft_window = 0;
  // Drafts of "self" also see so many blocks of 32 positions before their window: in each layer and for the queries of
  // each key-value head those in which a key may fit best, as the bounds of their keys tell. So what is asked for
  // again from far back is drafted. [0, 1024]; needs `draft_window`. Layers with a window or with latent
  // attention, whose keys lie apart, see the window alone.
  int draft_best_blocks = 0;
  // The number types of the copy that "self" drafts with: "Q2_K" for all its matrices, "Q2_K,Q4_K" for
  // its layers and its output head. Parts have types of their own by name, behind the type of the layers:
  // "Q2_K,head=Q4_K,attention=Q4_0,experts=Q3_K,ends=Q4_K". attention: also state spaces and short
  // convolutions; ends: all of the first layer and the last. A matrix that would not become smaller stays
  // as it is. Empty:
  // Q2_K, Q3_K or Q4_K (Q4_0 or Q5_0, where rows are short), whichever promises most by what was measured of
  // copies of this model, else Q2_K.
  // Without a method, a model that nothing drafts for gets such a copy while the engine works: if the types
  // are named, or if there is memory for it and drafts of such a copy are likely to pay. "off": it gets none.
  // "own": the type of the model's own matrices, which take no memory; alone it needs `draft_window`.
  std::string self_draft = {};
  // For benchmarks only, in [0, 1]: this share of the drafted tokens is accepted at random,
  // whatever they are and however many a round has. It overrides the strategy, and the text is not
  // the model's.
  std::optional<double> synthetic_acceptance_rate = {};
  // The rate is the probability of each draft to be accepted where those before it were, as with a
  // drafter of one quality: of a round with more drafts a smaller share is accepted.
  bool synthetic_acceptance_each = false;
  // residual: accept with probability max(0, min(1, p/q) - acceptance_threshold), in [0, 1]; not
  // lossless unless 0.
  float acceptance_threshold = 0.0f;
  // residual: draw the token after a rejection from p itself, not from the residual; not lossless.
  bool skip_sample_adjustment = false;
  float typical_epsilon = 0.09f, typical_delta = 0.3f;  // typical-acceptance; each in [0, 1]
  int relaxed_top_n = 10;                               // relaxed; >= 1
  float relaxed_delta = 0.6f;                           // relaxed; [0, 1]
  // The strategy relaxed verifies the drafts of parts that think, above temperature 0; so these parts
  // are not exact. All other drafts are verified by `strategy`. For requests, not for texts that are
  // given to a SpeculativeDecoder.
  bool use_relaxed_acceptance_for_thinking = false;
  // The texts before and behind a part that thinks. Empty: those of the model's chat template, or of
  // its vocabulary.
  std::string thinking_begin = {}, thinking_end = {};
  int ngram_max = 3;  // n-gram: contexts of ngram_max tokens down to ngram_min
  int ngram_min = 1;
  NgramStorage ngram_storage = NgramStorage::kMultiLevel;
  // n-gram: the target's k most probable tokens count as continuations at each verified position.
  // 1: off.
  int ngram_filler_top_k = 1;
  bool ngram_keep = false;          // n-gram: later requests use what earlier ones taught
  std::string ngram_corpus = {};    // n-gram: path of a text that is known from the start
  int suffix_max_tokens = 1 << 20;  // suffix: the most tokens of earlier outputs that are kept
  // Path of a profile that `foretoken tune` wrote: measured costs of this machine and these models.
  // Where no method, draft file and K are given, the drafter, K and controller are those that it
  // recommends. A profile of another machine or model is ignored with a notice.
  std::string profile = {};
};

// What settings of speculation apply to when requests run. A setting that nothing reads has no
// effect; SpeculativeKey::idle (speculative_config.h) gives the reason.
struct SpeculativeUse {
  std::vector<std::string> methods;     // methods that draft: "ngram"; empty: nothing drafts
  std::vector<std::string> strategies;  // that verify: "residual"; "greedy" at temperature 0
  std::string controller;               // the controller of draft lengths: "ewma"
  bool relaxes_thinking = false;        // relaxed verifies the drafts of parts that think
  bool sampled = false;                 // some text is drawn at a temperature above 0
  bool sampled_drafts = false;   // some draft is drawn from a distribution, at such a temperature
  bool several_requests = true;  // one after the other, on the same engine
  // Some lookup may use what other requests taught; never if the text depends on the drafts.
  bool learns_from_others = false;
  int max_sequences = 1;  // requests that run together

  // Combines two uses.
  void Add(const SpeculativeUse& other);
};

// What models take of memory, in bytes. It is known before anything is loaded.
struct MemoryNeeds {
  std::int64_t dense = 0;        // repacked weights that every pass reads
  std::int64_t experts = 0;      // repacked weights of experts: a row reads a few of each layer
  std::int64_t cache = 0;        // keys, values and recurrent states of all sequences
  std::int64_t checkpoints = 0;  // the part of `cache` that copies of recurrent states take
  // Activations and logits of a pass, at most: what no pass touches takes no memory.
  std::int64_t scratch = 0;
  // Rows that stay in the model file and are read from there; not part of the sums.
  std::int64_t embedding = 0;

  // What must be in memory even if the experts are paged, and what is best there.
  std::int64_t Least() const { return dense + cache; }
  std::int64_t All() const { return dense + experts + cache; }
  void Add(const MemoryNeeds& other) {
    dense += other.dense;
    experts += other.experts;
    cache += other.cache;
    checkpoints += other.checkpoints;
    scratch += other.scratch;
    embedding += other.embedding;
  }
};

// How far the loading of a model is.
struct LoadProgress {
  std::string what;  // the model's path
  // "planning" in the first call; "repacking", or "reading kept weights"; "comparing the copy with the model"
  std::string_view step;
  double fraction = 0;                      // [0, 1] of the step
  std::int64_t bytes = 0, total_bytes = 0;  // of weights
  // What all models of the engine will take, without scratch memory, and how much of that is to be had.
  MemoryNeeds memory = {};
  std::int64_t available_bytes = 0;
  bool experts_paged = false;  // as in EngineSummary
};

struct EngineOptions {
  std::string model = {};  // path of the target's GGUF
  // Path of a draft model's or head's GGUF; empty: only those of speculative.draft_models.
  std::string draft_model = {};
  SpeculativeOptions speculative = {};
  // If no draft file is named and the method is empty or needs one: drafts with the head in the model's
  // own file and with files beside the model that fit it, one for each method. They have a drafter's
  // name in theirs, as in mtp-x.gguf, x-eagle3.gguf and x-draft.gguf; draft models are at most half as
  // large as the model. EngineSummary::notices tells what was found.
  bool find_drafters = true;
  int context_size = 0;   // tokens per sequence; 0: the model's
  int max_sequences = 1;  // requests that run together
  // Positions that the target's cache holds for all sequences together; 0: context_size for each.
  // With fewer, requests wait while the cache is full, and the youngest is preempted and prefilled
  // again later. With more, more texts of earlier requests are kept.
  int cache_tokens = 0;
  // Requests share the cache of a prefix with other requests, running or ended. A head that lacks the
  // target's hidden states of the prefix drafts from what follows it. Requests whose text would depend
  // on that (SpeculativeOptions::controller) do not share a prefix if they draft with a head.
  bool prefix_cache = true;
  // Networks with recurrent layers share prefixes from copies of their states. Copies are made at the
  // ends of prompts and texts, where known texts part, and at least every so many positions. There is
  // room for four, two more for each sequence, and one more for so many positions of the cache. 0: no
  // copies, so each text is read from its beginning.
  int state_checkpoint_tokens = 8192;
  // Path of a file beside the cache's memory; empty: none. What the memory has no more room for goes
  // there, and all that is kept when the engine ends; a text that begins with it, in this engine or a
  // later one, does not read that again. It serves requests of the same cache_salt only, as the memory
  // does. A file of another model, of other settings of the cache or of another version is left as it is,
  // with a notice, and so is one that another process uses. Layers that see a window then keep all positions in memory.
  // Not with several ranks. Draft models read their prompts themselves.
  std::string cache_file = {};
  // The most megabytes (10^6 bytes) of that file: when it is full, what was not used for the longest time goes.
  // It also bounds all files of slot_folder together.
  int cache_file_mb = 16'384;
  // Path of a folder for Engine::SaveSlot and RestoreSlot; empty: there are no slots. It must be there, and
  // no other user may write to it. Needs prefix_cache. Layers that see a window then keep all positions in
  // memory. Not with several ranks.
  std::string slot_folder = {};
  // 0: FORETOKEN_THREADS, else the cores (not hyperthreads) that the process may use, given its
  // affinity and its cgroup's quota.
  int threads = 0;
  // Keeps each of the engine's own threads on one core; the caller's thread is left alone. Use it
  // on a machine that this engine has to itself: beside other programs a thread could not leave a
  // busy core.
  bool pin_threads = false;
  CacheType cache_type_k = CacheType::kF16;
  CacheType cache_type_v = CacheType::kF16;
  // False: each round computes the keys and values of the whole text again. The text is the same,
  // bit for bit, and slow; for tests and for teaching. A text that does not fit one pass takes
  // several; a head computes its rows again each round and keeps them while it drafts. Not together
  // with `record`; `prefix_cache` is then off.
  bool kv_cache = true;
  // Tokens that end every request, instead of those that the model's file names; empty: the file's.
  // Request.stop_token_ids and ignore_eos concern a single request.
  std::vector<std::int32_t> end_tokens = {};
  int prefill_rows = 256;  // the most rows of a pass; fewer where requests wait for each other
  // A cap: "scalar", "neon", "avx2", "avxvnni", "avx512", "amx"; empty: FORETOKEN_ISA, else the
  // best.
  std::string isa = {};
  // The folder for repacked weights, so that the next start maps them; "off"; or "auto": foretoken/
  // in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache), for models so large that repacking
  // takes time (64 MB and more). A file there is used only if it is complete and made from this
  // very model file; otherwise it is replaced. If the experts of a mixture do not fit memory, passes
  // read them from such a file. What passes and drafts cost is kept there too, in costs.json, for
  // models of any size, so that a disturbed start knows better than its own measurements.
  std::string repack_cache = "auto";
  // The most gigabytes (10^9 bytes) of such files in that folder; 0: a tenth of its disk, and at least
  // 32. Before a file is written, those that were not used for the longest time are deleted. Files in
  // use stay, and a single file may be larger.
  int repack_cache_gb = 0;
  // Path of a trace that is written while requests run (replay.h reads it); empty: none. The file
  // is replaced when the first requests have ended, and grows with the next ones.
  // Engine::RecordStatus tells whether that succeeded.
  std::string record = {};
  // Your own drafter and verifier; null: none. A drafter's name becomes a method, which is the
  // default if speculative.method is empty. A verifier verifies every request; speculative.strategy
  // is then kAuto.
  std::shared_ptr<Drafter> drafter = {};
  std::shared_ptr<Verifier> verifier = {};
  // The processes that compute the engine's networks together (ranks.h); null: this one alone. This
  // process is rank 0.
  std::shared_ptr<RankGroup> ranks = {};
  // Called by Open on its own thread: once before anything is loaded, then several times a second
  // in long loads. If it returns false, Open ends with kStopped.
  std::function<bool(const LoadProgress&)> on_load_progress = {};

  // Paths of all draft models and heads: draft_model, then those of speculative.draft_models.
  std::vector<std::string> DraftFiles() const {
    std::vector<std::string> files = speculative.draft_models;
    if (!draft_model.empty()) files.insert(files.begin(), draft_model);
    return files;
  }
};

// Model files are mapped into memory. When a program reads a page of a mapping that the file no
// longer has, the signal SIGBUS ends the program, unless the program handles it. Therefore
// foretoken sets a handler for SIGBUS when it maps its first file, once in the life of the process.
// For addresses in its own mappings the handler puts a page of zeros there and records that the
// file is lost. The engine then refuses and ends requests with an error that names the file, and
// commits nothing that was computed from such pages. All other SIGBUS go to the handler that was
// there before, or to the system's default.
//
// A program that sets its own SIGBUS handler later should do the same: keep the handler that was
// there, and call it for addresses that are not its own.
//
// This sets whether files that are mapped from now on have this protection; by default they do. A
// program that wants no handler passes `false` before it opens its first model. Any thread.
void CatchBusErrors(bool on) noexcept;

}  // namespace foretoken
