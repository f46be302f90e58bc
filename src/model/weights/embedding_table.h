// SPDX-License-Identifier: Apache-2.0
// model/weights/embedding_table.h: the rows of an embedding. They stay in the model file and are read from
// its mapping, because a text needs few of them. Each row was hashed when the model was loaded. The
// hash shows whether the row has changed since, whatever happened to the file.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/machine/thread_pool.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"

namespace foretoken::model {

class EmbeddingTable {
 public:
  // Reads all rows once, on all threads of the pool. REQUIRES: two dimensions and a type that can
  // be computed with. The checkpoint must outlive the table.
  EmbeddingTable(const formats::Checkpoint& checkpoint, const formats::TensorView& tensor,
                 ThreadPool& pool);

  // Row `token` as f32. out: [row length]. Any thread may call it. It remembers if a row has
  // changed.
  void Read(std::int32_t token, float* out) const noexcept;
  // Error: kIo with the file's name if a row had changed.
  [[nodiscard]] Status Check() const;

  std::int32_t rows() const { return static_cast<std::int32_t>(tensor_.shape[1]); }
  std::uint64_t hash() const;  // a hash of all rows

 private:
  const std::byte* Row(std::int32_t token) const noexcept { return tensor_.Row(token); }

  const formats::TensorView& tensor_;
  std::string path_;
  std::size_t row_bytes_ = 0;
  std::vector<std::uint64_t> hashes_;  // one for each row
  mutable std::atomic<bool> changed_{false};
};

}  // namespace foretoken::model
