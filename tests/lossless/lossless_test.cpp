// SPDX-License-Identifier: Apache-2.0
// The promise: speculation changes when tokens come, but neither the tokens nor any bit of the
// target's log-probabilities.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/catalogue.h"
#include "foretoken/engine.h"
#include "kernels/dispatch.h"

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
    using tensor::DType;
    const std::string folder = fixtures::TemporaryFolder();
    std::vector<FamilyPair> made;
    const auto add = [&](std::string name, fixtures::TinyModelOptions options,
                         fixtures::TinyHeadOptions eagle) {
      FamilyPair& pair = made.emplace_back();
      pair.name = std::move(name);
      pair.target = fixtures::WriteTinyModel(folder, options);
      eagle.target = options;
      eagle.weight_type = options.weight_type;
      fixtures::TinyHeadOptions mtp = eagle;
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
    };
    add("llama_f32", {.seed = 21}, {.layers = {0, 1, 2}});
    add("llama_q8_0", {.seed = 22, .n_layers = 1, .weight_type = DType::kQ8_0},
        {.layers = {0, 0, 1}, .draft_vocabulary = 96, .norm_before_residual = true});
    add("qwen3_q4_0", {.arch = "qwen3", .seed = 23, .n_layers = 1, .weight_type = DType::kQ4_0},
        {.layers = {1, 0, 1}, .own_embedding = true, .norm_before_fc = true});
    add("smollm3_f32", {.arch = "smollm3", .seed = 25, .n_layers = 4}, {.layers = {0, 3, 4}});
    add("granite_q8_0", {.arch = "granite", .seed = 26, .n_layers = 1, .weight_type = DType::kQ8_0},
        {.layers = {0, 0, 1}});
    // Windows shorter than the text.
    add("gemma3_f32", {.arch = "gemma3", .seed = 27, .n_layers = 6, .head_dim = 32, .window = 12},
        {.layers = {0, 3, 6}});
    add("gemma2_q8_0", {.arch = "gemma2", .seed = 28, .window = 20, .weight_type = DType::kQ8_0},
        {.layers = {0, 1, 2}});
    // Shared caches and inputs of layers; then experts beside a dense part.
    add("gemma4_e_f32",
        {.arch = "gemma4",
         .seed = 30,
         .n_layers = 6,
         .head_dim = 16,
         .window = 12,
         .shared_caches = 3,
         .layer_input = 16},
        {.layers = {0, 3, 6}});
    add("gemma4_moe_q8_0",
        {.arch = "gemma4",
         .seed = 31,
         .n_layers = 3,
         .head_dim = 16,
         .window = 12,
         .weight_type = DType::kQ8_0,
         .n_experts = 6},
        {.layers = {0, 1, 3}});
    add("qwen3moe_q8_0",
        {.arch = "qwen3moe",
         .seed = 29,
         .n_layers = 1,
         .weight_type = DType::kQ8_0,
         .n_experts = 8,
         .n_used = 3},
        {.layers = {0, 0, 1}});
    add("deepseek2_q8_0",
        {.arch = "deepseek2",
         .seed = 30,
         .n_kv_heads = 1,
         .head_dim = 48,
         .q_rank = 32,
         .weight_type = DType::kQ8_0,
         .n_experts = 8,
         .n_used = 3,
         .shared_ff = 32,
         .n_dense = 1,
         .rope_dimensions = 16},
        {.layers = {0, 1, 2}});
    // All the other types in one model.
    add("llama_other_types",
        {.seed = 24,
         .n_layers = 1,
         .dim = 256,
         .ff = 256,
         .weight_type = DType::kQ4_K,
         .weight_types = {{"attn_k", DType::kQ5_K},
                          {"attn_v", DType::kQ6_K},
                          {"attn_output", DType::kQ4_1},
                          {"ffn_gate", DType::kQ5_0},
                          {"ffn_up", DType::kQ5_1},
                          {"ffn_down", DType::kF16},
                          {"output", DType::kBF16}}},
        {.layers = {1, 0, 1}});
    const std::string root = FORETOKEN_SOURCE_DIR;
    const std::string bundled = root + "/models/tales-";
    if (std::filesystem::exists(bundled + "9m-q8_0.gguf"))
      made.push_back({"bundled",
                      bundled + "9m-q8_0.gguf",
                      {{"standalone", bundled + "1m-draft-q8_0.gguf"},
                       {"eagle", bundled + "9m-eagle-q8_0.gguf"},
                       {"mtp", bundled + "9m-mtp-q8_0.gguf"}},
                      true});
    const std::string models = root + "/../shared/models/";
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
  auto completions = engine.GenerateBatch(requests);
  EXPECT_TRUE(completions) << completions.error().message;
  return std::move(*completions);
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
        for (std::size_t i = 0; i < plain.size(); ++i)
          ExpectSame(plain[i], first[i],
                     fmt::format("{} plain {} {} threads", pair.name, isa, threads));
        for (const std::string& method : pair.methods()) {
          // Lookups have no passes of their own, so the first family shows them on every set.
          const bool has_passes = pair.drafts.contains(method) || method == "self";
          if (!has_passes && (threads > 1 || (isa != isas.back() && family > 0))) continue;
          const auto engine = OpenPair(pair, method, isa, threads, 1);
          std::string lengths;  // lookups learn from the texts before
          for (const int k : LengthsOf(family, isa, isa == isas.back(), threads)) {
            lengths = (has_passes ? "" : lengths) + fmt::format(" {}", k);
            const auto completions = GenerateAll(*engine, requests, k);
            for (std::size_t i = 0; i < plain.size(); ++i) {
              ExpectSame(
                  completions[i], plain[i],
                  fmt::format("{} {} K {} {} {} threads", pair.name, method, k, isa, threads));
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
          for (const int k : isa == "scalar" ? std::vector{10 - batch} : std::vector{1, 3, 8}) {
            const auto completions = GenerateAll(*engine, requests, k);
            for (std::size_t i = 0; i < plain.size(); ++i)
              ExpectSame(completions[i], plain[i],
                         fmt::format("{} {} {} batch {} K {} request {}", pair.name, method, isa,
                                     batch, k, i));
          }
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
          const auto together = GenerateAll(*batch_engine, requests, 3);
          for (std::size_t i = 0; i < alone.size(); ++i)
            ExpectSame(together[i], alone[i],
                       fmt::format("{} {} batch {} request {}", pair.name, method, batch, i));
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
      for (const int k : {1, 3, 8}) {
        const auto completions = GenerateAll(*engine, requests, k);
        for (std::size_t i = 0; i < plain.size(); ++i)
          ExpectSame(completions[i], plain[i],
                     fmt::format("{} {} K {} request {}", pair.name, method, k, i));
      }
    }
  }
}

