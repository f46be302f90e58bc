// SPDX-License-Identifier: Apache-2.0
// train/heads/head_task.h: EAGLE-3 and MTP heads and block drafters for a frozen target, from text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/heads/head_network.h"
#include "train/networks/gguf.h"
#include "train/run/trainer.h"

namespace foretoken::train {

struct HeadOptions {
  TrainedHead kind = TrainedHead::kEagle;
  std::string target;
  std::vector<std::string> text, held_out;
  int unroll = 4;      // steps of the training-time test; not for block drafters
  double decay = 0.8;  // a step's weight relative to the one before
  FileType type = FileType::kQ8_0;
  std::string name, license;
  // Not for MTP.
  std::vector<int> layers;              // none: DefaultLayers
  int heads = 0, kv_heads = 0, ff = 0;  // 0: as the target's
  // For EAGLE only.
  int draft_vocabulary = 0;  // 0: the target's, and its output head
  // For block drafters only.
  int blocks = 2;      // layers of the drafter
  int block_size = 8;  // tokens that it reads at once: the newest one and masks
  int mask = -1;       // the token that serves as mask; negative: DefaultMask
  // For MTP only: also writes a copy of the target that contains the head.
  std::string into;
};

// Low, middle and high, as converters choose them if the target is deep enough.
std::vector<int> DefaultLayers(int n_layers);

// A token that texts do not contain: the tokenizer's mask, padding or unknown token, else the first.
Token DefaultMask(const formats::Metadata& metadata);

// Errors: those of TargetReader::Open and LoadCorpus; kInvalidArgument (a head that does not fit its
// target); kUnsupported (an MTP head for a target that already has one, or whose blocks have a part
// that training does not know).
[[nodiscard]] Result<std::unique_ptr<Task>> MakeHeadTask(const HeadOptions& options,
                                                         const TrainingOptions& training);

}  // namespace foretoken::train
