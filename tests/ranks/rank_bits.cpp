// SPDX-License-Identifier: Apache-2.0
// tests/ranks/rank_bits.cpp: whether several ranks give the logits of one, to the bit, for every
// architecture of the registry, and for the heads that read a network's features. Started by mpirun.
//
// usage: rank_bits FOLDER [ARCHITECTURE...]    "heads" among the architectures: the heads
// Rank 0 writes small models into FOLDER, which all ranks see. Each prints nothing but differences;
// rank 0 prints the number of comparisons. Exit code 1: there was a difference.
#include <optional>

#include "fixtures/tiny_model.h"
#include "foretoken/catalogue.h"
#include "loader/ranks/follower.h"
#include "model/ranks/lead_runner.h"
#include "ranks/rank_testing.h"

namespace foretoken {
namespace {

constexpr int kPositions = 96, kMaxRows = 32;

struct Case {
  std::string name;
  fixtures::TinyModelOptions options;
  std::vector<int> speeds;
  std::optional<fixtures::TinyHeadOptions> head = std::nullopt;
  bool paged = false;  // experts are read from the file that keeps a rank's tiles
  std::optional<model::CopyTypes> copy = std::nullopt;  // of the network, which drafts
};

// With rows that suit quantised types.
fixtures::TinyModelOptions LargerOf(const std::string& architecture) {
  fixtures::TinyModelOptions larger = fixtures::SmallestOf(architecture);
  larger.seed = 5;
  larger.dim = 128, larger.ff = 160, larger.n_heads = 8;
  if (larger.n_kv_heads > 1) larger.n_kv_heads = 4;
  if (larger.n_experts != 0) larger.expert_ff = 96;
  if (larger.shared_ff != 0) larger.shared_ff = 96;
  if (larger.layer_input != 0) larger.layer_input = 32;
  if (larger.q_rank != 0) larger.q_rank = 64, larger.head_dim = 48, larger.rope_dimensions = 16;
  return larger;
}

// Each architecture, small and somewhat larger, as floats and quantised, in even and uneven shares.
std::vector<Case> CasesOf(const std::string& architecture, int n_ranks) {
  std::vector<Case> cases;
  const std::vector<int> even = Shares(n_ranks), uneven = Shares(n_ranks, 3);
  cases.push_back({"smallest", fixtures::SmallestOf(architecture), even});
  fixtures::TinyModelOptions larger = LargerOf(architecture);
  cases.push_back({"F32", larger, even});
  larger.weight_type = tensor::DType::kQ8_0;
  cases.push_back({"Q8_0", larger, even});
  cases.push_back({"Q8_0 uneven", larger, uneven});
  if (architecture == "deepseek2") {
    larger.older_latent = true, larger.q_rank = larger.q_rank == 0 ? 64 : 0;
    cases.push_back({"Q8_0 older", larger, uneven});
  }
  if (larger.n_experts != 0)
    cases.push_back({.name = "paged", .options = larger, .speeds = even, .paged = true});
  // Rows of 128 columns are Q4_0 in each copy; the output of 256 has the types of the copy.
  for (const bool wide : {false, true}) {
    if (wide) larger.dim = 256, larger.ff = 256;
    if (wide && architecture != "llama") break;
    cases.push_back({.name = wide ? "wide copy" : "copy",
                     .options = larger,
                     .speeds = uneven,
                     .copy = model::CopyTypes{.layers = tensor::DType::kQ2_K,
                                              .output = tensor::DType::kQ3_K,
                                              .attention = tensor::DType::kQ4_K}});
  }
  return cases;
}

// Heads with matrices of their own, and heads that use those of their target.
std::vector<Case> HeadCases(int n_ranks) {
  const std::vector<int> uneven = Shares(n_ranks, 3);
  std::vector<Case> cases;
  for (const auto type : {tensor::DType::kF32, tensor::DType::kQ8_0}) {
    fixtures::TinyModelOptions target{.seed = 5, .dim = 128, .ff = 160, .n_heads = 8};
    target.n_kv_heads = 4, target.weight_type = type;
    fixtures::TinyHeadOptions mtp{.target = target, .weight_type = type};
    fixtures::TinyHeadOptions eagle = mtp;
    eagle.eagle = true;
    cases.push_back({"mtp", target, uneven, mtp});
    cases.push_back({"eagle", target, uneven, eagle});
    eagle.draft_vocabulary = 100, eagle.norm_before_fc = true;
    cases.push_back({"eagle with some tokens", target, uneven, eagle});
    eagle.draft_vocabulary = 0, eagle.own_output = eagle.own_embedding = true;
    eagle.norm_before_residual = true;
    cases.push_back({"eagle with an output", target, uneven, eagle});
    eagle.n_blocks = 2, eagle.dim = 96;
    cases.push_back({"eagle with two wider blocks", target, uneven, eagle});
    fixtures::TinyModelOptions gemma = LargerOf("gemma4");
    gemma.weight_type = type, gemma.context_length = 256;
    cases.push_back(
        {"assistant", gemma, uneven,
         fixtures::TinyHeadOptions{
             .target = gemma, .assistant = true, .weight_type = type, .n_blocks = 3, .dim = 64}});
    for (const char* arch : {"glm4moe", "deepseek2", "qwen35moe"}) {
      fixtures::TinyModelOptions next = LargerOf(arch);
      next.n_next = 1, next.n_layers = 3, next.context_length = 256;
      next.weight_type = type;
      cases.push_back({std::string("mtp of ") + arch, next, uneven});
    }
    fixtures::TinyHeadOptions block{.target = target, .block = true, .weight_type = type};
    block.window = 12;
    cases.push_back({"dflash", target, uneven, block});
    block.draft_vocabulary = 100, block.causal = true;
    cases.push_back({"causal dflash with some tokens", target, uneven, block});
    block.transition_rank = 32, block.certainty = true;
    cases.push_back({"dspark with some tokens", target, uneven, block});
    block.draft_vocabulary = 0;
    cases.push_back({"dspark", target, uneven, block});
    block.transition_rank = 0, block.causal = false, block.taps = 2, block.n_candidates = 6;
    cases.push_back({"dflash 2", target, uneven, block});
    block.draft_vocabulary = 100, block.taps = 3;
    cases.push_back({"dflash 2 with some tokens", target, uneven, block});
  }
  return cases;
}

model::RunnerOptions OptionsOf(comm::Ranks* ranks, const model::Division& division) {
  model::RunnerOptions options;
  options.max_rows = options.max_logit_rows = kMaxRows;
  options.max_positions = kPositions;
  options.cache.n_blocks = kPositions / tensor::kKvBlock;
  options.state = {.n_sequences = 1, .rows = kMaxRows, .n_checkpoints = 2};
  options.ranks = ranks;
  options.division = division;
  return options;
}

using Runners = std::vector<std::unique_ptr<model::LocalRunner>>;

// The network, and its head where there is one. kept: the folder of the tiles of a network whose
// experts are paged, or "". Without ranks: this process computes all.
Runners Open(const formats::Checkpoint& file, const formats::Checkpoint* head_file,
             const std::optional<model::CopyTypes>& copy, const std::string& kept, ThreadPool& pool,
             comm::Ranks* ranks, const model::Division& division) {
  const model::ModelConfig config = ConfigOf(file);
  const model::TileCache cache(kept);
  const model::LoadOptions load = {.cache = &cache, .paged = !kept.empty()};
  Runners runners;
  runners.push_back(Checked(
      model::LocalRunner::Load(file, config, OptionsOf(ranks, division), Kernels(), pool, load)));
  if (copy) {
    runners.push_back(Checked(model::LocalRunner::LoadCopy(
        file, OptionsOf(ranks, division), *copy, Kernels(), {pool, pool}, *runners[0], {})));
    return runners;
  }
  if (head_file == nullptr) return runners;
  const auto head_config = Checked(model::HeadConfigFromFile(*head_file));
  model::RunnerOptions head_options = OptionsOf(nullptr, {});
  if (model::ReducibleOutput(*head_file, head_config, file) != nullptr)
    for (Token token = 1; token < 300; token += 2) head_options.output_tokens.push_back(token);
  runners.push_back(Checked(model::LocalRunner::LoadHead(*head_file, head_config, head_options,
                                                         Kernels(), pool, *runners[0])));
  return runners;
}

// A prompt in two parts, then drafts, then single tokens. The states are copied behind the first part;
// then the text is read again from that copy.
int Compare(model::Runner& many, model::Runner& one, const std::string& what) {
  Pos position = 0, taken_in = 0;  // by the states: the first row of each pass at once
  int n_compared = 0;
  for (const int n_rows : {20, 31, 1, 5, 1, 31, 4}) {
    const bool again = n_compared == 58;
    if (again) position = taken_in = 20;
    TestPass pass(position, n_rows);
    pass.segment.state = {.from = taken_in,
                          .to = position == 0 ? n_rows : position + 1,
                          .source = again ? 1 : -1,
                          .checkpoint = position == 0 ? 1 : -1};
    taken_in = pass.segment.state.to;
    const model::PassResult &got = many.Run(pass.View()), &wanted = one.Run(pass.View());
    for (int i = 0; i < n_rows; ++i, ++n_compared)
      Check(Same(got.Logits(i), wanted.Logits(i), many.info().vocabulary) && got.Finite(i),
            what + ": other logits at position " + std::to_string(position + i));
    Check(wanted.traffic.gathers == 0 &&
              (got.traffic.gathers > 0) == (got.traffic.gathered_bytes > 0),
          what + ": gathers are counted");
    position += n_rows;
  }
  return n_compared;
}

void CompareCandidates(const model::Candidates& got, const model::Candidates& wanted, int n_rows,
                       const std::string& what) {
  Check(got.n == wanted.n, what + ": another number of candidates");
  const auto n = static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(got.n);
  if (n == 0) return;
  Check(std::memcmp(got.columns, wanted.columns, n * sizeof(std::int32_t)) == 0,
        what + ": other candidates");
  Check(Same(got.scores, wanted.scores, std::int64_t{n_rows} * got.n * got.n),
        what + ": other scores of candidates");
}

// Runs one pass of a head on both, and compares the logits and the head's own features of all rows.
// features: [n_rows, width]; empty: the pass has none. Returns the own features.
std::vector<float> CompareHeads(model::Runner& many, model::LocalRunner& one, int first, int n_rows,
                                const std::vector<float>& features, bool own_features,
                                const std::string& what) {
  const TestPass test(first, n_rows, 31);
  model::Pass pass = test.View();
  pass.features = features.empty() ? nullptr : features.data();
  pass.own_features = own_features;
  const model::PassResult &got = many.Run(pass), &wanted = one.Run(pass);
  const auto dim = one.config().features_width(true);
  std::vector<float> own;
  for (int i = 0; i < n_rows; ++i) {
    const std::string at = " at position " + std::to_string(first + i);
    Check(Same(got.Logits(i), wanted.Logits(i), one.info().vocabulary),
          what + ": other logits" + at);
    Check(Same(got.OwnFeature(i), wanted.OwnFeature(i), dim),
          what + ": other features of the head" + at);
    own.insert(own.end(), wanted.OwnFeature(i), wanted.OwnFeature(i) + dim);
  }
  CompareCandidates(got.candidates, wanted.candidates, n_rows, what);
  const auto n_reduced = static_cast<std::int64_t>(one.info().reduced_tokens.size());
  pass.reduced = n_reduced != 0;
  if (!pass.reduced) return own;
  const model::PassResult &few = many.Run(pass), &wanted_few = one.Run(pass);
  for (int i = 0; i < n_rows; ++i)
    Check(few.Finite(i) && Same(few.Logits(i), wanted_few.Logits(i), n_reduced),
          what + ": other reduced logits at position " + std::to_string(first + i));
  return own;
}

// Injects features, then drafts a block twice: the second one takes the place of the first.
int CompareBlocks(model::Runner& many, model::LocalRunner& one, int n_rows,
                  const std::vector<float>& features, const std::string& what) {
  TestPass test(0, n_rows);
  test.tokens.assign(test.tokens.size(), 0), test.logit_rows.clear();
  test.segment.window_blocks = {};
  model::Pass pass = test.View();
  pass.features = features.data();
  many.Run(pass), one.Run(pass);
  constexpr int kBlock = 8;
  for (int i = 0; i < 2; ++i)
    CompareHeads(many, one, n_rows, kBlock, {}, false, what + ", a block");
  if (one.config().head->transition_rank == 0) return n_rows + 2 * kBlock;
  const std::vector<float> own(features.begin(),
                               features.begin() + std::int64_t{kBlock} * one.info().dim);
  CompareHeads(many, one, n_rows, kBlock, own, true, what + ", transitions");
  return n_rows + 3 * kBlock;
}

// The target's features, then a head that reads them, then its own.
int CompareWithHead(model::Runner& many, model::Runner& one, model::Runner& many_head,
                    model::LocalRunner& one_head, const std::string& what) {
  const std::vector<int>& layers = one_head.config().head->feature_layers;
  const model::FeatureRequest request{.layers = layers, .normed = layers.empty()};
  many.KeepFeatures(request), one.KeepFeatures(request);
  constexpr int kRows = 20, kOwnRows = 3;
  TestPass pass(0, kRows);
  pass.logit_rows.clear();
  const model::PassResult &got = many.Run(pass.View()), &wanted = one.Run(pass.View());
  const std::vector<float> features(wanted.features,
                                    wanted.features + std::int64_t{kRows} * wanted.features_width);
  Check(Same(got.features, features.data(), static_cast<std::int64_t>(features.size())),
        what + ": other features");
  const model::HeadConfig& head = *one_head.config().head;
  if (head.drafts_blocks()) return CompareBlocks(many_head, one_head, kRows, features, what);
  if (head.reads_cache) {  // one row at a time, all at the next position
    std::vector<float> feature(features.end() - wanted.features_width, features.end());
    for (int i = 0; i < kOwnRows; ++i)
      feature = CompareHeads(many_head, one_head, kRows, 1, feature, false, what);
    return kRows + kOwnRows;
  }
  std::vector<float> own = CompareHeads(many_head, one_head, 0, kRows, features, false,
                                        what + ", the target's features");
  for (int i = 0; i < 2; ++i)
    own = CompareHeads(many_head, one_head, kRows + i * kOwnRows, kOwnRows, own, true,
                       what + ", own features");
  return kRows + 2 * kOwnRows;
}

// The network reads a beginning; then its copy drafts behind it, which reads the network's cache and states.
int CompareCopy(model::Runner& many, model::Runner& one, model::Runner& many_copy,
                model::Runner& one_copy, const std::string& what) {
  constexpr int kRows = 20, kDrafts = 5;
  const std::int64_t n = one.info().vocabulary;
  // States take in the rows of a text's first pass alone.
  TestPass text(0, kRows, 29), behind(kRows, kDrafts, 29);
  text.segment.state = {.from = 0, .to = kRows};
  behind.segment.state = {.from = kRows, .to = kRows};
  many.Run(text.View()), one.Run(text.View());
  const model::Pass drafts = behind.View();
  const std::vector<float> network(one.Run(drafts).Logits(0), one.Run(drafts).Logits(0) + n);
  const model::PassResult &got = many_copy.Run(drafts), &wanted = one_copy.Run(drafts);
  for (int i = 0; i < kDrafts; ++i)
    Check(Same(got.Logits(i), wanted.Logits(i), n),
          what + ": other logits of the copy in row " + std::to_string(i));
  Check(!Same(wanted.Logits(0), network.data(), n),
        what + ": the copy computes what the network does");
  return kDrafts;
}

// Returns the number of rows that were compared, on rank 0.
int RunCase(RankGroup::Impl& group, const std::string& folder, const Case& c,
            const std::string& what) {
  comm::Ranks& ranks = group.ranks();
  ThreadPool pool(1);
  const std::shared_ptr<formats::Checkpoint> file =
      Share(ranks, ranks.leads() ? fixtures::WriteTinyModel(folder, c.options) : "");
  std::shared_ptr<formats::Checkpoint> head;
  if (c.head) head = Share(ranks, ranks.leads() ? fixtures::WriteTinyHead(folder, *c.head) : "");
  if (c.options.n_next != 0) head = file;
  const std::string kept = c.paged ? folder + "/kept" : "";
  Runners own =
      Open(*file, head.get(), c.copy, kept, pool, &ranks, model::Division(ranks.rank(), c.speeds));
  if (!ranks.leads()) {
    loader::Follower follower(group);
    for (std::size_t i = 0; i < own.size(); ++i)
      follower.Add(static_cast<int>(i), i == 0 || c.copy ? file : head, std::move(own[i]));
    const Status status = follower.Run();
    Check(status.has_value(), status ? "" : status.error().message);
    return 0;
  }
  const Runners alone = Open(*file, head.get(), c.copy, kept, pool, nullptr, {});
  int n_compared = 0;
  {
    model::LeadRunner lead(std::move(own[0]), 0, ranks);
    if (c.copy) {
      model::LeadRunner lead_copy(std::move(own[1]), 1, ranks);
      n_compared = CompareCopy(lead, *alone[0], lead_copy, *alone[1], what);
    } else if (head != nullptr) {
      model::LeadRunner lead_head(std::move(own[1]), 1, ranks);
      n_compared = CompareWithHead(lead, *alone[0], lead_head, *alone[1], what);
    } else {
      n_compared = Compare(lead, *alone[0], what);
    }
  }
  group.Leave();
  return n_compared;
}

int Run(const std::string& folder, const std::vector<std::string>& architectures) {
  RankGroup::Impl group(Checked(comm::JoinMpi({})), 1);
  int n_compared = 0;
  for (const std::string& architecture : architectures)
    for (const Case& c : architecture == "heads" ? HeadCases(group.ranks().size())
                                                 : CasesOf(architecture, group.ranks().size()))
      n_compared += RunCase(group, folder, c, architecture + " " + c.name);
  const comm::Ranks& ranks = group.ranks();
  if (ranks.leads())
    std::printf("%d ranks: %d rows of logits equal, %lld gathers\n", ranks.size(), n_compared,
                static_cast<long long>(ranks.traffic().gathers));
  return 0;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  std::vector<std::string> architectures(argv + std::min(argc, 2), argv + argc);
  if (architectures.empty()) {
    for (const auto* info : foretoken::AllArchitectures()) architectures.emplace_back(info->name);
    architectures.emplace_back("mixtral");
    architectures.emplace_back("heads");
  }
  return argc < 2 ? 2 : foretoken::Run(argv[1], architectures);
}
