// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/own_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/comma_list.h"
#include "foretoken/drafts.h"
#include "tensor/dtype.h"

namespace foretoken::loader {
namespace {

constexpr double kAccepted = 0.85, kFurtherRow = 0.1, kLeastGain = 1.1;
constexpr std::int64_t kLeastNetworkBytes = std::int64_t{256} << 20;

Status FindType(std::string_view name, tensor::DType& type) {
  for (const tensor::DTypeInfo& info : tensor::AllDTypes())
    if (info.name == name && !info.widened) {
      type = info.type;
      return {};
    }
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("self_draft: '{}' is no number type of weights; use Q2_K, Q3_K, Q4_0 or Q4_K",
                  name));
}

}  // namespace

Result<model::CopyTypes> CopyTypesFor(const std::string& names) {
  model::CopyTypes types;
  if (names.empty() || names == kNoCopy) return types;
  const auto items = CommaItems(names);
  if (items.size() > 2)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("self_draft: '{}' are {} types; give one, or one for the layers and one "
                    "for the output head",
                    names, items.size()));
  FORETOKEN_CHECK_OK(FindType(items.front(), types.layers));
  FORETOKEN_CHECK_OK(FindType(items.back(), types.output));
  return types;
}

std::string SelfDraftOf(const SpeculativeOptions& options) {
  const std::string& names = options.self_draft;
  if (names.empty() || names == kNoCopy) return model::NameOf(model::CopyTypes());
  const auto items = CommaItems(names);
  const bool are_one = items.size() == 2 && items.front() == items.back();
  return are_one ? std::string(items.front()) : names;
}

double GainOfCopy(const model::CopySize& size) {
  double tokens = 1, accepted = 1, best = 1;
  for (int k = 1; k <= kMaxDraft; ++k) {
    tokens += accepted *= kAccepted;
    best = std::max(best, tokens / (1 + k * (kFurtherRow + size.reduced_share())));
  }
  return best;
}

bool IsLarge(const model::CopySize& size) {
  return size.network >= kLeastNetworkBytes;
}

bool CopyPays(const model::CopySize& size) {
  return IsLarge(size) && GainOfCopy(size) >= kLeastGain;
}

}  // namespace foretoken::loader
