// SPDX-License-Identifier: Apache-2.0
// The distribution of texts that the model drafted for itself, beside one that is computed another way:
// from the logits of passes of the network and of its copy, without a drafter, a sampler or a verifier.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"
#include "model/tiny_runner_testing.h"

namespace foretoken {
namespace {

using model::LocalRunner;
using tensor::DType;

constexpr int kChoices = 4;  // top_k
const std::vector<Token> kBeginning = {1, 60, 61, 70};

// Probabilities of tokens; all others have 0.
using Distribution = std::map<Token, double>;
using Pairs = std::map<std::pair<Token, Token>, double>;

Distribution MostProbable(const float* logits, int vocabulary) {
  std::vector<Token> tokens(static_cast<std::size_t>(vocabulary));
  for (Token t = 0; t < vocabulary; ++t) tokens[static_cast<std::size_t>(t)] = t;
  std::ranges::sort(tokens, [&](Token a, Token b) { return logits[a] > logits[b]; });
  Distribution p;
  double sum = 0;
  for (int i = 0; i < kChoices; ++i) {
    const Token token = tokens[static_cast<std::size_t>(i)];
    sum += p[token] = std::exp(static_cast<double>(logits[token]));
  }
  for (auto& [token, share] : p) share /= sum;
  return p;
}

class NetworkAndCopy : model::TinyRunner {
 public:
  NetworkAndCopy(const std::string& path, DType types)
      : TinyRunner(path, 32, 8), copy_(Copy({types, types})) {}

  // What follows the text by the network, and by the copy, which reads the network's cache of all but the
  // newest token.
  std::array<Distribution, 2> After(const std::vector<Token>& text) {
    kv::BlockTables tables(shape);
    const int n = static_cast<int>(text.size());
    const auto follows = [&](model::Runner& by, int begin, int end, int kept) {
      const auto logits = model::LogitsOf(by, tables, text, begin, end, kept);
      const int vocabulary = by.info().vocabulary;
      return MostProbable(logits.data() + std::ssize(logits) - vocabulary, vocabulary);
    };
    follows(*runner, 0, n - 1, n - 1);
    const Distribution draft = follows(*copy_, n - 1, n, 0);
    return {follows(*runner, n - 1, n, 1), draft};
  }

 private:
  std::unique_ptr<LocalRunner> copy_;
};

struct SelfCounts {
  Pairs pairs;  // the first two tokens: that of the prompt, and the drafted one
  std::int64_t drafted = 0, accepted = 0;
};

SelfCounts Draw(const std::string& path, VerifyStrategy strategy, int n) {
  EngineOptions options{.model = path,
                        .speculative = {.method = "self",
                                        .strategy = strategy,
                                        .num_speculative_tokens = 1,
                                        .controller = "fixed",
                                        .self_draft = "Q2_K"},
                        .max_sequences = 8,
                        .threads = 1};
  const auto engine = *Engine::Open(options);
  std::vector<Request> requests(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt_tokens = kBeginning;
    requests[i].max_new_tokens = 3;
    requests[i].ignore_eos = true;
    requests[i].sampling.temperature = 1;
    requests[i].sampling.top_k = kChoices;
    requests[i].seed = i;
  }
  SelfCounts seen;
  std::vector<bool> begun(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].id = i;
  const auto texts = *engine->GenerateBatch(requests, [&](const RoundEvent& round) {
    if (round.drafted == 0 || begun[round.request_id]) return true;
    begun[round.request_id] = true;  // the round of the second token
    ++seen.drafted;
    seen.accepted += round.events[0].origin == TokenOrigin::kAccepted;
    return true;
  });
  for (const Completion& text : texts) ++seen.pairs[{text.token_ids[0], text.token_ids[1]}];
  return seen;
}

// Under `residual` the two tokens have the product of the network's distributions, and a draft is accepted
// with probability sum min(p, q), q the copy's distribution. Under `sample-match` the first is true, and a
// draft is accepted as often as the network draws it, which is less.
void ExpectItsDistribution(const char* arch) {
  fixtures::TinyModelOptions tiny{.arch = arch, .seed = 99, .dim = 256, .ff = 256};
  const std::string path = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), tiny);
  NetworkAndCopy both(path, DType::kQ2_K);
  Pairs expected;
  double overlap = 0;
  const Distribution first = both.After(kBeginning)[0];
  for (const auto& [a, p_a] : first) {
    std::vector<Token> text = kBeginning;
    text.push_back(a);
    auto [p, q] = both.After(text);
    for (const auto& [b, p_b] : p) {
      expected[{a, b}] = p_a * p_b;
      overlap += p_a * std::min(p_b, q[b]);
    }
  }
  EXPECT_LT(overlap, 0.97) << "a test that nothing can fail";
  EXPECT_GT(overlap, 0.1);
  constexpr int n = 4000;
  // What chance exceeds once in a million times: in deviations, and as chi-square of 15 degrees of freedom.
  constexpr double z = 4.75, kBound = 58;
  ASSERT_EQ(expected.size(), 16u);
  for (const VerifyStrategy strategy : {VerifyStrategy::kResidual, VerifyStrategy::kSampleMatch}) {
    const SelfCounts seen = Draw(path, strategy, n);
    double chi_square = 0;
    for (const auto& [pair, count] : seen.pairs)
      EXPECT_TRUE(expected.contains(pair)) << arch << " " << pair.first << " " << pair.second;
    for (const auto& [pair, p] : expected) {
      const auto found = seen.pairs.find(pair);
      const double count = found == seen.pairs.end() ? 0 : found->second;
      chi_square += std::pow(count - n * p, 2) / (n * p);
    }
    EXPECT_LT(chi_square, kBound) << arch;
    EXPECT_EQ(seen.drafted, n);
    const double share = static_cast<double>(seen.accepted) / n,
                 deviation = std::sqrt(overlap * (1 - overlap) / n);
    std::printf("  %-8s overlap %.3f, accepted %.3f, chi-square %.1f of %zu pairs\n", arch, overlap,
                share, chi_square, expected.size());
    if (strategy == VerifyStrategy::kResidual)
      EXPECT_LT(std::abs(share - overlap), z * deviation) << arch;
    else
      EXPECT_LT(share, overlap) << arch;
  }
}

TEST(SelfDistribution, IsTheNetworksAndDraftsAreAcceptedAsOftenAsBothOverlap) {
  ExpectItsDistribution("llama");
}

TEST(SelfDistribution, OfRecurrentLayersToo) {
  ExpectItsDistribution("lfm2");
}

}  // namespace
}  // namespace foretoken
