// SPDX-License-Identifier: Apache-2.0
#include "draft/registry.h"

#include <algorithm>
#include <array>

namespace foretoken {
namespace draft {

extern const DrafterSpec kStandaloneSpec, kEagleSpec, kMtpSpec, kDflashSpec, kSelfSpec, kNgramSpec,
    kSuffixSpec, kPredictionSpec, kGrammarSpec;

namespace {

// Engines number their drafters in this order.
constexpr std::array kRows = {
    &kStandaloneSpec, &kEagleSpec,  &kMtpSpec,        &kDflashSpec,  &kSelfSpec,
    &kNgramSpec,      &kSuffixSpec, &kPredictionSpec, &kGrammarSpec,
};

}  // namespace

bool DrafterSpec::ReadsA(model::DraftFile kind) const {
  return std::find(files.begin(), files.end(), kind) != files.end();
}

std::span<const DrafterSpec* const> Specs() {
  return kRows;
}

}  // namespace draft

std::span<const DrafterInfo* const> AllDrafters() {
  static const auto rows = [] {
    std::array<const DrafterInfo*, draft::kRows.size()> all{};
    std::transform(draft::kRows.begin(), draft::kRows.end(), all.begin(),
                   [](const draft::DrafterSpec* row) { return &row->info; });
    return all;
  }();
  return rows;
}

}  // namespace foretoken
