// SPDX-License-Identifier: Apache-2.0
// The text is the same for every drafter, every draft length, and whatever runs beside it: the
// bundled models under the settings that programs use.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "fixtures/engines_testing.h"
#include "lossless/bundled_testing.h"

namespace foretoken {
namespace {

struct Drafting {
  std::string method, draft;
};
std::vector<Drafting> Draftings() {
  return {{"ngram", ""},
          {"standalone", Bundled("1m-draft-q8_0")},
          {"suffix", ""},
          {"self", ""},
          {"eagle", Bundled("9m-eagle-q8_0")},
          {"mtp", Bundled("9m-mtp-q8_0")},
          {"portfolio", Bundled("1m-draft-q8_0")}};
}

std::unique_ptr<Engine> OpenDrafting(const Drafting& drafting, const std::string& controller,
                                     int max_sequences,
                                     VerifyStrategy strategy = VerifyStrategy::kAuto) {
  EngineOptions options;
  options.model = Bundled("9m-q8_0");
  options.draft_model = drafting.draft;
  options.speculative.method = drafting.method;
  options.speculative.controller = controller;
  options.speculative.strategy = strategy;
  options.max_sequences = max_sequences;
  options.context_size = 256;
  options.threads = 1;
  return OpenEngine(options);
}

// A hundred prompts of ten names and ten beginnings.
std::vector<Request> HundredRequests() {
  const char* names[] = {"Lily", "Tom", "Mia", "Max", "Anna", "Ben", "Lucy", "Sam", "Sue", "Tim"};
  const char* beginnings[] = {"Once upon a time, there was a little girl named {}. {} loved to",
                              "One day, {} went to the park with mom. {} saw a big",
                              "{} had a red ball. Every day {} played with the ball and",
                              "There was a small dog named {}. The dog {} lived in",
                              "{} and the cat were friends. {} said to the cat:",
                              "It was raining. {} wanted to go out, but {} could not find the",
                              "\"Can I have a cookie?\" asked {}. Mom looked at {} and",
                              "In the forest lived a bear. The bear {} liked honey. One day {}",
                              "{} was sad because the toy was broken. Then {} had an idea:",
                              "The sun was warm and {} was happy. {} ran to the"};
  std::vector<Request> requests;
  for (const char* beginning : beginnings)
    for (const char* name : names) {
      Request& r = requests.emplace_back();
      r.prompt = fmt::format(fmt::runtime(beginning), name, name);
      r.max_new_tokens = 24;
      r.sampling.temperature = 0.8f;
      r.seed = 1000 + requests.size();
    }
  return requests;
}

std::vector<Completion> PlainCompletions(const std::vector<Request>& requests) {
  return GeneratedTogether(*OpenDrafting({"none", ""}, "fixed", 8), requests);
}

class SameSeed : public WithBundledModels<testing::TestWithParam<Drafting>> {
 protected:
  struct Counts {
    std::int64_t drafted = 0, accepted = 0;
  };
  static Counts ExpectPlain(Engine& engine, const std::vector<Request>& requests,
                            const std::vector<Completion>& plain, const std::string& how) {
    Counts counts;
    const auto texts = GeneratedTogether(engine, requests);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      ExpectSame(texts[i], plain[i], how + ": " + requests[i].prompt);
      EXPECT_EQ(texts[i].strategy, "sample-match");
      counts.drafted += texts[i].speculation.drafted;
      counts.accepted += texts[i].speculation.accepted;
    }
    std::printf("  %-10s %-10s %zu prompts, drafted %6lld, accepted %6lld\n",
                GetParam().method.c_str(), how.c_str(), texts.size(),
                static_cast<long long>(counts.drafted), static_cast<long long>(counts.accepted));
    return counts;
  }
};

// Every beginning, and every name three or four times. Short texts repeat little, so `ngram` has all
// the prompts.
std::vector<Request> RequestsFor(const Drafting& drafting) {
  if (drafting.method == "ngram") return HundredRequests();
  std::vector<Request> requests = HundredRequests(), some;
  for (std::size_t i = 0; i < requests.size(); i += 3) some.push_back(std::move(requests[i]));
  return some;
}

TEST_P(SameSeed, GivesTheSameTextWithoutDraftsAndAtEveryDraftLength) {
  auto requests = RequestsFor(GetParam());
  const auto plain = PlainCompletions(requests);
  // With the default controller the rule that is left open is sample-match.
  ExpectPlain(*OpenDrafting(GetParam(), "cost-model", 1), requests, plain, "cost-model");
  const auto engine = OpenDrafting(GetParam(), "fixed", 4, VerifyStrategy::kSampleMatch);
  for (const int k : {1, 3, 8}) {
    for (Request& r : requests) r.speculative.num_speculative_tokens = k;
    const Counts counts = ExpectPlain(*engine, requests, plain, fmt::format("K {}", k));
    EXPECT_GT(counts.accepted, 50) << k;
    EXPECT_LT(counts.accepted, counts.drafted) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Drafters, SameSeed, testing::ValuesIn(Draftings()),
                         [](const auto& of) { return of.param.method; });

// The negative control: another seed gives other texts.
using AnotherSeed = WithBundledModels<>;
TEST_F(AnotherSeed, GivesAnotherText) {
  auto requests = HundredRequests();
  const auto plain = PlainCompletions(requests);
  for (Request& r : requests) r.seed += 5000;
  const auto others = PlainCompletions(requests);
  int equal = 0;
  for (std::size_t i = 0; i < others.size(); ++i) equal += others[i].text == plain[i].text;
  EXPECT_LT(equal, 10);
}

// ---- Requests beside each other ----------------------------------------------------------------

// Eight requests, no two of them equal.
std::vector<Request> Eight() {
  std::vector<Request> requests(8);
  const float temperatures[] = {0, 0.8f, 0, 1.0f, 0.5f, 1.3f, 0, 0.7f};
  const std::optional<int> lengths[] = {std::nullopt, 1, 3, 8, 0, 2, 5, std::nullopt};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Request& r = requests[i];
    r.prompt = HundredRequests()[i * 13].prompt;
    if (i % 3 == 2) r.prompt += " play. " + r.prompt;
    r.max_new_tokens = 12 + 9 * static_cast<int>(i % 5);
    r.sampling.temperature = temperatures[i];
    r.speculative.num_speculative_tokens = lengths[i];
    r.seed = 70 + i;
    r.id = i / 2;
    r.logprobs = i % 2 == 0 ? 4 : -1;
    r.ignore_eos = i != 3;
  }
  requests[1].sampling.top_p = 0.9f, requests[3].sampling.repetition_penalty = 1.2f;
  requests[5].sampling.min_p = 0.05f, requests[7].stop = {"\n"};
  requests[6].prediction = "She said to the dog, \"I want to play with you.\"";
  return requests;
}

class Company
    : public WithBundledModels<testing::TestWithParam<std::tuple<const char*, const char*>>> {
 protected:
  static std::unique_ptr<Engine> OpenFor(int max_sequences) {
    const std::string method = std::get<0>(GetParam());
    const bool reads = method == "standalone" || method == "portfolio";
    return OpenDrafting({method, reads ? Bundled("1m-draft-q8_0") : ""}, std::get<1>(GetParam()),
                        max_sequences);
  }
};

TEST_P(Company, OfEightGivesEachRequestTheTextThatItGetsAlone) {
  const auto requests = Eight();
  const auto alone = GeneratedInTurn(*OpenFor(1), requests),
             together = GeneratedTogether(*OpenFor(8), requests);
  ExpectSame(together, alone);
  for (std::size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(together[i].strategy, alone[i].strategy) << i;
  EXPECT_EQ(together[4].speculation.drafted, 0);
  // What the cost model drafts depends on the machine's speed.
  if (std::get<1>(GetParam()) != std::string("fixed")) return;
  for (const std::size_t i : {1, 2, 3, 6}) EXPECT_GT(together[i].speculation.drafted, 0) << i;
}

TEST_P(Company, ThatComesAndGoesDoesToo) {
  const auto requests = Eight();
  const auto alone_engine = OpenFor(1), engine = OpenFor(5);
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    tickets.push_back(Got(engine->Begin(requests[i])));
    for (std::size_t step = 0; step < i % 4; ++step) engine->Step();
  }
  engine->Cancel(tickets[2]);
  while (engine->Step()) continue;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto completion = engine->Take(tickets[i]);
    ASSERT_TRUE(completion) << i;
    if (i != 2)
      ExpectSame(*completion, Generated(*alone_engine, requests[i]), fmt::format("request {}", i));
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, Company,
                         testing::Combine(testing::Values("standalone", "portfolio", "ngram"),
                                          testing::Values("cost-model", "fixed")),
                         [](const auto& of) {
                           return std::string(std::get<0>(of.param)) +
                                  (std::get<1>(of.param) == std::string("fixed") ? "_fixed"
                                                                                 : "_cost_model");
                         });

}  // namespace
}  // namespace foretoken
