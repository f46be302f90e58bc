// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "foretoken/request.h"
#include "sampling/law_testing.h"

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
  EXPECT_EQ(Complaint({.temperature = 2,
                       .top_k = -1,
                       .top_p = 0,
                       .min_p = 1,
                       .typical_p = 0,
                       .repetition_penalty = 1e-3f,
                       .repetition_window = -1,
                       .logit_bias = {{0, -kInf}, {99, 5.0f}}}),
            "");
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
  EXPECT_EQ(Complaint({.logit_bias = {{100, 1.0f}}}),
            "logit_bias: token 100 is not in the vocabulary; use 0 to 99");
  EXPECT_EQ(Complaint({.logit_bias = {{5, kNan}}}),
            "logit_bias: the value of token 5 is not a number; give one");
}

}  // namespace
}  // namespace foretoken
