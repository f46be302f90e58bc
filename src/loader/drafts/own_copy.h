// SPDX-License-Identifier: Apache-2.0
// loader/drafts/own_copy.h: the copy of its weights in fewer bits with which a model drafts for itself:
// its number types, and whether its drafts are likely to pay.
#pragma once

#include <string>
#include <string_view>

#include "foretoken/options.h"
#include "foretoken/result.h"
#include "model/weights/copy_types.h"

namespace foretoken::loader {

// SpeculativeOptions::self_draft: no copy is made unasked.
inline constexpr std::string_view kNoCopy = "off";

// Reads "Q3_K", or "Q3_K,Q4_K": the types of the layers and of the output head. "" and "off": the usual
// ones. Error: kInvalidArgument.
[[nodiscard]] Result<model::CopyTypes> CopyTypesFor(const std::string& names);

// The types as self_draft names them, and once where both are one: "Q2_K" where it names none.
std::string SelfDraftOf(const SpeculativeOptions& options);

// About how many times plain decoding drafts of the copy bring where passes read memory, if 0.85 of them are
// accepted and each further row of a pass costs a tenth of the first one. At least 1, because the controller
// drafts nothing where that is faster.
double GainOfCopy(const model::CopySize& size);

// The network is so large that its passes read memory: a smaller one may lie in the processor's caches.
bool IsLarge(const model::CopySize& size);

// A copy that nobody asked for is made of a large network, if its gain is at least 1.1.
bool CopyPays(const model::CopySize& size);

}  // namespace foretoken::loader
