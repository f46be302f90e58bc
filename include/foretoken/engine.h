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
// An Engine owns a target model, its drafters, their caches and its threads. Calls from several
// threads must be serialised by the caller. Engines share nothing.
//
// Generate and GenerateBatch run requests to their ends. A program that has other work to do, or
// requests that come and go, calls Begin for each, Step again and again, and Take for what ended.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretoken/chat.h"
#include "foretoken/engine_counts.h"
#include "foretoken/measure.h"
#include "foretoken/options.h"
#include "foretoken/request.h"
#include "foretoken/result.h"
#include "foretoken/speculative_use.h"
#include "foretoken/stats.h"
#include "foretoken/stream.h"

namespace foretoken {

// kError: see Completion::error.
enum class FinishReason { kStop, kLength, kCancelled, kError };
const char* Name(FinishReason reason);

struct Completion {
  std::string text;                     // valid UTF-8, without the stop string
  std::vector<std::int32_t> token_ids;  // committed tokens; an end token is the last of them
  std::vector<std::int32_t> prompt_token_ids;
  std::vector<TokenLogprobs> logprobs;         // per token, where asked for
  std::vector<TokenLogprobs> prompt_logprobs;  // of the prompt's second token and all that follow
  FinishReason finish_reason = FinishReason::kStop;
  // Why the request ended before its time (finish reason kError): kNoMemory; kInvalidFile where the
  // model's logits are not finite; kTooLarge where following its grammar takes more than is
  // allowed. What stands above is then what there was so far. Other requests are not
  // touched.
  std::optional<Error> error;
  std::uint64_t seed = 0;
  // The rule that verified this request: "residual", never "auto"; "greedy" at temperature 0,
  // whatever was asked for.
  std::string strategy;
  // The text has the distribution of plain decoding: by that rule, or because nothing drafted.
  bool lossless = true;
  // Settings that the request gave and that had no effect on it: "draft_p_min: nothing drafts".
  std::vector<std::string> notices;
  // The controller that chose this request's draft lengths: "by-text" in place of cost-model and
  // batch-size where the text depends on the drafts, so that the seed gives the same text again.
  // Empty where nothing could be drafted.
  std::string lookahead;
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
};

// A model or head that drafts.
struct DrafterSummary {
  std::string name;    // in statistics and requests: "standalone", of several "standalone:tales-1m"
  std::string method;  // "standalone"
  ModelSummary model;
};

struct EngineSummary {
  ModelSummary target;
  std::unique_ptr<ModelSummary> draft;  // the first of `drafts`; null without any
  std::vector<DrafterSummary> drafts;   // all models and heads that draft, in the order of files
  std::string isa;                      // "avx512"
  int threads = 0;
  std::string method, strategy, lookahead;  // "ngram", "sample-match", "fixed"
  bool lossless = true;                     // by that strategy, at every temperature
  // Of these a request may choose; some only with drafters that report their laws. Empty where one
  // verifier judges all.
  std::vector<std::string> strategies;
  int num_speculative_tokens = 0;
  double load_ms = 0;
  // What went wrong while opening and did no harm: a cache folder without room, for example.
  std::vector<std::string> notices;
};

// What an engine holds at the moment, and what it has counted since it was opened.
struct EngineLoad {
  // Requests that have not ended: those that take part in steps, those whose cache was given to
  // others and that wait for room, and those that wait for a sequence.
  int running = 0, preempted = 0, waiting = 0;
  // Of 32 positions each: held by no text; by requests; kept of texts that ended, to be found again
  // or taken.
  int free_blocks = 0, used_blocks = 0, idle_blocks = 0;
  std::int64_t cached_prompt_tokens = 0;  // prompt tokens that needed no reading
  std::int64_t preemptions = 0;
};

using Ticket = std::uint64_t;  // of a request that was begun; never 0

class Engine {
 public:
  // Loads and repacks the models; everything that can be wrong with files and options is found
  // here. Memory is reserved in full. Errors: those of the files (named), kMismatch (draft of
  // another vocabulary: how many ids differ, the first ones), kTooLarge, kNoMemory.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> Open(EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Runs one request to its end. on_round may be empty.
  // Errors: kInvalidArgument (a parameter out of range), kTooLarge (the prompt does not fit the
  // context), Completion::error.
  [[nodiscard]] Result<Completion> Generate(const Request& request, const OnRound& on_round = {});

