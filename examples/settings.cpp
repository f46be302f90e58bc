// SPDX-License-Identifier: Apache-2.0
// settings TARGET DRAFT: settings from a file that was written for Modular MAX, changed by the
// program, and used.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>

#include "foretoken/engine.h"
#include "foretoken/speculative_config.h"

namespace {

constexpr const char* kFile = R"(speculative_config:
  speculative_method: standalone
  num_speculative_tokens: 3
  num_speculative_tokens_mixed_batch: 1
  rejection_sampling_strategy: typical-acceptance
)";

int Fail(const std::string& message) {
  std::cerr << "settings: " << message << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: settings TARGET DRAFT\n", 2;
  const std::string path = std::filesystem::temp_directory_path() /
                           ("foretoken_settings_" + std::to_string(getpid()) + ".yaml");
  std::ofstream(path) << kFile;
  const auto config = foretoken::SpeculativeConfig::Load(path, foretoken::kSpeculativeSection, {},
                                                         foretoken::ConfigDialect::kMax);
  std::filesystem::remove(path);
  if (!config) return Fail(config.error().message);
  if (!config->is_standalone() || !config->uses_typical_acceptance() || !config->lossless())
    return Fail("the file was read wrongly");

  // An immutable configuration gives others. A wrong value is an error that names it.
  const auto wrong = config->With("num_speculative_tokens", "65");
  if (wrong) return Fail("65 drafts were accepted");
  std::cout << wrong.error().message << '\n';
  const auto five = config->With("num_speculative_tokens", "5");
  const auto config_five = five ? five->With("rejection_sampling_strategy", "sample-match") : five;
  if (!config_five) return Fail(config_five.error().message);
  for (const auto& [key, value] : foretoken::Describe(config_five->options()))
    if (key.starts_with("num_speculative_tokens")) std::cout << key << ": " << value << '\n';

  // Rounds have as many drafts as the file, or the program, says; fewer only where the drafter or the text ends.
  for (const auto& [speculative, drafts] :
       {std::pair(config->options(), 3), {config_five->options(), 5}}) {
    auto engine = foretoken::Engine::Open(
        {.model = argv[1], .draft_model = argv[2], .speculative = speculative});
    if (!engine) return Fail(engine.error().message);
    foretoken::Request request;
    request.prompt = "Once upon a time";
    request.max_new_tokens = 60;
    request.ignore_eos = true;
    request.sampling.temperature = 0.8f;
    const auto completion = (*engine)->Generate(request);
    if (!completion) return Fail(completion.error().message);
    const auto& rounds = completion->speculation.k_histogram;
    const auto all = std::accumulate(rounds.begin(), rounds.end(), std::int64_t{0});
    std::cout << completion->strategy << ", " << completion->controller << ": " << rounds.back()
              << " of " << all << " rounds with " << drafts << " drafts\n";
    if (static_cast<int>(rounds.size()) != drafts + 1 || 2 * rounds.back() < all)
      return Fail("the rounds have other lengths");
  }
}
