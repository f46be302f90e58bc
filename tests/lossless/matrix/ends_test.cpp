// SPDX-License-Identifier: Apache-2.0
// Ends at every offset of a round, with every drafter: the text is cut where plain text is.
#include <gtest/gtest.h>

#include "lossless/matrix/matrix_testing.h"

namespace foretoken {
namespace {

constexpr int kEndTokens = 26;

std::vector<Request> Asked(float temperature, int k) {
  Request r = MatrixRequest(kEndTokens);
  r.sampling.temperature = temperature;
  r.seed = 3;
  r.speculative.num_speculative_tokens = k;
  return {r};
}

class EveryDraftersEnds : public testing::TestWithParam<MatrixDrafter> {
 protected:
  // Under this strategy the text of a seed does not depend on drafts.
  void SetUp() override {
    engine_ = OpenMatrix(
        {.drafter = GetParam().name, .strategy = VerifyStrategy::kSampleMatch, .max_sequences = 3});
    plain_engine_ = OpenMatrix({});
  }
  // Each of the requests, which have different ends, must end as plain text does.
  void ExpectPlain(std::vector<Request> requests, const char* what) {
    const auto plain = GeneratedTogether(*plain_engine_, requests);
    for (int k = 1; k <= 8; ++k) {
      for (Request& r : requests) r.speculative.num_speculative_tokens = k;
      const auto got = GeneratedTogether(*engine_, requests);
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].token_ids, plain[i].token_ids) << what << " " << i << ", K " << k;
        ASSERT_EQ(got[i].text, plain[i].text) << what << " " << i << ", K " << k;
        ASSERT_EQ(got[i].finish_reason, plain[i].finish_reason) << what << " " << i << ", K " << k;
        ASSERT_EQ(got[i].speculation.emitted, static_cast<std::int64_t>(got[i].token_ids.size()));
      }
    }
  }
  std::unique_ptr<Engine> engine_, plain_engine_;
};

TEST_P(EveryDraftersEnds, FallAnywhereInARound) {
  for (const float temperature : {0.0f, 0.7f}) {
    const Completion plain = GeneratedTogether(*plain_engine_, Asked(temperature, 0))[0];
    std::vector<Request> tokens, strings, lengths, later;
    for (std::size_t at = 0; at < kEndTokens; ++at) {
      const Request r = Asked(temperature, 0)[0];
      tokens.push_back(r);
      tokens.back().stop_token_ids = {plain.token_ids[at]};
      lengths.push_back(r);
      lengths.back().max_new_tokens = static_cast<int>(at);
      later.push_back(tokens.back());
      later.back().min_new_tokens = static_cast<int>(at / 2);
      if (at + 2 > plain.text.size()) continue;
      strings.push_back(r);
      strings.back().stop = {plain.text.substr(at, 2)};
    }
    ExpectPlain(tokens, "stop token");
    ExpectPlain(strings, "stop string");
    ExpectPlain(lengths, "length");
    ExpectPlain(later, "stop token that must wait");
  }
}

INSTANTIATE_TEST_SUITE_P(Drafters, EveryDraftersEnds, testing::ValuesIn(MatrixDrafters()),
                         [](const auto& of) { return Underscored(of.param.name); });

}  // namespace
}  // namespace foretoken
