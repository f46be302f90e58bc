// SPDX-License-Identifier: Apache-2.0
// The scales of granite and a mixture of experts in every layer, with a shared part where the file
// gives it a width.
#include "model/arch/experts_config.h"
#include "model/arch/families/granite.h"
#include "model/arch/registry.h"

namespace foretoken::model::arch {

Status UseGraniteExperts(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_TRY(ExpertsConfig experts, ReadExperts(read, config));
  experts.width = config.layers.front().ffn().width;
  experts.normalised = true;
  if (read.Int("expert_shared_feed_forward_length").value_or(0) != 0) {
    FORETOKEN_TRY(experts.shared_width, read.Size("expert_shared_feed_forward_length", 1 << 19));
  }
  return UseExperts(read, experts, config);
}

namespace {

Status CompleteGraniteMoe(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_CHECK_OK(ReadGraniteScales(read, config));
  return UseGraniteExperts(read, config);
}

}  // namespace

extern const Architecture kGraniteMoe = {
    .info = {.name = "granitemoe",
             .networks = "Granite 3 and 4 (mixtures)",
             .traits = "the scales of granite; experts of width `feed_forward_length`, chosen by "
                       "softmax, their weights divided by the sum; a shared part"},
    .complete = CompleteGraniteMoe};

}  // namespace foretoken::model::arch
