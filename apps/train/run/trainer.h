// SPDX-License-Identifier: Apache-2.0
// train/run/trainer.h: the training loop for all tasks: steps, schedule, progress, and checkpoints
// that a kill cannot damage.
//
// A checkpoint is written beside its place, flushed, and renamed over the old one. It contains the
// exact master weights and optimiser state, so a resumed run computes what an unbroken one would
// have. With --steps the result depends only on the settings and the seed; with --minutes it also
// depends on the machine.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "train/networks/network.h"
#include "train/run/optimizer.h"

namespace foretoken::train {

struct TrainingOptions {
  std::string out;         // the GGUF file; its checkpoint is out + ".checkpoint"
  std::int64_t steps = 0;  // either this
  double minutes = 0;      // or this; not counting the time between a kill and the next start
  int batch = 16;          // rows of a step
  int window = 512;        // tokens of a row
  std::uint64_t seed = 1;
  int threads = 0;                          // 0: the cores
  double warm_up = 0.02, cool_down = 0.45;  // shares of the run in which the rate rises and falls
  double checkpoint_seconds = 40;
  bool restart = false;      // throw an earlier checkpoint away
  bool export_only = false;  // write the file from the checkpoint as it stands
  std::string log;           // a CSV file of step, seconds, loss, rate, tokens per second
  OptimizerOptions optimizer;
};

// One kind of training.
class Task {
 public:
  virtual ~Task() = default;
  virtual Parameters& parameters() = 0;
  // The loss of a step, to be differentiated. Rows are numbered from the start of the run.
  virtual torch::Tensor Loss(const Leaves& leaves, std::int64_t first_row, int n_rows) = 0;
  // "held-out loss 3.21 ..." at the end, and now and then.
  virtual std::string Evaluate(const Leaves& leaves) = 0;
  // Everything that must be the same for a checkpoint to go on, but the options.
  virtual std::string Fingerprint() const = 0;
  // Writes the file.
  virtual Status Export() = 0;
};

// Runs or resumes. Errors: kMismatch (a checkpoint of other settings), kIo, kInvalidFile (a damaged
// checkpoint).
[[nodiscard]] Status Train(Task& task, const TrainingOptions& options);

}  // namespace foretoken::train
