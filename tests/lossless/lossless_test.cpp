// SPDX-License-Identifier: Apache-2.0
// The promise: speculation changes when tokens come, but neither the tokens nor any bit of the
// target's log-probabilities.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "foretoken/catalogue.h"
#include "kernels/dispatch.h"
#include "lossless/bundled_testing.h"
#include "lossless/distribution_testing.h"
#include "lossless/same_bits_testing.h"

namespace foretoken {
namespace {

struct FamilyPair {
  std::string name, target;
  std::map<std::string, std::string> drafts;  // by method; portfolio here is the lookups alone
  bool large = false;  // scalar code would take minutes: it is tried on the others

  std::vector<std::string> methods() const {
    std::vector<std::string> names = {"portfolio"};
    for (const DrafterInfo* const row : AllDrafters())
      if (!row->reads_file && row->drafts_from != "a grammar") names.emplace_back(row->name);
    for (const auto& [method, path] : drafts) names.push_back(method);
    return names;
  }
};

// Synthetic pairs (a draft is its target with noise), the bundled models, and another real small
// pair if it is available.
const std::vector<FamilyPair>& Pairs() {
  static const std::vector<FamilyPair> pairs = [] {
    const std::string folder = fixtures::TemporaryFolder();
    std::vector<FamilyPair> made;
    // Heads that do not read the first, the middle and the last layer, as all others do.
    const std::map<std::string, fixtures::TinyHeadOptions> heads = {
        {"llama_q8_0", {.layers = {0, 0, 1}, .draft_vocabulary = 96, .norm_before_residual = true}},
        {"qwen3_q4_0", {.layers = {1, 0, 1}, .own_embedding = true, .norm_before_fc = true}},
        {"smollm3_f32", {.layers = {0, 3, 4}}},
        {"llama_other_types", {.layers = {1, 0, 1}}}};
    // The windows of gemma are shorter than the text. The gemmas 4 have shared caches and inputs of layers,
    // or experts beside a dense part.
    for (auto& [name, options] : fixtures::TinyTable(R"(
llama_f32: seed=21
llama_q8_0: Q8_0 seed=22 n_layers=1
qwen3_q4_0: qwen3 Q4_0 seed=23 n_layers=1
smollm3_f32: smollm3 seed=25 n_layers=4
granite_q8_0: granite Q8_0 seed=26 n_layers=1
gemma3_f32: gemma3 seed=27 n_layers=6 head_dim=32 window=12
gemma2_q8_0: gemma2 Q8_0 seed=28 window=20
gemma4_e_f32: gemma4 seed=30 n_layers=6 head_dim=16 window=12 shared_caches=3 layer_input=16
gemma4_moe_q8_0: gemma4 Q8_0 seed=31 n_layers=3 head_dim=16 window=12 n_experts=6
qwen3moe_q8_0: qwen3moe Q8_0 seed=29 n_layers=1 n_experts=8 n_used=3
deepseek2_q8_0: deepseek2 Q8_0 seed=30 n_kv_heads=1 head_dim=48 q_rank=32 n_experts=8 n_used=3
    shared_ff=32 n_dense=1 rope_dimensions=16
llama_other_types: Q4_K seed=24 n_layers=1 dim=256 ff=256 attn_k=Q5_K attn_v=Q6_K attn_output=Q4_1
    ffn_gate=Q5_0 ffn_up=Q5_1 ffn_down=F16 output=BF16)")) {
      FamilyPair& pair = made.emplace_back();
      pair.name = name;
      pair.target = fixtures::WriteTinyModel(folder, options);
      fixtures::TinyHeadOptions eagle{.layers = {0, options.n_layers / 2, options.n_layers}};
      if (const auto own = heads.find(name); own != heads.end()) eagle = own->second;
      eagle.target = options;
      eagle.weight_type = options.weight_type;
      const fixtures::TinyHeadOptions mtp = eagle;
      eagle.eagle = true;
      pair.drafts["eagle"] = fixtures::WriteTinyHead(folder, eagle);
      fixtures::TinyHeadOptions block = eagle;
      block.block = true, block.window = 20, block.block_size = 6;
      if (options.arch == "qwen3") block.transition_rank = 32, block.certainty = true;
      if (options.arch == "smollm3" || options.arch == "granite")
        block.taps = 2, block.n_candidates = 8;
      pair.drafts["dflash"] = fixtures::WriteTinyHead(folder, block);
      // MTP heads are written for blocks whose parts are as llama's, but for their norms and biases.
      if (options.arch != "gemma4" && options.arch != "deepseek2")
        pair.drafts["mtp"] = fixtures::WriteTinyHead(folder, mtp);
      options.noise = 0.15;
      pair.drafts["standalone"] = fixtures::WriteTinyModel(folder, options);
    }
    if (std::filesystem::exists(Bundled("9m-q8_0")))
      made.push_back({"bundled",
                      Bundled("9m-q8_0"),
                      {{"standalone", Bundled("1m-draft-q8_0")},
                       {"eagle", Bundled("9m-eagle-q8_0")},
                       {"mtp", Bundled("9m-mtp-q8_0")}},
                      true});
    const std::string models = FORETOKEN_SOURCE_DIR "/../shared/models/";
    if (std::filesystem::exists(models + "tiny1m-Q4_0.gguf"))
      made.push_back({"tiny1m_q4_0",
                      models + "tiny1m-Q4_0.gguf",
                      {{"standalone", models + "stories260K.gguf"}}});
    return made;
  }();
  return pairs;
}

std::unique_ptr<Engine> OpenPair(const FamilyPair& pair, const std::string& method,
                                 const std::string& isa, int threads, int sequences,
                                 VerifyStrategy strategy = VerifyStrategy::kAuto) {
  EngineOptions options{
      .model = pair.target,
      .speculative = {.method = method, .strategy = strategy, .controller = "fixed"},
      .max_sequences = sequences,
      .threads = threads,
      .isa = isa};
  if (pair.drafts.contains(method)) options.draft_model = pair.drafts.at(method);
  return OpenEngine(options);
}

std::vector<Request> PairRequests(float temperature, int n) {
  std::vector<Request> requests(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Request& r = requests[i];
    r.prompt =
        i % 2 ? "one day the little dog and the little cat and the" : "once upon a time there was";
    r.max_new_tokens = 24 + static_cast<int>(i) * 5;
    r.sampling.temperature = temperature;
    r.seed = 40 + i;
    r.id = i;
    r.logprobs = 8;
    r.ignore_eos = true;
  }
  return requests;
}

// The texts of these requests, with a gap in each, become predictions.
std::vector<Request> Predicted(std::vector<Request> requests,
                               const std::vector<Completion>& plain) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string& text = plain[i].text;
    requests[i].prediction =
        text.substr(0, text.size() / 2) + text.substr(std::min(text.size(), text.size() / 2 + 5));
  }
  return requests;
}

