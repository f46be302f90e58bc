// SPDX-License-Identifier: Apache-2.0
// model/late_runner.h: a network whose weights are made while the engine works already.
//
// A thread of its own makes them. It begins when somebody asks for the network, or after a while: so the first prompt
// of a program that has just started is read alone. The network is there when the machine had time for it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/machine/pause.h"
#include "foretoken/result.h"
#include "model/local_runner.h"

namespace foretoken::model {

class LateRunner final : public Runner {
 public:
  // What the thread that makes the network and others tell each other.
  struct Making {
    std::atomic<bool> stop{false};                           // nobody wants the network any more
    std::atomic<std::size_t> done_bytes{0}, total_bytes{0};  // total: 0 until the making begins
  };
  // Makes the network. It is called once, on the thread, and returns early once `stop` is true.
  using Load = std::function<Result<std::unique_ptr<LocalRunner>>(Making& making)>;

  // info: of the network that `load` makes. on_failure: told once, by Ready, why there will be none.
  // What both of them refer to must outlive the runner. patience: how long the making waits to be asked for.
  LateRunner(const RunnerInfo& info, Load load, std::function<void(std::string)> on_failure,
             std::chrono::milliseconds patience = kPatience);
  ~LateRunner() override;  // stops the making

  // Also asks for the network.
  bool Ready() noexcept override;
  // REQUIRES: Ready.
  const PassResult& Run(const Pass& pass) noexcept override { return own_->Run(pass); }
  void KeepFeatures(const FeatureRequest& request) override { own_->KeepFeatures(request); }
  void ClearBlocks(std::span<const std::int32_t> blocks) noexcept override {
    own_->ClearBlocks(blocks);
  }

  // The network; null as long as there is none. Any thread.
  LocalRunner* made() const noexcept { return made_.load(std::memory_order_acquire); }
  // Any thread, too: how far the making is; why there will be no network, or null.
  const Making& making() const noexcept { return making_; }
  const std::string* why_none() const noexcept {
    return failed_.load(std::memory_order_acquire) ? &why_none_ : nullptr;
  }

 private:
  static constexpr std::chrono::milliseconds kPatience{2000};
  void Make(std::chrono::milliseconds patience) noexcept;
  void Tell() noexcept;

  const std::vector<Token> reduced_tokens_;  // of info()
  Load load_;
  std::function<void(std::string)> on_failure_;
  std::unique_ptr<LocalRunner> own_;  // written by the thread, before the flags
  std::string why_none_;
  std::atomic<LocalRunner*> made_{nullptr};
  std::atomic<bool> failed_{false};
  Making making_;
  Pause unasked_;
  bool asked_ = false, told_ = false;
  std::thread thread_;
};

}  // namespace foretoken::model