// How often each of the most frequent pairs (second token, third token) occurred in n requests with
// different noise.
std::map<std::vector<std::int32_t>, double> CountPairs(Engine& engine, float temperature,
                                                       std::uint64_t first_id, int n) {
  Request r;
  r.prompt = "once upon a time there was";
  // The prefill gives the first; the others are drafted and verified.
  r.max_new_tokens = 4;
  r.ignore_eos = true;
  r.sampling.temperature = temperature;
  r.speculative.num_speculative_tokens = 3;
  std::vector<Request> requests(static_cast<std::size_t>(n), r);
  for (auto& request : requests) request.id = first_id++;
  auto completions = engine.GenerateBatch(requests);
  EXPECT_TRUE(completions);
  std::map<std::vector<std::int32_t>, double> counts;
  for (const Completion& c : *completions) ++counts[{c.token_ids[1], c.token_ids[2]}];
  return counts;
}

// Two-sample chi-square over the pairs that are frequent in both samples together; the rest is one
// cell.
std::pair<double, int> ChiSquare(const std::map<std::vector<std::int32_t>, double>& a,
                                 const std::map<std::vector<std::int32_t>, double>& b) {
  std::map<std::vector<std::int32_t>, std::pair<double, double>> both;
  for (const auto& [pair, n] : a) both[pair].first = n;
  for (const auto& [pair, n] : b) both[pair].second = n;
  double chi_square = 0, rest_a = 0, rest_b = 0;
  int bins = 0;
  const auto add = [&](double x, double y) {
    if (x + y > 0) chi_square += (x - y) * (x - y) / (x + y), ++bins;
  };
  for (const auto& [pair, n] : both) {
    if (n.first + n.second >= 100)
      add(n.first, n.second);
    else
      rest_a += n.first, rest_b += n.second;
  }
  add(rest_a, rest_b);
  return {chi_square, bins - 1};
}

