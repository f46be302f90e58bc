// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pass_meter.h"

#include <algorithm>
#include <numeric>

#include "kv/transaction.h"

namespace foretoken::calibrate {
namespace {

constexpr int kMostToSettle = 8;
constexpr std::int64_t kCachedWeightBytes = 256 << 20;  // what the largest caches hold

}  // namespace

PassMeter::PassMeter(const Subject& subject, int widest_context)
    : now_(subject.now),
      runner_(subject.target),
      cache_(subject.cache),
      warms_up_(runner_.info().weight_bytes < kCachedWeightBytes) {
  const auto n_tokens = static_cast<std::uint64_t>(
      std::max(1, std::min(runner_.info().vocabulary, runner_.info().readable)));
  std::uint64_t state = 5;
  for (int i = 0; i < runner_.info().max_rows; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth, "MMIX"
    tokens_.push_back(static_cast<Token>((state >> 33) % n_tokens));
  }
  logit_rows_.resize(tokens_.size());
  if (runner_.info().chooses)
    choices_.assign(tokens_.size(),
                    {.rule = kernels::ChoiceRule::kBest, .n_tokens = runner_.info().vocabulary});
  Hold(widest_context);
  runner_.ClearBlocks(cache_.Blocks(0));
}

PassMeter::~PassMeter() {
  cache_.Truncate(0, 0);
}

void PassMeter::RepeatOneToken() noexcept {
  std::fill(tokens_.begin(), tokens_.end(), tokens_.front());
}

// The cache holds that many positions of sequence 0 afterwards.
void PassMeter::Hold(int positions) noexcept {
  cache_.Truncate(0, std::min(cache_.length(0), positions));
  while (cache_.length(0) < positions) {
    const int rows = std::min(positions - cache_.length(0), runner_.info().max_rows);
    kv::Segment segment{.n_rows = rows, .first_position = cache_.length(0), .n_certain = rows};
    kv::Transaction(cache_, {&segment, 1}).Commit({&rows, 1});
  }
}

// A pass of many rows meets the weights so slowly that other programs displace them from a cache that they
// share, and passes of few rows bring them back: after 17 rows of the bundled model one row takes 652, 511,
// 472, 451, 430, 413 us, and 405 at last (AVX2, one thread of a Zen 3; after 8 rows 418, 391, 383, 376 and
// 350). A text has runs of passes of about as many rows.
int PassMeter::PassesToSettle(int rows) const noexcept {
  return 1 + std::clamp((last_rows_ - rows) / 2, 0, kMostToSettle);
}

double PassMeter::Microseconds(int rows, int context, bool all_logits) noexcept {
  Hold(context);
  kv::Segment segment{.n_rows = rows, .first_position = context, .n_certain = 1};
  const kv::Transaction pending(cache_, {&segment, 1});
  const auto n_logits = static_cast<std::size_t>(all_logits ? rows : 1);
  const std::span<int> logit_rows = std::span(logit_rows_).first(n_logits);
  std::iota(logit_rows.begin(), logit_rows.end(), all_logits ? 0 : rows - 1);
  const auto pass = [&] {
    result_ = &runner_.Run({.tokens = std::span(tokens_).first(static_cast<std::size_t>(rows)),
                            .segments = {&segment, 1},
                            .logit_rows = logit_rows,
                            .choices = std::span(choices_).first(choices_.empty() ? 0 : n_logits)});
  };
  if (warms_up_)
    for (int n = PassesToSettle(rows); n > 0; --n) pass();
  last_rows_ = rows;
  return foretoken::Microseconds(pass, now_);
}

}  // namespace foretoken::calibrate
