// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/gather.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace foretoken::model {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);
// 32 values in int8 form: the integers, a scale, and two sums.
constexpr std::int64_t kBlockBytes = tensor::kBlock + sizeof(float) + 2 * sizeof(std::int32_t);

// Copies n values of each row between memory of a row stride and memory without gaps.
template <bool kPack, typename T>
std::byte* CopyRows(T* rows, std::int64_t stride, int n_rows, std::int64_t n, std::byte* part) {
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
  for (int row = 0; row < n_rows; ++row, part += bytes) {
    T* const at = rows + row * stride;
    if constexpr (kPack)
      std::memcpy(part, at, bytes);
    else
      std::memcpy(at, part, bytes);
  }
  return part;
}

}  // namespace

std::vector<std::int32_t> ColumnsByRank(const Division& division, int width, int unit) {
  std::vector<std::int32_t> begins;
  for (int r = 0; r < division.size(); ++r) begins.push_back(division.Of(r, width, unit).begin);
  begins.push_back(width);
  return begins;
}

Gather::Gather(const Workspace& space, const Activation& a, GatheredForm form,
               std::vector<std::int32_t> begins, GatheredRows rows)
    : space_(space), a_(a), form_(form), begins_(std::move(begins)), rows_(rows) {}

std::int64_t Gather::BytesBefore(std::size_t rank) const noexcept {
  const std::int64_t columns = begins_[rank];
  return form_ == GatheredForm::kFloat ? columns * kFloatBytes
                                       : columns / tensor::kBlock * kBlockBytes;
}

void Gather::AddPhases(std::vector<Phase>& phases) const {
  if (!space_.ranks.alone())
    phases.push_back(PhaseOf<&Gather::Run>(*this, Split::kOther, rows_.wanted));
}

void Gather::Run(const Pass& pass, int thread) const noexcept {
  if (thread == 0) Collect(0, rows_.each * pass.n_rows(), true);
}

// In parts of whole rows that fit the memory of messages.
bool Gather::Collect(int row, int n_rows, bool to_all) const noexcept {
  const int fit = static_cast<int>(kGatherBytes / (BytesBefore(begins_.size() - 1) + 1)) + 1;
  for (int done = 0; done < n_rows; done += fit)
    if (!CollectPart(a_.From(row + done), std::min(fit, n_rows - done), to_all)) return false;
  return true;
}

bool Gather::CollectPart(const Activation& a, int n_rows, bool to_all) const noexcept {
  const std::size_t n_ranks = begins_.size() - 1;
  std::int32_t* const at = space_.scratch.gather_begins.data();
  for (std::size_t r = 0; r <= n_ranks; ++r)
    at[r] = static_cast<std::int32_t>(n_rows * BytesBefore(r));
  FORETOKEN_CHECK(static_cast<std::size_t>(at[n_ranks]) <= space_.scratch.gathered.size_bytes());
  std::byte* const message = space_.scratch.gathered.data();
  const auto own = static_cast<std::size_t>(space_.ranks.rank());
  Copy<true>(a, own, n_rows, message + at[own]);
  const std::span<const std::int32_t> parts(at, n_ranks + 1);
  if (!(to_all ? space_.ranks.Gather(message, parts) : space_.ranks.GatherToLead(message, parts)))
    return false;
  for (std::size_t r = 0; (to_all || space_.ranks.leads()) && r < n_ranks; ++r)
    if (r != own) Copy<false>(a, r, n_rows, message + at[r]);
  return true;
}

template <bool kPack>
void Gather::Copy(const Activation& a, std::size_t rank, int n_rows,
                  std::byte* part) const noexcept {
  const std::int64_t begin = begins_[rank], n = begins_[rank + 1] - begin;
  if (form_ == GatheredForm::kFloat) {
    CopyRows<kPack>(a.x + begin, a.stride, n_rows, n, part);
    return;
  }
  const std::int64_t block = begin / tensor::kBlock, n_blocks = n / tensor::kBlock,
                     stride = a.width / tensor::kBlock;
  part = CopyRows<kPack>(a.q + begin, a.width, n_rows, n, part);
  part = CopyRows<kPack>(a.d + block, stride, n_rows, n_blocks, part);
  CopyRows<kPack>(a.s + 2 * block, 2 * stride, n_rows, 2 * n_blocks, part);
}

}  // namespace foretoken::model
