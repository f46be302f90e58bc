// SPDX-License-Identifier: Apache-2.0
// model/arch/experts_config.h: the keys of mixtures of experts.
#pragma once

#include "foretoken/result.h"
#include "model/arch/metadata_reader.h"
#include "model/config.h"

namespace foretoken::model {

// Whether the file says that it has experts.
bool HasExperts(const MetadataReader& read);

// The numbers of experts and their width. The width is expert_feed_forward_length; without that key
// the width of a dense layer is divided among the experts that a row uses. Errors: kInvalidFile.
[[nodiscard]] Result<ExpertsConfig> ReadExperts(const MetadataReader& read,
                                                const ModelConfig& config);

// The keys of routers that choose by sigmoids or by groups: expert_gating_func, expert_weights_norm,
// expert_weights_scale, expert_group_count and expert_group_used_count. Keys that are absent leave
// what `experts` holds. Errors: kInvalidFile, kUnsupported.
[[nodiscard]] Status ReadRouter(const MetadataReader& read, ExpertsConfig& experts);

// Mixtures take the place of the gated parts, from layer leading_dense_block_count on. A file with an
// MTP head may call all layers dense, the head's too. Errors: kInvalidFile.
[[nodiscard]] Status UseExperts(const MetadataReader& read, const ExpertsConfig& experts,
                                ModelConfig& config);

}  // namespace foretoken::model
