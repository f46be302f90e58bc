// SPDX-License-Identifier: Apache-2.0
#include "foretoken/scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/argument_checks.h"
#include "engine/parts.h"
#include "foretoken/result.h"

namespace foretoken {
class Scorer::Impl {
 public:
  Impl(std::unique_ptr<Engine> engine, int n_sequences)
      : engine_(std::move(engine)), n_sequences_(n_sequences) {}

  Result<std::vector<TokenRows>> Score(std::span<const ScoreQuery> batch) {
    FORETOKEN_CHECK_OK(Check(batch));
    const auto width = static_cast<std::size_t>(parts().vocabulary());
    std::vector<EngineParts::Impl::Feed> feeds;
    std::vector<std::size_t> first;  // row of each query in the buffer
    std::size_t n = 0;
    for (const ScoreQuery& query : batch) {
      feeds.push_back({query.sequence, query.tokens});
      first.push_back(n);
      n += query.tokens.size();
    }
    if (logits_.size() < n * width) logits_ = AlignedBuffer<float>(n * width);
    std::vector<TokenRows> rows;
    rows.reserve(batch.size());
    std::vector<int> lengths;
    for (const auto& query : batch) lengths.push_back(length(query.sequence));
    hidden_.resize(n * hidden_width_);
    Status read = CatchNoMemory("score", [&] {
      return parts().ReadRows(
          feeds, [&](std::size_t feed, int token, const float* logits, const float* hidden) {
            const std::size_t row = first[feed] + static_cast<std::size_t>(token);
            std::copy_n(logits, width, logits_.data() + row * width);
            std::copy_n(hidden, hidden_width_, hidden_.data() + row * hidden_width_);
          });
    });
    if (!read) hidden_.clear();
    if (!read) {  // the sequences are as they were, or empty where a window was dropped
      for (std::size_t i = 0; i < batch.size(); ++i)
        parts().TruncateCache(batch[i].sequence, lengths[i]);
      return Fail(std::move(read).error());
    }
    for (std::size_t i = 0; i < batch.size(); ++i)
      rows.emplace_back(
          std::span<const float>(logits_.data() + first[i] * width, batch[i].tokens.size() * width),
          static_cast<int>(width));
    return rows;
  }

  int length(int sequence) const {
    return sequence >= 0 && sequence < n_sequences_ ? parts().CachedPositions(sequence) : 0;
  }

  Status Truncate(int sequence, int length) {
    FORETOKEN_CHECK_OK(CheckSequence(sequence));
    if (length < 0 || length > this->length(sequence))
      return InvalidArgument(fmt::format("length: {} of a sequence of {}; use 0 to {}", length,
                                         this->length(sequence), this->length(sequence)));
    if (parts().TruncateCache(sequence, length) == length) return {};
    return Fail(
        ErrorCode::kTooLarge,
        fmt::format(
            "length: {}: the model's layers with a sliding window, or with a recurrent state, "
            "do not keep what lies before; the sequence is empty now, score its text again",
            length));
  }

  std::span<const float> hidden_states() const { return hidden_; }

  // Errors: kInvalidArgument.
  Status Keep(const HiddenStates& kept) {
    model::Runner& target = *parts().opened().target;
    for (const int layer : kept.layers)
      if (layer < 0 || layer > target.info().n_layers)
        return InvalidArgument(fmt::format("hidden states: layer {} is out of range; use 0 to {}",
                                           layer, target.info().n_layers));
    if (kept.layers.empty() && !kept.normed) return {};
    target.KeepFeatures({.layers = kept.layers, .normed = kept.normed});
    hidden_width_ = static_cast<std::size_t>(target.info().features_width);
    return {};
  }

  const Engine& engine() const { return *engine_; }

 private:
  EngineParts::Impl& parts() const { return EngineParts::Of(engine_); }

  Status CheckSequence(int sequence) const {
    if (sequence >= 0 && sequence < n_sequences_) return {};
    return InvalidArgument(
        fmt::format("sequence: {} does not exist; use 0 to {}", sequence, n_sequences_ - 1));
  }

  Status Check(std::span<const ScoreQuery> batch) const {
    int blocks = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto& [sequence, tokens] = batch[i];
      FORETOKEN_CHECK_OK(CheckSequence(sequence));
      for (std::size_t j = 0; j < i; ++j)
        if (batch[j].sequence == sequence)
          return InvalidArgument(
              fmt::format("sequence: {} comes twice; put its tokens together", sequence));
      FORETOKEN_CHECK_OK(CheckTokens("score", tokens, parts().vocabulary()));
      const auto n = static_cast<int>(tokens.size());
      if (n > parts().context_size() - length(sequence))
        return Fail(ErrorCode::kTooLarge,
                    fmt::format("score: {} tokens behind {} do not fit a context of {}; give fewer "
                                "or raise EngineOptions::context_size",
                                n, length(sequence), parts().context_size()));
      blocks += parts().MissingCacheBlocks(sequence, n);
    }
    if (blocks > parts().load().free_blocks)
      return Fail(ErrorCode::kTooLarge,
                  "score: the cache has no room for these tokens; truncate a sequence or raise "
                  "EngineOptions::cache_tokens");
    return {};
  }

  std::unique_ptr<Engine> engine_;
  const int n_sequences_;
  AlignedBuffer<float> logits_;  // of the last call, [tokens, vocabulary]
  std::size_t hidden_width_ = 0;
  std::vector<float> hidden_;  // of the last call, [tokens, hidden_width_]
};

Scorer::Scorer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scorer::~Scorer() = default;

Result<std::unique_ptr<Scorer>> Scorer::Create(EngineOptions options, const HiddenStates& kept) {
  const int n_sequences = options.max_sequences;
  options.speculative = {.method = "none", .controller = "fixed"};
  options.draft_model.clear();
  options.drafter.reset();
  options.verifier.reset();
  options.prefix_cache = false;
  FORETOKEN_TRY(auto engine, Engine::Open(std::move(options)));
  auto impl = std::make_unique<Impl>(std::move(engine), n_sequences);
  FORETOKEN_CHECK_OK(CatchNoMemory("score", [&] { return impl->Keep(kept); }));
  return std::unique_ptr<Scorer>(new Scorer(std::move(impl)));
}

Result<std::vector<TokenRows>> Scorer::Score(std::span<const ScoreQuery> batch) {
  return CatchNoMemory("score", [&] { return impl_->Score(batch); });
}

Result<TokenRows> Scorer::Score(std::span<const std::int32_t> tokens, int sequence) {
  const ScoreQuery query{sequence, tokens};
  FORETOKEN_TRY(const auto rows, Score({&query, 1}));
  return rows.front();
}

std::span<const float> Scorer::hidden_states() const {
  return impl_->hidden_states();
}
int Scorer::length(int sequence) const {
  return impl_->length(sequence);
}
Status Scorer::Truncate(int sequence, int length) {
  return impl_->Truncate(sequence, length);
}
const Engine& Scorer::engine() const {
  return impl_->engine();
}

}  // namespace foretoken