std::vector<Completion> GenerateAll(Engine& engine, std::vector<Request> requests, int k) {
  for (auto& r : requests) r.speculative.num_speculative_tokens = k;
  return GeneratedTogether(engine, requests);
}

std::vector<std::string> Isas() {
  std::vector<std::string> names;
  for (const auto isa : kernels::AvailableIsas()) names.emplace_back(kernels::Name(isa));
  return names;
}

// The draft lengths that a family is tried with. Three, of which the last is longer than any head's
// block, are enough for most. The first family has all eight on every instruction set, and the next
// two, whose weights are of other types, on the best one. Two threads cut the same products: one length
// shows how. Scalar code takes one row after the other, and is slow: its products of one length are
// those of another.
std::vector<int> LengthsOf(std::size_t family, const std::string& isa, bool best, int threads) {
  if (threads > 1) return {3};
  if (isa == "scalar") return family == 0 ? std::vector{3, 8} : std::vector{3};
  if (family == 0 || (family < 3 && best)) return {1, 2, 3, 4, 5, 6, 7, 8};
  return {1, 3, 8};
}

TEST(Lossless, GreedyTokensAndLogprobsAreBitwiseThoseOfPlainDecoding) {
  std::map<std::string, std::int64_t> accepted;  // by method; 0 would mean that nothing was tested
  const auto isas = Isas();
  for (std::size_t family = 0; family < Pairs().size(); ++family) {
    const FamilyPair& pair = Pairs()[family];
    // Plain decoding with the first instruction set and one thread; all others must be equal.
    std::vector<Completion> first;
    std::map<std::string, std::int64_t> drafts;  // accepted, by method, K and request
    for (const std::string& isa : isas)
      for (const int threads : {1, 2}) {
        if (isa == "scalar" && (pair.large || (threads > 1 && family > 0))) continue;
        const auto plain_engine = OpenPair(pair, "none", isa, threads, 1);
        const auto plain = GenerateAll(*plain_engine, PairRequests(0, 2), 0);
        const auto requests = Predicted(PairRequests(0, 2), plain);
        if (first.empty()) first = plain;
        ExpectSame(plain, first, fmt::format("{} plain {} {} threads", pair.name, isa, threads));
        for (const std::string& method : pair.methods()) {
          // Lookups have no passes of their own, so the first family shows them on every set.
          const bool has_passes = pair.drafts.contains(method) || method == "self";
          if (!has_passes && (threads > 1 || (isa != isas.back() && family > 0))) continue;
          const auto engine = OpenPair(pair, method, isa, threads, 1);
          std::string lengths;  // lookups learn from the texts before
          for (const int k : LengthsOf(family, isa, isa == isas.back(), threads)) {
            lengths = (has_passes ? "" : lengths) + fmt::format(" {}", k);
            const auto completions = GenerateAll(*engine, requests, k);
            ExpectSame(completions, plain,
                       fmt::format("{} {} K {} {} {} threads", pair.name, method, k, isa, threads));
            for (std::size_t i = 0; i < plain.size(); ++i) {
              // Drafters are exact too: each instruction set proposes the same.
              const std::int64_t n = completions[i].speculation.accepted;
              const auto known =
                  drafts.emplace(fmt::format("{} K{} request {}", method, lengths, i), n);
              EXPECT_EQ(known.first->second, n)
                  << known.first->first << " " << isa << " " << threads;
              accepted[method] += n;
            }
          }
        }
      }
  }
  EXPECT_GT(accepted["standalone"], 500);
  EXPECT_GT(accepted["ngram"], 20);
  EXPECT_GT(accepted["mtp"], 500);
  EXPECT_GT(accepted["eagle"], 20);
  for (const char* method : {"suffix", "prediction", "portfolio"})
    EXPECT_GT(accepted[method], 100) << method;
}

