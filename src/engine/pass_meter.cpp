// SPDX-License-Identifier: Apache-2.0
#include "engine/pass_meter.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/stopwatch.h"

namespace foretoken::engine {
namespace {

constexpr std::int64_t kCachedWeightBytes = 256 << 20;  // what the largest caches hold

}  // namespace

PassMeter::PassMeter(model::Model& model, kv::Cache& cache, int widest_context)
    : model_(model), cache_(cache), warms_up_(model.weight_bytes() < kCachedWeightBytes) {
  tokens_.assign(static_cast<std::size_t>(model.options().max_rows),
                 std::min(5, model.config().vocabulary - 1));
  logit_rows_.resize(tokens_.size());
  Hold(widest_context);
  for (int layer = 0; layer < cache.shape().n_layers; ++layer)
    for (int head = 0; head < cache.shape().n_kv_heads; ++head) {
      const auto view = cache.Head(layer, head);
      for (const std::int32_t block : cache.Blocks(0)) {
        const auto index = static_cast<std::size_t>(block);
        std::memset(view.k + index * view.k_stride, 0, view.k_stride);
        std::memset(view.v + index * view.v_stride, 0, view.v_stride);
      }
    }
}

PassMeter::~PassMeter() {
  cache_.Truncate(0, 0);
}

// The cache holds that many positions of sequence 0 afterwards.
void PassMeter::Hold(int positions) noexcept {
  cache_.Truncate(0, std::min(cache_.length(0), positions));
  const int missing = positions - cache_.length(0);
  const kv::Transaction::Rows rows{0, missing};
  kv::Transaction(cache_, {&rows, 1}).Commit({&missing, 1});
}

double PassMeter::Microseconds(int rows, int context, bool all_logits) noexcept {
  Hold(context);
  const kv::Transaction::Rows reserve{0, rows};
  const kv::Transaction pending(cache_, {&reserve, 1});
  const model::Segment segment{0, 0, rows, context};
  const auto n_logits = static_cast<std::size_t>(all_logits ? rows : 1);
  const std::span<int> logit_rows = std::span(logit_rows_).first(n_logits);
  std::iota(logit_rows.begin(), logit_rows.end(), all_logits ? 0 : rows - 1);
  const auto pass = [&] {
    model_.Forward({.tokens = std::span(tokens_).first(static_cast<std::size_t>(rows)),
                    .segments = {&segment, 1},
                    .logit_rows = logit_rows},
                   cache_);
  };
  if (warms_up_) pass();
  return engine::Microseconds(pass);
}

}  // namespace foretoken::engine
