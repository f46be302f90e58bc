// SPDX-License-Identifier: Apache-2.0
// train/head_task.h: EAGLE-3 and MTP heads for a frozen target, from text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/gguf.h"
#include "train/head_network.h"
#include "train/trainer.h"

namespace foretoken::train {

struct HeadOptions {
  HeadKind kind = HeadKind::kEagle;
  std::string target;
  std::vector<std::string> text, held_out;
  int unroll = 4;      // steps of the training-time test
  double decay = 0.8;  // a step's weight relative to the one before
  FileType type = FileType::kQ8_0;
  std::string name, license;
  // For EAGLE only.
  std::vector<int> layers;              // none: DefaultLayers
  int draft_vocabulary = 0;             // 0: the target's, and its output head
  int heads = 0, kv_heads = 0, ff = 0;  // 0: as the target's
  // For MTP only: also writes a copy of the target that contains the head.
  std::string into;
};

// Low, middle and high, as converters choose them if the target is deep enough.
std::vector<int> DefaultLayers(int n_layers);

// Errors: those of OpenTarget and LoadCorpus; kInvalidArgument (a head that does not fit its
// target); kUnsupported (an MTP head for a target that already has one).
[[nodiscard]] Result<std::unique_ptr<Task>> MakeHeadTask(const HeadOptions& options,
                                                         const TrainingOptions& training);

}  // namespace foretoken::train
