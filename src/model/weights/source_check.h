// SPDX-License-Identifier: Apache-2.0
// model/weights/source_check.h: reads a model's tensors again and compares every bit with what its kept
// tiles were made of. The key under which tiles are found covers only samples of the tensors. It is
// meant for a thread in the background.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class SourceCheck {
 public:
  // Both must outlive the check. There is nothing to do if the tiles come from no kept file.
  SourceCheck(const formats::Checkpoint& checkpoint, const Weights& weights);

  // Reads up to 4 MiB. Returns true if there is more to read.
  bool Step();
  // REQUIRES: the last Step has returned false. If the tiles were made of other data, their file is
  // deleted, and the error (kIo) names both files.
  [[nodiscard]] Status Finish() const;

 private:
  const formats::Checkpoint& checkpoint_;
  const Weights& weights_;
  std::size_t source_ = 0, at_ = 0;  // where Step continues
  std::vector<std::uint64_t> pieces_, hashes_;
};

}  // namespace foretoken::model
