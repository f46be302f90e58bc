// SPDX-License-Identifier: Apache-2.0
// A program's own drafters and verifiers in an engine. They change the speed; a lossless verifier
// may change the noise, but never the distribution of the text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>

#include "foretoken/drafter.h"
#include "foretoken/verifier.h"
#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

using Rule = std::function<void(DraftProposal&)>;

class OwnDrafter final : public Drafter {
 public:
  OwnDrafter(Rule rule, bool distributions = false, std::string name = "own")
      : rule_(std::move(rule)), distributions_(distributions), name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  bool ReportsDistributions() const override { return distributions_; }
  void Propose(int, DraftProposal& proposal) override { rule_(proposal); }

 private:
  Rule rule_;
  bool distributions_;
  std::string name_;
};

EngineOptions OwnOptions() {
  EngineOptions options = TargetOptions();
  options.speculative.num_speculative_tokens = 4;
  return options;
}

// Drafts the request's known text with an occasional mistake.
Rule Knowing(std::vector<std::int32_t> all) {
  return [all = std::move(all)](DraftProposal& p) {
    while (p.left() > 0) {
      const std::size_t at = p.text().size();
      const std::int32_t token = at < all.size() ? all[at] : 1;
      p.Push(at % 5 == 2 ? (token + 1) % 300 : token);
    }
  };
}

TEST(OwnDrafter, LeavesTheTextAsItIs) {
  const auto plain = OpenEngine(OwnOptions());
  for (const float temperature : {0.0f, 0.8f}) {
    const auto want = Generated(*plain, Ask(40, temperature, 7, 0));
    EngineOptions options = OwnOptions();
    options.drafter = std::make_shared<OwnDrafter>(Knowing(WholeText(want)));
    const auto engine = OpenEngine(options);
    EXPECT_EQ(engine->summary().method, "own");
    const auto got = Generated(*engine, Ask(40, temperature, 7));
    EXPECT_EQ(got.token_ids, want.token_ids);
    EXPECT_EQ(got.strategy, temperature > 0 ? "sample-match" : "greedy");
    EXPECT_GT(got.speculation.accepted, 20);
    EXPECT_LT(got.speculation.accepted, got.speculation.drafted);
    EXPECT_TRUE(engine->summary().notices.empty());
    // One of several methods, and a request's.
    Request request = Ask(40, temperature, 7);
    request.speculative.method = "none";
    EXPECT_EQ(Generated(*engine, request).speculation.drafted, 0);
    request.speculative.method = "own,ngram";
    EXPECT_EQ(Generated(*engine, request).token_ids, want.token_ids);
    request.speculative.method = "portfolio";
    EXPECT_EQ(Generated(*engine, request).token_ids, want.token_ids);
  }
}

// Keeps each sequence's text from what it is told, and compares it with what it is shown.
class Bookkeeper final : public Drafter {
 public:
  std::string_view name() const override { return "bookkeeper"; }
  void Begin(const DrafterText& request) override {
    EXPECT_EQ(texts.count(request.sequence), 0u);
    texts[request.sequence].assign(request.prompt.begin(), request.prompt.end());
    most = std::max(most, texts.size());
  }
  void Propose(int sequence, DraftProposal& proposal) override {
    const auto shown = proposal.text();
    EXPECT_EQ(std::vector<std::int32_t>(shown.begin(), shown.end()), texts.at(sequence));
    for (int i = 0; proposal.left() > 0; ++i) proposal.Push(shown[static_cast<std::size_t>(i)]);
    ++proposals;
  }
  void Observe(const DrafterRound& round) override {
    auto& text = texts.at(round.sequence);
    text.insert(text.end(), round.committed.begin(), round.committed.end());
    EXPECT_LE(round.accepted, round.drafted);
    drafted += round.drafted;
  }
  void End(int sequence) override { EXPECT_EQ(texts.erase(sequence), 1u); }

  std::map<int, std::vector<std::int32_t>> texts;
  std::size_t most = 0;
  int proposals = 0, drafted = 0;
};

