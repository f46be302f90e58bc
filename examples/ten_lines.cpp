// SPDX-License-Identifier: Apache-2.0
// ten_lines TARGET DRAFT: shows the text as it comes.
#include <iostream>

#include "foretoken/engine.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: ten_lines TARGET DRAFT\n", 2;
  auto engine = foretoken::Engine::Open({.model = argv[1], .draft_model = argv[2]});
  if (!engine) return std::cerr << engine.error().message << '\n', 1;
  foretoken::Request request;
  request.prompt = "Once upon a time";
  auto completion = (*engine)->Generate(request, [](const foretoken::RoundEvent& round) {
    for (const auto& event : round.events) std::cout << event.text << std::flush;
    return true;
  });
  if (!completion) return std::cerr << completion.error().message << '\n', 1;
  std::cout << "\n" << completion->token_ids.size() << " tokens\n";
  return completion->token_ids.empty() ? 1 : 0;
}
