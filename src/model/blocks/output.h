// SPDX-License-Identifier: Apache-2.0
// model/blocks/output.h: logits = logit_scale * (Woutput norm(x)), then capped where the network asks
// for that, for the rows that ask for them. Of several ranks each computes some columns, and rank 0
// alone gets whole rows and the tokens that rows choose.
#pragma once

#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/config.h"
#include "model/ranks/choices.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class Output final : public Block {
 public:
  // kReduced: serves the passes that ask for reduced logits; kWhole: the others.
  enum class Kind { kWhole, kReduced };
  // The output of a whole network, which reads the residual stream.
  Output(const Workspace& space, const ModelConfig& config, const Weights& weights,
         Kind kind = Kind::kWhole);

  struct Head {
    const Linear& w;
    const float* norm;  // null: the input is not normed
    Activation input;
    float scale = 1, soft_cap = 0;
    Kind kind = Kind::kWhole;
  };
  // Another one, with as many columns.
  Output(const Workspace& space, const ModelConfig& config, const Weights& weights,
         const Head& head);

  void AddPhases(std::vector<Phase>& phases) const override;

  // Results of the last pass; i is a row of logits. team: how many threads took part.
  bool Finite(int i, int team) const noexcept;
  const Activation& logits() const noexcept { return logits_; }
  int n_columns() const noexcept {
    return columns_.back();
  }  // of the logits, on all ranks together
  // As of PassResult.
  std::span<const Token> Chosen(const Pass& pass) const noexcept {
    return space_.ranks.alone() ? std::span<const Token>() : choices_.Chosen(pass);
  }
  // The normed rows that the logits were computed from.
  const Activation& last() const noexcept { return last_; }

 private:
  void Norm(const Pass& pass, int thread) const noexcept;
  void Multiply(const Pass& pass, int thread) const noexcept;
  // Takes the rows that are wanted whole to rank 0, and looks there for logits of other ranks that
  // are not finite.
  void GatherWhole(const Pass& pass, int thread) const noexcept;
  void CheckOthers(const Pass& pass, int thread) const noexcept;

  const Workspace space_;
  const Head head_;
  const float norm_eps_;
  const bool quantise_;  // the normed rows, for a matrix that reads them so
  const Activation last_, logits_;
  // Where there are several ranks:
  const std::vector<std::int32_t> columns_;  // the first column of each rank, and the end
  const Gather gather_logits_;
  const Choices choices_;
};

}  // namespace foretoken::model
