// SPDX-License-Identifier: Apache-2.0
// model/ranks/choices.h: the tokens that rows of logits choose, where each rank has some columns.
//
// The best token takes one gather of 12 bytes a row and rank. A race takes three, of 12, 8 and 8
// bytes: the largest logit, the sum of the weights, and the winner of each rank. Rank 0 has the
// tokens. They are those of one process, to the bit (kernels/choice.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/blocks/gather.h"
#include "model/blocks/phase.h"

namespace foretoken::model {

class Choices final : public Block {
 public:
  // rows: the gather of whole rows. columns: [ranks + 1], the first column of each rank.
  Choices(const Workspace& space, const Activation& logits, const Gather& rows,
          std::vector<std::int32_t> columns);

  void AddPhases(std::vector<Phase>& phases) const override;

  // What the rows of the last pass chose, as PassResult::chosen. On rank 0 alone.
  std::span<const Token> Chosen(const Pass& pass) const noexcept;

 private:
  // The phases in order. What the threads find is combined by the first thread, which then shares it
  // with the other ranks.
  void FindBest(const Pass& pass, int thread) const noexcept;
  void ShareBest(const Pass& pass, int thread) const noexcept;
  void Weigh(const Pass& pass, int thread) const noexcept;
  void ShareSums(const Pass& pass, int thread) const noexcept;
  void RunRaces(const Pass& pass, int thread) const noexcept;
  void ShareWinners(const Pass& pass, int thread) const noexcept;

  kernels::Columns ColumnsOf(int thread) const noexcept;
  bool IsFinite(std::size_t row) const noexcept;
  template <typename Part>
  std::span<const Part> Exchange(std::span<const Part> own, bool to_all) const noexcept;

  const Workspace space_;
  const Activation logits_;
  const Gather& rows_;
  const std::vector<std::int32_t> columns_;
};

}  // namespace foretoken::model
