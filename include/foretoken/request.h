// SPDX-License-Identifier: Apache-2.0
// foretoken/request.h: what one generation is asked to do. Plain values; nothing here owns an
// engine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "foretoken/verify_strategy.h"

namespace foretoken::sampling {
class Grammar;
}

namespace foretoken {

// Edits the logits of the next token, [vocabulary], in place; text: prompt and generated tokens,
// drafts that are being judged included. A pure function of its arguments: it is called for drafts
// that are rejected later, in any order, and must give the same for the same. -inf bans a token.
// It runs on the engine's thread, for the target and for drafters, and must not throw.
using LogitsProcessor =
    std::function<void(std::span<const std::int32_t> text, std::span<float> logits)>;

// DRY: a token that would prolong a repetition of at least allowed_length tokens is punished by
// multiplier * base^(length - allowed_length) (p-e-w 2024, "DRY: a modern repetition penalty").
struct DryPenalty {
  float multiplier = 0.0f;  // >= 0; 0 = off
  float base = 1.75f;       // >= 1
  int allowed_length = 2;   // >= 1
  int window = -1;          // last tokens that are searched; -1 = all
  // Tokens that no repetition reaches across (newlines, quotes, ...).
  std::vector<std::int32_t> breakers = {};
};

// How tokens are drawn from the model's logits. Order of processing: penalties, bias, masks, the
// request's own processors, temperature, top-k, top-p, typical-p, min-p, eta. Defaults leave the
// model's law as it is.
struct SamplingParameters {
  float temperature =
      1.0f;       // [0, 2]; below 1e-5 is greedy: the most probable token, ties to the lowest id
  int top_k = 0;  // keep the k most probable (ties: lowest id); 0 and -1 = off
  float top_p = 1.0f;  // [0, 1]: keep a token while the mass of strictly better ones is <= top_p;
                       // the best always stays
  float min_p = 0.0f;  // [0, 1]: keep tokens with p >= min_p * max p
  float typical_p = 1.0f;  // [0, 1]: locally typical sampling (Meister et al. 2022); 1 = off
  // [0, 1): keep tokens with p >= min(eta, sqrt(eta) * exp(-H)), H the entropy in nats; the best
  // always stays (Hewitt et al. 2022, "Truncation sampling as language model desmoothing"); 0 = off
  float eta = 0.0f;
  float repetition_penalty =
      1.0f;  // > 0: logits of seen tokens divided (if > 0) or multiplied (CTRL, Keskar et al. 2019)
  int repetition_window = -1;      // how many last tokens (prompt included) count for it; -1 = all
  float frequency_penalty = 0.0f;  // finite: subtracted per occurrence in the generated text
  float presence_penalty = 0.0f;   // finite: subtracted once for a token in the generated text
  DryPenalty dry = {};
  std::map<std::int32_t, float> logit_bias =
      {};  // added to the logits of these ids; finite, or -inf, which bans a token
  // In order; never empty functions. They leave finite numbers, or -inf, which bans a token: NaN or
  // +inf ends the request with an error.
  std::vector<LogitsProcessor> processors = {};
  // The generated text is one that this grammar gives: GBNF, llama.cpp's notation, root ::= ...; it
  // is a mask, before the processors. structured_output.h makes them of JSON Schemas and patterns.
  // End tokens come only where the text may end. Empty: none.
  std::string grammar = {};
  // What Engine::PrepareGrammar made of it. Without it the grammar is compiled when the request
  // begins.
  std::shared_ptr<const sampling::Grammar> prepared_grammar = {};

  bool greedy() const { return temperature < 1e-5f; }
  // kInvalidArgument naming the field, its value and the range.
  [[nodiscard]] Status Validate(int vocabulary_size) const;
};

// How drafts are made and judged for one request. What is unset is the engine's setting.
struct SpeculativeParameters {
  std::optional<bool> enabled = {};
  // One of the methods that the engine was opened with, or "none", "ngram", "suffix", "prediction",
  // "grammar", "portfolio", which every engine has.
  std::optional<std::string> method = {};
  // The rule that judges this request's drafts. kGreedy only at temperature 0; none but kAuto where
  // the engine judges with a program's own verifier or by lot (synthetic_acceptance_rate).
  std::optional<VerifyStrategy> strategy = {};
  std::optional<int> num_speculative_tokens = {};  // K, [0, 64]; 0 = plain decoding
  // [0, K]: shorter drafts are not sent; SpeculativeOptions says where. The engine's setting counts
  // as K for requests with a smaller K.
  std::optional<int> min_speculative_tokens = {};
  std::optional<bool> first_target = {};  // SpeculativeOptions has the meaning
  std::optional<float> draft_p_min =
      {};  // [0, 1]: stop drafting where the drafter's best probability is below it
  std::optional<SamplingParameters> draft_sampling =
      {};  // default: the request's own temperature and filters
};

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

  SamplingParameters sampling = {};
  SpeculativeParameters speculative = {};
  // Text that the answer probably resembles: drafts for the methods prediction and portfolio.
  std::string prediction = {};
  std::uint64_t seed = 0;
  std::uint64_t id = 0;  // separates the noise of requests and choices with one seed
  int logprobs =
      -1;  // -1 = none; n = the chosen token's and those of the n best (raw law), n <= 64
  // The same of the prompt's tokens; all of it is then read, none found in a cache, and also where
  // max_new_tokens is 0.
  int prompt_logprobs = -1;
  // Blocks of the cache that hold the prompt's beginning already are used. False: the whole prompt
  // is read. The text is the same.
  bool reuse_prefix = true;
};

}  // namespace foretoken
