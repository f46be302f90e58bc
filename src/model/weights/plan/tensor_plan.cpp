// SPDX-License-Identifier: Apache-2.0
#include "model/weights/plan/tensor_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/repack.h"
#include "tensor/dtype.h"

namespace foretoken::model {
namespace {

std::size_t PlacedBytes(const MatrixJob& job) {
  return (TiledBytes(job) + 63) / 64 * 64;
}

// Routers and small matrices stay as they are in a copy: they take little memory, and errors there cost most.
bool MayConvert(const formats::TensorView& tensor) {
  constexpr std::int64_t kSmall = 64;
  return tensor.shape[1] >= kSmall && tensor.name.find("ffn_gate_inp") == std::string::npos;
}

}  // namespace

Result<const formats::TensorView*> TensorPlan::Find(const std::string& name, int k, int n_out,
                                                    int n_parts) const {
  const formats::TensorView* t = checkpoint_.Find(name);
  if (t == nullptr)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("tensor {}: missing; this is not a complete model file", name));
  if (t->shape != std::array<std::int64_t, 4>{k, n_out, std::max(n_parts, 1), 1})
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("tensor {}: its shape is [{}], the metadata ask for [{}, {}{}]", name,
                            fmt::join(t->shape.begin(), t->shape.begin() + t->n_dims, ", "), k,
                            n_out, n_parts == 0 ? "" : fmt::format(", {}", n_parts)));
  if (tensor::FindDType(t->ggml_type) == nullptr)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("tensor {}: type {} is not supported; convert the file to F16, BF16, "
                            "Q8_0, Q4_0 to Q5_1 or Q4_K to Q6_K",
                            name, tensor::GgmlTypeName(t->ggml_type)));
  return t;
}

Status TensorPlan::Vector(const std::string& name, int n, const float*& out, int n_rows) {
  FORETOKEN_TRY(const formats::TensorView* t, Find(name, n, n_rows));
  out = Values(*t, n, n_rows);
  return {};
}

const float* TensorPlan::Values(const formats::TensorView& t, int n, int n_rows) {
  const auto size = static_cast<std::size_t>(n);
  auto& values = vectors_.emplace_back(size * static_cast<std::size_t>(n_rows));
  for (int row = 0; row < n_rows; ++row)
    tensor::Dequantize(tensor::FindDType(t.ggml_type)->type, t.Row(row), n,
                       values.data() + size * static_cast<std::size_t>(row));
  return values.data();
}

Status TensorPlan::Bias(const std::string& name, int n, bool needed, const float*& out) {
  if (!needed && checkpoint_.Find(name) == nullptr) return {};
  return Vector(name, n, out);
}

Status TensorPlan::Norm(const std::string& prefix, std::string_view name, int n,
                        const float*& out) {
  if (name.empty()) return {};
  return Vector(fmt::format("{}{}.weight", prefix, name), n, out);
}

const float* TensorPlan::Constants(int n, float value) {
  return vectors_.emplace_back(static_cast<std::size_t>(n), value).data();
}

Status TensorPlan::Matrix(const std::string& name, int n_out, int k, Linear& out) {
  return Rows({name, n_out}, 0, {0, n_out}, k, out);
}

Status TensorPlan::Divided(const std::string& name, int n_out, int k, Linear& out) {
  return Rows({name, n_out}, 0, Own(n_out), k, out);
}

Status TensorPlan::Rows(const RowsTensor& tensor, int first, OutputRange own, int k, Linear& out) {
  FORETOKEN_TRY(const formats::TensorView* t, Find(tensor.name, k, tensor.n_rows));
  PlaceRows(*t, tensor.n_rows, first, own, out);
  return {};
}

void TensorPlan::PlaceRows(const formats::TensorView& t, int part_rows, int first, OutputRange own,
                           Linear& out, bool beside) {
  out.type = tensor::FindDType(t.ggml_type)->tile;
  out.k = static_cast<int>(t.shape[0]);
  own.begin = own.begin / tensor::kTileOutputs * tensor::kTileOutputs;
  out.first_tile = own.begin / tensor::kTileOutputs;
  if (own.n() == 0) {
    out.type = SharedType(t);
    return;
  }
  jobs_.push_back({.tensor = &t,
                   .linear = &out,
                   .offset = 0,
                   .part_rows = part_rows,
                   .first_row = first + own.begin,
                   .beside = beside});
  Place(jobs_.back(), own.n());
}

void TensorPlan::SomeRows(const formats::TensorView& tensor, std::span<const std::int32_t> rows,
                          Linear& out, std::vector<std::int32_t>& kept, bool beside) {
  FORETOKEN_CHECK(rows.front() >= 0 && rows.back() < tensor.shape[1]);
  FORETOKEN_CHECK(!beside || IsConverted(tensor));
  kept.assign(rows.begin(), rows.end());
  const OutputRange own = Own(static_cast<int>(rows.size()));
  PlaceRows(tensor, static_cast<int>(tensor.shape[1]), 0, own, out, beside);
  if (own.n() == 0) return;
  jobs_.back().rows =
      rows.subspan(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.n()));
  jobs_.back().of_target = checkpoint_.Find(tensor.name) != &tensor;
}

