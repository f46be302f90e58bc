// SPDX-License-Identifier: Apache-2.0
// trace/run_recorder.h: writes the trace of a run (foretoken/tools/replay.h): a line of JSON for the
// run, each request and each request's part of a pass.
//
// For each pass call ReadDistributions for every decoding sequence before its verdict, Add for every
// sequence after it, and EndPass. Nothing is formatted before EndPass, so times taken until Add
// contain no work of the recorder. ReadDistributions computes distributions, and must not be part of these
// times. Only Create and Begin allocate. One thread at a time.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/output_file.h"
#include "foretoken/drafts.h"
#include "foretoken/tools/measure.h"
#include "foretoken/tools/replay.h"
#include "round/proposal.h"
#include "round/verdict.h"
#include "sampling/sampler.h"
#include "verify/verifier.h"

namespace foretoken::trace {

// The pass as a whole.
struct RecordedPass {
  int rows = 0;
  double draft_us = 0, verify_us = 0;
};

// A sequence's part in it. TracedRound has the meaning.
struct RecordedRound {
  SeqId seq = 0;
  bool prefill = false;
  int fed = 0, position = 0, context = 0, asked = 0;
  bool instant = false, at_once = false;
  int evidence = 0;
  std::string_view drafter;                 // lives until EndPass
  std::span<const Token> drafts;            // likewise
  const round::Verdict* verdict = nullptr;  // null during the prefill
  int committed = 0;
  double rest_us = 0;
  const char* end = "";  // lives on
};

class RunRecorder {
 public:
  // Errors: kInvalidArgument if `path` is a file that is not a trace; kIo.
  [[nodiscard]] static Result<std::unique_ptr<RunRecorder>> Create(const std::string& path,
                                                                   const TraceHeader& header);
  ~RunRecorder();

  // A request gets a sequence.
  void Begin(SeqId seq, const TracedRequest& request) noexcept;
  // logits: [drafts + 1 rows]; sampler: as found on return; scratch: [vocabulary].
  void ReadDistributions(SeqId seq, const round::Proposal& proposal, verify::LogitsView logits,
                         sampling::Sampler& sampler, float* scratch) noexcept;
  void Add(const RecordedRound& round) noexcept;
  void EndPass(const RecordedPass& pass) noexcept;
  void AddCosts(std::span<const PassCost> costs);

  // Makes what was recorded visible under the path; call it while no request runs. After a failure
  // nothing more is written, the file is as the last Publish left it, and every call returns the
  // first error.
  [[nodiscard]] const Status& Publish() noexcept;
  const Status& status() const { return status_; }

 private:
  struct Distributions {
    std::array<float, kMaxDraft> q, p;
  };
  struct Slot {  // of a sequence
    int request = 0;
    Distributions distributions;
  };

  explicit RunRecorder(OutputFile file) : file_(std::move(file)) {}
  Slot& SlotOf(SeqId seq);
  void WriteRequest(SeqId seq, const TracedRequest& request);
  void WritePass(const RecordedPass& pass);
  void Write(const RecordedPass& pass, const RecordedRound& round, int others);
  void Flush();
  template <typename Call>
  void Try(Call&& write) noexcept;

  OutputFile file_;
  std::string lines_;
  std::vector<std::unique_ptr<Slot>> slots_;  // by sequence
  std::vector<RecordedRound> rounds_;         // of the running pass
  int requests_ = 0;
  std::int64_t n_lines_ = 0;  // that are no longer in lines_
  long long passes_ = 0;
  Status status_;
};

}  // namespace foretoken::trace
