// SPDX-License-Identifier: Apache-2.0
// model/weights/weights_loader.h: fills a plan: takes its tiles from the cache, or repacks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/machine/thread_pool.h"
#include "foretoken/result.h"
#include "model/weights/plan/network_plan.h"
#include "model/weights/tile_cache.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class WeightsLoader {
 public:
  // weights: those that were planned into. network: of which they are a copy, or null. All must outlive
  // the loader.
  WeightsLoader(const NetworkPlan& plan, Weights& weights, const Weights* network = nullptr)
      : plan_(plan), weights_(weights), network_(network) {}

  // Takes the tiles from the cache, or repacks them and gives them to it. Error: the file changed
  // meanwhile.
  [[nodiscard]] Status Fill(ThreadPool& pool, const LoadOptions& options);

 private:
  // Whether its tiles are the network's own.
  bool IsShared(const MatrixJob& job) const { return network_ != nullptr && !job.as; }
  // The embedding tables, and the tiles that are the network's own.
  void TakeShared(ThreadPool& pool);
  // Tells what the types cost that are kept in a wider form.
  void NoteWidened(const LoadOptions& options) const;
  Status FillNew(const TileCache& cache, std::uint64_t key, ThreadPool& pool,
                 const LoadOptions& options);
  static Status CannotPage(const std::string& why);
  // made: how many of the first bytes are final already.
  void Repack(ThreadPool& pool, const LoadOptions& options, std::size_t made = 0);
  // False: stop.
  bool Report(const LoadOptions& options, const LoadStep& step);
  // A hash of all that decides what the tiles are: the file, and which tensor lies where.
  std::uint64_t Key() const;

  const NetworkPlan& plan_;
  Weights& weights_;
  const Weights* const network_;
  bool stopped_ = false;
  std::vector<std::uint64_t> source_hashes_;  // of the places of each job's tensor
};

}  // namespace foretoken::model
