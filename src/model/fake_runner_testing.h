// SPDX-License-Identifier: Apache-2.0
// model/fake_runner_testing.h: a network without a file, for unit tests of what stands above a
// runner: scheduler, drafters, commit, accounting.
//
// Its logits are a hash of the tokens of a row's sequence up to that row. It keeps what a real
// network would keep in its cache: each position of a block holds a hash of the text up to there,
// and a row reads the hash of the position before it through the block table of its pass. So a
// wrong block table, a rollback that leaves something behind, or a wrongly shared prefix changes
// the logits, as it would with a real network.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "kernels/choice.h"
#include "kernels/dispatch.h"
#include "model/runner.h"

namespace foretoken::model {

struct FakeRunnerOptions {
  int vocabulary = 50;
  int max_rows = 64, max_logit_rows = 64;
  int n_blocks = 16;
  int n_layers = 2, dim = 8;
  std::uint64_t seed = 1;  // runners with the same seed are the same network
  // Every so many rows of logits, by the hash of their text, hold a NaN; 0: none does.
  std::uint64_t not_finite_every = 0;
  // Rows whose token alone is wanted are lost, as on several ranks.
  bool chooses = false;
};

class FakeRunner final : public Runner {
 public:
  explicit FakeRunner(const FakeRunnerOptions& options = {})
      : options_(options),
        cache_(static_cast<std::size_t>(options.n_blocks) * kBlock),
        texts_(static_cast<std::size_t>(options.max_rows)),
        logits_(static_cast<std::size_t>(options.max_logit_rows * options.vocabulary)),
        states_(static_cast<std::size_t>(options.max_rows * options.dim)),
        own_(static_cast<std::size_t>(options.max_logit_rows * options.dim)),
        finite_rows_(static_cast<std::size_t>(options.max_logit_rows)),
        own_features_(static_cast<std::size_t>(options.max_logit_rows)) {
    info_ = {.max_rows = options.max_rows,
             .max_logit_rows = options.max_logit_rows,
             .n_blocks = options.n_blocks,
             .n_layers = options.n_layers,
             .dim = options.dim,
             .vocabulary = options.vocabulary,
             .readable = options.vocabulary,
             .chooses = options.chooses};
  }

  const PassResult& Run(const Pass& pass) noexcept override {
    FORETOKEN_CHECK(pass.n_rows() >= 1 && pass.n_rows() <= info_.max_rows);
    FORETOKEN_CHECK(static_cast<int>(pass.logit_rows.size()) <= info_.max_logit_rows);
    ++n_passes_, n_rows_ += pass.n_rows();
    window = pass.window;
    if (spends_time) spends_time(n_passes_);
    int next = 0;
    for (const kv::Segment& segment : pass.segments) {
      FORETOKEN_CHECK(segment.row_begin == next);
      next += segment.n_rows;
      for (int i = 0; i < segment.n_rows; ++i) ReadRow(pass, segment, i);
    }
    FORETOKEN_CHECK(next == pass.n_rows());
    for (std::size_t i = 0; i < pass.logit_rows.size(); ++i) WriteLogits(pass.logit_rows[i], i);
    chosen_.clear();
    for (std::size_t i = 0; options_.chooses && i < pass.choices.size(); ++i)
      chosen_.push_back(Choose(pass.choices[i], i));
    if (info_.features_width > 0)
      for (int row = 0; row < pass.n_rows(); ++row)
        Fill(texts_[static_cast<std::size_t>(row)] ^ 1,
             {features_.data() + row * info_.features_width,
              static_cast<std::size_t>(info_.features_width)});
    if (pass.wants_states)
      for (int row = 0; row < pass.n_rows(); ++row) {
        const auto at = static_cast<std::size_t>(row), dim = static_cast<std::size_t>(info_.dim);
        Fill(texts_[at] ^ 3, std::span(states_).subspan(at * dim, dim));
      }
    const std::size_t n = pass.logit_rows.size();
    result_ = {.logits = logits_.data(),
               .logits_stride = options_.vocabulary,
               .finite_rows = std::span(finite_rows_).first(n),
               .chosen = chosen_,
               .features = info_.features_width == 0 ? nullptr : features_.data(),
               .features_width = info_.features_width,
               .states = pass.wants_states ? states_.data() : nullptr,
               .states_stride = info_.dim,
               .own_features = std::span(own_features_).first(n)};
    return result_;
  }

  void KeepFeatures(const FeatureRequest& request) override {
    info_.features_width = std::int64_t{request.parts()} * info_.dim;
    features_.resize(static_cast<std::size_t>(info_.max_rows * info_.features_width));
  }

