// SPDX-License-Identifier: Apache-2.0
// The scales of granite; Mamba-2 in the blocks without key-value heads; each block has a dense
// feed-forward part or a mixture of experts of width feed_forward_length, chosen by softmax, with a
// shared part.
#include "model/arch/experts_config.h"
#include "model/arch/families/granite.h"
#include "model/arch/mamba2_config.h"
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteGraniteHybrid(const MetadataReader& read, ModelConfig& config) {
  FORETOKEN_CHECK_OK(ReadGraniteScales(read, config));
  FORETOKEN_TRY(const Mamba2Config mamba, ReadMamba2(read));
  for (LayerConfig& layer : config.layers)
    if (layer.attention().n_kv_heads == 0) layer.mixer = mamba;
  return HasExperts(read) ? UseGraniteExperts(read, config) : Status();
}

}  // namespace

extern const Architecture kGraniteHybrid = {
    .info = {.name = "granitehybrid",
             .networks = "Granite 4 H (dense and mixtures)",
             .traits = "the scales of granite; Mamba-2 in the blocks without key-value heads; "
                       "experts as in granitemoe, where there are any"},
    .complete = CompleteGraniteHybrid,
    .recurrent = true};

}  // namespace foretoken::model::arch
