// SPDX-License-Identifier: Apache-2.0
// model/blocks/gather.h: brings the columns that other ranks have computed.
//
// Each rank computes some columns of an activation. A gather takes them to all ranks or to rank 0: the int8 form
// where only quantised products read them, otherwise the numbers in f32.
#pragma once

#include <cstdint>
#include <vector>

#include "model/blocks/phase.h"
#include "tensor/block_layout.h"

namespace foretoken::model {

enum class GatheredForm { kFloat, kInt8 };

// The rows of an activation that a pass writes: `each` for each row of the pass. wanted: the passes
// that write it; null: all do.
struct GatheredRows {
  int each = 1;
  bool (*wanted)(const Pass& pass) = nullptr;
};

// The first column of each rank, and the end: columns divided in units of whole int8 blocks.
std::vector<std::int32_t> ColumnsByRank(const Division& division, int width,
                                        int unit = tensor::kBlock);

// The form that a product with w reads.
inline GatheredForm FormFor(const Linear& w) {
  return w.quantised() ? GatheredForm::kInt8 : GatheredForm::kFloat;
}

class Gather final : public Block {
 public:
  // begins: [ranks + 1], the first column of each rank. In int8 form they are multiples of 32. The
  // activation's memory must outlive the block.
  Gather(const Workspace& space, const Activation& a, GatheredForm form,
         std::vector<std::int32_t> begins, GatheredRows rows = {});

  // Nothing where there is one rank.
  void AddPhases(std::vector<Phase>& phases) const override;

  // For blocks that call it in a phase of their own, on one thread: takes some rows to rank 0 alone.
  // False: a rank is lost.
  bool ToLead(int row, int n_rows) const noexcept { return Collect(row, n_rows, false); }

 private:
  void Run(const Pass& pass, int thread) const noexcept;
  bool Collect(int row, int n_rows, bool to_all) const noexcept;
  bool CollectPart(const Activation& a, int n_rows, bool to_all) const noexcept;
  // The bytes of a row's message that lie before the part of a rank.
  std::int64_t BytesBefore(std::size_t rank) const noexcept;
  // Copies columns between the activation and a rank's part of the message.
  template <bool kPack>
  void Copy(const Activation& a, std::size_t rank, int n_rows, std::byte* part) const noexcept;

  const Workspace space_;
  const Activation a_;
  const GatheredForm form_;
  const std::vector<std::int32_t> begins_;
  const GatheredRows rows_;
};

}  // namespace foretoken::model