TEST(OwnDrafter, IsToldOfEachSequenceApartAndServesABatch) {
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i)
    requests.push_back(Ask(12 + 5 * i, 0.8f, static_cast<unsigned>(i), i));
  EngineOptions options = OwnOptions();
  const auto alone = OpenEngine(options);
  const auto books = std::make_shared<Bookkeeper>();
  options.drafter = books;
  options.max_sequences = 3;
  const auto engine = OpenEngine(options);
  const auto completions = GeneratedTogether(*engine, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].speculative.method = "none";
    EXPECT_EQ(completions[i].token_ids, Generated(*alone, requests[i]).token_ids) << i;
  }
  EXPECT_TRUE(books->texts.empty());
  EXPECT_EQ(books->most, 3u);
  EXPECT_GT(books->proposals, 50);
  EXPECT_GT(books->drafted, 100);
  EXPECT_TRUE(engine->summary().notices.empty());
}

TEST(OwnDrafter, ServesTheCostModelToo) {
  EngineOptions options = OwnOptions();
  const auto want = Generated(*OpenEngine(options), Ask(40, 0, 0, 0)).token_ids;
  options.speculative.controller = "cost-model";
  options.drafter = std::make_shared<OwnDrafter>([](DraftProposal& p) {
    while (p.left() > 0) p.Push(p.text().back());
  });
  EXPECT_EQ(Generated(*OpenEngine(options), Ask(40)).token_ids, want);
}

TEST(OwnDrafter, WhatIsNoDraftIsDroppedAndTold) {
  const auto want = Generated(*OpenEngine(OwnOptions()), Ask(30, 0, 0, 0)).token_ids;
  const std::vector<Rule> rules = {[](DraftProposal& p) { p.Push(-7); },
                                   [](DraftProposal& p) { p.Push(1 << 20); },
                                   [](DraftProposal& p) { p.Draw(std::vector<float>(3, 1.0f)); },
                                   [](DraftProposal& p) { p.Draw(std::vector<float>(320, NAN)); },
                                   [](DraftProposal&) { throw std::runtime_error("no"); }};
  for (const Rule& rule : rules) {
    EngineOptions options = OwnOptions();
    options.drafter = std::make_shared<OwnDrafter>(rule, true);
    const auto engine = OpenEngine(options);
    const auto got = Generated(*engine, Ask(30));
    EXPECT_EQ(got.token_ids, want);
    EXPECT_EQ(got.speculation.drafted, 0);
    ASSERT_EQ(engine->summary().notices.size(), 1u);
    EXPECT_TRUE(engine->summary().notices[0].starts_with("drafter 'own': "));
  }
}

TEST(OwnDrafter, ItsNameIsAMethodAndMustBeFree) {
  for (const char* name : {"", "ngram", "none", "a,b", "two words"}) {
    EngineOptions options = OwnOptions();
    options.drafter = std::make_shared<OwnDrafter>([](DraftProposal&) {}, false, name);
    EXPECT_TRUE(Fails(Engine::Open(options), ErrorCode::kInvalidArgument)) << name;
  }
  EngineOptions options = OwnOptions();
  options.drafter = std::make_shared<OwnDrafter>([](DraftProposal&) {}, false, "mine");
  options.speculative.method = "ngram,mine";
  EXPECT_EQ(OpenEngine(options)->summary().method, "ngram,mine");
  options.speculative.method = "none";
  const auto engine = OpenEngine(options);
  EXPECT_EQ(engine->summary().method, "none");
  Request request = Ask(5);
  request.speculative.method = "mine";
  EXPECT_TRUE(engine->Generate(request));
  request.speculative.method = "yours";
  EXPECT_FALSE(engine->Generate(request));
  options.speculative.method = "mine";
  options.speculative.strategy = VerifyStrategy::kResidual;  // it reports no distributions
  EXPECT_FALSE(Engine::Open(options));
}

// The target's distribution, as a function of the newest token alone: a processor replaces the
// model's logits by these.
std::vector<float> LogitsAfter(std::int32_t token) {
  std::vector<float> logits(320);
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(token) * 11) % 64) / 16;
  return logits;
}
Request KnownDistributions(int n, std::uint64_t seed, float temperature = 1) {
  Request r = Ask(n, temperature, seed);
  r.speculative.num_speculative_tokens = {};
  r.sampling.processors = {[](std::span<const std::int32_t> text, std::span<float> logits) {
    std::ranges::copy(LogitsAfter(text.back()), logits.begin());
  }};
  return r;
}