TEST(Lossless, BatchesGivePlainTextAtEveryDraftLengthOnEveryInstructionSet) {
  const auto isas = Isas();
  for (std::size_t at = 0; at < 3; ++at) {
    const FamilyPair& pair = Pairs()[at];
    const auto plain = GenerateAll(*OpenPair(pair, "none", "", 1, 1), PairRequests(0, 7), 0);
    const auto requests = Predicted(PairRequests(0, 7), plain);
    for (const std::string& isa : isas)
      for (const std::string& method : pair.methods())
        for (const int batch : {2, 7}) {
          // Lookups have no passes: the first family shows their batches on every set.
          const bool has_passes = pair.drafts.contains(method) || method == "self";
          if (!has_passes && at > 0 && isa != isas.back()) continue;
          const auto engine = OpenPair(pair, method, isa, 1, batch);
          // Scalar code takes one row after the other, and is slow.
          for (const int k : isa == "scalar" ? std::vector{10 - batch} : std::vector{1, 3, 8})
            ExpectSame(GenerateAll(*engine, requests, k), plain,
                       fmt::format("{} {} {} batch {} K {}", pair.name, method, isa, batch, k));
        }
  }
}

// At temperature 0 a request alone has the plain text, as the tests above show. Above it the text
// depends on the drafts, so that each method has its own.
TEST(Lossless, BatchesGiveEachRequestWhatItGetsAlone) {
  for (const FamilyPair& pair : Pairs())
    for (const float temperature : {0.0f, 0.8f}) {
      const auto plain =
          GenerateAll(*OpenPair(pair, "none", "", 1, 1), PairRequests(temperature, 7), 0);
      const auto requests = Predicted(PairRequests(temperature, 7), plain);
      const bool sampled = temperature > 0;
      for (const std::string& method : pair.methods()) {
        const auto alone =
            sampled ? GenerateAll(*OpenPair(pair, method, "", 1, 1), requests, 3) : plain;
        for (const int batch : sampled ? std::vector{2, 7} : std::vector{7}) {
          const auto batch_engine = OpenPair(pair, method, "", sampled ? 1 : 2, batch);
          ExpectSame(GenerateAll(*batch_engine, requests, 3), alone,
                     fmt::format("{} {} batch {}", pair.name, method, batch));
        }
      }
    }
}

