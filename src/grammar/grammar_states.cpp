// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar_states.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/seeded_hash.h"
#include "base/work_count.h"
#include "grammar/list_memory.h"

namespace foretoken::grammar {
namespace {

using Situation = GrammarStates::Situation;

// Situations that led nowhere cost far less than one that is entered.
constexpr std::int64_t kScansPerWork = 16;

Situation MakeSituation(std::int32_t step, std::int32_t stack) {
  return static_cast<Situation>(static_cast<std::uint32_t>(step)) << 32 |
         static_cast<std::uint32_t>(stack);
}
std::int32_t StepOf(Situation s) {
  return static_cast<std::int32_t>(s >> 32);
}
std::int32_t StackOf(Situation s) {
  return static_cast<std::int32_t>(s & 0xffffffffu);
}

std::uint64_t HashOf(std::span<const Situation> situations, bool can_end) {
  return SeededHashOf(situations) + can_end;
}

// n copies of the value, in as little memory as possible; n = 0 keeps the list's own memory.
template <typename T>
void Reset(std::vector<T>& list, std::size_t n, const T& value) noexcept {
  list.clear();
  try {
    std::vector<T>(n, value).swap(list);
  } catch (const std::bad_alloc&) {
    list.assign(n, value);
  }
}

}  // namespace

GrammarStates::GrammarStates(GrammarProgram program) : program_(std::move(program)) {
  FindByteClasses();
  stacks_.reserve(1), facts_.reserve(1), next_.reserve(n_classes_);  // that Clear may count on
  Clear();
}

void GrammarStates::FindByteClasses() {
  std::array<bool, 257> begins = {};
  for (const GrammarStep& step : program_.steps) {
    if (step.kind != GrammarStep::Kind::kByte) continue;
    begins[step.low] = begins[step.high + std::size_t{1}] = true;
  }
  for (std::size_t byte = 1; byte < 256; ++byte)
    class_of_[byte] = static_cast<std::uint8_t>(class_of_[byte - 1] + (begins[byte] ? 1 : 0));
  n_classes_ = class_of_[255] + std::size_t{1};
}

void GrammarStates::Clear() noexcept {
  Reset(stacks_, 1, Stack{0, 0});
  stack_of_.Clear();
  Free(situations_);
  state_of_.Clear();
  Reset(facts_, 1, Facts{.can_end = true});
  Reset(next_, n_classes_, kOver);
  Free(work_list_), Free(found_), Free(visited_);
  n_visited_ = 0;
  start_ = kNone;
}

std::size_t GrammarStates::bytes() const {
  return BytesOf(program_.steps) + BytesOf(stacks_) + stack_of_.bytes() + BytesOf(facts_) +
         BytesOf(situations_) + state_of_.bytes() + BytesOf(next_) + BytesOf(work_list_) +
         BytesOf(found_) + BytesOf(visited_);
}

std::span<const Situation> GrammarStates::SituationsOf(State state) const {
  const Facts& facts = facts_[static_cast<std::size_t>(state)];
  return std::span(situations_).subspan(facts.begin, facts.end - facts.begin);
}

const GrammarStep& GrammarStates::StepAt(Situation situation) const {
  return program_.steps[static_cast<std::size_t>(StepOf(situation))];
}

GrammarStates::State GrammarStates::Fail(GrammarFailure why) {
  if (failure_ == GrammarFailure::kNone) failure_ = why;
  return kNone;
}

GrammarStates::State GrammarStates::Start() {
  if (start_ == kNone) {
    BeginVisits();
    Enter(program_.begin, 0);
    start_ = Close();
  }
  return start_;
}

GrammarStates::State GrammarStates::Next(State state, std::uint8_t byte) {
  const std::size_t entry = static_cast<std::size_t>(state) * n_classes_ + class_of_[byte];
  if (next_[entry] != kNone) return next_[entry];
  const State next = Read(state, byte);
  if (next != kNone) next_[entry] = next;
  return next;
}

GrammarStates::State GrammarStates::Read(State state, std::uint8_t byte) {
  BeginVisits();
  const std::span<const Situation> situations = SituationsOf(state);
  work_ += static_cast<std::int64_t>(situations.size()) / kScansPerWork;
  for (const Situation s : situations) {
    const GrammarStep& step = StepAt(s);
    if (step.low <= byte && byte <= step.high) Enter(step.next, StackOf(s));
  }
  return Close();
}

void GrammarStates::BeginVisits() {
  if (++round_ == 0) {  // round numbers wrap around
    Free(visited_);
    round_ = 1;
  }
  n_visited_ = 0;
  work_list_.clear(), found_.clear();
  can_end_ = false;
}

void GrammarStates::Enter(std::int32_t step, std::int32_t stack) {
  CountWork();
  if (2 * (n_visited_ + 1) > visited_.size()) GrowVisited();
  const Situation s = MakeSituation(step, stack);
  const std::size_t mask = visited_.size() - 1;
  std::size_t i = SeededHashOf(s) & mask;
  for (; visited_[i].round == round_; i = (i + 1) & mask)
    if (visited_[i].situation == s) return;
  visited_[i] = {s, round_};
  ++n_visited_;
  ++work_;
  work_list_.push_back(s);
}

void GrammarStates::GrowVisited() {
  constexpr std::size_t kLeast = 256;
  std::vector<Visit> old(visited_.empty() ? kLeast : 2 * visited_.size());
  old.swap(visited_);
  const std::size_t mask = visited_.size() - 1;
  for (const Visit& visit : old) {
    if (visit.round != round_) continue;
    std::size_t i = SeededHashOf(visit.situation) & mask;
    while (visited_[i].round == round_) i = (i + 1) & mask;
    visited_[i] = visit;
  }
}

// The state of the entered situations and all that they reach without a byte.
GrammarStates::State GrammarStates::Close() {
  while (!work_list_.empty()) {
    if (work_ > kMaxStepWork) return Fail(GrammarFailure::kStepWork);
    if (found_.size() > kMaxSituations || n_visited_ > kMaxVisits)
      return Fail(GrammarFailure::kAmbiguous);
    const Situation here = work_list_.back();
    work_list_.pop_back();
    Follow(here);
  }
  if (bytes() > kMaxStateBytes) return Fail(GrammarFailure::kStateBytes);
  if (found_.empty() && !can_end_) return kOver;
  std::sort(found_.begin(), found_.end());
  return Intern();
}

void GrammarStates::Follow(Situation here) {
  const GrammarStep& step = StepAt(here);
  const std::int32_t stack = StackOf(here);
  switch (step.kind) {
    case GrammarStep::Kind::kReturn:
      if (stack == 0) {
        can_end_ = true;
      } else {
        const Stack top = stacks_[static_cast<std::size_t>(stack)];
        Enter(top.step, top.rest);
      }
      return;
    case GrammarStep::Kind::kByte:
      found_.push_back(here);
      return;
    case GrammarStep::Kind::kSplit:
      Enter(step.other, stack);
      Enter(step.next, stack);
      return;
    case GrammarStep::Kind::kCall:
      Enter(step.other, step.next == 0 ? stack : Push(step.next, stack));
      return;
  }
}

std::int32_t GrammarStates::Push(std::int32_t step, std::int32_t stack) {
  const auto hash_of = [this](std::int32_t i) {
    const Stack& s = stacks_[static_cast<std::size_t>(i)];
    return SeededHashOf(MakeSituation(s.step, s.rest));
  };
  const std::uint64_t hash = SeededHashOf(MakeSituation(step, stack));
  const std::int32_t known = stack_of_.Find(hash, [&](std::int32_t i) {
    const Stack& s = stacks_[static_cast<std::size_t>(i)];
    return s.step == step && s.rest == stack;
  });
  if (known != IndexTable::kNone) return known;
  const auto added = static_cast<std::int32_t>(stacks_.size());
  stacks_.push_back({step, stack});
  stack_of_.Insert(hash, added, hash_of);
  return added;
}

// The number of the state with the situations in found_.
GrammarStates::State GrammarStates::Intern() {
  const std::uint64_t hash = HashOf(found_, can_end_);
  const State known = state_of_.Find(hash, [&](State state) {
    return CanEnd(state) == can_end_ && std::ranges::equal(SituationsOf(state), found_);
  });
  if (known != IndexTable::kNone) return known;
  const auto state = static_cast<State>(facts_.size());
  const auto begin = static_cast<std::uint32_t>(situations_.size());
  situations_.insert(situations_.end(), found_.begin(), found_.end());
  facts_.push_back({hash, begin, static_cast<std::uint32_t>(situations_.size()), can_end_});
  next_.resize(next_.size() + n_classes_, kNone);
  state_of_.Insert(hash, state,
                   [this](State s) { return facts_[static_cast<std::size_t>(s)].hash; });
  return state;
}

bool GrammarStates::OnlyEnds(State state) const {
  return CanEnd(state) && SituationsOf(state).empty();
}

std::optional<std::uint8_t> GrammarStates::OnlyByte(State state) const {
  const std::span<const Situation> situations = SituationsOf(state);
  if (CanEnd(state) || situations.empty()) return std::nullopt;
  const std::uint8_t byte = StepAt(situations[0]).low;
  for (const Situation s : situations)
    if (StepAt(s).low != byte || StepAt(s).high != byte) return std::nullopt;
  return byte;
}

}  // namespace foretoken::grammar
