// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <type_traits>

#include "verify/logit_comparison.h"
#include "verify/strategies/block.h"
#include "verify/strategies/greedy.h"
#include "verify/strategies/relaxed.h"
#include "verify/strategies/residual.h"
#include "verify/strategies/sample_match.h"
#include "verify/strategies/target_probability.h"
#include "verify/strategies/typical_acceptance.h"
#include "verify/verifier.h"

namespace foretoken::verify {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Verifier> (*make)(const VerifierSettings&);
};
template <typename T>
std::unique_ptr<Verifier> Make([[maybe_unused]] const VerifierSettings& settings) {
  if constexpr (std::is_constructible_v<T, const VerifierSettings&>)
    return std::make_unique<T>(settings);
  else
    return std::make_unique<T>();
}
constexpr std::array kRows = {Row{"greedy", Make<Greedy>},
                              Row{"residual", Make<Residual>},
                              Row{"sample-match", Make<SampleMatch>},
                              Row{"block", Make<Block>},
                              Row{"target-probability", Make<TargetProbability>},
                              Row{"typical-acceptance", Make<TypicalAcceptance>},
                              Row{"logit-comparison", Make<LogitComparison>},
                              Row{"relaxed", Make<Relaxed>}};

}  // namespace

std::vector<std::string_view> VerifierNames() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

Result<std::unique_ptr<Verifier>> MakeVerifier(std::string_view name,
                                               const VerifierSettings& settings) {
  for (const Row& row : kRows)
    if (row.name == name) return row.make(settings);
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("verify: strategy '{}' does not exist; use {}", name,
                          fmt::join(VerifierNames(), ", ")));
}

}  // namespace foretoken::verify