TEST(Lossless, SampleMatchGivesTheSameTextForTheSameSeedWhateverTheDrafter) {
  for (const FamilyPair& pair : Pairs()) {
    const auto plain_engine = OpenPair(pair, "none", "", 1, 1);
    auto requests = PairRequests(0.8f, 6);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (i % 3 == 1)
        requests[i].sampling.top_p = 0.9f, requests[i].sampling.repetition_penalty = 1.2f;
      if (i % 3 == 2)
        requests[i].sampling.top_k = 20, requests[i].sampling.presence_penalty = 0.5f,
        requests[i].min_new_tokens = 5;
    }
    const auto plain = GenerateAll(*plain_engine, requests, 0);
    requests = Predicted(requests, plain);
    for (const std::string& method : pair.methods()) {
      const auto engine = OpenPair(pair, method, "", 1, 1, VerifyStrategy::kSampleMatch);
      for (const int k : {1, 3, 8})
        ExpectSame(GenerateAll(*engine, requests, k), plain,
                   fmt::format("{} {} K {}", pair.name, method, k));
    }
  }
}

// How often each of the most frequent pairs (second token, third token) occurred in n requests with
// different noise.
TokenHistogram CountPairs(Engine& engine, float temperature, std::uint64_t first_id, int n) {
  Request r;
  r.prompt = "once upon a time there was";
  // The prefill gives the first; the others are drafted and verified.
  r.max_new_tokens = 4;
  r.ignore_eos = true;
  r.sampling.temperature = temperature;
  r.speculative.num_speculative_tokens = 3;
  std::vector<Request> requests(static_cast<std::size_t>(n), r);
  for (auto& request : requests) request.id = first_id++;
  TokenHistogram counts;
  for (const Completion& c : GeneratedTogether(engine, requests))
    ++counts[{c.token_ids[1], c.token_ids[2]}];
  return counts;
}

