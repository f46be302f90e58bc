// SPDX-License-Identifier: Apache-2.0
// Settings come from files: the work to read them must grow no faster than they do.
#include "base/growth_testing.h"

#include <fmt/format.h>

#include "config/nearest_name.h"
#include "foretoken/speculative_config.h"

namespace foretoken::config {
namespace {

TEST(SettingsGrowth, SpeculativeSettings) {
  for (const SpeculativeKey& key : SpeculativeKeys())
    for (const char* const part : {"a", "1,", "[[1,2],", "ngram,"})
      ExpectLinear(fmt::format("{}: {}", key.name, part), {1 << 12, 1 << 14},
                   [&](std::size_t size) {
                     return [&key, text = Repeated(part, size)] {
                       SpeculativeOptions options;
                       [[maybe_unused]] const auto set = key.set(options, text);
                     };
                   });
  ExpectLinear("a list of methods", {1 << 12, 1 << 14}, [](std::size_t size) {
    return [text = Repeated("ngram,", size)] {
      SpeculativeOptions options;
      options.method = text;
      [[maybe_unused]] const auto config = SpeculativeConfig::Create(options);
    };
  });
  ExpectLinear("a name", {1 << 12, 1 << 14}, [](std::size_t size) {
    return [text = std::string(size, 'g')] {
      SpeculativeOptions options;
      [[maybe_unused]] const auto set = SetSpeculativeOption(options, text, "1");
    };
  });
}

}  // namespace
}  // namespace foretoken::config
