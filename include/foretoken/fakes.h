// SPDX-License-Identifier: Apache-2.0
// foretoken/fakes.h: a target and drafters without a model, for the tests of what you build on this
// library: your own loop, drafter or verifier. They are small, exact, and the same on every machine.
//
//   std::vector<std::int32_t> text = {1, 2, 3};
//   foretoken::fakes::Target target;
//   foretoken::fakes::ScriptedDrafter drafter({5, 3, 1});  // or your own
//   drafter.Begin({.prompt = text, .vocabulary_size = 16});
//   const auto drafted = foretoken::fakes::Draft(drafter, {.text = text, .n = 3});
//   text.insert(text.end(), drafted.tokens.begin(), drafted.tokens.end());
//   const auto logits = target.Score(text);  // [6, 16]: the last four rows are for Verify
//
// The drafters work in an Engine too (EngineOptions::drafter). One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "foretoken/drafter.h"
#include "foretoken/drafts.h"
#include "foretoken/result.h"
#include "foretoken/scorer.h"

namespace foretoken::fakes {

// ---- A target -----------------------------------------------------------------------------------

// Writes [vocabulary] logits or probabilities for the token behind a text.
using NextToken = std::function<void(std::span<const std::int32_t> text, std::span<float> values)>;

// A number in [0, 1) that depends on nothing but its arguments (SplitMix64).
inline double Uniform(std::uint64_t seed, std::uint64_t position) {
  std::uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u + position * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

struct TargetOptions {
  int vocabulary_size = 16;
  int max_sequences = 1;
  int context_size = 1 << 16;  // positions of a sequence
  // Default: logits in [-3, 3) that depend on the last two tokens.
  NextToken logits = {};
};

// Has the interface of a Scorer, and counts its passes.
class Target {
 public:
  explicit Target(TargetOptions options = {})
      : options_(std::move(options)), texts_(static_cast<std::size_t>(options_.max_sequences)) {}

  // As Scorer::Score. Errors: kInvalidArgument (a sequence that does not exist or comes twice, an
  // unknown token), kTooLarge (beyond the context); nothing is computed then.
  [[nodiscard]] Result<std::vector<TokenRows>> Score(std::span<const ScoreQuery> batch) {
    std::size_t n_rows = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      FORETOKEN_CHECK_OK(Check(batch[i], batch.first(i)));
      n_rows += batch[i].tokens.size();
    }
    const auto width = static_cast<std::size_t>(options_.vocabulary_size);
    logits_.assign(n_rows * width, 0);
    std::vector<TokenRows> rows;
    float* next = logits_.data();
    for (const ScoreQuery& query : batch) {
      std::vector<std::int32_t>& text = texts_[static_cast<std::size_t>(query.sequence)];
      rows.emplace_back(next, static_cast<int>(query.tokens.size()), options_.vocabulary_size,
                        options_.vocabulary_size);
      for (const std::int32_t token : query.tokens) {
        text.push_back(token);
        Write(text, {next, width});
        next += width;
      }
    }
    n_rows_ += static_cast<std::int64_t>(n_rows);
    n_passes_ += n_rows > 0 ? 1 : 0;
    return rows;
  }
  // Scores one sequence.
  [[nodiscard]] Result<TokenRows> Score(std::span<const std::int32_t> tokens, int sequence = 0) {
    const ScoreQuery query{.sequence = sequence, .tokens = tokens};
    FORETOKEN_TRY(const std::vector<TokenRows> rows, Score({&query, 1}));
    return rows.front();
  }

  int length(int sequence = 0) const {
    return Exists(sequence) ? static_cast<int>(texts_[static_cast<std::size_t>(sequence)].size())
                            : 0;
  }
  // Removes the tokens from `length` on. Errors: kInvalidArgument.
  [[nodiscard]] Status Truncate(int sequence, int length) {
    if (!Exists(sequence)) return Fail(ErrorCode::kInvalidArgument, "there is no such sequence");
    if (length < 0 || length > this->length(sequence))
      return Fail(ErrorCode::kInvalidArgument, "the length is beyond the sequence's own");
    texts_[static_cast<std::size_t>(sequence)].resize(static_cast<std::size_t>(length));
    return {};
  }

  // Calls of Score with any tokens, and their rows, since the start.
  std::int64_t n_passes() const { return n_passes_; }
  std::int64_t n_rows() const { return n_rows_; }

 private:
  bool Exists(int sequence) const {
    return sequence >= 0 && sequence < static_cast<int>(texts_.size());
  }
  Status Check(const ScoreQuery& query, std::span<const ScoreQuery> before) const {
    if (!Exists(query.sequence))
      return Fail(ErrorCode::kInvalidArgument, "there is no such sequence");
    if (std::any_of(before.begin(), before.end(),
                    [&](const ScoreQuery& other) { return other.sequence == query.sequence; }))
      return Fail(ErrorCode::kInvalidArgument, "a sequence comes twice");
    for (const std::int32_t token : query.tokens)
      if (token < 0 || token >= options_.vocabulary_size)
        return Fail(ErrorCode::kInvalidArgument, "a token is not in the vocabulary");
    if (query.tokens.size() >
        static_cast<std::size_t>(options_.context_size - length(query.sequence)))
      return Fail(ErrorCode::kTooLarge, "the tokens do not fit the context");
    return {};
  }
  void Write(std::span<const std::int32_t> text, std::span<float> row) const {
    if (options_.logits) return options_.logits(text, row);
    std::uint64_t last = 0;
    for (const std::int32_t token : text.last(std::min<std::size_t>(2, text.size())))
      last = last * 0x10001 + static_cast<std::uint64_t>(token) + 1;
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<float>(6 * Uniform(last, i) - 3);
  }

  TargetOptions options_;
  std::vector<std::vector<std::int32_t>> texts_;  // [sequences]
  std::vector<float> logits_;                     // of the last call
  std::int64_t n_passes_ = 0, n_rows_ = 0;
};

// ---- Drafters -----------------------------------------------------------------------------------

// What an engine, or a test, asked of a fake drafter.
struct Calls {
  int begins = 0, proposals = 0, rounds = 0, ends = 0;
  std::int64_t drafted = 0, accepted = 0;    // of the rounds
  std::vector<std::int32_t> committed = {};  // by all rounds, in order
};

class CountingDrafter : public Drafter {
 public:
  const Calls& calls() const { return calls_; }

