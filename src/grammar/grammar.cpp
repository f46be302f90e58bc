// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/work_count.h"
#include "grammar/control_literal.h"
#include "grammar/grammar_program.h"
#include "grammar/grammar_walk.h"
#include "grammar/list_memory.h"

namespace foretoken::grammar {
namespace {

constexpr int kWordBits = 64;
constexpr std::size_t kMostForced = 256;  // bytes

// Sets the logits whose bit is 0 to -inf. Copies or bans single ones, whichever are fewer.
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

// Maps states to numbers, for the states that have one.
class StateNumbers {
 public:
  std::int32_t Of(std::int32_t state) const {
    const auto at = static_cast<std::size_t>(state);
    return at < numbers_.size() ? numbers_[at] : -1;
  }
  void Set(std::int32_t state, std::int32_t number) {
    const auto at = static_cast<std::size_t>(state);
    if (at >= numbers_.size()) numbers_.resize(at + 1, -1);
    numbers_[at] = number;
  }
  void Clear() noexcept { Free(numbers_); }
  std::size_t bytes() const { return BytesOf(numbers_); }

 private:
  std::vector<std::int32_t> numbers_;
};

}  // namespace

Error ErrorOf(GrammarFailure failure) {
  const auto error = [](ErrorCode code, std::string why) {
    return Error{code, std::move(why)}.Of("grammar");
  };
  const auto too_large = [&](std::string why) {
    return error(ErrorCode::kTooLarge, std::move(why));
  };
  switch (failure) {
    case GrammarFailure::kAmbiguous:
      return too_large(
          fmt::format("a text of it can continue in more than {} ways at once; give fewer "
                      "alternatives, "
                      "or make it less ambiguous",
                      GrammarStates::kMaxSituations));
    case GrammarFailure::kStepWork:
      return too_large(
          fmt::format("one token takes more than {} steps of it; make it smaller or less ambiguous",
                      GrammarStates::kMaxStepWork));
    case GrammarFailure::kRequestWork:
      return too_large(
          fmt::format("a text has taken more than {} steps of it, and {} for each token; make it "
                      "smaller or less ambiguous",
                      GrammarWalk::kMaxWork, GrammarWalk::kMaxWorkPerToken));
    case GrammarFailure::kNoMemory:
      return error(ErrorCode::kNoMemory, "no memory is left for its states; try again later");
    case GrammarFailure::kCancelled:
      return error(ErrorCode::kStopped, "it was cancelled; ask again if you want it");
    default:
      return too_large(
          fmt::format("its states take more than {} MiB; lower its repetitions, or make it less "
                      "ambiguous",
                      GrammarStates::kMaxStateBytes >> 20));
  }
}

// The states, with what was learned about the vocabulary in each.
class Grammar::Machine {
 public:
  Machine(GrammarProgram program, std::shared_ptr<const TokenTrie> vocabulary, Cut cut)
      : states_(std::move(program)),
        vocabulary_(std::move(vocabulary)),
        cut_(std::move(cut)),
        n_words_(static_cast<std::size_t>(vocabulary_->vocabulary() + kWordBits - 1) / kWordBits),
        max_masks_(std::max<std::size_t>(
            4, kMaxMaskBytes / (sizeof(std::uint64_t) * std::max<std::size_t>(n_words_, 1)))),
        path_(static_cast<std::size_t>(vocabulary_->max_depth()) + 1) {}

  const TokenTrie& vocabulary() const { return *vocabulary_; }

  State Start(GrammarCost* cost) {
    return Run(kOver, cost, kUnknown, [&] { return Known(states_.Start()); });
  }

  State After(State state, std::string_view bytes, GrammarCost* cost) {
    return Run(state, cost, kUnknown, [&] {
      std::int32_t next = state.number;
      for (const char c : bytes) {
        if (next == GrammarStates::kOver || next == GrammarStates::kNone) break;
        next = states_.Next(next, static_cast<unsigned char>(c));
      }
      return Known(next);
    });
  }

  bool CanEnd(State state, GrammarCost* cost) {
    return Run(state, cost, false, [&] { return states_.CanEnd(state.number); });
  }

  bool Mask(State state, std::span<float> logits, GrammarCost* cost) {
    return Run(state, cost, false, [&] {
      const std::optional<std::size_t> slot = MaskOf(state.number);
      if (!slot) return false;
      const auto mask = std::span(mask_words_).subspan(*slot * n_words_, n_words_);
      const int n = static_cast<int>(logits.size());
      for (int i = 0; i < n; i += kWordBits) {
        const auto word = static_cast<std::size_t>(i / kWordBits);
        MaskWord(word < mask.size() ? mask[word] : 0, logits.data() + i,
                 std::min(n - i, kWordBits));
      }
      return true;
    });
  }