// Draws from exactly the target's distribution, or from one that is wrong by a factor `off` for
// half of the tokens.
std::shared_ptr<OwnDrafter> DrawsLikeTheTarget(double temperature, double off = 1) {
  return std::make_shared<OwnDrafter>(
      [=](DraftProposal& p) {
        while (p.left() > 0) {
          const auto logits = LogitsAfter(p.text().back());
          std::vector<double> weights;
          double sum = 0;
          for (const float x : logits) {
            weights.push_back(std::exp(static_cast<double>(x) / temperature));
            if (weights.size() % 2 == 0) weights.back() *= off;
            sum += weights.back();
          }
          std::vector<float> distribution;
          for (const double w : weights) distribution.push_back(static_cast<float>(w / sum));
          if (p.Draw(distribution) < 0) return;
        }
      },
      true);
}

// With equal distributions the drafts are the target's own tokens wherever sample-match verifies:
// under the default controller too.
TEST(OwnDrafter, WithTheTargetsDistributionIsAcceptedWhole) {
  for (const char* controller : {"cost-model", "batch-size", "fixed", "by-text"})
    for (const float temperature : {1.0f, 0.6f}) {
      EngineOptions options = OwnOptions();
      options.speculative.controller = controller;
      if (options.speculative.controller == "batch-size")
        options.speculative.num_speculative_tokens_per_batch_size = {{1, 8, 4}};
      if (options.speculative.controller == "fixed" || options.speculative.controller == "by-text")
        options.speculative.strategy = VerifyStrategy::kSampleMatch;
      // What the cost model drafts depends on the machine, and may be nothing.
      const bool measures = options.speculative.controller == "cost-model";
      const auto share = [&](double off) {
        options.drafter = DrawsLikeTheTarget(static_cast<double>(temperature), off);
        const auto engine = OpenEngine(options);
        std::int64_t drafted = 0, accepted = 0;
        for (std::uint64_t seed = 0; seed < 12; ++seed) {
          const auto got = Generated(*engine, KnownDistributions(70, seed, temperature));
          EXPECT_EQ(got.strategy, "sample-match");
          drafted += got.speculation.drafted, accepted += got.speculation.accepted;
        }
        std::printf("  %-10s T %.1f, off by %2.0f: %lld of %lld drafts accepted\n", controller,
                    static_cast<double>(temperature), off, static_cast<long long>(accepted),
                    static_cast<long long>(drafted));
        if (measures && drafted == 0) return 1.0;
        EXPECT_GT(drafted, 0) << controller;
        return static_cast<double>(accepted) /
               static_cast<double>(std::max<std::int64_t>(1, drafted));
      };
      EXPECT_EQ(share(1), 1.0) << controller;
      if (!measures) EXPECT_LT(share(20), 0.6) << controller;  // the test can fail
    }
}

class OwnVerifier final : public Verifier {
 public:
  enum class Kind { kResidual, kBiased, kAll };
  explicit OwnVerifier(Kind kind) : kind_(kind) {}
  std::string_view name() const override { return "mine"; }
  bool lossless() const override { return kind_ == Kind::kResidual; }
  bool NeedsDistributions() const override { return kind_ == Kind::kResidual; }
  Verdict Verify(DraftsToVerify& draft) override {
    for (int i = 0; i < draft.length() && kind_ != Kind::kAll; ++i) {
      const auto p = draft.TargetDistribution(i), q = draft.DraftDistribution(i);
      const auto d = static_cast<std::size_t>(draft.tokens()[static_cast<std::size_t>(i)]);
      const double qd = q.empty() || kind_ == Kind::kBiased ? 1.0 : static_cast<double>(q[d]);
      if (draft.Uniform(NoisePurpose::kCoin, i) * qd < static_cast<double>(p[d])) continue;
      std::vector<float> rest(p.begin(), p.end());
      for (std::size_t x = 0; x < rest.size() && kind_ == Kind::kResidual; ++x)
        rest[x] = std::max(0.0f, rest[x] - (q.empty() ? (x == d ? 1.0f : 0.0f) : q[x]));
      return {i, draft.Draw(rest, draft.Uniform(NoisePurpose::kResidual, i))};
    }
    return {draft.length(), draft.Sample(draft.length())};
  }

 private:
  Kind kind_;
};

// Draws from a distribution that favours one token far too much, which the target gives for some of the seeds.
std::shared_ptr<OwnDrafter> FondDrafter(const std::vector<std::int64_t>& want, int n_seeds) {
  std::size_t fond = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    if (want[i] > n_seeds / 20 && want[i] < n_seeds / 3) fond = i;
  EXPECT_GT(fond, 0u);
  return std::make_shared<OwnDrafter>(
      [fond](DraftProposal& p) {
        std::vector<float> distribution(320, 0.2f / 319);
        distribution[fond] = 0.8f;
        while (p.left() > 0 && p.Draw(distribution) >= 0) {
        }
      },
      true);
}

