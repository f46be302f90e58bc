// SPDX-License-Identifier: Apache-2.0
// loader/ranks/open_order.h: what rank 0 tells the other ranks when it opens an engine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "model/local_runner.h"
#include "model/ranks/message.h"
#include "model/ranks/words.h"

namespace foretoken::loader {

// The threads that compute, as EngineOptions say.
struct TeamOrder {
  std::string isa;
  int threads = 0;
  bool pin = false;
};

void WriteTeam(const TeamOrder& team, model::Message& message);
// Error: kIo (a damaged message).
[[nodiscard]] Result<TeamOrder> ReadTeam(model::Words words);

// A network to load a part of.
struct OpenOrder {
  std::string path;
  int target = -1;  // of a head or a copy: the number of the network that it belongs to
  std::optional<model::CopyTypes> copy = {};  // the network is a copy of `target`
  int vocabulary = 0;
  model::RunnerOptions options;  // without `ranks`; `division` by `shares`
  std::vector<int> shares;
  std::string repack_cache;
  int repack_cache_gb = 0;
};

void WriteOpen(const OpenOrder& order, model::Message& message);
// Error: kIo (a damaged message).
[[nodiscard]] Result<OpenOrder> ReadOpen(model::Words words);

}  // namespace foretoken::loader
