// SPDX-License-Identifier: Apache-2.0
// sampling/grammar_states.h: the states of a grammar's texts, found as they are needed.
//
// A grammar (sampling/gbnf.h) is a machine that reads bytes and has a stack. After a text it may be
// in several situations at once: a step of the program and a stack each. Their set is the text's
// state. States are numbered, and kept with the state that each byte leads to.
//
// What a client's grammar can cost is bounded: the situations of one state, the bytes of all
// states, and the work that an operation does. Work is counted, not timed, so the same operation
// with the same states in memory always costs the same.
//
// One thread at a time. Memory: exactly bytes(), with what the operating system adds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sampling/grammar_program.h"
#include "sampling/index_table.h"

namespace foretoken::sampling {

// Why an operation on a grammar has no result.
enum class GrammarFailure : std::uint8_t {
  kNone,
  kAmbiguous,    // a state has more than kMaxSituations situations, or kMaxVisits on the way to it
  kStepWork,     // one operation took more than kMaxStepWork
  kRequestWork,  // those of one text took more than GrammarWalk::kMaxWork and kMaxWorkPerToken
  kStateBytes,   // the states take more than kMaxStateBytes
  kForgotten,    // the state was given up to make room
  kNoMemory,     // an allocation failed
};

class GrammarStates {
 public:
  // A step and a stack as one number.
  using Situation = std::uint64_t;
  using State = std::int32_t;
  static constexpr State kOver = 0;   // no text can follow: it has ended, or left the grammar
  static constexpr State kNone = -1;  // it is not known, or could not be found

  static constexpr std::size_t kMaxSituations = std::size_t{1} << 14;
  // Entered on the way from one state to the next.
  static constexpr std::size_t kMaxVisits = std::size_t{1} << 17;
  static constexpr std::size_t kMaxStateBytes = std::size_t{16} << 20;
  static constexpr std::int64_t kMaxStepWork = std::int64_t{1} << 20;

  explicit GrammarStates(GrammarProgram program);

  // Begins an operation: its work is counted from 0, and it may fail again.
  void BeginOperation() { work_ = 0, failure_ = GrammarFailure::kNone; }
  std::int64_t work() const { return work_; }
  // Of the first thing in this operation that gave kNone.
  GrammarFailure failure() const { return failure_; }

  // kNone: it failed.
  State Start();
  State Next(State state, std::uint8_t byte);
  // Whether the text may end here: so always at kOver.
  bool CanEnd(State state) const { return facts_[static_cast<std::size_t>(state)].can_end; }
  // Nothing but the text's end can follow.
  bool OnlyEnds(State state) const;
  // The one byte that must come next, where there is one.
  std::optional<std::uint8_t> OnlyByte(State state) const;

  std::size_t size() const { return facts_.size(); }
  std::size_t bytes() const;
  // Forgets all states and gives their memory back. The program stays.
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
  std::array<std::uint8_t, 256> class_of_ = {};  // bytes that no step tells apart share a class
  std::size_t n_classes_ = 1;

  std::vector<Stack> stacks_;  // 0 is empty; others are a step to return to on top of another stack
  IndexTable stack_of_;
  std::vector<Facts> facts_;           // [states]
  std::vector<Situation> situations_;  // of all states; ascending in each; all before a kByte
  IndexTable state_of_;
  std::vector<State> next_;  // [states, classes]
  State start_ = kNone;

  // Of the state that is being found.
  std::vector<Situation> work_list_, found_;
  std::vector<Visit> visited_;  // a hash table: those of this round
  std::size_t n_visited_ = 0;
  std::uint32_t round_ = 0;
  bool can_end_ = false;

  std::int64_t work_ = 0;
  GrammarFailure failure_ = GrammarFailure::kNone;
};

}  // namespace foretoken::sampling
