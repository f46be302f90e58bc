// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/lead_runner.h"

#include <algorithm>
#include <utility>

namespace foretoken::model {
namespace {

// What a row of a pass adds to its message, at most: its token, a row of logits with a choice, and a
// segment.
constexpr std::size_t kWordsARow = 32;

// The words of the longest message, unless sequences share most of their blocks.
std::size_t LongestMessage(const RunnerInfo& info, const ModelConfig& config) {
  const int features = std::max(config.features_width(false), config.features_width(true));
  return static_cast<std::size_t>(info.max_rows) *
             (static_cast<std::size_t>(features) + kWordsARow) +
         2 * static_cast<std::size_t>(info.n_blocks);  // blocks, and as many of layers with windows
}

}  // namespace

LeadRunner::LeadRunner(std::unique_ptr<LocalRunner> own, int number, comm::Ranks& ranks)
    : own_(std::move(own)), number_(number), ranks_(ranks) {
  info_ = own_->info();
  message_.Reserve(LongestMessage(info_, own_->config()));
}

LeadRunner::~LeadRunner() {
  message_.Begin(Order::kStop, number_);
  static_cast<void>(message_.Send(ranks_));  // ranks that are lost have stopped
}

const PassResult& LeadRunner::Run(const Pass& pass) noexcept {
  message_.Begin(Order::kPass, number_);
  message_.AddPass(pass,
                   pass.features == nullptr ? 0 : own_->config().features_width(pass.own_features));
  static_cast<void>(message_.Send(ranks_));  // the result of the pass says that a rank is lost
  return own_->Run(pass);
}

void LeadRunner::KeepFeatures(const FeatureRequest& request) {
  message_.Begin(Order::kKeepFeatures, number_);
  message_.Add(static_cast<std::int32_t>(request.normed));
  message_.AddList(request.layers);
  static_cast<void>(message_.Send(ranks_));
  own_->KeepFeatures(request);
  info_ = own_->info();
}

void LeadRunner::ClearBlocks(std::span<const std::int32_t> blocks) noexcept {
  message_.Begin(Order::kClearBlocks, number_);
  message_.Add(blocks);
  static_cast<void>(message_.Send(ranks_));
  own_->ClearBlocks(blocks);
}

}  // namespace foretoken::model
