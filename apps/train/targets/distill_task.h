// SPDX-License-Identifier: Apache-2.0
// train/targets/distill_task.h: a small llama draft that imitates a frozen target (Hinton et al.
// 2015; for drafts, Zhou et al. 2024, "DistillSpec").
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/networks/gguf.h"
#include "train/networks/model_task.h"
#include "train/run/trainer.h"

namespace foretoken::train {

struct DistillOptions {
  std::string target;
  std::vector<std::string> text, held_out;
  std::int64_t samples = 0;  // tokens of the target's own text; 0: none
  double samples_temperature = 0.8;
  // Share of KL(target || draft) in the loss; the rest is cross entropy on the text.
  double mix = 1;
  // context 0: the target's
  ModelShape shape{.layers = 2, .dim = 128, .heads = 2, .kv_heads = 1, .ff = 384, .context = 0};
  FileType type = FileType::kQ8_0;
  std::string name, license;  // name "": the target's and " draft"
};

// With samples, `out.samples.txt` is written first, unless it exists and was made in the same way;
// half of the rows come from it. Errors, all before that work begins: those of TargetReader::Open and
// LoadCorpus; kInvalidArgument (a shape that does not fit).
[[nodiscard]] Result<std::unique_ptr<Task>> MakeDistillTask(const DistillOptions& options,
                                                            const TrainingOptions& training);

}  // namespace foretoken::train
