// SPDX-License-Identifier: Apache-2.0
// model/weights/plan/matrix_job.h: how one matrix of a file becomes tiles.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/machine/thread_pool.h"
#include "formats/checkpoint.h"
#include "model/weights/linear.h"
#include "tensor/dtype.h"

namespace foretoken::model {

struct MatrixJob {
  const formats::TensorView* tensor;
  Linear* linear;  // stays where it is: layers are sized before planning, and moving a vector
                   // keeps its elements
  std::size_t offset;
  std::span<const std::int32_t> rows = {};  // rows to keep; empty: as below
  // The tensor holds parts of part_rows rows, one after another. So many are taken, from first_part
  // on: of each, the linear's n_out rows from first_row on.
  int first_part = 0, n_parts = 1;
  int part_rows = 0, first_row = 0;
  bool columns = false;    // of each part, its rows are the linear's k columns; tiles are F32
  bool of_target = false;  // the tensor is in another file, the target's
  // In a copy (weights/copy_types.h): the type of its tiles, in place of the tensor's. Without one they are
  // the network's own tiles, and `offset` is their place among those.
  std::optional<tensor::DType> as = {};
  bool beside = false;  // in a copy: the network has no such matrix
};

std::size_t TiledBytes(const MatrixJob& job);
// What the file holds of it.
std::size_t FileBytes(const MatrixJob& job);
// In the tensor, the first row that is taken of a part.
std::int64_t FirstRow(const MatrixJob& job, int part) noexcept;
// Writes all its tiles, on all threads of the pool, and tells the matrix where they are. False: `stop`,
// which may be null, became true while tiles of another type were made, which takes long.
bool Repack(const MatrixJob& job, ThreadPool& pool, std::byte* tiles,
            const std::atomic<bool>* stop = nullptr);

}  // namespace foretoken::model
