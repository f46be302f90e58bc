// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/lead_runner.h"

#include <utility>

namespace foretoken::model {

LeadRunner::LeadRunner(std::unique_ptr<LocalRunner> own, int number, comm::Ranks& ranks)
    : own_(std::move(own)), number_(number), ranks_(ranks) {
  info_ = own_->info();
}

LeadRunner::~LeadRunner() {
  message_.Begin(Order::kStop, number_);
  static_cast<void>(message_.Send(ranks_));  // ranks that are lost have stopped
}

const PassResult& LeadRunner::Run(const Pass& pass) noexcept {
  message_.Begin(Order::kPass, number_);
  message_.AddPass(pass);
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

Status Obey(Message& message, LocalRunner& runner, const comm::Ranks& ranks) {
  Pass pass;
  switch (message.order()) {
    case Order::kPass:
      if (!message.ReadPass(pass))
        return Fail(ErrorCode::kIo,
                    "ranks: rank 0 sent a damaged pass; start all ranks with the same program");
      runner.Run(pass);
      return ranks.why().empty() ? Status() : Fail(ErrorCode::kIo, ranks.why());
    case Order::kKeepFeatures:
      runner.KeepFeatures({.layers = {message.body().begin() + 1, message.body().end()},
                           .normed = message.body()[0] != 0});
      return {};
    case Order::kClearBlocks:
      runner.ClearBlocks(message.body());
      return {};
    case Order::kStop:
      return {};
  }
  return Fail(ErrorCode::kIo,
              "ranks: rank 0 sent an unknown order; start all ranks with the same program");
}

}  // namespace

Status Follow(std::span<const std::unique_ptr<LocalRunner>> runners, comm::Ranks& ranks) {
  Message message;
  for (std::size_t running = runners.size(); running > 0;) {
    if (!message.Receive(ranks))
      return Fail(ErrorCode::kIo,
                  ranks.why().empty() ? "ranks: rank 0 sent a damaged message" : ranks.why());
    const auto number = static_cast<std::size_t>(message.runner());
    if (number >= runners.size())
      return Fail(
          ErrorCode::kIo,
          "ranks: rank 0 runs another number of networks; start all ranks with the same options");
    running -= message.order() == Order::kStop;
    FORETOKEN_CHECK_OK(Obey(message, *runners[number], ranks));
  }
  return {};
}

}  // namespace foretoken::model