  void ClearBlocks(std::span<const std::int32_t> blocks) noexcept override {
    for (const std::int32_t block : blocks)
      std::fill_n(cache_.begin() + block * std::ptrdiff_t{kBlock}, kBlock, 0);
  }

  // The logits after the last token of a text, without a pass: what a test expects.
  std::vector<float> LogitsAfter(std::span<const Token> text) const {
    std::vector<float> logits(static_cast<std::size_t>(options_.vocabulary));
    Fill(HashOfText(text), logits);
    return logits;
  }
  // The state of its last token.
  std::vector<float> StateOf(std::span<const Token> text) const {
    std::vector<float> state(static_cast<std::size_t>(options_.dim));
    Fill(HashOfText(text) ^ 3, state);
    return state;
  }

  int n_passes() const { return n_passes_; }
  int n_chosen() const { return n_chosen_; }       // rows of all passes that chose their token
  std::int64_t n_rows() const { return n_rows_; }  // of all passes

  int window = 0;                                 // of the last pass
  std::function<void(int n_passes)> spends_time;  // called by a pass; passes so far, with this one

 private:
  static constexpr int kBlock = tensor::kKvBlock;

  static std::uint64_t Next(std::uint64_t text, Token token) {
    const std::uint64_t key[2] = {text, static_cast<std::uint64_t>(token)};
    return HashOf(key);
  }
  std::uint64_t HashOfText(std::span<const Token> text) const {
    std::uint64_t hash = options_.seed;
    for (const Token token : text) hash = Next(hash, token);
    return hash;
  }
  // Numbers in [0, 8).
  static void Fill(std::uint64_t text, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>(Next(text, static_cast<Token>(i)) % 4096) / 512;
  }

  std::uint64_t& At(const kv::Segment& segment, Pos position) {
    const auto index = static_cast<std::size_t>(position / kBlock);
    FORETOKEN_CHECK(index < segment.blocks.size());
    const std::int32_t block = segment.blocks[index];
    FORETOKEN_CHECK(block >= 0 && block < options_.n_blocks);
    return cache_[static_cast<std::size_t>(block * kBlock + position % kBlock)];
  }

  void ReadRow(const Pass& pass, const kv::Segment& segment, int i) {
    const Pos position = segment.first_position + i;
    const auto row = static_cast<std::size_t>(segment.row_begin + i);
    const Token token = pass.tokens[row];
    FORETOKEN_CHECK(token >= 0 && token < info_.readable);
    texts_[row] = Next(position == 0 ? options_.seed : At(segment, position - 1), token);
    At(segment, position) = texts_[row];
  }

  void WriteLogits(int row, std::size_t i) {
    const std::uint64_t text = texts_[static_cast<std::size_t>(row)];
    const auto width = static_cast<std::size_t>(options_.vocabulary);
    Fill(text, {logits_.data() + i * width, width});
    finite_rows_[i] = options_.not_finite_every == 0 || text % options_.not_finite_every != 0;
    if (finite_rows_[i] == 0) logits_[i * width] = std::numeric_limits<float>::quiet_NaN();
    const auto dim = static_cast<std::size_t>(options_.dim);
    own_features_[i] = own_.data() + i * dim;
    Fill(text ^ 2, {own_.data() + i * dim, dim});
  }

  // Leaves nothing of a row that chose its token.
  Token Choose(const kernels::Choice& choice, std::size_t i) {
    if (choice.rule == kernels::ChoiceRule::kNone) return kNoToken;
    const kernels::Kernels& kernels = kernels::KernelsFor(kernels::Isa::kScalar);
    const std::span<float> row(logits_.data() + i * static_cast<std::size_t>(options_.vocabulary),
                               static_cast<std::size_t>(options_.vocabulary));
    const kernels::Columns all = {0, options_.vocabulary};
    const kernels::PartBest best = kernels::BestOf(kernels, choice, row.data(), all);
    Token token = best.column;
    if (kernels::HasRace(choice, best)) {
      kernels::Weigh(kernels, choice, best.value, row.data(), all);
      token = kernels::RaceOver(kernels, choice, row.data()).token;
    }
    std::fill(row.begin(), row.end(), std::numeric_limits<float>::quiet_NaN());
    ++n_chosen_;
    return token;
  }

  FakeRunnerOptions options_;
  std::vector<std::uint64_t> cache_;  // [n_blocks, 32]
  std::vector<std::uint64_t> texts_;  // of the pass's rows
  std::vector<float> logits_, features_, states_, own_;
  std::vector<std::uint8_t> finite_rows_;
  std::vector<const float*> own_features_;
  std::vector<Token> chosen_;
  PassResult result_;
  int n_passes_ = 0, n_chosen_ = 0;
  std::int64_t n_rows_ = 0;
};

}  // namespace foretoken::model
