// SPDX-License-Identifier: Apache-2.0
// foretoken/request.h: what one generation is asked to do. Plain values; nothing here owns an
// engine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken {

// How tokens are drawn from the model's logits. Order of processing: penalties, bias, masks,
// temperature, top-k, top-p, min-p (typical-p after top-p). Defaults leave the model's law as it
// is.
struct SamplingParameters {
  float temperature =
      1.0f;       // [0, 2]; below 1e-5 is greedy: the most probable token, ties to the lowest id
  int top_k = 0;  // keep the k most probable (ties: lowest id); 0 and -1 = off
  float top_p = 1.0f;  // [0, 1]: keep a token while the mass of strictly better ones is <= top_p;
                       // the best always stays
  float min_p = 0.0f;  // [0, 1]: keep tokens with p >= min_p * max p
  float typical_p = 1.0f;  // [0, 1]: locally typical sampling (Meister et al. 2022); 1 = off
  float repetition_penalty =
      1.0f;  // > 0: logits of seen tokens divided (if > 0) or multiplied (CTRL, Keskar et al. 2019)
  int repetition_window = -1;      // how many last tokens (prompt included) count for it; -1 = all
  float frequency_penalty = 0.0f;  // finite: subtracted per occurrence in the generated text
  float presence_penalty = 0.0f;   // finite: subtracted once for a token in the generated text
  std::map<std::int32_t, float> logit_bias =
      {};  // added to the logits of these ids; -inf bans a token

  bool greedy() const { return temperature < 1e-5f; }
  // kInvalidArgument naming the field, its value and the range.
  [[nodiscard]] Status Validate(int vocabulary_size) const;
};

// How drafts are made and judged for one request. What is unset is the engine's setting.
struct SpeculativeParameters {
  std::optional<bool> enabled = {};
  std::optional<int> num_speculative_tokens = {};  // K, [0, 64]; 0 = plain decoding
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
  std::uint64_t seed = 0;
  std::uint64_t id = 0;  // separates the noise of requests and choices with one seed
  int logprobs =
      -1;  // -1 = none; n = the chosen token's and those of the n best (raw law), n <= 64
};

}  // namespace foretoken
