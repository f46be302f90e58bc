// SPDX-License-Identifier: Apache-2.0
// Token ids and bits of log-probabilities of 216 requests, as they were when recorded_bits.txt was
// written: every method, strategy, network, cache type and way of batching. All instruction sets
// must give these bits.
//
// A deliberate change of the arithmetic or of a rule changes the file:
// RECORD_BITS=tests/lossless/recorded_bits.txt
// build/release/tests/lossless/recorded_bits_tests
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "kernels/dispatch.h"
#include "lossless/same_bits_testing.h"

namespace foretoken {
namespace {

// K-quants have rows of 256.
const std::vector<fixtures::NamedOptions>& Networks() {
  static const auto networks = fixtures::TinyTable(R"(
llama: seed=301 n_heads=2 n_kv_heads=1 vocab=400 context_length=160
qwen2: qwen2 Q8_0 seed=302 dim=128 ff=128 vocab=400 tied context_length=160
qwen3: qwen3 Q4_0 seed=303 n_layers=3 dim=256 ff=256 head_dim=32 vocab=400 context_length=160
    attn_v=Q6_K ffn_down=Q4_K)");
  return networks;
}

struct Method {
  const char* name;
  const char* file = "";  // that it reads
};
constexpr Method kMethods[] = {{"none"},
                               {"ngram"},
                               {"suffix"},
                               {"prediction"},
                               {"standalone", "standalone"},
                               {"mtp", "mtp"},
                               {"eagle", "eagle"},
                               {"standalone,ngram,suffix", "standalone"}};

// Files by method, as WriteDrafts has them.
using Files = std::map<std::string, std::string>;

EngineOptions OptionsFor(const Files& files, const Method& method, CacheType cache,
                         const std::string& isa, int threads) {
  EngineOptions o;
  o.model = files.at("none");
  o.draft_model = method.file[0] == 0 ? "" : files.at(method.file);
  o.speculative.method = method.name;
  o.speculative.controller = "fixed";
  o.speculative.num_speculative_tokens = 4;
  o.max_sequences = 3;
  o.threads = threads;
  o.isa = isa;
  o.cache_type_k = o.cache_type_v = cache;
  return o;
}

std::vector<Request> Requests(int k) {
  Request greedy;
  greedy.prompt = "the tale of the old mill and the tale of the mill";
  greedy.max_new_tokens = 40;
  greedy.ignore_eos = true;
  greedy.logprobs = 3;
  greedy.sampling.temperature = 0;
  greedy.prediction = " and the tale of the mill";
  greedy.id = static_cast<std::uint64_t>(k);
  Request sampled = greedy;
  sampled.prompt = "a b a b a";
  sampled.sampling.temperature = 0.8f;
  sampled.sampling.top_p = 0.95f;
  sampled.seed = 5;
  Request shaped = greedy;
  shaped.prompt = "the tale of the old";  // shares its beginning with the first
  shaped.sampling.temperature = 1.0f;
  shaped.sampling.top_k = 40;
  shaped.sampling.min_p = 0.01f;
  shaped.sampling.repetition_penalty = 1.1f;
  shaped.sampling.dry.multiplier = 0.5f;
  shaped.sampling.grammar = "root ::= [a-z ]{8,60}";
  shaped.ignore_eos = false;
  shaped.seed = 6;
  return {greedy, sampled, shaped};
}

constexpr std::size_t kLinesOfARun = 9;  // three turns of three requests

constexpr std::uint64_t kSeed = 0xcbf29ce484222325;
void Mix(std::uint64_t& hash, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) hash = (hash ^ ((value >> (8 * i)) & 0xff)) * 0x100000001b3;
}

std::string LineOf(const std::string& what, const Completion& c) {
  std::uint64_t tokens = kSeed, bits = kSeed;
  for (const auto id : c.token_ids) Mix(tokens, static_cast<std::uint32_t>(id));
  for (const TokenLogprobs& logprobs : c.logprobs) {
    Mix(bits, std::bit_cast<std::uint32_t>(logprobs.logprob));
    for (const auto& [id, value] : logprobs.top)
      Mix(bits, static_cast<std::uint32_t>(id)), Mix(bits, std::bit_cast<std::uint32_t>(value));
  }
  std::ostringstream line;
  line << what << ' ' << c.strategy << ' ' << c.token_ids.size() << " tokens " << std::hex << tokens
       << " logprobs " << bits << std::dec << " drafted " << c.speculation.drafted << " accepted "
       << c.speculation.accepted;
  return line.str();
}

// Strategies that read distributions need a drafter that reports them.
std::vector<VerifyStrategy> StrategiesOf(const Method& method) {
  using S = VerifyStrategy;
  const bool reports = method.file[0] != 0;
  const bool all = reports && std::string_view(method.name).find(',') == std::string_view::npos;
  if (all) return {S::kAuto, S::kResidual, S::kBlock, S::kRelaxed, S::kLogitComparison};
  return {S::kAuto, S::kSampleMatch, S::kTargetProbability, S::kTypicalAcceptance};
}

void Run(const std::string& network, const Files& files, int m, const std::string& isa, int threads,
         std::vector<std::string>& lines) {
  constexpr CacheType kCaches[] = {CacheType::kF16, CacheType::kF32, CacheType::kQ8_0};
  const Method& method = kMethods[m];
  const auto engine = OpenEngine(OptionsFor(files, method, kCaches[m % 3], isa, threads));
  const auto strategies = StrategiesOf(method);
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<Request> requests = Requests(10 * m + turn);
    for (std::size_t i = 0; i < requests.size(); ++i)
      requests[i].speculative.strategy =
          strategies[(static_cast<std::size_t>(turn) + i) % strategies.size()];
    // One after the other; then together.
    const auto done =
        turn == 0 ? GeneratedInTurn(*engine, requests) : GeneratedTogether(*engine, requests);
    for (std::size_t i = 0; i < done.size(); ++i)
      lines.push_back(
          LineOf(network + ' ' + method.name + ' ' + std::to_string(turn) + '.' + std::to_string(i),
                 done[i]));
  }
}