  int Forced(State state, std::span<Token> out, GrammarCost* cost) {
    return Run(state, cost, 0, [&] {
      std::int32_t begin = forced_of_.Of(state.number);
      if (begin < 0) {
        const std::vector<Token> found = FindForced(state.number);
        if (states_.failure() != GrammarFailure::kNone) return 0;
        begin = static_cast<std::int32_t>(forced_.size());
        forced_.push_back(static_cast<Token>(found.size()));
        forced_.insert(forced_.end(), found.begin(), found.end());
        forced_of_.Set(state.number, begin);
      }
      const auto at = static_cast<std::size_t>(begin);
      const std::size_t n = std::min(static_cast<std::size_t>(forced_[at]), out.size());
      std::copy_n(forced_.begin() + begin + 1, n, out.begin());
      return static_cast<int>(n);
    });
  }

  void Trim() {
    const std::scoped_lock lock(mutex_);
    Forget();
  }
  void Trim(std::uint32_t generation) {
    const std::scoped_lock lock(mutex_);
    if (generation == generation_) Forget();
  }

  std::size_t bytes() {
    const std::scoped_lock lock(mutex_);
    return sizeof(*this) + states_.bytes() + mask_of_.bytes() + BytesOf(mask_states_) +
           BytesOf(mask_words_) + forced_of_.bytes() + BytesOf(forced_) + BytesOf(path_);
  }

 private:
  State Known(std::int32_t number) const {
    if (number == GrammarStates::kOver) return kOver;
    return number == GrammarStates::kNone ? kUnknown : State{number, generation_};
  }

  // Runs one operation; gives `failed` if it has no result. The operation throws nothing but
  // bad_alloc and WorkCancelled.
  template <typename T, typename Operation>
  T Run(State state, GrammarCost* cost, T failed, const Operation& operation) noexcept {
    const std::scoped_lock lock(mutex_);
    GrammarFailure failure = GrammarFailure::kForgotten;
    T result = failed;
    if (state == kOver || (state != kUnknown && state.generation == generation_)) {
      states_.BeginOperation();
      try {
        result = operation();
        failure = states_.failure();
      } catch (const std::bad_alloc&) {
        failure = GrammarFailure::kNoMemory;
      } catch (const WorkCancelled&) {
        failure = GrammarFailure::kCancelled;
      }
      const bool broke_off =
          failure == GrammarFailure::kNoMemory || failure == GrammarFailure::kCancelled;
      if (broke_off) Forget();  // removes incomplete results
      if (cost != nullptr) cost->work += states_.work();
    }
    if (failure == GrammarFailure::kNone) return result;
    if (cost != nullptr && cost->failure == GrammarFailure::kNone) cost->failure = failure;
    return failed;
  }

  void Forget() noexcept {
    states_.Clear();
    mask_of_.Clear(), forced_of_.Clear();
    Free(mask_words_), Free(mask_states_), Free(forced_);
    oldest_mask_ = 0;
    ++generation_;
  }

  // An index into mask_words_, or nothing if it failed.
  std::optional<std::size_t> MaskOf(std::int32_t state) {
    const std::int32_t known = mask_of_.Of(state);
    if (known >= 0) return static_cast<std::size_t>(known);
    const std::size_t slot = TakeMask();
    if (!FindAllowed(state, std::span(mask_words_).subspan(slot * n_words_, n_words_)))
      return std::nullopt;
    mask_of_.Set(state, static_cast<std::int32_t>(slot));
    mask_states_[slot] = state;
    return slot;
  }

  // A new mask, or the oldest one.
  std::size_t TakeMask() {
    if (mask_states_.size() < max_masks_) {
      mask_states_.push_back(GrammarStates::kNone);
      mask_words_.resize(mask_states_.size() * n_words_);
      return mask_states_.size() - 1;
    }
    const std::size_t slot = oldest_mask_;
    oldest_mask_ = (oldest_mask_ + 1) % max_masks_;
    if (mask_states_[slot] >= 0) mask_of_.Set(mask_states_[slot], -1);
    mask_states_[slot] = GrammarStates::kNone;
    return slot;
  }

  // Sets a bit for each allowed token. False: it failed.
  bool FindAllowed(std::int32_t state, std::span<std::uint64_t> allowed) {
    std::fill(allowed.begin(), allowed.end(), 0);
    const auto nodes = vocabulary_->nodes();
    path_[0] = state;
    for (std::size_t i = 0; i < nodes.size();) {
      CountWork();
      const auto depth = static_cast<std::size_t>(nodes[i].depth);
      const std::int32_t next = states_.Next(path_[depth - 1], nodes[i].byte);
      if (next == GrammarStates::kNone) return false;
      if (next == GrammarStates::kOver) {
        i = static_cast<std::size_t>(nodes[i].skip);
        continue;
      }
      path_[depth] = next;
      for (const Token token : vocabulary_->TokensAt(i))
        allowed[static_cast<std::size_t>(token / kWordBits)] |= std::uint64_t{1}
                                                                << (token % kWordBits);
      ++i;
    }
    return true;
  }

