// SPDX-License-Identifier: Apache-2.0
// calibrate/draft_meter.h: times a drafter through its own interface, as the engine calls it. So
// any drafter can be measured, with everything that it does besides its passes.
//
// A drafter really reads its context. The drafter must have no running sequences, and has none
// afterwards.
#pragma once

#include <vector>

#include "base/aligned_buffer.h"
#include "base/stopwatch.h"
#include "draft/drafter.h"
#include "kv/block_tables.h"

namespace foretoken::calibrate {

struct DraftSetting {
  int n_sequences = 1;              // that the drafter has room for
  int context_size = 0;             // positions of a sequence at most
  int drafts = 1;                   // of one proposal
  std::int64_t features_width = 0;  // of the target's features; 0: it needs none
  // The target's, which the drafter reads: the meter gives it the positions that the target would have
  // processed. Null: the drafter reads none.
  kv::BlockTables* target_cache = nullptr;
  SamplingParameters sampling;
  MicrosecondClock now = NowMicroseconds;
};

class DraftMeter {
 public:
  // Starts all sequences, each with `context` positions that the target has processed (at least
  // one). rounds: how many will be measured.
  DraftMeter(draft::Drafter& drafter, const DraftSetting& setting, int context, int rounds);
  ~DraftMeter();
  DraftMeter(const DraftMeter&) = delete;
  DraftMeter& operator=(const DraftMeter&) = delete;

  // Begins all sequences anew, whose contexts the drafter then reads again. The first reading of a model waited
  // for the file and for memory, so RowMicroseconds tells of this one alone.
  void ReadAgain();

  // Microseconds of one more draft for the first `rows` sequences together: the mean over a round
  // of the setting's drafts, all of which are rejected. Of a drafter that drafts at once: of the whole
  // proposal. Negative if a proposal was cut short, so that the round cannot be used.
  double Microseconds(int rows) noexcept {
    return RoundMicroseconds(rows, setting_.drafts) / PassesOf(setting_.drafts);
  }
  // Microseconds of a whole round with so many drafts, at most the setting's.
  double RoundMicroseconds(int rows, int drafts) noexcept;

  // Microseconds of a row that the drafter's model read before it drafted, the mean since the contexts were
  // last begun; 0: none was reported.
  double RowMicroseconds() const { return read_rows_ == 0 ? 0 : 1000 * read_ms_ / read_rows_; }

 private:
  void Start(SeqId seq);
  void Stop(SeqId seq) noexcept;
  void Observe(SeqId seq, int n_features, bool commits) noexcept;
  void Hold(SeqId seq, int n_rows) noexcept;
  int PassesOf(int drafts) const { return drafter_.DraftsAtOnce() ? 1 : drafts; }

  draft::Drafter& drafter_;
  const DraftSetting& setting_;
  const int context_, rounds_;
  AlignedBuffer<float> features_;  // of kFeatureRows positions
  std::vector<int> processed_;     // [sequences]: positions that the target has processed
  std::vector<draft::Ask> asks_;
  std::vector<round::Proposal> proposals_;
  std::vector<int> last_drafted_;
  int read_rows_ = 0;
  double read_ms_ = 0;
};

}  // namespace foretoken::calibrate
