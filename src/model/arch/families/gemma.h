// SPDX-License-Identifier: Apache-2.0
// model/arch/families/gemma.h: what the Gemma networks have in common.
#pragma once

#include "foretoken/result.h"
#include "model/arch/metadata_reader.h"
#include "model/config.h"

namespace foretoken::model::arch {

// The embedding times sqrt(width), norms before and after both parts, GELU, NeoX rotation.
void SetGemma(ModelConfig& config);

// The largest network of a generation, known by its number of layers, divides scores by the square
// root of (width / heads) instead of the head size.
void ScaleAsWidth(int n_layers, ModelConfig& config);

// A Gemma 4 assistant (heads/assistant.cpp), whose blocks are as gemma4's. Its rows see what stands
// before them, so a window has one position less. Which layer of the target a layer reads is found
// when the target is known. REQUIRES: config.head. Errors: kInvalidFile, kUnsupported.
[[nodiscard]] Status CompleteAssistant(const MetadataReader& read, ModelConfig& config);

}  // namespace foretoken::model::arch
