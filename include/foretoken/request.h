// SPDX-License-Identifier: Apache-2.0
// foretoken/request.h: what one request asks for, and what a caller sees while it runs. Plain values;
// nothing here owns an engine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/result.h"
#include "foretoken/verifier.h"

namespace foretoken {

// Edits the logits of the next token, [vocabulary], in place. text: prompt and generated tokens,
// and the drafts that are being verified. It must be a pure function of its arguments: it is called
// for drafts that are rejected later, in any order, and equal arguments must give equal results.
// -inf bans a token. It runs on the engine's thread, for the target and for drafters, and must not
// throw.
using LogitsProcessor =
    std::function<void(std::span<const std::int32_t> text, std::span<float> logits)>;

// DRY: a token that would extend a repetition of at least allowed_length tokens gets a penalty of
// multiplier * base^(length - allowed_length) (p-e-w 2024, "DRY: a modern repetition penalty").
struct DryPenalty {
  float multiplier = 0.0f;  // >= 0; 0 = off
  float base = 1.75f;       // >= 1
  int allowed_length = 2;   // >= 1
  int window = -1;          // how many last tokens are searched; -1 = all
  // No repetition reaches across these tokens (newlines, quotes, ...).
  std::vector<std::int32_t> breakers = {};
};

// How tokens are drawn from the model's logits. The order of processing is: penalties, bias, masks,
// the request's own processors, temperature, top-k, top-p, typical-p, min-p, eta. The defaults
// leave the model's distribution as it is.
struct SamplingParameters {
  // [0, 2]. Below 1e-5 is greedy: the most probable token; of equal ones the lowest id.
  float temperature = 1.0f;
  int top_k = 0;  // keep the k most probable (of equal ones the lowest ids); 0 and -1 = off
  // [0, 1]: keep a token while the mass of strictly better ones is <= top_p; the best always stays.
  float top_p = 1.0f;
  float min_p = 0.0f;      // [0, 1]: keep tokens with p >= min_p * max p
  float typical_p = 1.0f;  // [0, 1]: locally typical sampling (Meister et al. 2022); 1 = off
  // [0, 1): keep tokens with p >= min(eta, sqrt(eta) * exp(-H)), H the entropy in nats; the best
  // always stays (Hewitt et al. 2022, "Truncation sampling as language model desmoothing"); 0 = off
  float eta = 0.0f;
  // > 0: divides the logits of seen tokens if they are positive, else multiplies them (CTRL, Keskar
  // et al. 2019).
  float repetition_penalty = 1.0f;
  int repetition_window = -1;      // how many last tokens (prompt included) count for it; -1 = all
  float frequency_penalty = 0.0f;  // finite: subtracted per occurrence in the generated text
  float presence_penalty = 0.0f;   // finite: subtracted once for a token in the generated text
  DryPenalty dry = {};
  // Added to the logits of these ids; finite, or -inf, which bans a token.
  std::map<std::int32_t, float> logit_bias = {};
  // Called in this order; never empty functions. They must leave finite numbers, or -inf, which
  // bans a token. NaN or +inf ends the request with an error.
  std::vector<LogitsProcessor> processors = {};
  // The generated text must follow this grammar: GBNF, llama.cpp's notation, root ::= .... It is a
  // mask, applied before the processors. structured_output.h makes grammars from JSON Schemas and
  // patterns. End tokens are allowed only where the grammar allows an end. Empty: none.
  std::string grammar = {};

  bool greedy() const { return temperature < 1e-5f; }
  // Errors: kInvalidArgument with the field, its value and the range.
  [[nodiscard]] Status Validate(int vocabulary_size) const;
};

// The usual ways to draw a token, by name. What a preset does not set is off, and may be set
// afterwards.
//
// Always the most probable token.
inline SamplingParameters Greedy() {
  SamplingParameters s;
  s.temperature = 0;
  return s;
}

// Draws from the model's distribution at a temperature.
inline SamplingParameters Multinomial(float temperature) {
  SamplingParameters s;
  s.temperature = temperature;
  return s;
}

// Draws from the k most probable tokens.
inline SamplingParameters TopK(float temperature, int k) {
  SamplingParameters s = Multinomial(temperature);
  s.top_k = k;
  return s;
}

// Draws from the most probable tokens that together hold the mass p.
inline SamplingParameters Nucleus(float temperature, float p) {
  SamplingParameters s = Multinomial(temperature);
  s.top_p = p;
  return s;
}

// Applies the nucleus to the distribution that TopK leaves.
inline SamplingParameters TopKNucleus(float temperature, int k, float p) {
  SamplingParameters s = TopK(temperature, k);
  s.top_p = p;
  return s;
}

// How drafts are made and verified for one request. A field that is not set uses the engine's
// setting.
struct SpeculativeParameters {
  std::optional<bool> enabled = {};
  // One of the engine's methods, or "none", "ngram", "suffix", "prediction", "grammar" or
  // "portfolio", which every engine has.
  std::optional<std::string> method = {};
  // The strategy for this request's drafts. kGreedy only at temperature 0. Only kAuto if the engine
  // uses your own verifier or synthetic acceptance.
  std::optional<VerifyStrategy> strategy = {};
  std::optional<int> num_speculative_tokens = {};  // K, [0, 64]; 0 = plain decoding
  // [0, K]: shorter drafts are not sent; see SpeculativeOptions. If the engine's setting is more
  // than a request's K, it counts as K for that request.
  std::optional<int> min_speculative_tokens = {};
  std::optional<bool> first_target = {};  // see SpeculativeOptions
  // [0, 1]: a draft ends where the drafter's best probability is below it.
  std::optional<float> draft_p_min = {};
  // How drafts are drawn; default: the request's own temperature and filters.
  std::optional<SamplingParameters> draft_sampling = {};
};

// How control tokens, which are no text, stand in the text of an answer. A token that ends the text is
// never part of it.
enum class ControlTexts : std::uint8_t {
  kNone,    // not at all
  kPlain,   // by their names
  kMarked,  // by their names between the bytes 0xFF and 0xFE, which no UTF-8 has
};

// The hidden states that an embedding is made of: what leaves the output norm at the positions of the
// prompt. The numbers are those of `pooling_type` in a GGUF file.
enum class Pooling : std::int32_t {
  kNone,   // all of them
  kMean,   // their mean
  kFirst,  // that of the first token ("cls")
  kLast,   // that of the last token, which has read the whole prompt
  // What the model's head makes of the last token's: a number for each of its labels, of which the
  // first is the score of the pair of texts that is the prompt. Only where EngineSummary::scores_pairs.
  kRank,
};
const char* Name(Pooling pooling);  // "none", "mean", "cls", "last", "rank"

struct Request {
  std::string prompt = {};  // used where prompt_tokens is empty
  std::vector<std::int32_t> prompt_tokens = {};
  bool add_special = true;     // BOS and EOS as the model file says (prompt only)
  bool parse_special = false;  // control tokens written in the prompt's text count as such

