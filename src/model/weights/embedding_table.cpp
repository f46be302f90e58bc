// SPDX-License-Identifier: Apache-2.0
#include "model/weights/embedding_table.h"

#include "base/files/mapped_file.h"
#include "base/hash.h"
#include "tensor/dtype.h"

namespace foretoken::model {

EmbeddingTable::EmbeddingTable(const formats::Checkpoint& checkpoint,
                               const formats::TensorView& tensor, ThreadPool& pool)
    : tensor_(tensor),
      path_(checkpoint.PathOf(tensor)),
      row_bytes_(tensor.row_bytes()),
      hashes_(static_cast<std::size_t>(tensor.shape[1])) {
  pool.Run([&](int thread) {
    const auto share = pool.ShareOf(rows(), thread);
    for (int i = share.begin; i < share.end; ++i)
      hashes_[static_cast<std::size_t>(i)] = Hash({Row(i), row_bytes_});
  });
  for (const auto place : tensor.places()) checkpoint.Release(place);
}

void EmbeddingTable::Read(std::int32_t token, float* out) const noexcept {
  tensor::Dequantize(static_cast<tensor::DType>(tensor_.ggml_type), Row(token), tensor_.shape[0],
                     out);
  // The check comes after the reading, so a change in between is noticed too.
  if (Hash({Row(token), row_bytes_}) != hashes_[static_cast<std::size_t>(token)])
    changed_.store(true, std::memory_order_relaxed);
}

Status EmbeddingTable::Check() const {
  if (!changed_.load(std::memory_order_relaxed)) return {};
  return Fail(ChangedInUse(path_, false));
}

std::uint64_t EmbeddingTable::hash() const {
  return HashOf(hashes_);
}

}  // namespace foretoken::model