constexpr int kOwnSeeds = 3000;

// The distance of a text by these options, with this verifier, from plain ones. Its seeds are others, so
// that two samples are compared.
double DistanceFrom(const std::vector<std::int64_t>& plain, EngineOptions options,
                    std::shared_ptr<Verifier> verifier, const char* strategy) {
  options.verifier = std::move(verifier);
  const auto engine = OpenEngine(options);
  EXPECT_EQ(Generated(*engine, Ask(5, 1)).strategy, strategy);
  int freedom = 0;
  const double x = Difference(plain, SecondTokens(*engine, kOwnSeeds, kOwnSeeds), freedom);
  std::printf("  chi-square %6.2f, %d degrees of freedom  %s\n", x, freedom, strategy);
  EXPECT_LE(freedom, 8);
  EXPECT_GE(freedom, 3);
  return x;
}

TEST(OwnParts, KeepTheTargetsDistributionAndABiasedVerifierDoesNot) {
  const auto want = SecondTokens(*OpenEngine(OwnOptions()), 0, kOwnSeeds);
  EngineOptions options = OwnOptions();
  options.drafter = FondDrafter(want, kOwnSeeds);
  using Kind = OwnVerifier::Kind;
  const auto own = [](Kind kind) { return std::make_shared<OwnVerifier>(kind); };
  EXPECT_LT(DistanceFrom(want, options, nullptr, "residual"), 35);
  EXPECT_LT(DistanceFrom(want, options, own(Kind::kResidual), "mine"), 35);
  EXPECT_GT(DistanceFrom(want, options, own(Kind::kBiased), "mine"), 70);
}

// So it is if sample-match is the engine's own choice; a verifier that accepts everything is the
// negative control.
TEST(OwnParts, UnderSampleMatchDrawnDraftsKeepTheTargetsDistribution) {
  const auto want = SecondTokens(*OpenEngine(OwnOptions()), 0, kOwnSeeds);
  EngineOptions options = OwnOptions();
  options.speculative.controller = "batch-size";
  options.speculative.num_speculative_tokens_per_batch_size = {{1, 8, 4}};
  options.drafter = FondDrafter(want, kOwnSeeds);
  EXPECT_LT(DistanceFrom(want, options, nullptr, "sample-match"), 35);
  const auto all = std::make_shared<OwnVerifier>(OwnVerifier::Kind::kAll);
  EXPECT_GT(DistanceFrom(want, options, all, "mine"), 70);
}

TEST(OwnVerifier, VerifiesInPlaceOfAStrategyAndSaysWhatItIs) {
  EngineOptions options = PairOptions();
  options.verifier = std::make_shared<OwnVerifier>(OwnVerifier::Kind::kResidual);
  const auto engine = OpenEngine(options);
  EXPECT_EQ(engine->summary().strategy, "mine");
  EXPECT_TRUE(engine->summary().lossless);
  const auto plain = Generated(*engine, Ask(30, 0, 0, 0));
  const auto got = Generated(*engine, Ask(30));
  EXPECT_EQ(got.token_ids, plain.token_ids);
  EXPECT_EQ(got.strategy, "mine");
  EXPECT_GT(got.speculation.accepted, 0);
  // What a grammar forces has no distributions, which this verifier reads.
  Request letters = Ask(40, 1);
  letters.sampling.grammar = "root ::= \"once upon a time \" [a-z ]+";
  EXPECT_TRUE(Generated(*engine, letters).text.starts_with("once upon a time"));

  options.verifier = std::make_shared<OwnVerifier>(OwnVerifier::Kind::kAll);
  const auto all = OpenEngine(options);
  EXPECT_FALSE(all->summary().lossless);
  const auto lossy = Generated(*all, Ask(30, 0.8f));
  EXPECT_EQ(lossy.speculation.accepted, lossy.speculation.drafted);
  EXPECT_GT(lossy.speculation.drafted, 15);

  options.speculative.strategy = VerifyStrategy::kBlock;
  EXPECT_FALSE(Engine::Open(options));
  options = OwnOptions();
  options.speculative.method = "ngram";  // reports no distributions
  options.verifier = std::make_shared<OwnVerifier>(OwnVerifier::Kind::kResidual);
  EXPECT_FALSE(Engine::Open(options));
}

}  // namespace
}  // namespace foretoken
