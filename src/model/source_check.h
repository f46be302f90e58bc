// SPDX-License-Identifier: Apache-2.0
// model/source_check.h: reads a model's tensors again, bit by bit, and compares them with what its
// kept tiles were made of. The key under which tiles are found covers samples only; this covers
// everything. It is meant for a thread in the background.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "model/weights.h"

namespace foretoken::model {

class SourceCheck {
 public:
  // Both must outlive it. Nothing to do where the tiles come from no kept file.
  SourceCheck(const formats::Checkpoint& checkpoint, const Weights& weights);

  // Reads up to 4 MiB. True: there is more to read.
  bool Step();
  // After the last Step. Where the tiles are of other data, their file is taken away, and the error
  // (kIo) names both.
  [[nodiscard]] Status Finish() const;

 private:
  const formats::Checkpoint& checkpoint_;
  const Weights& weights_;
  std::size_t tensor_ = 0, at_ = 0;  // what comes next
  std::vector<std::uint64_t> pieces_, hashes_;
};

}  // namespace foretoken::model
