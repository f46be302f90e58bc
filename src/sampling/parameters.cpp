// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "foretoken/request.h"
#include "foretoken/structured_output.h"

namespace foretoken {
namespace {

Status InRange(const char* name, float value, float least, float most) {
  if (value >= least && value <= most) return {};  // false for NaN
  return InvalidField(name, fmt::format("{} is out of range; use {} to {}", value, least, most));
}

Status Finite(const char* name, float value) {
  if (std::isfinite(value)) return {};
  return InvalidField(name, fmt::format("{} is not a finite number; use 0 to turn it off", value));
}

Status CheckDry(const DryPenalty& dry, int vocabulary_size) {
  if (!(dry.multiplier >= 0) || !std::isfinite(dry.multiplier))
    return InvalidField(
        "dry.multiplier",
        fmt::format("{} is out of range; use more than 0, or 0 to turn it off", dry.multiplier));
  if (!(dry.base >= 1) || !std::isfinite(dry.base))
    return InvalidField("dry.base", fmt::format("{} is out of range; use 1 or more", dry.base));
  if (dry.allowed_length < 1)
    return InvalidField("dry.allowed_length",
                        fmt::format("{} is out of range; use 1 or more", dry.allowed_length));
  if (dry.window < -1)
    return InvalidField(
        "dry.window",
        fmt::format("{} is out of range; use 0 or more, or -1 for the whole text", dry.window));
  for (const std::int32_t id : dry.breakers)
    if (id < 0 || id >= vocabulary_size)
      return InvalidField(
          "dry.breakers",
          fmt::format("token {} is not in the vocabulary; use 0 to {}", id, vocabulary_size - 1));
  return {};
}

}  // namespace

Status SamplingParameters::Validate(int vocabulary_size) const {
  FORETOKEN_CHECK_OK(InRange("temperature", temperature, 0, 2));
  if (top_k < -1)
    return InvalidField(
        "top_k", fmt::format("{} is out of range; use 1 or more, or 0 to turn it off", top_k));
  FORETOKEN_CHECK_OK(InRange("top_p", top_p, 0, 1));
  FORETOKEN_CHECK_OK(InRange("min_p", min_p, 0, 1));
  FORETOKEN_CHECK_OK(InRange("typical_p", typical_p, 0, 1));
  if (!(eta >= 0 && eta < 1))
    return InvalidField(
        "eta", fmt::format("{} is out of range; use 0 to below 1, or 0 to turn it off", eta));
  if (!(repetition_penalty > 0) || !std::isfinite(repetition_penalty))
    return InvalidField("repetition_penalty",
                        fmt::format("{} is out of range; use more than 0, or 1 to turn it off",
                                    repetition_penalty));
  if (repetition_window < -1)
    return InvalidField("repetition_window",
                        fmt::format("{} is out of range; use 0 or more, or -1 for the whole text",
                                    repetition_window));
  FORETOKEN_CHECK_OK(Finite("frequency_penalty", frequency_penalty));
  FORETOKEN_CHECK_OK(Finite("presence_penalty", presence_penalty));
  FORETOKEN_CHECK_OK(CheckDry(dry, vocabulary_size));
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