  void Begin(const DrafterText& request) override {
    ++calls_.begins;
    Started(request);
  }
  void Propose(int sequence, DraftProposal& proposal) final {
    ++calls_.proposals;
    Add(sequence, proposal);
  }
  void Observe(const DrafterRound& round) override {
    ++calls_.rounds;
    calls_.drafted += round.drafted, calls_.accepted += round.accepted;
    calls_.committed.insert(calls_.committed.end(), round.committed.begin(), round.committed.end());
  }
  void End(int) override { ++calls_.ends; }

 protected:
  virtual void Started(const DrafterText&) {}
  virtual void Add(int sequence, DraftProposal& proposal) = 0;

 private:
  Calls calls_;
};

// Knows what every text goes on with: the token that it drafts n tokens behind a prompt is the n-th of
// the script. Its drafts are certain.
class ScriptedDrafter final : public CountingDrafter {
 public:
  explicit ScriptedDrafter(std::vector<std::int32_t> script) : script_(std::move(script)) {}
  std::string_view name() const override { return "scripted"; }

 private:
  void Started(const DrafterText& request) override {
    const auto i = static_cast<std::size_t>(request.sequence);
    if (prompts_.size() <= i) prompts_.resize(i + 1);
    prompts_[i] = request.prompt.size();
  }
  void Add(int sequence, DraftProposal& proposal) override {
    const auto i = static_cast<std::size_t>(sequence);
    const std::size_t prompt = i < prompts_.size() ? prompts_[i] : 0;
    while (proposal.left() > 0) {
      const std::size_t n = proposal.text().size() - prompt;
      if (n >= script_.size() || !proposal.Push(script_[n])) return;
    }
  }