  int max_new_tokens = 128;  // >= 0; never overshot
  int min_new_tokens = 0;    // end tokens are masked until then
  bool ignore_eos = false;
  std::vector<std::string> stop = {};  // the text ends before the first of them
  std::vector<std::int32_t> stop_token_ids = {};
  ControlTexts control_texts = ControlTexts::kNone;

  SamplingParameters sampling = {};
  SpeculativeParameters speculative = {};
  // Text that the answer probably resembles; the methods prediction and portfolio draft from it.
  std::string prediction = {};
  std::uint64_t seed = 0;
  std::uint64_t id = 0;  // separates the noise of requests, and of choices, with one seed
  // Log-probabilities in the raw distribution: -1 = none; n = of the chosen token and of the n best,
  // n <= 64.
  int logprobs = -1;
  // Log-probabilities of the prompt's tokens. The whole prompt is then prefilled, without the cache,
  // even if max_new_tokens is 0.
  int prompt_logprobs = -1;
  // Asks for the prompt's embedding in place of a text: max_new_tokens must be 0, and the prompt may
  // fill the context. Unless the states of its end are enough (kLast), the whole prompt is prefilled,
  // without the cache.
  std::optional<Pooling> embedding = {};
  // True: cache blocks that already hold the beginning of the prompt are used, and this request's own
  // serve later ones; drafters that learn from texts learn from this one. False: the whole prompt is
  // prefilled, and nothing of the request stays behind. The text is the same.
  bool reuse_prefix = true;
  // What a request leaves behind (cache blocks, copies of recurrent states, texts that drafters learn
  // from) serves requests with the same salt only: so one user's requests neither see nor speed up
  // those of another. At most 1024 bytes. Empty: shared with all others whose salt is empty.
  std::string cache_salt = {};
  // The slot that keeps the text when it has ended (Engine::SaveSlot), [0, max_sequences); -1: the one of
  // the sequence that it ran in. Nothing else depends on it.
  int slot = -1;

  // The caller's drafts of the next tokens, at most 64. One pass of the target verifies them, and the
  // request ends with its first token that is none of them (FinishReason::kVerified), or where its
  // text ends. They are verified as sample-match does, so a token is the one that a request without
  // them has at this place. An empty list asks for one token. Nothing else drafts for it.
  std::optional<std::vector<std::int32_t>> drafts = {};
  // With drafts: the tokens that earlier requests with this prompt, seed and id gave. Noise,
  // penalties, the grammar, stop strings and both limits go on behind them, as in one text; the
  // completion has what follows.
  std::vector<std::int32_t> generated = {};
};

// ---- While it runs ------------------------------------------------------------------------------

// Why a request ended. kStop: an end token or a stop string. kLength: it has all the tokens that it
// asked for, or its context is full. kError: see Completion::error. kVerified: its drafts were
// verified (Request::drafts), and its text goes on.
enum class FinishReason { kStop, kLength, kCancelled, kError, kVerified };
const char* Name(FinishReason reason);

// Where a token came from.
enum class TokenOrigin : std::uint8_t { kPlain, kAccepted, kRecovered, kBonus };

struct TokenLogprobs {
  float logprob = 0;  // of the chosen token: natural logarithm, raw distribution (T = 1)
  std::vector<std::pair<std::int32_t, float>> top;  // best first, ties by id
};

// One committed token. `text` is whole UTF-8 characters. It may be empty while a character or a
// possible stop string is held back.
struct TokenEvent {
  std::int32_t id = 0;
  TokenOrigin origin = TokenOrigin::kPlain;
  std::string text;
  const TokenLogprobs* logprobs = nullptr;  // if asked for
};

// What one round of one request did: `events` in order; `rejected` are the drafted tokens that the
// target rejected or did not verify.
struct RoundEvent {
  std::uint64_t request_id = 0;
  std::span<const TokenEvent> events;
  std::span<const std::int32_t> rejected;
  int drafted = 0;
  std::string_view drafter;                        // "ngram"; empty if nothing was drafted
  std::span<const TokenLogprobs> prompt_logprobs;  // with the first events, if asked for
};

// Called on the engine's thread after each pass that a request took part in (without events during
// its prefill). Return false to cancel the request (finish reason "cancelled").
using OnRound = std::function<bool(const RoundEvent&)>;

}  // namespace foretoken