// The whole path, engine and draft model included: drafted text at T = 0.8 has the distribution of
// plain text; text at T = 0.7 does not.
TEST(Lossless, DraftedTextHasTheDistributionOfPlainTextAtTemperature08) {
  constexpr int kRequests = 6000;
  struct PlainCounts {
    TokenHistogram same, colder;
  };
  const auto plain_of = [](const FamilyPair& pair) -> PlainCounts {
    const auto engine = OpenPair(pair, "none", "", 1, 8);
    return {CountPairs(*engine, 0.8f, 0, kRequests),
            CountPairs(*engine, 0.7f, 2'000'000, kRequests)};
  };
  const PlainCounts all_plain[] = {plain_of(Pairs()[0]), plain_of(Pairs()[1])};
  for (const auto& [at, method] : {std::pair(0, "standalone"), std::pair(1, "mtp"),
                                   std::pair(1, "eagle"), std::pair(1, "dflash")}) {
    SCOPED_TRACE(method);
    const FamilyPair& pair = Pairs()[static_cast<std::size_t>(at)];
    const auto& [plain, colder] = all_plain[at];
    const auto drafted_engine = OpenPair(pair, method, "", 1, 8, VerifyStrategy::kResidual);
    const auto drafted = CountPairs(*drafted_engine, 0.8f, 1'000'000, kRequests);
    const auto [chi_square, freedom] = CompareSamples(plain, kRequests, drafted, kRequests);
    ASSERT_GE(freedom, 5);
    // Mean `freedom`, variance 2 * freedom: five standard deviations above.
    const double bound = freedom + 5 * std::sqrt(2.0 * freedom);
    EXPECT_LT(chi_square, bound) << freedom << " degrees of freedom";
    const double control = CompareSamples(colder, kRequests, drafted, kRequests).chi_square;
    EXPECT_GT(control, bound) << "the control must fail";
    std::printf("%s: chi-square %.1f, %d degrees of freedom, bound %.1f; control %.1f\n", method,
                chi_square, freedom, bound, control);
  }
}

// Prefill in chunks, and verification instead of single steps, write exactly the same cache.
TEST(Lossless, PrefillInChunksOfAnySizeGivesTheSameBits) {
  const FamilyPair& pair = Pairs()[1];
  std::vector<Completion> first;
  for (const int rows : {1, 3, 17, 64, 256})
    for (const std::string method : {"none", "mtp", "eagle"}) {
      EngineOptions options{.model = pair.target,
                            .speculative = {.method = method, .controller = "fixed"},
                            .threads = 2,
                            .prefill_rows = rows};
      if (method != "none") options.draft_model = pair.drafts.at(method);
      auto requests = PairRequests(0, 1);
      requests[0].prompt_tokens.clear();
      for (int i = 0; i < 150; ++i) requests[0].prompt_tokens.push_back(3 + i * 31 % 300);
      const auto completions =
          GenerateAll(*OpenEngine(options), requests, method == "none" ? 0 : 3);
      if (first.empty()) first = completions;
      ExpectSame(completions, first, fmt::format("{} rows, {}", rows, method));
    }
}

TEST(Lossless, EveryCacheTypeKeepsSpeculationExact) {
  auto drafts = WriteDrafts({.seed = 31, .head_dim = 32},
                            {{"mtp", {}}, {"eagle", {.eagle = true}}, {"dflash", {.block = true}}});
  const std::string target = drafts.extract("none").mapped();
  for (const CacheType k :
       {CacheType::kF32, CacheType::kF16, CacheType::kBF16, CacheType::kQ8_0, CacheType::kQ4_0})
    for (const CacheType v : {CacheType::kF16, CacheType::kQ8_0, CacheType::kQ4_0}) {
      EngineOptions plain_options{.model = target,
                                  .speculative = {.method = "none", .controller = "fixed"},
                                  .cache_type_k = k,
                                  .cache_type_v = v};
      const auto plain = GenerateAll(*OpenEngine(plain_options), PairRequests(0, 2), 0);
      for (const auto& [method, path] : drafts) {
        EngineOptions draft_options = plain_options;
        draft_options.speculative.method = method;
        draft_options.draft_model = path;
        ExpectSame(
            GenerateAll(*OpenEngine(draft_options), PairRequests(0, 2), 4), plain,
            fmt::format("{}, cache types {} {}", method, static_cast<int>(k), static_cast<int>(v)));
      }
    }
}

}  // namespace
}  // namespace foretoken
