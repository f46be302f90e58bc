// SPDX-License-Identifier: Apache-2.0
// ranks TARGET DRAFT: one model on all processes that mpirun has started (mpirun -n 2 ranks TARGET DRAFT), and on
// this one alone without mpirun.
#include <iostream>
#include <memory>

#include "foretoken/engine.h"
#include "foretoken/ranks.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: ranks TARGET DRAFT\n", 2;
  std::shared_ptr<foretoken::RankGroup> group;  // none: this process alone
  if (foretoken::RankGroup::StartedRanks() > 1) {
    auto joined = foretoken::RankGroup::Join({.arguments = {argv + 1, argv + argc}});
    if (!joined) return std::cerr << joined.error().message << '\n', 1;
    group = *joined;
    if (!group->leads()) return group->Follow() ? 0 : 1;
  }
  auto engine = foretoken::Engine::Open({.model = argv[1], .draft_model = argv[2], .ranks = group});
  if (!engine) return std::cerr << engine.error().message << '\n', 1;
  foretoken::Request request;
  request.prompt = "Once upon a time";
  request.max_new_tokens = 40;
  const auto completion = (*engine)->Generate(request);
  if (!completion) return std::cerr << completion.error().message << '\n', 1;
  std::cout << completion->text << '\n';
}
