// SPDX-License-Identifier: Apache-2.0
// lossless/engines_testing.h: engines, their completions, and whether two of these have the same bits.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "foretoken/engine.h"

namespace foretoken {

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

// n random tokens, none of them a control token of a tiny model.
inline std::vector<std::int32_t> TokensOf(int n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(3 + static_cast<int>(random() % 300));
  return tokens;
}

inline void ExpectSame(const Completion& a, const Completion& b, const std::string& where) {
  ASSERT_EQ(a.token_ids, b.token_ids) << where;
  ASSERT_EQ(a.text, b.text) << where;
  ASSERT_EQ(a.finish_reason, b.finish_reason) << where;
  ASSERT_EQ(a.logprobs.size(), b.logprobs.size()) << where;
  for (std::size_t i = 0; i < a.logprobs.size(); ++i) {
    ASSERT_EQ(std::memcmp(&a.logprobs[i].logprob, &b.logprobs[i].logprob, sizeof(float)), 0)
        << where << " token " << i;
    ASSERT_EQ(a.logprobs[i].top, b.logprobs[i].top) << where << " token " << i;
  }
}

}  // namespace foretoken
