// SPDX-License-Identifier: Apache-2.0
// engine/recorder.h: tells the trace what the engine does (trace/run_recorder.h). Does nothing
// where nothing is recorded.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/aligned_buffer.h"
#include "engine/requests/drafter_set.h"
#include "engine/requests/sequence.h"
#include "engine/step/pass_record.h"
#include "foretoken/engine.h"
#include "foretoken/options.h"
#include "trace/run_recorder.h"

namespace foretoken::engine {

class Recorder {
 public:
  // The references must outlive it.
  Recorder(const EngineOptions& options, const DrafterSet& drafters)
      : options_(options), drafters_(drafters) {}

  // Begins the file of options.record, if there is one. Errors: kInvalidArgument where it is no
  // trace, kIo.
  [[nodiscard]] Status Open(const EngineSummary& summary, int vocabulary);
  bool records() const { return recorder_ != nullptr; }
  Status status() const { return recorder_ ? recorder_->status() : Status(); }
  void AddCosts(std::span<const PassCost> costs) {
    if (recorder_) recorder_->AddCosts(costs);
  }

  // A request has become a sequence; controller: of its draft lengths.
  void Begin(SeqId seq, const Sequence& s, const std::string& controller);
  // Before the pass is verified: a sampler is then behind the newest committed token.
  void ReadDistributions(const PassPlan& plan, const Proposals& drafts, const FlatPass& pass,
                         const model::PassResult& result, const Sequences& sequences) noexcept;
  // After all that is timed, before sequences that ended go.
  void Add(const PassRecord& record, const PassTimes& times) noexcept;
  // When nothing runs. The error of the first time that the trace cannot be written.
  [[nodiscard]] Status Publish() noexcept;

 private:
  const EngineOptions& options_;
  const DrafterSet& drafters_;
  std::unique_ptr<trace::RunRecorder> recorder_;  // null: nothing is recorded
  AlignedBuffer<float> scratch_;                  // [2, vocabulary]
};

}  // namespace foretoken::engine
