// SPDX-License-Identifier: Apache-2.0
// Prints the log-probability of each token of a fixed text after the first, one per line:
// score_tokens MODEL 1,2,3 [CONTEXT]. The cache keeps F32.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "foretoken/engine.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: score_tokens MODEL 1,2,3 [CONTEXT]\n");
    return 2;
  }
  std::vector<std::int32_t> tokens;
  for (char* p = argv[2]; *p != '\0';) {
    tokens.push_back(static_cast<std::int32_t>(std::strtol(p, &p, 10)));
    if (*p == ',') ++p;
  }
  const auto engine = foretoken::Engine::Open({.model = argv[1],
                                               .speculative = {.method = "none"},
                                               .context_size = argc == 4 ? std::atoi(argv[3]) : 0,
                                               .cache_type_k = foretoken::CacheType::kF32,
                                               .cache_type_v = foretoken::CacheType::kF32});
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().message.c_str()), 1;
  const auto scores = (*engine)->Score(tokens);
  if (!scores) return std::fprintf(stderr, "%s\n", scores.error().message.c_str()), 1;
  for (const float s : *scores) std::printf("%.7f\n", static_cast<double>(s));
  return 0;
}
