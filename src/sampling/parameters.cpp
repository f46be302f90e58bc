// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "foretoken/option_keys.h"
#include "foretoken/request.h"
#include "foretoken/structured_output.h"

namespace foretoken {
namespace {

Status CheckNumbers(const SamplingParameters& sampling) {
  for (const SamplingKey& key : SamplingKeys()) {
    const double value = key.Of(sampling);
    if (std::isfinite(value) && value >= key.ranges.all.least && value <= key.ranges.all.most)
      continue;
    const char* const wrong =
        std::isinf(key.ranges.all.least) ? "not a finite number" : "out of range";
    return InvalidField(std::string(key.member), key.Visit(sampling, [&](auto number) {
      return fmt::format("{} is {}; use {}", number, wrong, key.advice);
    }));
  }
  return {};
}

Status CheckBreakers(const DryPenalty& dry, int vocabulary_size) {
  for (const std::int32_t id : dry.breakers)
    if (id < 0 || id >= vocabulary_size)
      return InvalidField(
          "dry.breakers",
          fmt::format("token {} is not in the vocabulary; use 0 to {}", id, vocabulary_size - 1));
  return {};
}

}  // namespace

Status SamplingParameters::Validate(int vocabulary_size) const {
  FORETOKEN_CHECK_OK(CheckNumbers(*this));
  FORETOKEN_CHECK_OK(CheckBreakers(dry, vocabulary_size));
  for (std::size_t i = 0; i < processors.size(); ++i)
    if (!processors[i])
      return InvalidField("processors",
                          fmt::format("number {} is an empty function; give one that can be "
                                      "called, or drop it",
                                      i + 1));
  if (!grammar.empty()) FORETOKEN_CHECK_OK(CheckGrammar(grammar));
  for (const auto& [id, bias] : logit_bias) {
    if (id < 0 || id >= vocabulary_size)
      return InvalidField(
          "logit_bias",
          fmt::format("token {} is not in the vocabulary; use 0 to {}", id, vocabulary_size - 1));
    if (std::isnan(bias))
      return InvalidField("logit_bias",
                          fmt::format("the value of token {} is not a number; give one", id));
    if (bias == std::numeric_limits<float>::infinity())
      return InvalidField("logit_bias",
                          fmt::format("the value of token {} is infinite; give a finite one, or "
                                      "-infinity to ban the token",
                                      id));
  }
  return {};
}

}  // namespace foretoken
