// SPDX-License-Identifier: Apache-2.0
// cli/pair/certify_report.h: the results of `certify`, for people; certify_json.cpp writes them for
// programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/pair/certify_distribution.h"
#include "cli/pair/certify_equality.h"

namespace foretoken::cli {

enum class Certificate { kExact, kDiffers, kUntested };

struct Certification {
  const EngineSummary* engine = nullptr;
  const Request* request = nullptr;
  int prompts = 0;
  Equality equality;
  std::optional<DistributionVerdict> distribution;  // with --stochastic
  // The strategy that verifies such requests with the given flags.
  std::string strategy;

  // Untested: nothing was drafted, the strategy above was not among the compared ones, or the
  // negative control passed.
  Certificate certificate() const;
  // What was compared and is the same, and what was requested but not compared, as parts of
  // sentences.
  std::vector<std::string> proved() const, not_proved() const;
};

// Tables at most 100 columns wide, and the result in a sentence at the end.
std::string CertificationTables(const Certification& certification, const Engine& engine);
std::string CertificationJson(const Certification& certification);
const char* Name(Certificate certificate);  // "exact"

}  // namespace foretoken::cli
