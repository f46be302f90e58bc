// SPDX-License-Identifier: Apache-2.0
// As gemma.h says, with norms of query and key heads. Five of six layers have a window, and a
// rotation with a base of its own, which is not scaled.
#include "model/arch/families/gemma.h"
#include "model/arch/registry.h"
#include "model/arch/windows.h"

namespace foretoken::model::arch {
namespace {

constexpr int kLargestGemma3 = 62;  // layers of Gemma 3 27B

Status CompleteGemma3(const MetadataReader& read, ModelConfig& config) {
  SetGemma(config);
  ScaleAsWidth(kLargestGemma3, config);
  FORETOKEN_TRY(const double cap, read.NotNegative("final_logit_softcapping", 0));
  config.logit_soft_cap = static_cast<float>(cap);
  FORETOKEN_CHECK_OK(ReadWindows(read, 6, config));
  FORETOKEN_TRY(const double base, read.Positive("rope.freq_base_swa", 10000));
  for (LayerConfig& layer : config.layers) {
    AttentionConfig& attention = layer.attention();
    attention.qk_norm = QkNorm::kHead;
    if (attention.window == 0) continue;
    attention.rope =
        RopeConfig{.interleaved = false, .n_rot = attention.rope->n_rot, .freq_base = base};
  }
  return {};
}

}  // namespace

extern const Architecture kGemma3 = {
    .info = {.name = "gemma3",
             .networks = "Gemma 3 (text)",
             .traits =
                 "as gemma2 without the caps, with a norm on each query and key head; a window "
                 "in five of six layers, which rotate with the base `rope.freq_base_swa`"},
    .complete = CompleteGemma3};

}  // namespace foretoken::model::arch
