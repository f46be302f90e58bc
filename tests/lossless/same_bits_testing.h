// SPDX-License-Identifier: Apache-2.0
// tests/lossless/same_bits_testing.h: for tests that compare the bits of whole texts between engines whose
// settings must not change them.
#pragma once

#include <map>
#include <ostream>
#include <string>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken {

struct Setting {
  std::string method = "none";
  int threads = 1, prefill_rows = 64, sequences = 1, cache_tokens = 0;
  bool kv_cache = true;
  int checkpoint_tokens = 8192;
  CacheType cache = CacheType::kF16;
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
  options.cache_type_k = options.cache_type_v = setting.cache;
  return options;
}

// Files by method: a target under "none", its noisy copy under "standalone", and these heads of it.
inline std::map<std::string, std::string> WriteDrafts(
    fixtures::TinyModelOptions target, std::map<std::string, fixtures::TinyHeadOptions> heads = {},
    double noise = 0.15) {
  const std::string folder = fixtures::TemporaryFolder();
  std::map<std::string, std::string> files;
  files["none"] = fixtures::WriteTinyModel(folder, target);
  for (auto& [method, head] : heads) {
    head.target = target;
    files[method] = fixtures::WriteTinyHead(folder, head);
  }
  target.noise = noise;
  files["standalone"] = fixtures::WriteTinyModel(folder, target);
  return files;
}

// A target and a head of it; or a target whose last block is one (n_next).
struct TargetAndHead {
  std::string name, method;
  fixtures::TinyModelOptions target;
  fixtures::TinyHeadOptions head = {};
};
inline std::ostream& operator<<(std::ostream& out, const TargetAndHead& of) {
  return out << of.name;
}
inline TargetAndHead HeadOf(const std::string& name, const std::string& method,
                            fixtures::TinyModelOptions target,
                            fixtures::TinyHeadOptions head = {}) {
  target.context_length = 512;
  head.target = target;
  return {name, method, target, head};
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
// Prompts of n, n + more, ... tokens.
inline std::vector<Request> ReadSeveral(int count, int n, int more) {
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) requests.push_back(Read(n + more * i, static_cast<unsigned>(i)));
  return requests;
}

// A request that begins like an earlier one of the same engine.
inline void ExpectSameAfterOneThatBeganAlike(Engine& engine, Engine& fresh) {
  Request request = Read(150, 7);
  Generated(engine, request);
  request.prompt_tokens.resize(100);
  request.prompt_tokens.push_back(9);
  ExpectSame(Generated(engine, request), Generated(fresh, request));
}

}  // namespace foretoken
