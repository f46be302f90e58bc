// SPDX-License-Identifier: Apache-2.0
#include "sampling/grammar.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sampling/grammar_program.h"

namespace foretoken::sampling {
namespace {

constexpr std::size_t kMaxVisits = std::size_t{1} << 16;  // of one closure
constexpr int kWordBits = 64;

// A step and a stack as one number.
using Situation = std::uint64_t;
Situation MakeSituation(int step, int stack) {
  return static_cast<Situation>(static_cast<std::uint32_t>(step)) << 32 |
         static_cast<std::uint32_t>(stack);
}
int StepOf(Situation s) {
  return static_cast<int>(s >> 32);
}
int StackOf(Situation s) {
  return static_cast<int>(s & 0xffffffffu);
}

struct HashOfSituations {
  std::size_t operator()(const std::vector<Situation>& situations) const {
    std::uint64_t hash = 0x9E3779B97F4A7C15u;
    for (const Situation s : situations) hash = (std::rotl(hash, 5) ^ s) * 0xD6E8FEB86659FD93u;
    return static_cast<std::size_t>(hash ^ hash >> 32);
  }
};

// -inf for the logits whose bit is 0. Copies or bans single ones, whichever are fewer.
void MaskWord(std::uint64_t allowed, float* logits, int n) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  if (n < kWordBits) allowed &= (std::uint64_t{1} << n) - 1;
  if (2 * std::popcount(allowed) > n) {
    const std::uint64_t all = n < kWordBits ? (std::uint64_t{1} << n) - 1 : ~std::uint64_t{0};
    for (std::uint64_t banned = all & ~allowed; banned != 0; banned &= banned - 1)
      logits[std::countr_zero(banned)] = kNever;
    return;
  }
  std::array<float, kWordBits> kept;
  int n_kept = 0;
  for (std::uint64_t bits = allowed; bits != 0; bits &= bits - 1)
    kept[static_cast<std::size_t>(n_kept++)] = logits[std::countr_zero(bits)];
  std::fill(logits, logits + n, kNever);
  n_kept = 0;
  for (std::uint64_t bits = allowed; bits != 0; bits &= bits - 1)
    logits[std::countr_zero(bits)] = kept[static_cast<std::size_t>(n_kept++)];
}

}  // namespace

// The lazily built automaton. Stack 0 is empty; stack i > 0 is a step to return to on top of
// another stack.
class Grammar::Machine {
 public:
  Machine(GrammarProgram program, std::shared_ptr<const TokenTrie> vocabulary, Cut cut)
      : program_(std::move(program)), vocabulary_(std::move(vocabulary)), cut_(std::move(cut)) {
    FindByteClasses();
    stacks_.push_back({0, 0});
    Intern({}, true);  // kOver
    Visit(program_.begin, 0);
    start_ = Close();
    path_.resize(static_cast<std::size_t>(vocabulary_->max_depth()) + 1);
    const auto words = static_cast<std::size_t>(n_words());
    max_masks_ = std::max<std::size_t>(16, kMaskBytes / (8 * std::max<std::size_t>(words, 1)));
  }

  State start() const { return start_; }
  const TokenTrie& vocabulary() const { return *vocabulary_; }

  State After(State state, std::string_view bytes) {
    const std::scoped_lock lock(mutex_);
    for (const char c : bytes) {
      if (state == kOver) break;
      state = Next(state, static_cast<unsigned char>(c));
    }
    return state;
  }

  bool CanEnd(State state) {
    const std::scoped_lock lock(mutex_);
    return states_[static_cast<std::size_t>(state)].can_end;
  }

  void Mask(State state, std::span<float> logits) {
    const std::scoped_lock lock(mutex_);
    const std::vector<std::uint64_t>& mask = MaskOf(state);
    const int n = static_cast<int>(logits.size());
    for (int i = 0; i < n; i += kWordBits) {
      const auto word = static_cast<std::size_t>(i / kWordBits);
      MaskWord(word < mask.size() ? mask[word] : 0, logits.data() + i, std::min(n - i, kWordBits));
    }
  }

  int Forced(State state, std::span<Token> out) {
    const std::scoped_lock lock(mutex_);
    const auto at = static_cast<std::size_t>(state);
    if (!states_[at].forced) {
      std::vector<Token> found = FindForced(state);  // which meets states: they may move
      forced_bytes_ += found.size() * sizeof(Token);
      states_[at].forced = std::move(found);
    }
    const std::vector<Token>& forced = *states_[at].forced;
    const std::size_t n = std::min(forced.size(), out.size());
    std::copy_n(forced.begin(), n, out.begin());
    return static_cast<int>(n);
  }

  std::size_t bytes() {
    const std::scoped_lock lock(mutex_);
    const std::size_t of_state = sizeof(StateFacts) + sizeof(State) * n_classes_ + kPerState;
    return states_.size() * of_state + 2 * sizeof(Situation) * n_situations_ +
           stacks_.size() * (sizeof(Stack) + kPerState) + forced_bytes_ +
           masks_.size() * static_cast<std::size_t>(n_words()) * sizeof(std::uint64_t);
  }

