// SPDX-License-Identifier: Apache-2.0
// model/pass_work.h: how much a pass computes, so that passes can be compared by their time
// (team_choice.h).
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/pass.h"

namespace foretoken::model {

class PassWork {
 public:
  explicit PassWork(const ModelConfig& config);

  // Multiplications of all rows of the pass in a layer, in the mean: those with weights, and those with
  // the positions that a row sees. The rows of a segment count as the one in their middle.
  std::uint64_t Of(const Pass& pass) const noexcept;

 private:
  struct Seen {
    int window;             // of the layers; 0: they see all positions
    std::int64_t position;  // multiplications with each position, of all these layers
  };
  void AddSeen(const LayerConfig& layer);
  std::int64_t OfPositions(const Pass& pass) const noexcept;

  std::int64_t n_layers_;
  std::int64_t row_ = 0;           // multiplications of a row with the weights of all layers
  std::int64_t injected_row_ = 0;  // of a row of a block drafter that reads features, in a layer
  std::vector<Seen> seen_;         // one for each window
};

}  // namespace foretoken::model
