// SPDX-License-Identifier: Apache-2.0
// loader/drafts/own_copy.h: the copy of its weights in fewer bits with which a model drafts for itself:
// its number types, which of them promise most, and whether its drafts are likely to pay.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "foretoken/options.h"
#include "foretoken/result.h"
#include "loader/drafts/copy_figures.h"
#include "model/weights/copy_types.h"

namespace foretoken::loader {

// SpeculativeOptions::self_draft: no copy is made unasked.
inline constexpr std::string_view kNoCopy = "off";

// Reads "Q3_K", or "Q3_K,Q4_K": the types of the layers and of the output head. Behind the first one parts
// have types by name: "Q2_K,head=Q4_K,attention=Q4_0,experts=Q3_K,ends=Q4_K" (model::CopyTypes). "" and
// "off": the usual ones. Error: kInvalidArgument.
[[nodiscard]] Result<model::CopyTypes> CopyTypesFor(const std::string& names);

// The types as model::NameOf writes them, however self_draft does: "Q2_K" where it names none.
std::string SelfDraftOf(const SpeculativeOptions& options);

// A copy that could be made, and what is expected of its drafts.
struct CopyOffer {
  model::CopyTypes types;
  model::CopySize size;
  double accepted = 0;  // the share of drafts
  double cost = 0;      // of a draft, in passes of the model of one row
};

// The types among which a model without --self-draft chooses, from the quickest one to the one whose drafts are
// accepted most.
std::span<const model::CopyTypes> UsualCopies();
// One more, where rows are too short for all of these and their copies are one, in Q4_0.
inline constexpr model::CopyTypes kOfShortRows = {tensor::DType::kQ5_0, tensor::DType::kQ5_0};

// Sets what is expected, by what was measured. Without figures the cost is the share of bytes. The share of drafts
// that are rejected is 0.15 with the bits of Q2_K, and half as much with each 1.2 bits more: as far below as the most
// probable tokens of Mistral 7B differ less (wikitext; 0.17 of Q2_K_S, 0.11 of Q3_K_S, 0.06 of Q4_K_S; llama.cpp,
// pull request 5676). Copies that were not measured are expected to differ from that as those that were. One of no
// bytes is the model, whatever was measured of it.
void Expect(std::span<CopyOffer> offers, std::span<const CopyFigure> figures);

// About how many times plain decoding its drafts bring where passes read memory, if each further row of a
// pass costs a tenth of the first one. At least 1, because the controller drafts nothing where that is faster.
double GainOf(const CopyOffer& offer);

// The first one, or a larger one that promises clearly more. REQUIRES: there is one; ascending sizes.
const CopyOffer& BestOf(std::span<const CopyOffer> offers);

// The network is so large that its passes read memory: a smaller one may lie in the processor's caches.
bool IsLarge(const model::CopySize& size);

// A copy that nobody asked for is made of a large network, if its gain is at least 1.1.
bool Pays(const CopyOffer& offer);

}  // namespace foretoken::loader
