// SPDX-License-Identifier: Apache-2.0
// foretoken/engine.h: start here.
//
//   auto engine = foretoken::Engine::Open({.model = "target.gguf", .draft_model = "draft.gguf"});
//   if (!engine) return Print(engine.error().message);
//   foretoken::Request request;
//   request.prompt = "Once upon a time";
//   auto completion = (*engine)->Generate(request, [](const foretoken::RoundEvent& round) {
//     for (const auto& event : round.events) std::cout << event.text << std::flush;
//     return true;
//   });
//
// An Engine owns a target model, its drafters, their caches and its threads. Engines share nothing.
// One thread at a time may call an engine, unless a member says "Any thread".
//
// Generate and GenerateBatch run requests to their ends. A program that has other work to do, or
// whose requests come and go, calls Begin for each request, Step repeatedly, and Take for each
// request that has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretoken/chat.h"
#include "foretoken/options.h"
#include "foretoken/request.h"
#include "foretoken/result.h"
#include "foretoken/stats.h"
#include "foretoken/tools/measure.h"

namespace foretoken {

namespace grammar {
class Grammar;
}
namespace engine {
class Admission;
class Preparation;
}  // namespace engine

// A request that an engine has checked. Its prompt and its prediction are tokens, and its grammar is
// compiled, so that the engine's thread begins it without delay.
//
// A value without ties to threads: any thread may hold it, copy it and let it go. Only the engine
// that prepared it may begin it, and that engine must outlive it.
class PreparedRequest {
 public:
  // As it was given, but for prompt_tokens, which have moved:
  const Request& request() const { return request_; }
  // Request::generated is the end of them.
  std::span<const std::int32_t> prompt_tokens() const { return prompt_; }
  // The tokens of the prediction, as many as fit the engine's context.
  std::span<const std::int32_t> prediction_tokens() const { return prediction_; }
  // Null where the request has no grammar.
  const grammar::Grammar* grammar() const { return grammar_.get(); }

  // Separates choices that share everything else: Request::id.
  void set_id(std::uint64_t id) { request_.id = id; }

 private:
  friend class engine::Admission;
  friend class engine::Preparation;
  PreparedRequest() = default;

