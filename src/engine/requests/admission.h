// SPDX-License-Identifier: Apache-2.0
// engine/requests/admission.h: the requests of an engine, from Begin to Take. They wait in order,
// become sequences and end.
//
// If memory runs out, the request that needed it ends with an error. The others continue.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/requests/job.h"
#include "engine/requests/salts.h"
#include "engine/requests/sequence.h"
#include "engine/requests/slot_texts.h"
#include "engine/requests/speculation_rules.h"
#include "foretoken/engine.h"
#include "kernels/kernels.h"
#include "kv/block_tables.h"
#include "loader/drafts/drafter_set.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::engine {

struct AdmissionSettings {
  int vocabulary = 0;
  int dim = 0;                                    // numbers of a hidden state
  int context = 0;                                // positions of a text
  std::vector<Token> end_tokens = {};             // of requests that do not ignore them
  const text::ThinkingMarks* thinking = nullptr;  // null: parts that think are as all others
};

class Admission {
 public:
  // Called when a request becomes a sequence; the draft-length controller and the trace begin with
  // it there. It may need memory.
  using OnAdmitted = std::function<void(SeqId seq, const Sequence& s)>;

  // All references must outlive it.
  Admission(AdmissionSettings settings, const EngineOptions& options,
            const text::Tokenizer& tokenizer, const kernels::Kernels& kernels,
            const SpeculationRules& rules, loader::DrafterSet& drafters, kv::BlockTables& cache,
            OnAdmitted on_admitted);

  // Adds a request that waits. Throws std::bad_alloc if there is no memory; nothing is added then.
  Ticket Add(PreparedRequest request, OnRound on_round, bool in_batch = false);

  // Ends cancelled requests. Gives free sequences to those that wait, oldest first, as long as
  // may_join agrees. Returns whether a running request ended.
  template <typename MayJoin>
  bool AdmitWaiting(MayJoin&& may_join) noexcept {
    const bool ended = EndCancelled();
    while (!waiting_.empty()) {
      const SeqId seq = FreeSequence(*waiting_.front());
      if (seq < 0 || !may_join(*waiting_.front())) break;
      AdmitFirst(seq);
    }
    return ended;
  }

  const Sequences& sequences() const { return sequences_; }
  int n_waiting() const { return static_cast<int>(waiting_.size()); }
  bool idle() const { return waiting_.empty() && sequences_.none(); }  // nothing waits or runs

  // Null if the ticket is unknown or the request does not run.
  const Sequence* SequenceOf(Ticket ticket) const noexcept;
  void Cancel(Ticket ticket) noexcept;
  void Pause(Ticket ticket, bool paused) noexcept;
  // The result, if the request has ended. The ticket is forgotten with it.
  std::optional<Completion> Take(Ticket ticket) noexcept;
  // Ends the request of a sequence and frees what it holds, also if it was admitted only in part.
  void Finish(Job& job, FinishReason reason) noexcept;
  // None where the options name no folder for them.
  SlotTexts& slots() { return slots_; }
  // The number of a salt, whose texts may come back from files from now on. Throws std::bad_alloc.
  SaltId NameSalt(const std::string& cache_salt);
  // Ends a request at once, as cancelled. Returns the id of its sequence; -1 if it had none or has
  // ended already.
  SeqId End(Ticket ticket) noexcept;
  template <typename Call>
  void ForEachUnended(Call&& call) noexcept {
    for (auto& [ticket, job] : jobs_)
      if (!job->completion) call(*job);
  }

 private:
  bool EndCancelled() noexcept;
  SeqId FreeSequence(const Job& job) const noexcept;
  bool Shares(const Job& job) const noexcept;
  void AdmitFirst(SeqId seq) noexcept;
  void Admit(Job& job, SeqId seq);
  void KeepSlot(const Sequence& s, int slot) noexcept;
  void BeginThinking(Sequence& s) const;
  void BeginEmbedding(Sequence& s) const;
  void BeginDrafters(Sequence& s, SeqId seq, std::span<const Token> end_tokens, int max_new);
  Job* Find(Ticket ticket) const noexcept;

  const AdmissionSettings settings_;
  const EngineOptions& options_;
  const text::Tokenizer& tokenizer_;
  const kernels::Kernels& kernels_;
  const SpeculationRules& rules_;
  loader::DrafterSet& drafters_;
  kv::BlockTables& cache_;
  const OnAdmitted on_admitted_;
  std::map<Ticket, std::unique_ptr<Job>> jobs_;  // from Add to Take
  std::deque<Job*> waiting_;                     // the part of jobs_ that waits for a sequence
  Ticket last_ticket_ = 0;
  Salts salts_;
  SlotTexts slots_;
  Sequences sequences_;
};

// Makes room to count rounds of up to n drafts.
void MakeRoomForCounts(SpeculationStats& stats, std::size_t n);

}  // namespace foretoken::engine
