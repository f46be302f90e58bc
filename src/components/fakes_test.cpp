// SPDX-License-Identifier: Apache-2.0
// The fakes as their users have them: in a loop without a model, and in an engine.
#include "foretoken/fakes.h"

#include <cmath>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/verification.h"

namespace foretoken::fakes {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr int kVocabulary = 16;

std::int32_t Best(std::span<const float> row) {
  return static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

Tokens Plain(const Tokens& prompt, int n) {
  Target target;
  Tokens text = prompt;
  for (int i = 0; i < n; ++i) {
    const auto rows =
        target.Score(std::span(text).subspan(static_cast<std::size_t>(target.length())));
    text.push_back(Best(rows->Row(rows->rows - 1)));
  }
  return Tokens(text.begin() + std::ssize(prompt), text.end());
}

// A speculative loop at temperature 0, as the header's comment shows it.
Tokens Speculative(Target& target, Drafter& drafter, const Tokens& prompt, int n) {
  VerificationOptions options{.vocabulary_size = kVocabulary};
  options.sampling.temperature = 0;
  Tokens text = prompt;
  drafter.Begin({.prompt = prompt, .max_new_tokens = n, .vocabulary_size = kVocabulary});
  while (std::ssize(text) < std::ssize(prompt) + n) {
    const Drafts drafted = Draft(drafter, {.text = text, .n = 3, .vocabulary_size = kVocabulary});
    Tokens rows_of(text.begin() + target.length(), text.end());
    rows_of.insert(rows_of.end(), drafted.tokens.begin(), drafted.tokens.end());
    const auto rows = target.Score(rows_of);
    const auto verified =
        Verify(options, {.text = text,
                         .drafts = drafted.tokens,
                         .target_logits = rows->Last(1 + static_cast<int>(drafted.tokens.size()))});
    EXPECT_TRUE(target.Truncate(0, static_cast<int>(std::ssize(text)) + verified->accepted));
    Tokens committed(drafted.tokens.begin(), drafted.tokens.begin() + verified->accepted);
    committed.push_back(verified->next);
    text.insert(text.end(), committed.begin(), committed.end());
    drafter.Observe({.committed = committed,
                     .drafted = static_cast<int>(drafted.tokens.size()),
                     .accepted = verified->accepted});
  }
  drafter.End(0);
  text.resize(prompt.size() + static_cast<std::size_t>(n));
  return Tokens(text.begin() + std::ssize(prompt), text.end());
}

TEST(Fakes, ALoopWithThemSaysWhatPlainDecodingSays) {
  const Tokens prompt = {1, 2, 3}, plain = Plain(prompt, 24);
  Target target;
  ScriptedDrafter drafter(plain);
  EXPECT_EQ(Speculative(target, drafter, prompt, 24), plain);
  EXPECT_EQ(target.n_passes(), 6);  // three drafts and a bonus token in each
  EXPECT_EQ(drafter.calls().accepted, drafter.calls().drafted);
  EXPECT_EQ(drafter.calls().proposals, 6);
  EXPECT_EQ(drafter.calls().begins, 1);
  EXPECT_EQ(drafter.calls().ends, 1);
  EXPECT_EQ(drafter.calls().committed, plain);
}

TEST(Fakes, AWrongScriptCostsPassesAndChangesNothing) {
  const Tokens prompt = {1, 2, 3}, plain = Plain(prompt, 24);
  Tokens script = plain;
  for (std::size_t i = 0; i < script.size(); i += 4) script[i] = (script[i] + 1) % kVocabulary;
  Target target;
  ScriptedDrafter drafter(script);
  EXPECT_EQ(Speculative(target, drafter, prompt, 24), plain);
  EXPECT_GT(target.n_passes(), 6);
  EXPECT_LT(drafter.calls().accepted, drafter.calls().drafted);
}

// Tokens that are kept have the target's distribution, not the drafter's.
TEST(Fakes, DrawnDraftsAreVerifiedByTheirDistributions) {
  const std::vector<float> q = {.1f, .2f, .3f, .4f};
  const std::vector<double> p = {.4, .3, .2, .1};
  DistributionDrafter drafter(
      4, [&q](auto, std::span<float> to) { std::ranges::copy(q, to.begin()); });
  Target target({.vocabulary_size = 4, .logits = [&p](auto, std::span<float> to) {
                   for (std::size_t i = 0; i < 4; ++i) to[i] = static_cast<float>(std::log(p[i]));
                 }});
  const Tokens text = {0};
  constexpr int kRounds = 20'000;
  std::vector<double> drafts(4), kept(4);
  VerificationOptions options{.vocabulary_size = 4};
  options.speculative.strategy = VerifyStrategy::kResidual;
  auto verification = DraftVerification::Create(options);
  ASSERT_TRUE(verification);
  for (int i = 0; i < kRounds; ++i) {
    const Drafts drafted =
        Draft(drafter,
              {.text = text, .n = 1, .vocabulary_size = 4, .seed = static_cast<std::uint64_t>(i)});
    ASSERT_TRUE(target.Truncate(0, 0));
    const Tokens read = {0, drafted.tokens.front()};
    const auto rows = target.Score(read);
    const auto verified = verification->Verify({.text = text,
                                                .position = i + 1,  // the noise is keyed by it
                                                .drafts = drafted.tokens,
                                                .draft_probabilities = {drafted.distributions, 4},
                                                .target_logits = *rows});
    ASSERT_TRUE(verified);
    ++drafts[static_cast<std::size_t>(drafted.tokens.front())];
    ++kept[static_cast<std::size_t>(verified->accepted == 1 ? drafted.tokens.front()
                                                            : verified->next)];
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const double bound = 5 * std::sqrt(p[i] * (1 - p[i]) / kRounds);
    EXPECT_NEAR(kept[i] / kRounds, p[i], bound);
    EXPECT_GT(std::abs(drafts[i] / kRounds - p[i]), bound) << "a test that could not fail";
  }
}

TEST(Fakes, TheTargetRefusesWhatAScorerRefuses) {
  Target target({.vocabulary_size = 4, .max_sequences = 2, .context_size = 3});
  const Tokens one = {1}, two = {1, 2}, unknown = {4}, many = {0, 1, 2, 3};
  EXPECT_EQ(target.Score(unknown).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(target.Score(many).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(target.Score(one, 2).error().code, ErrorCode::kInvalidArgument);
  const std::vector<ScoreQuery> twice = {{1, one}, {1, two}};
  EXPECT_EQ(target.Score(twice).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(target.n_rows(), 0);
  const std::vector<ScoreQuery> both = {{0, one}, {1, two}};
  EXPECT_EQ(target.Score(both)->at(1).rows, 2);
  EXPECT_EQ(target.length(1), 2);
  EXPECT_FALSE(target.Truncate(1, 3));
  EXPECT_TRUE(target.Truncate(1, 1));
  EXPECT_EQ(target.length(1), 1);
  EXPECT_EQ(target.n_passes(), 1);
}

TEST(Fakes, AScriptedDrafterDraftsInAnEngine) {
  const std::string model = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {});
  const Request request{
      .prompt_tokens = {1, 2, 3}, .max_new_tokens = 20, .sampling = {.temperature = 0}};
  const auto completion_by = [&](std::shared_ptr<Drafter> drafter) {
    EngineOptions options{.model = model, .threads = 1};
    options.drafter = std::move(drafter);
    options.speculative.controller = "fixed";
    if (!options.drafter) options.speculative.method = "none";
    return Generated(*OpenEngine(options), request);
  };
  const Completion plain = completion_by(nullptr);
  const auto drafter = std::make_shared<ScriptedDrafter>(plain.token_ids);
  const Completion drafted = completion_by(drafter);
  EXPECT_EQ(drafted.token_ids, plain.token_ids);
  EXPECT_GT(drafter->calls().accepted, 0);
  EXPECT_EQ(drafter->calls().accepted, drafter->calls().drafted);
}

}  // namespace
}  // namespace foretoken::fakes
