// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "verify/greedy.h"
#include "verify/residual.h"
#include "verify/sample_match.h"
#include "verify/verifier.h"

namespace foretoken::verify {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Verifier> (*make)();
};
template <typename T>
std::unique_ptr<Verifier> Make() {
  return std::make_unique<T>();
}
constexpr std::array kRows = {Row{"greedy", Make<Greedy>}, Row{"residual", Make<Residual>},
                              Row{"sample-match", Make<SampleMatch>}};

}  // namespace

std::vector<std::string_view> VerifierNames() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

Result<std::unique_ptr<Verifier>> MakeVerifier(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.make();
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("verify: strategy '{}' does not exist; use {}", name,
                          fmt::join(VerifierNames(), ", ")));
}

}  // namespace foretoken::verify
