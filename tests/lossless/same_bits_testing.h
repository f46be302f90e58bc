// SPDX-License-Identifier: Apache-2.0
// tests/lossless/same_bits_testing.h: for tests that compare the bits of whole texts between engines whose
// settings must not change them.
#pragma once

#include <string>

#include "fixtures/engines_testing.h"

namespace foretoken {

struct Setting {
  std::string method = "none";
  int threads = 1, prefill_rows = 64, sequences = 1, cache_tokens = 0;
  bool kv_cache = true;
  int checkpoint_tokens = 8192;
};

inline EngineOptions OptionsOf(const std::string& model, const Setting& setting) {
  EngineOptions options{.model = model,
                        .speculative = {.method = setting.method, .controller = "fixed"},
                        .context_size = 512,
                        .max_sequences = setting.sequences,
                        .threads = setting.threads,
                        .prefill_rows = setting.prefill_rows};
  options.cache_tokens = setting.cache_tokens;
  options.kv_cache = setting.kv_cache;
  options.state_checkpoint_tokens = setting.checkpoint_tokens;
  return options;
}

// A prompt of n random tokens.
inline Request Read(int n, unsigned seed, int drafts = 5, float temperature = 0,
                    VerifyStrategy strategy = VerifyStrategy::kSampleMatch) {
  Request r;
  r.prompt_tokens = TokensOf(n, seed);
  r.max_new_tokens = 60;
  r.sampling.temperature = temperature;
  r.seed = 3;
  r.logprobs = 3;
  r.ignore_eos = true;
  r.speculative.num_speculative_tokens = drafts;
  if (temperature != 0) r.speculative.strategy = strategy;
  return r;
}

}  // namespace foretoken
