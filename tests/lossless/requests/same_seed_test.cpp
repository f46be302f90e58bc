// SPDX-License-Identifier: Apache-2.0
// Under strategies that let drafts decide the text, the same seed gives the same text on every run,
// with any number of threads, in any batch, under any load and after any other requests: the draft
// lengths depend on the text alone.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fixtures/engines_testing.h"
#include "lossless/bundled_testing.h"

namespace foretoken {
namespace {

struct Case {
  VerifyStrategy strategy;
  const char* method;
  const char* controller = "cost-model";
};

EngineOptions OptionsOfCase(const Case& c, int max_sequences = 1, int threads = 1) {
  EngineOptions options;
  options.model = Bundled("9m-q8_0");
  options.draft_model = Bundled("1m-draft-q8_0");
  options.speculative.method = c.method;
  options.speculative.controller = c.controller;
  options.speculative.strategy = c.strategy;
  if (options.speculative.method == "ngram" || options.speculative.method == "suffix")
    options.draft_model.clear();
  if (options.speculative.controller == "batch-size")
    options.speculative.num_speculative_tokens_per_batch_size = {{1, 1, 5}, {2, 4, 3}, {5, 8, 1}};
  options.speculative.ngram_keep = true;
  options.max_sequences = max_sequences;
  options.context_size = 256;
  options.threads = threads;
  return options;
}

std::vector<Request> SeededRequests() {
  const char* prompts[] = {"Once upon a time, there was a little girl who",
                           "The dog and the cat were friends. The dog and the cat",
                           "One day, Tom said to Mia: \"I want to play.\" Mia said to Tom:",
                           "It was raining. It was raining all day and"};
  std::vector<Request> requests;
  for (const char* prompt : prompts) {
    Request& r = requests.emplace_back();
    r.prompt = prompt;
    r.max_new_tokens = 60;
    r.ignore_eos = true;
    r.sampling.temperature = 0.6f;
    r.seed = 300 + requests.size();
  }
  return requests;
}

void ExpectSameDraws(const std::vector<Completion>& a, const std::vector<Completion>& b,
                     const char* how) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].token_ids, b[i].token_ids) << how << ", request " << i;
    EXPECT_EQ(a[i].speculation.k_histogram, b[i].speculation.k_histogram)
        << how << ", request " << i;
  }
}

// Other threads use the cores meanwhile.
class Load {
 public:
  Load() {
    for (int i = 0; i < 3; ++i)
      threads_.emplace_back([this] {
        while (!ends_) {
        }
      });
  }
  ~Load() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> ends_ = false;
  std::vector<std::thread> threads_;
};

class SeedThatDraftsMayBend : public WithBundledModels<testing::TestWithParam<Case>> {};

TEST_P(SeedThatDraftsMayBend, GivesOneText) {
  const auto requests = SeededRequests();
  const auto engine = OpenEngine(OptionsOfCase(GetParam()));
  const auto first = GeneratedInTurn(*engine, requests);
  std::int64_t drafted = 0, accepted = 0;
  for (const Completion& c : first) {
    EXPECT_EQ(c.strategy, Name(GetParam().strategy));
    EXPECT_EQ(c.controller, "by-text");
    drafted += c.speculation.drafted, accepted += c.speculation.accepted;
  }
  EXPECT_GT(drafted, 20);  // enough drafts that lengths could matter
  EXPECT_LT(accepted, drafted);
  ExpectSameDraws(GeneratedInTurn(*engine, requests), first, "after other requests");
  ExpectSameDraws(GeneratedInTurn(*OpenEngine(OptionsOfCase(GetParam())), requests), first,
                  "another engine");
  {
    const auto two = OpenEngine(OptionsOfCase(GetParam(), 1, 2));
    const Load load;
    ExpectSameDraws(GeneratedInTurn(*two, requests), first, "two threads, load");
  }
  ExpectSameDraws(GeneratedTogether(*OpenEngine(OptionsOfCase(GetParam(), 8)), requests), first,
                  "a batch");
}

INSTANTIATE_TEST_SUITE_P(Strategies, SeedThatDraftsMayBend,
                         testing::Values(Case{VerifyStrategy::kResidual, "standalone"},
                                         Case{VerifyStrategy::kBlock, "standalone"},
                                         Case{VerifyStrategy::kTargetProbability, "portfolio"},
                                         Case{VerifyStrategy::kTargetProbability, "suffix"},
                                         Case{VerifyStrategy::kTargetProbability, "ngram"},
                                         Case{VerifyStrategy::kTypicalAcceptance, "standalone"},
                                         Case{VerifyStrategy::kResidual, "standalone",
                                              "batch-size"}),
                         [](const auto& of) {
                           return Underscored(std::string(Name(of.param.strategy)) + "_" +
                                              of.param.method + "_" + of.param.controller);
                         });

// The negative control: other lengths do give other texts, so the test above would detect them.
using SeedThatDraftsMayBendControl = WithBundledModels<>;
TEST_F(SeedThatDraftsMayBendControl, OtherLengthsGiveOtherTexts) {
  auto requests = SeededRequests();
  const auto engine = OpenEngine(OptionsOfCase({VerifyStrategy::kResidual, "standalone", "fixed"}));
  for (Request& r : requests) r.speculative.num_speculative_tokens = 2;
  const auto two = GeneratedInTurn(*engine, requests);
  for (Request& r : requests) r.speculative.num_speculative_tokens = 5;
  const auto five = GeneratedInTurn(*engine, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(two[i].controller, "fixed");
    EXPECT_NE(two[i].token_ids, five[i].token_ids) << i;
  }
}

// Where the text does not depend on drafts, lengths still follow measured time.
using SeedThatDraftsCannotBend = WithBundledModels<>;
TEST_F(SeedThatDraftsCannotBend, LeavesLengthsToTheController) {
  const auto engine = OpenEngine(OptionsOfCase({VerifyStrategy::kResidual, "standalone"}));
  Request r = SeededRequests()[0];
  r.speculative.strategy = VerifyStrategy::kAuto;
  EXPECT_EQ(GeneratedInTurn(*engine, {r})[0].controller, "cost-model");
  r.speculative.strategy = VerifyStrategy::kResidual;
  r.sampling.temperature = 0;
  EXPECT_EQ(GeneratedInTurn(*engine, {r})[0].controller, "cost-model");
  EXPECT_TRUE(Says(engine->summary().notices.at(0), "by-text"));
  EXPECT_TRUE(
      OpenEngine(OptionsOfCase({VerifyStrategy::kAuto, "standalone"}))->summary().notices.empty());
}

}  // namespace
}  // namespace foretoken
