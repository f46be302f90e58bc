// SPDX-License-Identifier: Apache-2.0
// Traces and settings come from files: the time to read them must grow no faster than they do.
#include "base/scaling_testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "foretoken/nearest_name.h"
#include "foretoken/speculative_config.h"
#include "foretoken/tools/replay.h"

namespace foretoken::config {
namespace {

TEST(Scaling, Traces) {
  const std::string header = R"({"trace": "foretoken", "version": 1})";
  for (const char* const part :
       {"{}\n", "{\"a\":", "[", "[{}],", "\n", "{\"request\": 0}\n", "{\"round\": {}}\n", "1", "\"",
        "{\"a\": [{},{},{}]}\n", "\\u0000"})
    for (const std::string& front :
         {std::string(), header + "\n", header + "\n{\"round\": {\"x\": ["})
      ExpectLinear(front + " and " + part, {1 << 14, 1 << 16, 1 << 18}, [&](std::size_t size) {
        return [text = front + Repeated(part, size)] {
          [[maybe_unused]] const auto trace = ParseTrace(text, "a.jsonl");
        };
      });
}

TEST(Scaling, SpeculativeSettings) {
  for (const SpeculativeKey& key : SpeculativeKeys())
    for (const char* const part : {"a", "1,", "[[1,2],", "ngram,"})
      ExpectLinear(fmt::format("{}: {}", key.name, part), {1 << 10, 1 << 12, 1 << 14},
                   [&](std::size_t size) {
                     return [&key, text = Repeated(part, size)] {
                       SpeculativeOptions options;
                       [[maybe_unused]] const auto set = key.set(options, text);
                     };
                   });
  ExpectLinear("a list of methods", {1 << 10, 1 << 12, 1 << 14}, [](std::size_t size) {
    return [text = Repeated("ngram,", size)] {
      SpeculativeOptions options;
      options.method = text;
      [[maybe_unused]] const auto config = SpeculativeConfig::Create(options);
    };
  });
  ExpectLinear("a name", {1 << 10, 1 << 12, 1 << 14}, [](std::size_t size) {
    return [text = std::string(size, 'g')] {
      SpeculativeOptions options;
      [[maybe_unused]] const auto set = SetSpeculativeOption(options, text, "1");
    };
  });
}

}  // namespace
}  // namespace foretoken::config
