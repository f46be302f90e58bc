// SPDX-License-Identifier: Apache-2.0
#include "draft/registry.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "model/arch/heads/head_kind.h"

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

bool DrafterSpec::Reads(const model::DraftFile& file) const {
  return (reads_models && file.model) || (file.head != nullptr && file.head->drafter == info.name);
}

std::span<const DrafterSpec* const> Specs() {
  return kRows;
}

const DrafterSpec& SpecOf(const model::HeadKind& head) {
  const auto* const spec = std::find_if(kRows.begin(), kRows.end(), [&](const DrafterSpec* row) {
    return row->info.name == head.drafter;
  });
  FORETOKEN_CHECK(spec != kRows.end());
  return **spec;
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