 private:
  struct Stack {
    int step, rest;
  };
  struct StateFacts {
    std::vector<Situation> situations;  // ascending; all before a kByte
    bool can_end = false;
    int mask = -1;                                  // of masks_
    std::optional<std::vector<Token>> forced = {};  // where it was asked for
  };
  struct StoredMask {
    State state = -1;
    std::vector<std::uint64_t> allowed;  // a bit for each token
  };
  static constexpr State kUnknown = -1;

  int n_words() const { return (vocabulary_->vocabulary() + kWordBits - 1) / kWordBits; }

  // Bytes that no step tells apart share a class.
  void FindByteClasses() {
    std::array<bool, 257> begins = {};
    for (const GrammarStep& step : program_.steps) {
      if (step.kind != GrammarStep::Kind::kByte) continue;
      begins[step.low] = begins[step.high + std::size_t{1}] = true;
    }
    class_of_[0] = 0;
    for (std::size_t byte = 1; byte < 256; ++byte)
      class_of_[byte] = static_cast<std::uint8_t>(class_of_[byte - 1] + (begins[byte] ? 1 : 0));
    n_classes_ = class_of_[255] + std::size_t{1};
  }

  State Next(State state, std::uint8_t byte) {
    const std::size_t entry = static_cast<std::size_t>(state) * n_classes_ + class_of_[byte];
    if (next_[entry] == kUnknown) {
      const State next = Read(state, byte);
      next_[entry] = next;
    }
    return next_[entry];
  }

  State Read(State state, std::uint8_t byte) {
    for (const Situation s : states_[static_cast<std::size_t>(state)].situations) {
      const GrammarStep& step = program_.steps[static_cast<std::size_t>(StepOf(s))];
      if (step.low <= byte && byte <= step.high) Visit(step.next, StackOf(s));
    }
    return Close();
  }

  void Visit(int step, int stack) {
    if (visited_.size() >= kMaxVisits) return;
    const Situation s = MakeSituation(step, stack);
    if (visited_.insert(s).second) work_.push_back(s);
  }

  // The state of what was visited and all that it leads to without a byte.
  State Close() {
    std::vector<Situation> situations;
    bool can_end = false;
    while (!work_.empty()) {
      const int step_index = StepOf(work_.back()), stack = StackOf(work_.back());
      const Situation here = work_.back();
      work_.pop_back();
      const GrammarStep& step = program_.steps[static_cast<std::size_t>(step_index)];
      switch (step.kind) {
        case GrammarStep::Kind::kReturn:
          if (stack == 0) {
            can_end = true;
          } else {
            const Stack top = stacks_[static_cast<std::size_t>(stack)];
            Visit(top.step, top.rest);
          }
          break;
        case GrammarStep::Kind::kByte:
          if (situations.size() < kMaxSituations) situations.push_back(here);
          break;
        case GrammarStep::Kind::kSplit:
          Visit(step.other, stack);
          Visit(step.next, stack);
          break;
        case GrammarStep::Kind::kCall:
          Visit(step.other, step.next == 0 ? stack : Push(step.next, stack));
          break;
      }
    }
    visited_.clear();
    std::sort(situations.begin(), situations.end());
    return situations.empty() && !can_end ? kOver : Intern(std::move(situations), can_end);
  }

  int Push(int step, int stack) {
    const auto [it, added] =
        stack_of_.try_emplace(MakeSituation(step, stack), static_cast<int>(stacks_.size()));
    if (added) stacks_.push_back({step, stack});
    return it->second;
  }

  State Intern(std::vector<Situation> situations, bool can_end) {
    auto& known = state_of_[can_end];
    if (!states_.empty()) {
      if (const auto it = known.find(situations); it != known.end()) return it->second;
    }
    const auto state = static_cast<State>(states_.size());
    if (state != kOver) known.emplace(situations, state);
    n_situations_ += situations.size();
    states_.push_back({std::move(situations), can_end});
    next_.resize(next_.size() + n_classes_, state == kOver ? kOver : kUnknown);
    return state;
  }

  const std::vector<std::uint64_t>& MaskOf(State state) {
    const int stored = states_[static_cast<std::size_t>(state)].mask;
    if (stored >= 0) return masks_[static_cast<std::size_t>(stored)].allowed;
    const std::size_t slot = TakeMask();
    masks_[slot].state = state;
    states_[static_cast<std::size_t>(state)].mask = static_cast<int>(slot);
    FindAllowed(state, masks_[slot].allowed);
    return masks_[slot].allowed;
  }

  // A new one, or the one that was made longest ago.
  std::size_t TakeMask() {
    if (masks_.size() < max_masks_) {
      masks_.emplace_back();
      return masks_.size() - 1;
    }
    const std::size_t slot = oldest_mask_;
    oldest_mask_ = (oldest_mask_ + 1) % max_masks_;
    states_[static_cast<std::size_t>(masks_[slot].state)].mask = -1;
    return slot;
  }

