// SPDX-License-Identifier: Apache-2.0
// calibrate/pass_meter.h: times passes of a model after a context that was never computed. A pass
// costs the same whatever values the cache has, so positions are only reserved and committed.
//
// Uses sequence 0 of a cache without running sequences, and leaves the cache empty.
#pragma once

#include <vector>

#include "calibrate/subject.h"

namespace foretoken::calibrate {

class PassMeter {
 public:
  // widest_context: the largest that will be used. Its memory is written once, because pages that
  // nobody wrote are read faster than memory.
  PassMeter(const Subject& subject, int widest_context);
  ~PassMeter();
  PassMeter(const PassMeter&) = delete;
  PassMeter& operator=(const PassMeter&) = delete;

  // Microseconds of a pass of `rows` rows that follow `context` positions, all rows with logits or
  // only the last. REQUIRES: they fit the model and the cache.
  double Microseconds(int rows, int context, bool all_logits) noexcept;
  // From now on all rows of a pass have the same token, so that they use the same experts. Before
  // that their tokens are random, as those of a text.
  void RepeatOneToken() noexcept;
  // From now on result() has whole rows of logits. Before that passes choose the best token of each
  // row where the runner does that for less, as it does for most requests.
  void KeepRowsWhole() noexcept { choices_.clear(); }
  // The result of the last pass. REQUIRES: there was one, and the runner has run no other since.
  const model::PassResult& result() const { return *result_; }
  // Passes that a call of Microseconds runs. Small models first run one more, to fill the caches.
  int passes_per_reading() const { return warms_up_ ? 2 : 1; }

 private:
  void Hold(int positions) noexcept;
  int PassesToSettle(int rows) const noexcept;

  const MicrosecondClock& now_;
  model::Runner& runner_;
  kv::BlockTables& cache_;
  const model::PassResult* result_ = nullptr;
  std::vector<Token> tokens_;
  std::vector<int> logit_rows_;
  std::vector<kernels::Choice> choices_;  // of each row; empty: rows are whole
  // A model that fits into the CPU's caches is timed there, in a second pass, because something
  // else may have replaced it.
  const bool warms_up_;
  int last_rows_ = 0;
};

}  // namespace foretoken::calibrate