  const engine::Preparation* prepared_by_ = nullptr;
  Request request_;
  std::vector<std::int32_t> prompt_, prediction_;
  std::shared_ptr<const grammar::Grammar> grammar_;
};

struct Completion {
  // Valid UTF-8, without the stop string. Where it goes on (FinishReason::kVerified), without what may
  // be the beginning of a character or of a stop string: the next request has that.
  std::string text;
  std::vector<std::int32_t> token_ids;         // committed tokens; an end token is the last of them
  std::vector<std::int32_t> prompt_token_ids;  // with Request::generated
  std::vector<TokenLogprobs> logprobs;         // one per token, if asked for
  std::vector<TokenLogprobs> prompt_logprobs;  // from the prompt's second token on
  // If it was asked for: ModelSummary::embedding_size numbers, or as many for each of the prompt's
  // tokens (Pooling::kNone). Not normalised.
  std::vector<float> embedding;
  FinishReason finish_reason = FinishReason::kStop;
  // Why the request ended early (finish reason kError): kNoMemory; kInvalidFile if the model's
  // logits are not finite; kTooLarge if following its grammar takes more than is allowed. The
  // fields above then hold the text so far. Other requests are not affected.
  std::optional<Error> error;
  std::uint64_t seed = 0;
  // The strategy that verified this request: "residual", for example, never "auto"; "greedy" at
  // temperature 0, whatever was asked for.
  std::string strategy;
  // The text has the distribution of plain decoding, because of that strategy or because nothing was
  // drafted.
  bool lossless = true;
  // Settings of the request that had no effect on it: "draft_p_min: nothing drafts".
  std::vector<std::string> notices;
  // The controller that chose this request's draft lengths: "by-text" instead of cost-model and
  // batch-size if the text depends on the drafts, so that the seed gives the same text again. Empty
  // if nothing could be drafted.
  std::string controller;
  int slot = -1;  // that keeps its text (Request::slot); -1: it did not run
  SpeculationStats speculation;
  Timings timings;
};

struct ModelSummary {
  std::string path, name, architecture, type;  // type: of most weights, "Q8_0"
  std::int64_t parameters = 0;
  std::int64_t file_bytes = 0;
  std::int64_t weight_bytes = 0;  // resident, after repacking
  std::int64_t cache_bytes = 0;   // reserved for all sequences
  int vocabulary_size = 0, context_length = 0, context_size = 0;
  int embedding_size = 0;  // numbers of a hidden state
  // A text ends with any of these: those of the file, or of EngineOptions; empty for what drafts in
  // an engine.
  std::vector<std::int32_t> end_tokens = {};
  // Mixtures of experts: the layers that have one, experts of a layer, and experts of a row.
  int expert_layers = 0, experts = 0, experts_used = 0;
};

// A row of a target's hidden states: one part of the model's dimension for each layer, then, where
// `normed`, what leaves the output norm. A layer's part is the residual stream that enters it; layer
// n, of n, is what leaves the last.
struct HiddenStates {
  std::vector<int> layers = {};
  bool normed = false;
  int width = 0;  // numbers of a row; 0: there are none
};

// A model or head that drafts.
struct DrafterSummary {
  // In statistics and requests: "standalone", or "standalone:tales-1m" if there are several.
  std::string name;
  std::string method;  // "standalone"
  ModelSummary model;
};

struct EngineSummary {
  ModelSummary target;
  std::vector<DrafterSummary> drafters;       // all models and heads that draft, in file order
  std::unique_ptr<ModelSummary> draft_model;  // the model of the first of them, or null
  HiddenStates hidden_states;                 // of the target, that its heads draft from
  // How embeddings of the target are made: as its file says, or kLast where it says nothing.
  Pooling pooling = Pooling::kLast;
  bool scores_pairs = false;  // it has a head for Pooling::kRank
  // How a pair of texts is written for it, with {query} and {document}; empty: the file does not say.
  std::string pair_template;
  std::string isa;                           // "avx512"
  int threads = 0;                           // of this rank
  int ranks = 1;                             // processes that compute together
  int max_sequences = 1;                     // requests that may run together
  std::string method, strategy, controller;  // "ngram", "sample-match", "fixed"
  bool lossless = true;                      // under that strategy, at every temperature
  // The methods that a request may choose, also as a list with commas: its drafters, by the names
  // that statistics use, then "portfolio" and "none".
  std::vector<std::string> methods;
  // The strategies that a request may choose. Some need drafters that report their distributions.
  // Empty if the engine has one verifier for all requests.
  std::vector<std::string> strategies;
  int num_speculative_tokens = 0;
  // What all its models take together, and how much of that was to be had at the start.
  MemoryNeeds memory;
  std::int64_t available_bytes = 0;
  // The experts are not all in memory: a pass reads those that are missing from a file.
  bool experts_paged = false;
  double load_ms = 0;
  // What people should know of Open: drafts that were found, and what went wrong without harm, such as
  // a cache folder without space.
  std::vector<std::string> notices;
  // What only interests those who look for it: files beside the model that do not draft for it.
  std::vector<std::string> details;
};

// The copy of the model in fewer bits that the method "self" drafts with.
struct CopyProgress {
  // kNone: the engine was not to have one. kRefused: there is none, and `why` says why not; lookup drafts.
  // kWaiting, kMaking: it is made while the engine works, and drafts once it is kReady.
  enum class State { kNone, kRefused, kWaiting, kMaking, kReady };
  State state = State::kNone;
  std::string types;  // "Q2_K", or "Q2_K,Q4_K": of the layers and of the output
  std::int64_t made_bytes = 0, bytes = 0;  // of the copy, and of all of it
  std::string why;
};
// "none", "refused", "waiting", "making", "ready".
std::string_view Name(CopyProgress::State state) noexcept;

// What an engine holds now, and what it has counted since it was opened.
struct EngineLoad {
  // Requests that have not ended: those that take part in steps; those that were preempted and wait
  // for cache blocks; those that wait for a sequence.
  int running = 0, preempted = 0, waiting = 0;
  // Blocks of 32 positions: free; held by requests; kept from texts that ended, to be found again
  // or reused.
  int free_blocks = 0, used_blocks = 0, idle_blocks = 0;
  std::int64_t cached_prompt_tokens = 0;  // prompt tokens found in the cache, without prefill
  std::int64_t preemptions = 0;
  CacheFileCounts cache_file;
};

// What a file of a slot has.
struct SlotCounts {
  std::int64_t tokens = 0, bytes = 0;
};

using Ticket = std::uint64_t;  // of a request that Begin accepted; never 0

class Engine {
 public:
  // Loads and repacks the models. Anything that is wrong with files and options is an error here.
  // All memory is reserved. Errors: those of the files (with their names), kMismatch (a draft model
  // with another vocabulary: how many ids differ, and the first ones), kTooLarge, kNoMemory.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> Open(EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Runs one request to its end. on_round may be empty.
  // Errors: kInvalidArgument (a parameter out of range), kTooLarge (the prompt does not fit the
  // context), Completion::error.
  [[nodiscard]] Result<Completion> Generate(const Request& request, const OnRound& on_round = {});