  std::vector<Token> FindForced(std::int32_t state) {
    if (!cut_) return {};
    std::string text;
    std::optional<std::uint8_t> byte;
    while (text.size() < kMostForced && (byte = states_.OnlyByte(state))) {
      text += static_cast<char>(*byte);
      state = states_.Next(state, *byte);
      if (state == GrammarStates::kNone) return {};
    }
    std::vector<Token> tokens;
    if (!text.empty()) tokens = CutWithControls(text, cut_);
    // A text that the tokenizer does not reproduce exactly cannot be drafted.
    std::size_t n = 0, at = 0;
    for (; n < tokens.size(); ++n) {
      const std::string_view piece = vocabulary_->Text(tokens[n]);
      if (piece.empty() || !std::string_view(text).substr(at).starts_with(piece)) break;
      at += piece.size();
    }
    tokens.resize(n);
    if (at == text.size() && states_.OnlyEnds(state) && !vocabulary_->end_tokens().empty())
      tokens.push_back(vocabulary_->end_tokens().front());
    return tokens;
  }

  std::mutex mutex_;
  GrammarStates states_;
  std::shared_ptr<const TokenTrie> vocabulary_;
  Cut cut_;
  std::uint32_t generation_ = 1;

  const std::size_t n_words_, max_masks_;  // of a mask; at a time
  StateNumbers mask_of_;                   // by state: of masks
  std::vector<std::int32_t> mask_states_;  // [masks]: the state of each
  std::vector<std::uint64_t> mask_words_;  // [masks, words]: a bit for each token
  std::size_t oldest_mask_ = 0;

  StateNumbers forced_of_;          // by state: an index into forced_
  std::vector<Token> forced_;       // a count, then that many tokens
  std::vector<std::int32_t> path_;  // for FindAllowed: the state after each prefix of a text
};

Grammar::Grammar(std::unique_ptr<Machine> machine) : machine_(std::move(machine)) {}
Grammar::~Grammar() = default;

Result<std::shared_ptr<const Grammar>> Grammar::Compile(std::string_view gbnf,
                                                        std::shared_ptr<const TokenTrie> vocabulary,
                                                        Cut cut) {
  FORETOKEN_TRY(GrammarProgram program, CompileGbnf(gbnf));
  for (const Token token : program.controls)
    if (vocabulary->Text(token) != ControlLiteral(token))
      return InvalidField("grammar", fmt::format("<[{}]> is no control token of this model; write "
                                                 "the text of an ordinary one, and leave out one "
                                                 "that ends texts",
                                                 token));
  std::shared_ptr<const Grammar> grammar(new Grammar(
      std::make_unique<Machine>(std::move(program), std::move(vocabulary), std::move(cut))));
  GrammarCost cost;
  grammar->Mask(grammar->Start(&cost), {}, &cost);
  if (cost.failure != GrammarFailure::kNone) return tl::unexpected(ErrorOf(cost.failure));
  return grammar;
}

Grammar::State Grammar::Start(GrammarCost* cost) const noexcept {
  return machine_->Start(cost);
}

Grammar::State Grammar::After(State state, Token token, GrammarCost* cost) const noexcept {
  const std::string_view text = machine_->vocabulary().Text(token);
  return text.empty() ? kOver : machine_->After(state, text, cost);
}

Grammar::State Grammar::After(State state, std::string_view bytes,
                              GrammarCost* cost) const noexcept {
  return machine_->After(state, bytes, cost);
}

bool Grammar::CanEnd(State state, GrammarCost* cost) const noexcept {
  return machine_->CanEnd(state, cost);
}

bool Grammar::Mask(State state, std::span<float> logits, GrammarCost* cost) const noexcept {
  return machine_->Mask(state, logits, cost);
}

int Grammar::Forced(State state, std::span<Token> out, GrammarCost* cost) const noexcept {
  return machine_->Forced(state, out, cost);
}

void Grammar::Trim() const noexcept {
  machine_->Trim();
}

void Grammar::Trim(std::uint32_t generation) const noexcept {
  machine_->Trim(generation);
}

std::size_t Grammar::bytes() const noexcept {
  return machine_->bytes();
}

std::span<const Token> Grammar::end_tokens() const noexcept {
  return machine_->vocabulary().end_tokens();
}

}  // namespace foretoken::grammar
