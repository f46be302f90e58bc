// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/own_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/comma_list.h"
#include "foretoken/drafts.h"
#include "tensor/dtype.h"

namespace foretoken::loader {
namespace {

constexpr double kFurtherRow = 0.1, kLeastGain = 1.1;
constexpr double kClearlyMore = 1.05;  // for more memory
constexpr int kExpected = 16;  // positions of a measurement that what was expected counts for
constexpr std::int64_t kLeastNetworkBytes = std::int64_t{256} << 20;

Status FindType(std::string_view name, tensor::DType& type) {
  if (name == model::kOwnType) {
    type = model::kOwn;
    return {};
  }
  for (const tensor::DTypeInfo& info : tensor::AllDTypes())
    if (info.name == name && !info.widened) {
      type = info.type;
      return {};
    }
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("self_draft: '{}' is no number type of weights; use Q2_K, Q3_K, Q4_0 or Q4_K, or "
                  "own",
                  name));
}

// The share of drafts that are expected to be rejected, where nothing was measured.
double RejectedOf(const model::CopyTypes& types) {
  const tensor::DTypeInfo& info = tensor::InfoOf(types.layers);
  const double bits = 8.0 * info.block_bytes / info.block_values;
  return bits < 3 ? 0.15 : bits < 4 ? 0.092 : 0.052;
}

// A short text says little, so that what was expected counts too.
double Accepted(const CopyFigure& figure, double rejected) {
  return (figure.agreed + kExpected * (1 - rejected)) / (figure.positions + kExpected);
}

// The ratio of what was measured to what was expected.
class Ratio {
 public:
  void Add(double ratio) { sum_ += ratio, ++n_; }
  double mean() const { return n_ == 0 ? 1 : sum_ / n_; }

 private:
  double sum_ = 0;
  int n_ = 0;
};

const CopyFigure* FigureOf(const CopyOffer& offer, std::span<const CopyFigure> figures) {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const CopyFigure& figure) {
    return figure.types == model::NameOf(offer.types);
  });
  return found == figures.end() ? nullptr : &*found;
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

std::span<const model::CopyTypes> UsualCopies() {
  using tensor::DType;
  static constexpr std::array kUsual = {model::CopyTypes{DType::kQ2_K, DType::kQ2_K},
                                        model::CopyTypes{DType::kQ3_K, DType::kQ3_K},
                                        model::CopyTypes{DType::kQ4_K, DType::kQ4_K}};
  return kUsual;
}

void Expect(std::span<CopyOffer> offers, std::span<const CopyFigure> figures) {
  Ratio rejected, cost;
  for (const CopyOffer& offer : offers)
    if (const CopyFigure* const figure = FigureOf(offer, figures)) {
      rejected.Add((1 - Accepted(*figure, RejectedOf(offer.types))) / RejectedOf(offer.types));
      if (figure->cost > 0) cost.Add(figure->cost / offer.size.reduced_share());
    }
  for (CopyOffer& offer : offers) {
    const CopyFigure* const figure = FigureOf(offer, figures);
    const double usual = RejectedOf(offer.types);
    offer.accepted =
        figure != nullptr ? Accepted(*figure, usual) : std::max(0.0, 1 - rejected.mean() * usual);
    offer.cost = figure != nullptr && figure->cost > 0 ? figure->cost
                                                       : cost.mean() * offer.size.reduced_share();
  }
}

double GainOf(const CopyOffer& offer) {
  double tokens = 1, accepted = 1, best = 1;
  for (int k = 1; k <= kMaxDraft; ++k) {
    tokens += accepted *= offer.accepted;
    best = std::max(best, tokens / (1 + k * (kFurtherRow + offer.cost)));
  }
  return best;
}

const CopyOffer& BestOf(std::span<const CopyOffer> offers) {
  const CopyOffer* best = &offers.front();
  for (const CopyOffer& offer : offers)
    if (GainOf(offer) >= kClearlyMore * GainOf(*best)) best = &offer;
  return *best;
}

bool IsLarge(const model::CopySize& size) {
  return size.network >= kLeastNetworkBytes;
}

bool Pays(const CopyOffer& offer) {
  return IsLarge(offer.size) && GainOf(offer) >= kLeastGain;
}

}  // namespace foretoken::loader