  // Runs requests together, at most max_sequences at a time; each gives what it gives alone. All
  // are checked before any runs. The first one that ends with an error ends all others.
  [[nodiscard]] Result<std::vector<Completion>> GenerateBatch(std::span<const Request> requests,
                                                              const OnRound& on_round = {});

  // Checks a request, tokenizes its prompt and compiles its grammar, so that no running request
  // waits for that. Any thread, at any time. Errors: kInvalidArgument (a parameter out of range, or
  // a fault in the grammar and where it is), kTooLarge (the prompt does not fit the context, or the
  // grammar exceeds its limit), kIo and kRankLost (see FileStatus), kNoMemory, kStopped (foretoken/cancellation.h).
  [[nodiscard]] Result<PreparedRequest> Prepare(Request request) const;

  // The compiled grammars of all requests together take at most so many bytes from now on (256 MiB
  // before); a request whose grammar finds no room is refused with kNoMemory. Any thread.
  void LimitGrammars(std::size_t max_bytes) const noexcept;

  // Accepts a request. It joins the running ones as soon as one of max_sequences is free. Later
  // errors are in the completion. Errors: kInvalidArgument (another engine prepared it), kIo,
  // kRankLost, kNoMemory.
  [[nodiscard]] Result<Ticket> Begin(PreparedRequest request, OnRound on_round = {});
  // Prepares the request and begins it. Errors: as Prepare.
  [[nodiscard]] Result<Ticket> Begin(Request request, OnRound on_round = {});
  // One pass of the target for all running requests: prompts are prefilled, drafts verified, tokens
  // committed. Returns false when nothing is left to do. If memory runs out, the request that
  // needed it ends (Completion::error), and the others continue.
  bool Step();
  // The request ends at its next step (finish reason "cancelled"). Unknown tickets are ignored.
  void Cancel(Ticket ticket);
  // The completion of a request that has ended; the ticket is then forgotten. Nothing before that.
  std::optional<Completion> Take(Ticket ticket);

  // Drafters forget what earlier requests taught them (suffix; n-gram if it keeps texts), so that
  // runs can be compared. Call it while no request runs.
  void Forget();

  // Log-probabilities (natural, T = 1) of tokens[i + 1] after tokens[0..i]: tokens.size() - 1
  // values. Nothing is sampled. Errors: kInvalidArgument (an unknown token, or requests are
  // running).
  [[nodiscard]] Result<std::vector<float>> Score(std::span<const std::int32_t> tokens);

  // Measures what passes of the target and the drafter cost, by their rows and the context before
  // them, and the overhead around them. Takes (repeats + 2) passes for each point. Errors:
  // kInvalidArgument (rows that no pass of this engine can have, ...), kTooLarge (the context does
  // not hold them).
  [[nodiscard]] Result<Measurements> Measure(const MeasureOptions& options = {});

  // What the settings apply to: for this request, which Prepare would accept; for any request. Any
  // thread.
  SpeculativeUse UseFor(const Request& request) const;
  SpeculativeUse UseForAny() const;

  // Text to tokens and back, with the target's vocabulary. Any thread. If a CancellationScope ended
  // it, there are no tokens.
  std::vector<std::int32_t> Tokenize(const std::string& text, bool add_special,
                                     bool parse_special) const;
  // Tokenizes a text that follows other text: no space is put before it.
  std::vector<std::int32_t> TokenizeMore(const std::string& text) const;
  std::string Detokenize(std::span<const std::int32_t> tokens, bool special = false) const;
  // The single token that `text` is in the middle of a longer text. special: names of control
  // tokens count as such. Errors: kInvalidArgument (it is not a token, or several).
  [[nodiscard]] Result<std::int32_t> TokenOf(const std::string& text, bool special = false) const;

