// SPDX-License-Identifier: Apache-2.0
// expected TARGET DRAFT: what generate_test.c compares with, from the C++ engine.
#include <cstdio>

#include "foretoken/engine.h"

namespace {

bool Print(foretoken::Engine& engine, const char* kind, float temperature, std::uint64_t seed) {
  foretoken::Request request{
      .prompt = "Once upon a time", .max_new_tokens = 40, .seed = seed, .logprobs = 2};
  request.sampling.temperature = temperature;
  const auto completion = engine.Generate(request);
  if (!completion) return std::fprintf(stderr, "%s\n", completion.error().message.c_str()), false;
  std::printf("%s %g %d %zu", kind, static_cast<double>(temperature), static_cast<int>(seed),
              completion->token_ids.size());
  for (std::size_t i = 0; i < completion->token_ids.size(); ++i)
    std::printf(" %d %.9g", completion->token_ids[i],
                static_cast<double>(completion->logprobs[i].logprob));
  std::printf("\n");
  return true;
}

}  // namespace

int main(int, char** argv) {
  foretoken::EngineOptions options{
      .model = argv[1], .find_drafters = false, .context_size = 256, .threads = 1};
  options.repack_cache = "off";
  options.speculative.method = "none";
  const auto plain = foretoken::Engine::Open(options);
  options.draft_model = argv[2];
  options.speculative = {};
  options.speculative.controller = "fixed";
  options.speculative.num_speculative_tokens = 4;
  const auto drafting = foretoken::Engine::Open(options);
  if (!plain || !drafting) return 1;
  bool ok = true;
  for (const float temperature : {0.0f, 1.0f}) {
    ok = Print(**plain, "plain", temperature, 7) && ok;
    ok = Print(**drafting, "drafted", temperature, 7) && ok;
  }
  return ok ? 0 : 1;
}
