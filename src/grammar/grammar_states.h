// SPDX-License-Identifier: Apache-2.0
// grammar/grammar_states.h: the states of a grammar's texts, found when they are needed.
//
// A grammar (grammar/gbnf.h) is a machine that reads bytes and has a stack. After a text it may be
// in several situations at once, each a step of the program and a stack. The set of these
// situations is the text's state. States are numbered, and kept with the state that each byte leads
// to.
//
// The cost of a client's grammar is bounded: the situations of one state, the bytes of all states,
// and the work of an operation. Work is counted, not timed, so the same operation with the same
// known states always costs the same.
//
// One thread at a time. Memory: exactly bytes(), plus what the operating system adds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/index_table.h"
#include "grammar/grammar_program.h"

namespace foretoken::grammar {

// Why an operation on a grammar has no result.
enum class GrammarFailure : std::uint8_t {
  kNone,
  kAmbiguous,    // a state has more than kMaxSituations situations, or kMaxVisits on the way to it
  kStepWork,     // one operation took more than kMaxStepWork
  kRequestWork,  // those of one text took more than GrammarWalk::kMaxWork and kMaxWorkPerToken
  kStateBytes,   // the states take more than kMaxStateBytes
  kForgotten,    // the state was forgotten to make room
  kNoMemory,     // an allocation failed
  kCancelled,    // a CancellationScope of the thread ended it
};

class GrammarStates {
 public:
  // A step and a stack as one number.
  using Situation = std::uint64_t;
  using State = std::int32_t;
  // No text can follow: it has ended, or is not allowed.
  static constexpr State kOver = 0;
  static constexpr State kNone = -1;  // it is not known, or could not be found

  static constexpr std::size_t kMaxSituations = std::size_t{1} << 14;
  // Situations that were visited on the way from one state to the next.
  static constexpr std::size_t kMaxVisits = std::size_t{1} << 17;
  static constexpr std::size_t kMaxStateBytes = std::size_t{16} << 20;
  static constexpr std::int64_t kMaxStepWork = std::int64_t{1} << 20;

  explicit GrammarStates(GrammarProgram program);

  // Begins an operation: its work is counted from 0, and its failure is reset.
  void BeginOperation() { work_ = 0, failure_ = GrammarFailure::kNone; }
  std::int64_t work() const { return work_; }
  // The reason for the first kNone of this operation.
  GrammarFailure failure() const { return failure_; }

  // kNone if it failed.
  State Start();
  State Next(State state, std::uint8_t byte);
  // Whether the text may end here; always true at kOver.
  bool CanEnd(State state) const { return facts_[static_cast<std::size_t>(state)].can_end; }
  // Whether nothing but the text's end can follow.
  bool OnlyEnds(State state) const;
  // The byte that must come next, if there is only one.
  std::optional<std::uint8_t> OnlyByte(State state) const;

  std::size_t size() const { return facts_.size(); }
  std::size_t bytes() const;
  // Forgets all states and releases their memory. The program stays.
  void Clear() noexcept;

 private:
  struct Stack {
    std::int32_t step, rest;
  };
  struct Facts {
    std::uint64_t hash = 0;
    std::uint32_t begin = 0, end = 0;  // of situations_
    bool can_end = false;
  };
  struct Visit {
    Situation situation = 0;
    std::uint32_t round = 0;
  };
  void FindByteClasses();
  std::span<const Situation> SituationsOf(State state) const;
  const GrammarStep& StepAt(Situation situation) const;
  State Fail(GrammarFailure why);
  State Read(State state, std::uint8_t byte);
  void BeginVisits();
  void Enter(std::int32_t step, std::int32_t stack);
  void GrowVisited();
  State Close();
  void Follow(Situation here);
  std::int32_t Push(std::int32_t step, std::int32_t stack);
  State Intern();

  const GrammarProgram program_;
  std::array<std::uint8_t, 256> class_of_ = {};  // bytes that every step treats alike share a class
  std::size_t n_classes_ = 1;

  std::vector<Stack> stacks_;  // 0 is empty; others are a step to return to on top of another stack
  IndexTable stack_of_;
  std::vector<Facts> facts_;           // [states]
  std::vector<Situation> situations_;  // of all states; ascending in each; all before a kByte
  IndexTable state_of_;
  std::vector<State> next_;  // [states, classes]
  State start_ = kNone;

  // For the state that is being found.
  std::vector<Situation> work_list_, found_;
  std::vector<Visit> visited_;  // a hash table of this round's situations
  std::size_t n_visited_ = 0;
  std::uint32_t round_ = 0;
  bool can_end_ = false;

  std::int64_t work_ = 0;
  GrammarFailure failure_ = GrammarFailure::kNone;
};

}  // namespace foretoken::grammar