  // Writes a conversation as the prompt that the model was trained on, for Request.prompt_tokens.
  // Errors: kNotFound (the file has no chat template), kUnsupported (foretoken does not know its
  // template), kInvalidArgument (options, roles, or turns that the template refuses), kTooLarge (it
  // takes more time or memory than a template may, or than options allow), kStopped
  // (foretoken/cancellation.h).
  [[nodiscard]] Result<std::vector<std::int32_t>> FormatChat(std::span<const ChatMessage> messages,
                                                             const ChatOptions& options) const;
  // What the template writes, as text, with control tokens by their names. Text that looks like one
  // of them, but comes from the conversation, cannot be told from it here. Errors: as FormatChat.
  [[nodiscard]] Result<std::string> WriteChat(std::span<const ChatMessage> messages,
                                              const ChatOptions& options) const;

  // The template itself, a Jinja program. Errors: kNotFound (the file has none), kInvalidArgument (no
  // such template).
  [[nodiscard]] Result<std::string> ChatTemplateText(const ChatOptions& options) const;
  // Tokens that are no text, such as marks of turns; without those that end a text. Detokenize
  // gives their names. Ascending.
  std::vector<std::int32_t> ControlTokens() const;

  const EngineSummary& summary() const;
  EngineLoad load() const;
  // How far the copy of the model is. Any thread, at any time.
  CopyProgress copy() const;
  // The counters that the engine's thread updates as it steps.
  const EngineCounts& counts() const;
  // What a pass costs now on average, with the context of the last one, for the row counts that
  // were measured at Open or that passes have had since; ascending.
  std::vector<RowCost> PassCosts() const;
  // The time of a step in which this many requests decode without drafts, with the engine's own
  // work and the context of the last step; 0: not known.
  double PlainStepUs(int requests) const;

  // Whether the model files and the kept tiles are still what Open found, and all ranks there. If not, the
  // engine accepts no more requests, and those that ran or waited have ended with this error: open
  // another engine. Any thread, while the engine lives. Errors: kIo, with the file's name; kRankLost.
  [[nodiscard]] Status FileStatus() const;

  // Writes to EngineOptions::cache_file what is kept of texts that have ended; the engine's end does the
  // same, and cannot say whether it succeeded. Call it while no request runs. Errors: kIo (the file could not be
  // written, now or before: it is not written any more, and what it has is still read).
  [[nodiscard]] Status KeepCache();
  // Whether the system has let the file be written and read so far. Error: kIo, the first reason; it is not
  // written any more.
  [[nodiscard]] Status CacheFileStatus() const;

  // A slot keeps the newest text that ended in it (Request::slot), as long as its blocks are in the cache or
  // its file. It belongs to the cache_salt of its request, and so does the file: with another one it is as if
  // there were none. Names of files are plain ones, within EngineOptions::slot_folder. Call these
  // members between steps; requests may run.
  //
  // Writes the blocks of the slot's text, and copies of recurrent states, to a file, which replaces one of
  // the same salt. Errors: kInvalidArgument (no such slot, a bad name, a file that is another's), kNotFound (the
  // slot has no text that is still known), kTooLarge (files take no more than cache_file_mb), kIo (no
  // file is left then), kUnsupported (there is no folder).
  [[nodiscard]] Result<SlotCounts> SaveSlot(int slot, const std::string& name,
                                            const std::string& cache_salt = {});
  // Brings the blocks of a file back to the cache, as if the text had just ended in the slot: a request
  // that begins with it reads what is new. Errors: as SaveSlot, kMismatch (the file is another's, or of
  // another model), kInvalidFile, kTooLarge (the cache or the context is too small).
  [[nodiscard]] Result<SlotCounts> RestoreSlot(int slot, const std::string& name,
                                               const std::string& cache_salt = {});
  // Forgets the slot's text, but for what other texts begin with. Returns how many tokens that were in the
  // cache. Errors: kInvalidArgument, kUnsupported.
  [[nodiscard]] Result<int> EraseSlot(int slot, const std::string& cache_salt = {});

  // Whether the trace of EngineOptions.record has all requests that ended. If not, kIo with the
  // reason; the file then holds the requests before that.
  [[nodiscard]] Status RecordStatus() const;

 private:
  class Impl;
  friend class EngineOpener;  // builds an Impl
  friend class EngineParts;   // the decoder and the pipeline, which run a step by halves
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