// every_second: an even network runs the even methods, and an odd one the odd methods, so each network
// still has every type of cache. The lines of methods that are not run are empty.
std::vector<std::string> RunAll(const std::string& isa, int threads, bool every_second) {
  const auto& networks = Networks();
  static const std::vector<Files> files = [] {
    std::vector<Files> made;
    for (const auto& [name, options] : Networks())
      made.push_back(WriteDrafts(
          options,
          {{"mtp", {.layers = {0, 1, 2}}}, {"eagle", {.eagle = true, .layers = {0, 1, 2}}}}, 0.1));
    return made;
  }();
  std::vector<std::string> lines;
  for (std::size_t n = 0; n < networks.size(); ++n)
    for (int m = 0; m < static_cast<int>(std::size(kMethods)); ++m) {
      if (every_second && (static_cast<int>(n) + m) % 2 != 0)
        lines.resize(lines.size() + kLinesOfARun);
      else
        Run(networks[n].name, files[n], m, isa, threads, lines);
    }
  return lines;
}

std::vector<std::string> Recorded() {
  std::ifstream file(FORETOKEN_RECORDED_BITS);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(RecordedBits, AreTheSameOnEveryInstructionSet) {
  if (const char* const path = std::getenv("RECORD_BITS")) {
    std::ofstream file(path);
    for (const std::string& line : RunAll("scalar", 1, false)) file << line << '\n';
  }
  const auto recorded = Recorded();
  ASSERT_EQ(recorded.size(), 216u);
  int drafted = 0;
  for (const std::string& line : recorded) drafted += line.find("accepted 0") == std::string::npos;
  EXPECT_GT(drafted, 60);  // texts under speculation are what this is about
  const auto isas = kernels::AvailableIsas();
  for (const kernels::Isa isa : isas) {
    // The best set runs with two threads, since these give the bits of one. Scalar code is slow.
    const bool scalar = isa == kernels::Isa::kScalar && isas.size() > 1;
    const auto lines = RunAll(std::string(kernels::Name(isa)), isa == isas.back() ? 2 : 1, scalar);
    ASSERT_EQ(lines.size(), recorded.size());
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (!scalar || !lines[i].empty()) EXPECT_EQ(lines[i], recorded[i]) << kernels::Name(isa);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), ""), scalar ? 108 : 0);
  }
}

TEST(RecordedBitsSlow, AreThoseOfScalarCode) {
  EXPECT_EQ(RunAll("scalar", 2, false), Recorded());
}

}  // namespace
}  // namespace foretoken