  // Runs requests together, at most max_sequences at a time; each gives what it gives alone. All
  // are checked before any runs. The first one that ends with an error ends all of them.
  [[nodiscard]] Result<std::vector<Completion>> GenerateBatch(std::span<const Request> requests,
                                                              const OnRound& on_round = {});

  // Takes a request in; it joins the running ones as soon as one of max_sequences is free. Errors:
  // as of Generate; what goes wrong later is in the completion.
  [[nodiscard]] Result<Ticket> Begin(Request request, OnRound on_round = {});
  // One pass of the target for all running requests: prompts are read, drafts verified, tokens
  // committed. False when nothing is left to do. Where memory runs out, the request that needed it
  // ends (Completion::error), and the others go on.
  bool Step();
  // The request ends at its next step (finish reason "cancelled"). Unknown tickets are ignored.
  void Cancel(Ticket ticket);
  // What a request gave, once it has ended; then the ticket is forgotten. Nothing before that.
  std::optional<Completion> Take(Ticket ticket);

  // Drafters forget what earlier requests taught them (suffix; n-gram where it keeps texts), so
  // that runs can be compared. For moments when no request runs.
  void Forget();

  // Log-probabilities (natural, T = 1) of tokens[i + 1] after tokens[0..i]: tokens.size() - 1
  // values. No sampling. Errors: kInvalidArgument (an unknown token, or while requests run).
  [[nodiscard]] Result<std::vector<float>> Score(std::span<const std::int32_t> tokens);

  // What passes of the target and the drafter cost by their rows and the context before them, and
  // what surrounds them. Takes (repeats + 2) passes for each point. Errors: kInvalidArgument (rows
  // that no pass of this engine can have, ...), kTooLarge (the context does not hold them).
  [[nodiscard]] Result<Measurements> Measure(const MeasureOptions& options = {});

  // What settings meet: with this request, which Begin would accept; and with any that it would.
  SpeculativeUse UseFor(const Request& request) const;
  SpeculativeUse UseForAny() const;

  // Compiles the grammar of sampling.grammar into sampling.prepared_grammar, so that Begin need not
  // and no running request waits for it. Any thread, at any time. Does nothing without a grammar.
  // Errors: kInvalidArgument (what is wrong, and where), kTooLarge (which budget does not hold it).
  [[nodiscard]] Status PrepareGrammar(SamplingParameters& sampling) const;

  // Text to tokens and back, by the target's vocabulary.
  std::vector<std::int32_t> Tokenize(const std::string& text, bool add_special,
                                     bool parse_special) const;
  std::string Detokenize(std::span<const std::int32_t> tokens, bool special = false) const;
  // The one token that `text` is inside of a longer text; special: names of control tokens count as
  // such. Errors: kInvalidArgument (it is no token, or several).
  [[nodiscard]] Result<std::int32_t> TokenOf(const std::string& text, bool special = false) const;

  // A conversation as the prompt that the model was trained on, for Request.prompt_tokens. Errors:
  // kNotFound (the file has no chat template), kUnsupported (one that foretoken does not know),
  // kInvalidArgument (options, roles, or turns that the template refuses).
  [[nodiscard]] Result<std::vector<std::int32_t>> FormatChat(std::span<const ChatMessage> messages,
                                                             const ChatOptions& options) const;

  const EngineSummary& summary() const;
  EngineLoad load() const;
  // Of the engine's thread, as it steps.
  const EngineCounts& counts() const;
  // What a pass costs now, in the mean and with the context of the last one: rows that were
  // measured while the engine was opened or that passes have had since, ascending.
  std::vector<RowCost> PassCosts() const;
  // What a step costs now in which so many requests decode without drafts, the engine's own work
  // included, with the context of the last one; 0: not known.
  double PlainStepUs(int requests) const;

  // Whether the model files, and the tiles that were kept of them, are still what Open found. Once
  // they are not, the engine takes nothing in any more, and requests that ran or waited have ended
  // with this error: open another engine. Any thread, while the engine lives. Error: kIo, with the
  // file's name.
  [[nodiscard]] Status FileStatus() const;

  // Whether all requests that ended are in the trace of EngineOptions.record: kIo with the reason
  // where they are not; then the file holds what came before.
  [[nodiscard]] Status RecordStatus() const;

 private:
  class Impl;
  friend class EngineOpener;  // builds an Impl
  friend class EngineParts;   // the decoder and the pipeline, which move it by halves
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
