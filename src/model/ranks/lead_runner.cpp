// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/lead_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace foretoken::model {
namespace {

// What a row of a pass adds to its message, as a rule: its token, a row of logits and its blocks.
constexpr std::size_t kWordsARow = 64;

int FeaturesWidth(const ModelConfig& config) {
  return std::max(config.features_width(false), config.features_width(true));
}

}  // namespace

LeadRunner::LeadRunner(std::unique_ptr<LocalRunner> own, int number, comm::Ranks& ranks)
    : own_(std::move(own)), number_(number), ranks_(ranks) {
  info_ = own_->info();
  const auto rows = static_cast<std::size_t>(info_.max_rows);
  message_.Reserve(rows * static_cast<std::size_t>(FeaturesWidth(own_->config())) +
                   kWordsARow * rows);
}

LeadRunner::~LeadRunner() {
  message_.Begin(Order::kStop, number_);
  static_cast<void>(message_.Send(ranks_));  // ranks that are lost have stopped
}

const PassResult& LeadRunner::Run(const Pass& pass) noexcept {
  message_.Begin(Order::kPass, number_);
  message_.AddPass(pass, own_->config().features_width(pass.own_features));
  static_cast<void>(message_.Send(ranks_));  // the result of the pass says that a rank is lost
  return own_->Run(pass);
}

void LeadRunner::KeepFeatures(const FeatureRequest& request) {
  message_.Begin(Order::kKeepFeatures, number_);
  message_.Add(static_cast<std::int32_t>(request.normed));
  message_.Add(request.layers);
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

namespace {

Status Refuse(std::string_view what) {
  return Fail(ErrorCode::kIo,
              fmt::format("ranks: rank 0 sent {}; start all ranks with the same program, files and "
                          "options",
                          what));
}

Status RunPass(Message& message, LocalRunner& runner, const comm::Ranks& ranks) {
  Pass pass;
  int features_width = 0;
  if (!message.ReadPass(pass, features_width)) return Refuse("a damaged pass");
  const RunnerInfo& info = runner.info();
  if (pass.n_rows() > info.max_rows ||
      static_cast<int>(pass.logit_rows.size()) > info.max_logit_rows)
    return Refuse("a pass of too many rows");
  if (features_width != runner.config().features_width(pass.own_features))
    return Refuse("features of another network");
  runner.Run(pass);
  return ranks.why().empty() ? Status() : Fail(ErrorCode::kIo, ranks.why());
}

Status Obey(Message& message, LocalRunner& runner, const comm::Ranks& ranks) {
  switch (message.order()) {
    case Order::kPass:
      return RunPass(message, runner, ranks);
    case Order::kKeepFeatures:
      if (message.body().empty()) return Refuse("a damaged order");
      runner.KeepFeatures({.layers = {message.body().begin() + 1, message.body().end()},
                           .normed = message.body()[0] != 0});
      return {};
    case Order::kClearBlocks:
      runner.ClearBlocks(message.body());
      return {};
    case Order::kStop:
      return {};
  }
  return Refuse("an unknown order");
}

}  // namespace

Status Follow(std::span<const std::unique_ptr<LocalRunner>> runners, comm::Ranks& ranks) {
  Message message;
  for (std::size_t running = runners.size(); running > 0;) {
    if (!message.Receive(ranks))
      return ranks.why().empty() ? Refuse("a damaged message") : Fail(ErrorCode::kIo, ranks.why());
    const auto number = static_cast<std::size_t>(message.runner());
    if (number >= runners.size()) return Refuse("a pass of a network that is not here");
    running -= message.order() == Order::kStop;
    FORETOKEN_CHECK_OK(Obey(message, *runners[number], ranks));
  }
  return {};
}

}  // namespace foretoken::model