Status TensorPlan::EverySecond(const RowsTensor& tensor, int group, int first, OutputRange own,
                               int k, Linear& out) {
  FORETOKEN_CHECK_OK(Rows(tensor, 0, own, k, out));
  if (own.n() == 0) return {};
  std::vector<std::int32_t>& rows = row_lists_.emplace_back();
  for (int i = out.first_tile * tensor::kTileOutputs; i < own.end; ++i)
    rows.push_back(i / group * 2 * group + first + i % group);
  jobs_.back().rows = rows;
  return {};
}

Status TensorPlan::Experts(const std::string& name, int n_experts, MatrixShape shape,
                           ExpertLinear& out, int part_rows, int first_row) {
  return Parts({name, n_experts, part_rows, {0, n_experts}, Own(shape.n_out), first_row}, shape.k,
               out);
}

Status TensorPlan::Parts(const PartsTensor& tensor, int k, ExpertLinear& out) {
  const OutputRange own = tensor.outputs;
  FORETOKEN_TRY(const formats::TensorView* t,
                Find(tensor.name, k, tensor.part_rows, tensor.n_parts));
  out.first.type = tensor::FindDType(t->ggml_type)->tile;
  out.first.k = k;
  out.first.first_tile = own.begin / tensor::kTileOutputs;
  if (own.n() == 0 || tensor.parts.n() == 0) {
    out.first.type = SharedType(*t);
    return {};
  }
  jobs_.push_back({.tensor = t,
                   .linear = &out.first,
                   .offset = 0,
                   .first_part = tensor.parts.begin,
                   .n_parts = tensor.parts.n(),
                   .part_rows = tensor.part_rows,
                   .first_row = tensor.first_row + own.begin});
  Place(jobs_.back(), own.n());
  out.expert_bytes = kernels::TiledBytes(out.first.type, own.n(), k);
  return {};
}

OutputRange TensorPlan::Own(int n_out) const {
  return division_.Own(n_out, tensor::kBlock);
}

void TensorPlan::Place(MatrixJob& job, int n_out) {
  Linear& linear = *job.linear;
  linear.n_out = n_out;
  linear.n_tiles = kernels::TilesFor(n_out);
  if (copy_) return PlaceInCopy(job);
  job.offset = tile_bytes_;
  tile_bytes_ += PlacedBytes(job);
}

CopySize TensorPlan::copy_size() const {
  std::size_t beside = 0, whole = 0;  // the reduced output, and the one that it stands for
  for (const MatrixJob& job : jobs_) {
    if (!job.beside) continue;
    beside += PlacedBytes(job);
    for (const MatrixJob& other : jobs_)
      if (other.tensor == job.tensor && !other.beside) whole += PlacedBytes(other);
  }
  const std::size_t read = tile_bytes_ - beside + network_bytes_ - replaced_bytes_;
  return {.own = static_cast<std::int64_t>(tile_bytes_),
          .read = static_cast<std::int64_t>(read),
          .reduced = beside > 0 ? static_cast<std::int64_t>(read - whole + beside) : 0,
          .network = static_cast<std::int64_t>(network_bytes_),
          .bits = copied_numbers_ > 0 ? copied_bits_ / copied_numbers_ : 0};
}

std::optional<tensor::DType> TensorPlan::TypeOfCopy(const formats::TensorView& tensor) const {
  if (!MayConvert(tensor)) return std::nullopt;
  return TypeInCopy(copy_->TypeOf(tensor.name, last_layer_),
                    tensor::FindDType(tensor.ggml_type)->tile, static_cast<int>(tensor.shape[0]));
}

tensor::TileType TensorPlan::SharedType(const formats::TensorView& tensor) const {
  const auto copied = copy_ ? TypeOfCopy(tensor) : std::nullopt;
  return copied ? tensor::InfoOf(*copied).tile : tensor::FindDType(tensor.ggml_type)->tile;
}

bool TensorPlan::IsConverted(const formats::TensorView& tensor) const {
  return TypeOfCopy(tensor).has_value();
}

// The jobs of a copy are those of its network, in the same order, and those that it has beside them.
void TensorPlan::PlaceInCopy(MatrixJob& job) {
  Linear& linear = *job.linear;
  if (!job.beside) {
    job.offset = network_bytes_;
    network_bytes_ += PlacedBytes(job);
  }
  if (!job.columns) job.as = TypeOfCopy(*job.tensor);
  if (!job.as) return;
  if (!job.beside) replaced_bytes_ += PlacedBytes(job);
  const tensor::DTypeInfo& info = tensor::InfoOf(*job.as);
  linear.type = info.tile;
  job.offset = tile_bytes_;
  tile_bytes_ += PlacedBytes(job);
  const double numbers = double{1} * job.n_parts * linear.n_out * linear.k;
  copied_numbers_ += numbers;
  copied_bits_ += numbers * 8 * info.block_bytes / info.block_values;
}

}  // namespace foretoken::model
