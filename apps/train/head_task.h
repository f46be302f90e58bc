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
  double decay = 0.8;  // of a step's weight against the one before
  FileType type = FileType::kQ8_0;
  std::string name, license;
  // EAGLE alone.
  std::vector<int> layers;              // none: DefaultLayers
  int draft_vocabulary = 0;             // 0: the target's, and its output head
  int heads = 0, kv_heads = 0, ff = 0;  // 0: as the target's
  // MTP alone: also a copy of the target that holds the head.
  std::string into;
};

// Low, middle and high, as converters choose them where the target is deep enough.
std::vector<int> DefaultLayers(int n_layers);

// Errors: those of OpenTarget and LoadCorpus; kInvalidArgument (a head that does not fit its
// target); kUnsupported (an MTP head for a target that holds one).
[[nodiscard]] Result<std::unique_ptr<Task>> MakeHeadTask(const HeadOptions& options,
                                                         const TrainingOptions& training);

}  // namespace foretoken::train
