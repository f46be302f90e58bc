// SPDX-License-Identifier: Apache-2.0
// Feeds bytes to the trace reader and replays the traces that it accepts. The mutator changes lines
// of a small valid trace, so that most of a mutant is still valid.
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "foretoken/tools/replay.h"

namespace {

constexpr const char* kSeed =
    R"({"foretoken_trace":1,"version":"0","cpu":"c","isa":"avx2","threads":1,"model":"m","model_type":"F32","draft_model":"d","draft_type":"F32","method":"ngram","strategy":"greedy","lookahead":"fixed","num_speculative_tokens":2,"context_size":64,"max_sequences":2}
{"request":0,"id":0,"seed":1,"method":"ngram","strategy":"greedy","lookahead":"fixed","num_speculative_tokens":2,"temperature":0,"top_k":0,"top_p":1,"min_p":0,"prompt_tokens":3,"max_new_tokens":9}
{"costs":[{"rows":1,"context":0,"us":10.5},{"rows":3,"context":32,"us":12}]}
{"pass":0,"of":0,"prefill":true,"fed":3,"position":3,"context":0,"others":0,"rows":3,"asked":0,"accepted":0,"committed":1,"next":5,"kind":"plain","draft_us":0,"verify_us":30,"rest_us":1}
{"pass":1,"of":0,"prefill":false,"fed":1,"position":4,"context":3,"others":0,"rows":3,"asked":2,"drafter":"ngram","instant":true,"evidence":1,"drafts":[5,6],"q":[1,1],"p":[1,0.5],"accepted":1,"committed":2,"next":7,"kind":"recovered","draft_us":1,"verify_us":12,"rest_us":1}
{"pass":2,"of":0,"prefill":false,"fed":1,"position":6,"context":5,"others":0,"rows":1,"asked":2,"accepted":0,"committed":1,"next":7,"kind":"plain","draft_us":1,"verify_us":10,"rest_us":1,"end":"stop"}
)";

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned) {
  const std::size_t seed = std::strlen(kSeed);
  if (size >= 32 || max_size < seed) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, kSeed, seed);
  return seed;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace foretoken;
  const auto trace = ParseTrace({reinterpret_cast<const char*>(data), size}, "fuzz.jsonl");
  if (!trace) {
    FORETOKEN_CHECK(trace.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const char* controller : {"fixed", "cost-model", "ewma"}) {
    const auto replayed = Replay(*trace, {.num_speculative_tokens = 3, .controller = controller});
    if (!replayed) continue;
    FORETOKEN_CHECK(replayed->tally.accepted <= replayed->tally.drafted);
    FORETOKEN_CHECK(replayed->tally.tokens <= replayed->tally.rounds + replayed->tally.accepted);
    FORETOKEN_CHECK(replayed->tally.us >= 0);
  }
  return 0;
}
