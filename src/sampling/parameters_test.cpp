// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <climits>
#include <set>
#include <type_traits>

#include "foretoken/option_keys.h"
#include "sampling/distribution_testing.h"

namespace foretoken {
namespace {

using sampling::kInf;
using sampling::kNan;

std::string Complaint(const SamplingParameters& s) {
  const Status status = s.Validate(100);
  if (status) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  return status.error().message;
}

TEST(SamplingParameters, AcceptTheEndsOfEveryRange) {
  EXPECT_EQ(Complaint({}), "");
  SamplingParameters s{.temperature = 2,
                       .top_k = -1,
                       .top_p = 0,
                       .min_p = 1,
                       .typical_p = 0,
                       .eta = 0,
                       .repetition_penalty = 1e-3f,
                       .repetition_window = -1,
                       .logit_bias = {}};
  s.dry = {.multiplier = 0.8f, .base = 1, .allowed_length = 1, .window = 0, .breakers = {0, 99}};
  s.logit_bias = {{0, -kInf}, {99, 5.0f}};
  EXPECT_EQ(Complaint(s), "");
}

TEST(SamplingParameters, NameTheFieldTheValueAndTheRange) {
  EXPECT_EQ(Complaint({.temperature = -1, .logit_bias = {}}),
            "temperature: -1 is out of range; use 0 to 2");
  EXPECT_EQ(Complaint({.temperature = 2.5f, .logit_bias = {}}),
            "temperature: 2.5 is out of range; use 0 to 2");
  EXPECT_EQ(Complaint({.temperature = kNan, .logit_bias = {}}),
            "temperature: nan is out of range; use 0 to 2");
  EXPECT_EQ(Complaint({.top_k = -2, .logit_bias = {}}),
            "top_k: -2 is out of range; use 1 or more, or 0 to turn it off");
  EXPECT_EQ(Complaint({.top_p = 1.5f, .logit_bias = {}}), "top_p: 1.5 is out of range; use 0 to 1");
  EXPECT_EQ(Complaint({.min_p = -0.5f, .logit_bias = {}}),
            "min_p: -0.5 is out of range; use 0 to 1");
  EXPECT_EQ(Complaint({.typical_p = kInf, .logit_bias = {}}),
            "typical_p: inf is out of range; use 0 to 1");
  EXPECT_EQ(Complaint({.repetition_penalty = 0, .logit_bias = {}}),
            "repetition_penalty: 0 is out of range; use more than 0, or 1 to turn it off");
  EXPECT_EQ(Complaint({.repetition_penalty = kInf, .logit_bias = {}}),
            "repetition_penalty: inf is out of range; use more than 0, or 1 to turn it off");
  EXPECT_EQ(Complaint({.repetition_window = -2, .logit_bias = {}}),
            "repetition_window: -2 is out of range; use 0 or more, or -1 for the whole text");
  EXPECT_EQ(Complaint({.frequency_penalty = kNan, .logit_bias = {}}),
            "frequency_penalty: nan is not a finite number; use 0 to turn it off");
  EXPECT_EQ(Complaint({.presence_penalty = -kInf, .logit_bias = {}}),
            "presence_penalty: -inf is not a finite number; use 0 to turn it off");
  EXPECT_EQ(Complaint({.eta = 1.0f, .logit_bias = {}}),
            "eta: 1 is out of range; use 0 to below 1, or 0 to turn it off");
  EXPECT_EQ(Complaint({.eta = kNan, .logit_bias = {}}),
            "eta: nan is out of range; use 0 to below 1, or 0 to turn it off");
  const auto biased = [](Token token, float bias) {
    SamplingParameters s;
    s.logit_bias[token] = bias;
    return Complaint(s);
  };
  EXPECT_EQ(biased(100, 1.0f), "logit_bias: token 100 is not in the vocabulary; use 0 to 99");
  EXPECT_EQ(biased(5, kNan), "logit_bias: the value of token 5 is not a number; give one");
}

// For each number: the defaults and both ends of its range are accepted, and what is just outside is refused by its name.
TEST(SamplingParameters, HaveTheRangesOfTheirRows) {
  for (const SamplingKey& key : SamplingKeys()) {
    const auto complaint = [&](double value) {
      SamplingParameters s;
      key.Visit(s, [&](auto& number) {
        number = static_cast<std::remove_reference_t<decltype(number)>>(value);
      });
      return Complaint(s);
    };
    const auto [least, most] = key.ranges.all;
    EXPECT_EQ(complaint(key.Of(SamplingParameters())), "") << key.name;
    if (std::isfinite(least)) {
      EXPECT_EQ(complaint(least), "") << key.name;
    }
    if (std::isfinite(most)) {
      EXPECT_EQ(complaint(most), "") << key.name;
    }
    const std::string refused = fmt::format("{}: ", key.member);
    if (std::isfinite(least)) {
      EXPECT_TRUE(complaint(least - 1).starts_with(refused)) << key.name;
    }
    if (most < INT_MAX) {
      EXPECT_TRUE(complaint(most + 1).starts_with(refused)) << key.name;
    }
  }
}

// What is typed is never more than what the library takes, and what a number needs is another one.
TEST(SamplingKeys, AreConsistent) {
  std::set<std::string_view> names;
  for (const SamplingKey& key : SamplingKeys()) {
    for (const std::string_view name : {key.name, key.flag.name})
      EXPECT_TRUE(names.insert(name).second);
    const NumberRange flags = key.flag_range(), fields = key.field_range();
    EXPECT_LE(key.ranges.all.least, flags.least) << key.name;
    EXPECT_LE(flags.least, fields.least) << key.name;
    EXPECT_LE(fields.least, fields.most) << key.name;
    EXPECT_LE(fields.most, flags.most) << key.name;
    EXPECT_LE(flags.most, key.ranges.all.most) << key.name;
    EXPECT_TRUE(key.needs.empty() || FindSamplingKey(key.needs) != nullptr) << key.name;
    EXPECT_EQ(FindSamplingKey(key.name), &key);
  }
  EXPECT_EQ(FindSamplingKey("min-p"), nullptr);
}

TEST(SamplingParameters, NameTheFieldOfDry) {
  const auto complaint = [](const DryPenalty& dry) {
    return Complaint({.dry = dry, .logit_bias = {}});
  };
  EXPECT_EQ(complaint({.multiplier = -1}),
            "dry.multiplier: -1 is out of range; use more than 0, or 0 to turn it off");
  EXPECT_EQ(complaint({.multiplier = kInf}),
            "dry.multiplier: inf is out of range; use more than 0, or 0 to turn it off");
  EXPECT_EQ(complaint({.base = 0.5f}), "dry.base: 0.5 is out of range; use 1 or more");
  EXPECT_EQ(complaint({.base = kNan}), "dry.base: nan is out of range; use 1 or more");
  EXPECT_EQ(complaint({.allowed_length = 0}),
            "dry.allowed_length: 0 is out of range; use 1 or more");
  EXPECT_EQ(complaint({.window = -2}),
            "dry.window: -2 is out of range; use 0 or more, or -1 for the whole text");
  EXPECT_EQ(complaint({.breakers = {1, 100}}),
            "dry.breakers: token 100 is not in the vocabulary; use 0 to 99");
}

TEST(SamplingParameters, RefuseAnEmptyProcessor) {
  const LogitsProcessor nothing = [](std::span<const std::int32_t>, std::span<float>) {};
  SamplingParameters s;
  s.processors = {nothing};
  EXPECT_EQ(Complaint(s), "");
  s.processors = {nothing, LogitsProcessor()};
  EXPECT_EQ(Complaint(s),
            "processors: number 2 is an empty function; give one that can be called, or drop it");
}

TEST(SamplingParameters, ReadTheGrammar) {
  SamplingParameters s;
  s.grammar = "root ::= \"x\"";
  EXPECT_EQ(Complaint(s), "");
  s.grammar = "root ::= y";
  EXPECT_EQ(Complaint(s),
            "grammar: line 1: rule 'y' is not defined; define it or correct its name");
}

TEST(SamplingPresets, SetWhatTheyNameAndNothingElse) {
  EXPECT_TRUE(Greedy().greedy());
  const auto values = [](const SamplingParameters& s) {
    EXPECT_EQ(Complaint(s), "");
    EXPECT_TRUE(s.min_p == 0 && s.typical_p == 1 && s.eta == 0 && s.repetition_penalty == 1);
    return std::tuple(s.temperature, s.top_k, s.top_p);
  };
  EXPECT_EQ(values(Greedy()), std::tuple(0.0f, 0, 1.0f));
  EXPECT_EQ(values(Multinomial(0.7f)), std::tuple(0.7f, 0, 1.0f));
  EXPECT_EQ(values(TopK(0.7f, 40)), std::tuple(0.7f, 40, 1.0f));
  EXPECT_EQ(values(Nucleus(0.7f, 0.9f)), std::tuple(0.7f, 0, 0.9f));
  EXPECT_EQ(values(TopKNucleus(0.7f, 40, 0.9f)), std::tuple(0.7f, 40, 0.9f));
}

}  // namespace
}  // namespace foretoken
