// SPDX-License-Identifier: Apache-2.0
// draft/sequence_lease.h: which sequences of a program's drafter are in use, so that two sessions do
// not draft each other's text. Any thread.
#pragma once

#include <memory>
#include <utility>

#include "foretoken/drafter.h"
#include "foretoken/result.h"

namespace foretoken::draft {

// The right to use one sequence of a drafter, or all of them, until it is destroyed.
class SequenceLease {
 public:
  SequenceLease() = default;
  SequenceLease(SequenceLease&& other) noexcept { *this = std::move(other); }
  SequenceLease& operator=(SequenceLease&& other) noexcept;
  ~SequenceLease();

  // The lowest sequence that is free. Errors: kInvalidArgument (none is).
  [[nodiscard]] static Result<SequenceLease> One(std::shared_ptr<foretoken::Drafter> drafter);
  // All of them, for an engine. Errors: kInvalidArgument (some are in use).
  [[nodiscard]] static Result<SequenceLease> All(std::shared_ptr<foretoken::Drafter> drafter);

  bool held() const { return drafter_ != nullptr; }
  int sequence() const { return sequence_; }  // 0 if all are leased, or none

 private:
  SequenceLease(std::shared_ptr<foretoken::Drafter> drafter, int sequence, bool all)
      : drafter_(std::move(drafter)), sequence_(sequence), all_(all) {}

  std::shared_ptr<foretoken::Drafter> drafter_;
  int sequence_ = 0;
  bool all_ = false;
};

}  // namespace foretoken::draft
