// SPDX-License-Identifier: Apache-2.0
// Its files convert queries and keys to the interleaved rotation. Mixtral's files have this name too:
// a mixture of experts of width feed_forward_length in every layer, chosen by softmax, the weights of
// a row divided by their sum.
#include "model/arch/experts_config.h"
#include "model/arch/registry.h"

namespace foretoken::model::arch {
namespace {

Status CompleteLlama(const MetadataReader& read, ModelConfig& config) {
  if (!HasExperts(read)) return {};
  FORETOKEN_TRY(ExpertsConfig experts, ReadExperts(read, config));
  experts.width = config.layers.front().ffn().width;
  experts.normalised = true;
  return UseExperts(read, experts, config);
}

}  // namespace

extern const Architecture kLlama = {
    .info = {.name = "llama",
             .networks = "Llama 1 to 3.x, Mistral, Mixtral, TinyLlama, SmolLM",
             .traits = "experts of width `feed_forward_length` where `expert_count` is given"},
    .complete = CompleteLlama};

}  // namespace foretoken::model::arch
