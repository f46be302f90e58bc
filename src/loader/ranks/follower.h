// SPDX-License-Identifier: Apache-2.0
// loader/ranks/follower.h: what the ranks other than 0 do.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/machine/thread_pool.h"
#include "formats/checkpoint.h"
#include "kernels/kernels.h"
#include "loader/ranks/open_order.h"
#include "loader/ranks/rank_group.h"

namespace foretoken::loader {

class Follower {
 public:
  explicit Follower(RankGroup::Impl& group) : group_(group) {}

  // A network that this rank has loaded by itself.
  void Add(int number, std::shared_ptr<formats::Checkpoint> file,
           std::unique_ptr<model::LocalRunner> runner) {
    networks_[number] = {std::move(file), std::move(runner)};
  }

  // Does what rank 0 asks for until it lets the others leave. Error: kRankLost, kIo (a file has
  // changed, or a message is damaged; the first two end all ranks).
  [[nodiscard]] Status Run();

 private:
  struct Network {
    std::shared_ptr<formats::Checkpoint> file;
    std::unique_ptr<model::LocalRunner> runner;
  };

  [[nodiscard]] Status Obey();
  [[nodiscard]] Status Prepare();
  [[nodiscard]] Status Measure();
  [[nodiscard]] Status Open();
  [[nodiscard]] Result<std::unique_ptr<model::LocalRunner>> Load(const OpenOrder& order,
                                                                 const formats::Checkpoint& file);
  [[nodiscard]] Status RunPass(Network& network);
  [[nodiscard]] Result<std::shared_ptr<formats::Checkpoint>> FileAt(const std::string& path) const;

  RankGroup::Impl& group_;
  model::Message message_;
  const kernels::Kernels* kernels_ = nullptr;
  std::vector<std::unique_ptr<ThreadPool>> teams_;  // the last one is of the engine that opens
  std::map<int, Network> networks_;                 // by number
};

}  // namespace foretoken::loader