  void FindAllowed(State state, std::vector<std::uint64_t>& allowed) {
    allowed.assign(static_cast<std::size_t>(n_words()), 0);
    const auto nodes = vocabulary_->nodes();
    path_[0] = state;
    for (std::size_t i = 0; i < nodes.size();) {
      const auto depth = static_cast<std::size_t>(nodes[i].depth);
      const State next = Next(path_[depth - 1], nodes[i].byte);
      if (next == kOver) {
        i = static_cast<std::size_t>(nodes[i].skip);
        continue;
      }
      path_[depth] = next;
      for (const Token token : vocabulary_->TokensAt(i))
        allowed[static_cast<std::size_t>(token / kWordBits)] |= std::uint64_t{1}
                                                                << (token % kWordBits);
      ++i;
    }
  }

  std::vector<Token> FindForced(State state) {
    if (!cut_) return {};
    std::string text;
    std::optional<std::uint8_t> byte;
    while (text.size() < kMostForced && (byte = OnlyByte(state))) {
      text += static_cast<char>(*byte);
      state = Next(state, *byte);
    }
    std::vector<Token> tokens;
    if (!text.empty()) tokens = cut_(text);
    // What the tokenizer does not give back as it was cannot be drafted.
    std::size_t n = 0, at = 0;
    for (; n < tokens.size(); ++n) {
      const std::string_view piece = vocabulary_->Text(tokens[n]);
      if (piece.empty() || !std::string_view(text).substr(at).starts_with(piece)) break;
      at += piece.size();
    }
    tokens.resize(n);
    const StateFacts& last = states_[static_cast<std::size_t>(state)];
    const bool only_ends = last.can_end && last.situations.empty();
    if (at == text.size() && only_ends && !vocabulary_->end_tokens().empty())
      tokens.push_back(vocabulary_->end_tokens().front());
    return tokens;
  }

  // The one that must come next.
  std::optional<std::uint8_t> OnlyByte(State state) const {
    const StateFacts& facts = states_[static_cast<std::size_t>(state)];
    if (facts.can_end || facts.situations.empty()) return std::nullopt;
    const auto step = [this](Situation s) -> const GrammarStep& {
      return program_.steps[static_cast<std::size_t>(StepOf(s))];
    };
    const std::uint8_t byte = step(facts.situations[0]).low;
    for (const Situation s : facts.situations)
      if (step(s).low != byte || step(s).high != byte) return std::nullopt;
    return byte;
  }

  static constexpr std::size_t kMostForced = 256;  // bytes
  static constexpr std::size_t kPerState = 64;     // of a map's node

  GrammarProgram program_;
  std::shared_ptr<const TokenTrie> vocabulary_;
  Cut cut_;
  std::array<std::uint8_t, 256> class_of_ = {};
  std::size_t n_classes_ = 1, max_masks_ = 16, oldest_mask_ = 0;
  State start_ = kOver;

  std::mutex mutex_;
  std::vector<Stack> stacks_;
  std::unordered_map<Situation, int> stack_of_;
  std::vector<StateFacts> states_;
  std::unordered_map<std::vector<Situation>, State, HashOfSituations> state_of_[2];  // by can_end
  std::vector<State> next_;  // [states, classes]
  std::vector<StoredMask> masks_;
  std::size_t n_situations_ = 0, forced_bytes_ = 0;

  std::vector<Situation> work_;  // of Close
  std::unordered_set<Situation> visited_;
  std::vector<State> path_;  // of FindAllowed: after each prefix of the text
};

Grammar::Grammar(std::unique_ptr<Machine> machine) : machine_(std::move(machine)) {}
Grammar::~Grammar() = default;

Result<std::shared_ptr<const Grammar>> Grammar::Compile(std::string_view gbnf,
                                                        std::shared_ptr<const TokenTrie> vocabulary,
                                                        Cut cut) {
  FORETOKEN_TRY(GrammarProgram program, CompileGbnf(gbnf));
  return std::shared_ptr<const Grammar>(new Grammar(
      std::make_unique<Machine>(std::move(program), std::move(vocabulary), std::move(cut))));
}

Grammar::State Grammar::start() const noexcept {
  return machine_->start();
}

Grammar::State Grammar::After(State state, Token token) const noexcept {
  const std::string_view text = machine_->vocabulary().Text(token);
  return text.empty() ? kOver : machine_->After(state, text);
}

Grammar::State Grammar::After(State state, std::string_view bytes) const noexcept {
  return machine_->After(state, bytes);
}

bool Grammar::CanEnd(State state) const noexcept {
  return machine_->CanEnd(state);
}

void Grammar::Mask(State state, std::span<float> logits) const noexcept {
  machine_->Mask(state, logits);
}

int Grammar::Forced(State state, std::span<Token> out) const noexcept {
  return machine_->Forced(state, out);
}

std::size_t Grammar::bytes() const noexcept {
  return machine_->bytes();
}

std::span<const Token> Grammar::end_tokens() const noexcept {
  return machine_->vocabulary().end_tokens();
}

}  // namespace foretoken::sampling
