// SPDX-License-Identifier: Apache-2.0
#include "model/weights/plan/matrix_job.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/repack.h"
#include "tensor/dtype.h"
#include "tensor/quantize.h"

namespace foretoken::model {

namespace {

constexpr int kMostColumn = 1024;  // numbers of a column that RepackColumns reads

std::size_t RowBytes(const tensor::DTypeInfo& info, int k) {
  return static_cast<std::size_t>(k / info.block_values) *
         static_cast<std::size_t>(info.block_bytes);
}

tensor::DType TypeOf(const MatrixJob& job) {
  return tensor::FindDType(job.tensor->ggml_type)->type;
}

// The bytes that the rows of one tile take in the file's layout.
std::size_t GatheredBytes(const MatrixJob& job) {
  return RowBytes(*tensor::FindDType(job.tensor->ggml_type), job.linear->k) * tensor::kTileOutputs;
}

// Whether the rows lie in several places, so that tiles are made of copies of them.
bool IsGathered(const MatrixJob& job) {
  return !job.rows.empty() || job.tensor->n_together() < job.first_row + job.linear->n_out;
}

}  // namespace

std::size_t TiledBytes(const MatrixJob& job) {
  const Linear& linear = *job.linear;
  return kernels::TiledBytes(linear.type, linear.n_out, linear.k) *
         static_cast<std::size_t>(job.n_parts);
}

std::size_t FileBytes(const MatrixJob& job) {
  return RowBytes(*tensor::FindDType(job.tensor->ggml_type), job.linear->k) *
         static_cast<std::size_t>(job.linear->n_out) * static_cast<std::size_t>(job.n_parts);
}

std::int64_t FirstRow(const MatrixJob& job, int part) noexcept {
  return std::int64_t{job.first_part + part} * job.part_rows + job.first_row;
}

namespace {

// Repacks tiles [begin, end) of a job whose rows lie in several places. `gathered` holds the rows
// of one tile.
void RepackRows(const MatrixJob& job, int begin, int end, std::span<std::byte> gathered,
                std::byte* tiles) noexcept {
  const Linear& linear = *job.linear;
  const std::size_t row_bytes = GatheredBytes(job) / tensor::kTileOutputs;
  const std::size_t strip_bytes = kernels::StripBytes(linear.type, linear.k);
  for (int tile = begin; tile < end; ++tile) {
    const int first = tile * tensor::kTileOutputs;
    const int n = std::min(tensor::kTileOutputs, linear.n_out - first);
    for (int i = 0; i < n; ++i) {
      const int row = job.rows.empty() ? job.first_row + first + i
                                       : job.rows[static_cast<std::size_t>(first + i)];
      std::memcpy(gathered.data() + static_cast<std::size_t>(i) * row_bytes, job.tensor->Row(row),
                  row_bytes);
    }
    kernels::Repack(TypeOf(job), gathered.data(), n, linear.k, 0, 1,
                    tiles + static_cast<std::size_t>(tile) * strip_bytes);
  }
}

// Repacks the tiles [begin, end) of all parts of a job together.
void RepackParts(const MatrixJob& job, int begin, int end, std::byte* tiles) noexcept {
  const Linear& linear = *job.linear;
  const std::size_t part_bytes = kernels::TiledBytes(linear.type, linear.n_out, linear.k);
  for (int part = begin / linear.n_tiles; part < job.n_parts; ++part) {
    const int first = part * linear.n_tiles;
    if (first >= end) return;
    const std::int64_t row = FirstRow(job, part);
    kernels::Repack(TypeOf(job), job.tensor->Row(row), linear.n_out, linear.k,
                    std::max(begin - first, 0), std::min(end - first, linear.n_tiles),
                    tiles + static_cast<std::size_t>(part) * part_bytes);
  }
}

// Repacks parts [begin, end) whose rows are columns. A row of a strip holds 16 numbers of one
// column.
void RepackColumns(const MatrixJob& job, int begin, int end, std::byte* tiles) noexcept {
  const Linear& linear = *job.linear;
  float column[kMostColumn];
  for (int part = begin; part < end; ++part) {
    float* const strips =
        reinterpret_cast<float*>(tiles) + std::int64_t{part} * linear.n_out * linear.k;
    for (int k = 0; k < linear.k; ++k) {
      const std::int64_t row = FirstRow(job, part) + k;
      tensor::Dequantize(TypeOf(job), job.tensor->Row(row), linear.n_out, column);
      for (int tile = 0; tile < linear.n_tiles; ++tile)
        std::copy_n(column + tile * tensor::kTileOutputs, tensor::kTileOutputs,
                    strips + (std::int64_t{tile} * linear.k + k) * tensor::kTileOutputs);
    }
  }
}

// What a thread needs to write tiles of another type: a row of numbers, and the rows of one tile.
struct Converted {
  std::vector<float> row;
  std::vector<std::byte> rows;
  bool stopped = false;
};

// Quantize needs finite values that fit a half's scale. A copy only drafts, so others may become any number.
void MakeFinite(std::span<float> row) noexcept {
  constexpr float kMost = 30000;
  for (float& x : row) x = x != x ? 0.0f : std::clamp(x, -kMost, kMost);
}

// Writes the tiles [begin, end) of all parts together in the job's other type, until it shall stop.
void ConvertTiles(const MatrixJob& job, int begin, int end, Converted& scratch, std::byte* tiles,
                  const std::atomic<bool>* stop) noexcept {
  const Linear& linear = *job.linear;
  const std::size_t row_bytes = RowBytes(tensor::InfoOf(*job.as), linear.k),
                    strip_bytes = kernels::StripBytes(linear.type, linear.k);
  for (int at = begin; at < end; ++at) {
    scratch.stopped = stop != nullptr && *stop;
    if (scratch.stopped) return;
    const int part = at / linear.n_tiles, first = at % linear.n_tiles * tensor::kTileOutputs;
    const int n = std::min(tensor::kTileOutputs, linear.n_out - first);
    for (int i = 0; i < n; ++i) {
      const std::int64_t row = job.rows.empty() ? FirstRow(job, part) + first + i
                                                : job.rows[static_cast<std::size_t>(first + i)];
      tensor::Dequantize(TypeOf(job), job.tensor->Row(row), linear.k, scratch.row.data());
      MakeFinite(scratch.row);
      tensor::Quantize(*job.as, scratch.row.data(), linear.k,
                       scratch.rows.data() + static_cast<std::size_t>(i) * row_bytes,
                       tensor::Scales::kClosest);
    }
    kernels::Repack(*job.as, scratch.rows.data(), n, linear.k, 0, 1,
                    tiles + static_cast<std::size_t>(at) * strip_bytes);
  }
}

bool Convert(const MatrixJob& job, ThreadPool& pool, std::byte* tiles,
             const std::atomic<bool>* stop) {
  const Linear& linear = *job.linear;
  const Converted empty = {
      std::vector<float>(static_cast<std::size_t>(linear.k)),
      std::vector<std::byte>(RowBytes(tensor::InfoOf(*job.as), linear.k) * tensor::kTileOutputs)};
  std::vector<Converted> scratch(static_cast<std::size_t>(pool.size()), empty);
  pool.Run([&](int thread) {
    const auto share = pool.ShareOf(job.n_parts * linear.n_tiles, thread);
    ConvertTiles(job, share.begin, share.end, scratch[static_cast<std::size_t>(thread)], tiles,
                 stop);
  });
  job.linear->tiles = tiles;
  return std::none_of(scratch.begin(), scratch.end(), [](auto& s) { return s.stopped; });
}

}  // namespace

bool Repack(const MatrixJob& job, ThreadPool& pool, std::byte* tiles,
            const std::atomic<bool>* stop) {
  if (job.as) return Convert(job, pool, tiles, stop);
  const Linear& linear = *job.linear;
  // The memory is taken here, because the pool's threads must not allocate.
  const std::size_t room = IsGathered(job) && !job.columns ? GatheredBytes(job) : 0;
  std::vector<std::byte> gathered(room * static_cast<std::size_t>(pool.size()));
  pool.Run([&](int thread) {
    if (job.columns) {
      const auto parts = pool.ShareOf(job.n_parts, thread);
      return RepackColumns(job, parts.begin, parts.end, tiles);
    }
    const auto share = pool.ShareOf(job.n_parts * linear.n_tiles, thread);
    if (room != 0)
      return RepackRows(job, share.begin, share.end,
                        std::span(gathered).subspan(room * static_cast<std::size_t>(thread), room),
                        tiles);
    RepackParts(job, share.begin, share.end, tiles);
  });
  job.linear->tiles = tiles;
  return true;
}

}  // namespace foretoken::model
