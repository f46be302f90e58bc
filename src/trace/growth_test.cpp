// SPDX-License-Identifier: Apache-2.0
// The work to read a trace must grow no faster than the trace.
#include "base/growth_testing.h"

#include "fixtures/tiny_model.h"
#include "trace/traces_testing.h"

namespace foretoken::trace {
namespace {

TEST(TraceGrowth, HostileText) {
  const std::string path = fixtures::TemporaryFolder() + "/run.jsonl";
  ASSERT_TRUE(Record(TraceOf({.right = RightWith(0.7, 1), .tokens = 2}, 1, 1), path));
  const std::string recorded = WholeFile(path), header = recorded.substr(0, recorded.find('\n'));
  for (const char* const part :
       {"{}\n", "{\"a\":", "[", "[{}],", "{},", "\n", "{\"request\": 0}\n", "{\"round\": {}}\n",
        "1", "\"", "{\"a\": [{},{},{}]}\n", "\\u0000"})
    for (const std::string& front :
         {std::string(), header + "\n", header + "\n{\"round\": {\"x\": ["})
      ExpectLinear(front + " and " + part, {1 << 12, 1 << 14}, [&](std::size_t size) {
        return [text = front + Repeated(part, size) + "\n"] {
          [[maybe_unused]] const auto trace = ParseTrace(text, "a.jsonl");
        };
      });
}

TEST(TraceGrowth, RecordedRounds) {
  const std::string path = fixtures::TemporaryFolder() + "/run.jsonl";
  ExpectLinear("rounds", {1024, 4096}, [&](std::size_t tokens) {
    const TracedWorld world{.right = RightWith(0.7, 1), .tokens = static_cast<int>(tokens)};
    EXPECT_TRUE(Record(TraceOf(world, 4), path));
    return [text = WholeFile(path)] { EXPECT_TRUE(ParseTrace(text, "run.jsonl")); };
  });
}

}  // namespace
}  // namespace foretoken::trace
