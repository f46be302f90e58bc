// SPDX-License-Identifier: Apache-2.0
// train/networks/model_task.h: a llama or LFM 2 model from text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/networks/gguf.h"
#include "train/run/trainer.h"
#include "train/text/corpus.h"

namespace foretoken::train {

struct ModelShape {
  int layers = 5, dim = 384, heads = 6, kv_heads = 2, ff = 1024, context = 512;
  bool tied = true;
  // Blocks with a gated convolution over 3 positions in place of attention: an LFM 2 model.
  std::vector<int> convolutions = {};

  // The shape in one line, for fingerprints.
  std::string Text() const;
};

// Errors: kInvalidArgument (sizes that do not fit together).
[[nodiscard]] Result<NetworkConfig> ConfigOf(const ModelShape& shape, int vocabulary);

struct ModelOptions {
  std::string vocabulary;  // a GGUF file that has one
  std::vector<std::string> text, held_out;
  ModelShape shape;
  FileType type = FileType::kQ8_0;
  std::string name = "foretoken", license;
};

[[nodiscard]] Result<std::unique_ptr<Task>> MakeModelTask(const ModelOptions& options,
                                                          const TrainingOptions& training);

// Sources of "FILE[:SHARE]" texts.
[[nodiscard]] Result<Corpus> LoadCorpus(const std::vector<std::string>& texts,
                                        const text::Tokenizer& tokenizer,
                                        const TrainingOptions& training);
// Mean loss per token and bits per byte of a held-out corpus, 32 windows of it.
std::string HeldOutLoss(const NetworkConfig& config, const Leaves& leaves, const Corpus& corpus);

// Writes a model file: vocabulary, sizes, weights.
[[nodiscard]] Status WriteModel(const std::string& path, const NetworkConfig& config,
                                const Parameters& parameters, const formats::Metadata& vocabulary,
                                FileType type, const std::string& name, const std::string& license);

}  // namespace foretoken::train
