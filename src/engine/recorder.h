// SPDX-License-Identifier: Apache-2.0
// engine/recorder.h: writes the engine's passes to its trace (trace/run_recorder.h), if it has one.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/aligned_buffer.h"
#include "engine/requests/sequence.h"
#include "engine/step/pass_record.h"
#include "foretoken/engine.h"
#include "foretoken/options.h"
#include "loader/drafts/drafter_set.h"
#include "trace/run_recorder.h"

namespace foretoken::engine {

class Recorder {
 public:
  // The references must outlive it.
  Recorder(const EngineOptions& options, const loader::DrafterSet& drafters)
      : options_(options), drafters_(drafters) {}

  // Creates the file options.record, if that is set. Errors: kInvalidArgument if the path is a file
  // that is not a trace; kIo.
  [[nodiscard]] Status Open(const EngineSummary& summary, int vocabulary);
  bool records() const { return recorder_ != nullptr; }
  Status status() const { return recorder_ ? recorder_->status() : Status(); }
  void AddCosts(std::span<const PassCost> costs) {
    if (recorder_) recorder_->AddCosts(costs);
  }

  // Call it when a request becomes a sequence. controller: chooses its draft lengths.
  void Begin(SeqId seq, const Sequence& s, const std::string& controller);
  // Call it before the pass is verified, while samplers stand behind the newest committed token.
  void ReadDistributions(const PassPlan& plan, const Proposals& drafts, const FlatPass& pass,
                         const model::PassResult& result, const Sequences& sequences) noexcept;
  // Call it after everything that is timed, and before the ended sequences are removed.
  void Add(const PassRecord& record, const PassTimes& times) noexcept;
  // Call it when nothing runs. An error is reported the first time only.
  [[nodiscard]] Status Publish() noexcept;

 private:
  const EngineOptions& options_;
  const loader::DrafterSet& drafters_;
  std::unique_ptr<trace::RunRecorder> recorder_;  // null: nothing is recorded
  AlignedBuffer<float> scratch_;                  // [2, vocabulary]
};

}  // namespace foretoken::engine