// The whole path, engine and draft model included: drafted text at T = 0.8 has the distribution of
// plain text; text at T = 0.7 does not.
TEST(Lossless, DraftedTextHasTheDistributionOfPlainTextAtTemperature08) {
  constexpr int kRequests = 6000;
  struct PlainCounts {
    std::map<std::vector<std::int32_t>, double> same, colder;
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
    const auto [chi_square, freedom] = ChiSquare(plain, drafted);
    ASSERT_GE(freedom, 5);
    // Mean `freedom`, variance 2 * freedom: five standard deviations above.
    const double bound = freedom + 5 * std::sqrt(2.0 * freedom);
    EXPECT_LT(chi_square, bound) << freedom << " degrees of freedom";
    const double control = ChiSquare(colder, drafted).first;
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
      auto engine = Engine::Open(options);
      ASSERT_TRUE(engine) << engine.error().message;
      auto requests = PairRequests(0, 1);
      requests[0].prompt_tokens.clear();
      for (int i = 0; i < 150; ++i) requests[0].prompt_tokens.push_back(3 + i * 31 % 300);
      const auto completions = GenerateAll(**engine, requests, method == "none" ? 0 : 3);
      if (first.empty()) first = completions;
      ExpectSame(completions[0], first[0], fmt::format("{} rows, {}", rows, method));
    }
}

TEST(Lossless, EveryCacheTypeKeepsSpeculationExact) {
  const std::string folder = fixtures::TemporaryFolder();
  fixtures::TinyModelOptions options{.seed = 31, .head_dim = 32};
  FamilyPair pair{"heads_of_32", fixtures::WriteTinyModel(folder, options), {}};
  pair.drafts["mtp"] = fixtures::WriteTinyHead(folder, {.target = options});
  pair.drafts["eagle"] = fixtures::WriteTinyHead(folder, {.target = options, .eagle = true});
  pair.drafts["dflash"] = fixtures::WriteTinyHead(folder, {.target = options, .block = true});
  options.noise = 0.15;
  pair.drafts["standalone"] = fixtures::WriteTinyModel(folder, options);
  for (const CacheType k :
       {CacheType::kF32, CacheType::kF16, CacheType::kBF16, CacheType::kQ8_0, CacheType::kQ4_0})
    for (const CacheType v : {CacheType::kF16, CacheType::kQ8_0, CacheType::kQ4_0}) {
      EngineOptions plain_options{.model = pair.target,
                                  .speculative = {.method = "none", .controller = "fixed"},
                                  .cache_type_k = k,
                                  .cache_type_v = v};
      auto plain = Engine::Open(plain_options);
      ASSERT_TRUE(plain);
      const auto a = GenerateAll(**plain, PairRequests(0, 2), 0);
      for (const auto& [method, path] : pair.drafts) {
        EngineOptions draft_options = plain_options;
        draft_options.speculative.method = method;
        draft_options.draft_model = path;
        auto drafted = Engine::Open(draft_options);
        ASSERT_TRUE(drafted) << drafted.error().message;
        const auto b = GenerateAll(**drafted, PairRequests(0, 2), 4);
        for (std::size_t i = 0; i < a.size(); ++i)
          ExpectSame(b[i], a[i],
                     fmt::format("{}, cache types {} {}", method, static_cast<int>(k),
                                 static_cast<int>(v)));
      }
    }
}

}  // namespace
}  // namespace foretoken
