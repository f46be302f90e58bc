// SPDX-License-Identifier: Apache-2.0
// model/ranks/lead_runner.h: a network that runs on several ranks, as rank 0 sees it.
#pragma once

#include <memory>

#include "model/local_runner.h"
#include "model/ranks/message.h"

namespace foretoken::model {

// Tells the other ranks each pass, and runs its own part, whose gathers bring the parts of the
// others. When it is destroyed it tells them that no pass follows.
class LeadRunner final : public Runner {
 public:
  // number: of the network, the same on each rank. `ranks` must outlive the runner.
  LeadRunner(std::unique_ptr<LocalRunner> own, int number, comm::Ranks& ranks);
  ~LeadRunner() override;

  const PassResult& Run(const Pass& pass) noexcept override;
  void KeepFeatures(const FeatureRequest& request) override;
  void ClearBlocks(std::span<const std::int32_t> blocks) noexcept override;

 private:
  const std::unique_ptr<LocalRunner> own_;
  const int number_;
  comm::Ranks& ranks_;
  Message message_;
};

}  // namespace foretoken::model
