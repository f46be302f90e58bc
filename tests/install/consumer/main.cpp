// SPDX-License-Identifier: Apache-2.0
// consumer TARGET DRAFT: a user's program. Prints the ids of the tokens as they come.
#include <iostream>

#include "foretoken/engine.h"

int main(int, char** argv) {
  auto engine = foretoken::Engine::Open({.model = argv[1], .draft_model = argv[2]});
  if (!engine) return std::cerr << engine.error().message << '\n', 1;
  foretoken::Request request;
  request.prompt = "Once upon a time";
  auto completion = (*engine)->Generate(request, [](const foretoken::RoundEvent& round) {
    for (const auto& event : round.events) std::cout << event.id << ' ' << std::flush;
    return true;
  });
  if (!completion) return std::cerr << completion.error().message << '\n', 1;
}