  std::vector<std::int32_t> script_;
  std::vector<std::size_t> prompts_;  // [sequences]: lengths
};

// Draws each draft from the distribution that a function gives for the text so far.
class DistributionDrafter final : public CountingDrafter {
 public:
  DistributionDrafter(int vocabulary_size, NextToken probabilities)
      : distribution_(static_cast<std::size_t>(vocabulary_size)),
        probabilities_(std::move(probabilities)) {}
  std::string_view name() const override { return "distribution"; }
  bool ReportsDistributions() const override { return true; }
  DrafterLimits limits() const override {
    return {.vocabulary_size = static_cast<int>(distribution_.size())};
  }

 private:
  void Add(int, DraftProposal& proposal) override {
    while (proposal.left() > 0) {
      probabilities_(proposal.text(), distribution_);
      if (proposal.Draw(distribution_) < 0) return;
    }
  }

  std::vector<float> distribution_;
  NextToken probabilities_;
};

// ---- Drafting without an engine -----------------------------------------------------------------

struct DraftOf {
  std::span<const std::int32_t> text;  // at least one token
  int n = 4;                           // drafts, at most
  int vocabulary_size = 16;
  int sequence = 0;
  std::uint64_t seed = 0;  // of the draws, together with the position
};

// One proposal of a drafter, which has had Begin for this sequence, with distributions, which are one-hot
// where a draft was certain. Draws take the first token at which the running sum of the distribution
// exceeds a number of the seed and the position.
inline Drafts Draft(Drafter& drafter, const DraftOf& draft) {
  class Proposal final : public DraftProposal {
   public:
    explicit Proposal(const DraftOf& draft)
        : draft_(draft), text_(draft.text.begin(), draft.text.end()) {
      drafts_.vocabulary_size = draft.vocabulary_size;
    }
    std::span<const std::int32_t> text() const override { return text_; }
    int left() const override { return draft_.n - static_cast<int>(drafts_.tokens.size()); }
    bool Push(std::int32_t token) override {
      if (left() < 1 || token < 0 || token >= draft_.vocabulary_size) return false;
      const std::size_t before = drafts_.distributions.size();
      drafts_.distributions.resize(before + static_cast<std::size_t>(draft_.vocabulary_size));
      drafts_.distributions[before + static_cast<std::size_t>(token)] = 1;
      Append(token, 1);
      return true;
    }
    std::int32_t Draw(std::span<const float> distribution) override {
      if (left() < 1 || static_cast<int>(distribution.size()) != draft_.vocabulary_size) return -1;
      double sum = 0;
      for (const float p : distribution) sum += static_cast<double>(p);
      double rest = sum * Uniform(draft_.seed, text_.size());
      std::int32_t token = -1;
      for (std::size_t i = 0; i < distribution.size() && rest >= 0; ++i) {
        if (!(distribution[i] > 0)) continue;
        token = static_cast<std::int32_t>(i);
        rest -= static_cast<double>(distribution[i]);
      }
      if (token < 0) return -1;
      drafts_.distributions.insert(drafts_.distributions.end(), distribution.begin(),
                                   distribution.end());
      Append(token, distribution[static_cast<std::size_t>(token)]);
      return token;
    }
    Drafts Take() { return std::move(drafts_); }

   private:
    void Append(std::int32_t token, float probability) {
      text_.push_back(token);
      drafts_.tokens.push_back(token);
      drafts_.probabilities.push_back(probability);
    }

    const DraftOf& draft_;
    std::vector<std::int32_t> text_;
    Drafts drafts_;
  };
  Proposal proposal(draft);
  drafter.Propose(draft.sequence, proposal);
  return proposal.Take();
}

}  // namespace foretoken::fakes
