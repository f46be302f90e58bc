// SPDX-License-Identifier: Apache-2.0
// lossless/parts_testing.h: a tiny pair and requests for the tests of the public parts.
#pragma once

#include <gtest/gtest.h>

#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"

namespace foretoken {

struct TinyPair {
  std::string target, draft;
};
inline const TinyPair& Pair() {
  static const TinyPair pair = [] {
    const std::string folder = fixtures::TemporaryFolder();
    fixtures::TinyModelOptions options{.seed = 51, .context_length = 96};
    TinyPair made;
    made.target = fixtures::WriteTinyModel(folder, options);
    options.noise = 0.1;
    made.draft = fixtures::WriteTinyModel(folder, options);
    return made;
  }();
  return pair;
}

inline EngineOptions PairOptions(int max_sequences = 1) {
  EngineOptions options;
  options.model = Pair().target;
  options.draft_model = Pair().draft;
  options.speculative.lookahead = "fixed";
  options.max_sequences = max_sequences;
  options.threads = 1;
  return options;
}

inline Request Ask(int n, float temperature = 0, std::uint64_t seed = 0, int k = 4) {
  Request r;
  r.prompt = "once upon a time";
  r.max_new_tokens = n;
  r.sampling.temperature = temperature;
  r.ignore_eos = true;
  r.seed = seed;
  r.speculative.num_speculative_tokens = k;
  return r;
}

inline std::unique_ptr<Engine> OpenEngine(EngineOptions options) {
  auto engine = Engine::Open(std::move(options));
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}
inline Completion Generated(Engine& engine, const Request& request) {
  auto completion = engine.Generate(request);
  EXPECT_TRUE(completion) << completion.error().message;
  return completion ? *std::move(completion) : Completion();
}

}  // namespace foretoken
