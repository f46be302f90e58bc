// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/own_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
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

Result<tensor::DType> FindType(std::string_view name) {
  if (name == model::kOwnType) return model::kOwn;
  for (const tensor::DTypeInfo& info : tensor::AllDTypes())
    if (info.name == name && !info.widened) return info.type;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is no number type of weights; use Q2_K, Q3_K, Q4_0 or Q4_K, or own",
                          Shown(name)));
}

tl::unexpected<Error> WrongTypes(std::string why) {
  return Fail(ErrorCode::kInvalidArgument, "self_draft: " + std::move(why));
}

// Reads the items of a list of types in their order. The first two may stand without a part.
class CopyTypesReader {
 public:
  Status Add(std::string_view item, std::size_t place) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) return Set(place == 0 ? kLayers : kHead, item, "");
    const std::string_view part = item.substr(0, equals);
    if (place == 0)
      return WrongTypes(
          fmt::format("'{0}' names a part, and the type of the layers comes first: "
                      "Q2_K,{0}",
                      Shown(item)));
    const auto found = std::find(kParts.begin() + kHead, kParts.end(), part);
    if (found == kParts.end())
      return WrongTypes(fmt::format(
          "'{}' is no part of a model that can have a type of its own; name head, attention, "
          "experts or ends",
          Shown(part)));
    return Set(static_cast<std::size_t>(found - kParts.begin()), item.substr(equals + 1),
               fmt::format("{}: ", part));
  }

  // What says nothing new is left out, so that equal copies have one name.
  model::CopyTypes types() const {
    const tensor::DType layers = *given_[kLayers];
    const auto unless_usual = [&](std::size_t part) {
      return given_[part] == layers ? std::nullopt : given_[part];
    };
    model::CopyTypes types = {.layers = layers,
                              .output = given_[kHead].value_or(layers),
                              .attention = unless_usual(kAttention),
                              .experts = unless_usual(kExperts),
                              .ends = given_[kEnds]};
    if (!types.attention && !types.experts) types.ends = unless_usual(kEnds);
    return types;
  }

 private:
  enum : std::size_t { kLayers, kHead, kAttention, kExperts, kEnds };
  static constexpr std::array<std::string_view, 5> kParts = {"layers", "head", "attention",
                                                             "experts", "ends"};

  Status Set(std::size_t part, std::string_view name, const std::string& where) {
    const auto type = FindType(name);
    if (!type) return WrongTypes(where + type.error().message);
    if (given_[part])
      return WrongTypes(fmt::format("the type of {} is given twice; leave one out", kParts[part]));
    given_[part] = *type;
    return {};
  }

  std::array<std::optional<tensor::DType>, 5> given_;
};

// The share of drafts that are expected to be rejected, where nothing was measured.
double RejectedOf(const model::CopySize& size) {
  constexpr double kOfTwoBits = 0.15, kTwoBits = 2.625, kHalves = 1.2;
  return kOfTwoBits * std::exp2((kTwoBits - size.bits) / kHalves);
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

// Null: there is none, or it says nothing about copies.
const CopyFigure* FigureOf(const CopyOffer& offer, std::span<const CopyFigure> figures) {
  if (offer.size.own == 0) return nullptr;
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const CopyFigure& figure) {
    return figure.types == model::NameOf(offer.types);
  });
  return found == figures.end() ? nullptr : &*found;
}

}  // namespace

Result<model::CopyTypes> CopyTypesFor(const std::string& names) {
  if (names.empty() || names == kNoCopy) return model::CopyTypes();
  const auto items = CommaItems(names);
  const auto n_plain = std::count_if(items.begin(), items.end(), [](std::string_view item) {
    return item.find('=') == std::string_view::npos;
  });
  if (n_plain > 2)
    return WrongTypes(
        fmt::format("'{}' are {} types; give one, or one for the layers and one for the output "
                    "head, and those of other parts by name: attention=Q4_K",
                    Shown(names), n_plain));
  CopyTypesReader reader;
  for (std::size_t place = 0; place < items.size(); ++place)
    FORETOKEN_CHECK_OK(reader.Add(items[place], place));
  return reader.types();
}

std::string SelfDraftOf(const SpeculativeOptions& options) {
  const auto types = CopyTypesFor(options.self_draft);
  return types ? model::NameOf(*types) : options.self_draft;
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
      const double usual = RejectedOf(offer.size);
      rejected.Add((1 - Accepted(*figure, usual)) / usual);
      if (figure->cost > 0) cost.Add(figure->cost / offer.size.reduced_share());
    }
  for (CopyOffer& offer : offers) {
    if (offer.size.own == 0) {
      offer.accepted = offer.cost = 1;
      continue;
    }
    const CopyFigure* const figure = FigureOf(offer, figures);
    const double usual = RejectedOf(offer.size);
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
