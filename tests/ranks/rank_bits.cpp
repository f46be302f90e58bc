// SPDX-License-Identifier: Apache-2.0
// tests/ranks/rank_bits.cpp: whether several ranks give the logits of one, to the bit, for every
// architecture of the registry, and for the heads that read a network's features. Started by mpirun.
//
// usage: rank_bits FOLDER [ARCHITECTURE...]    "heads" among the architectures: the heads
// Rank 0 writes small models into FOLDER, which all ranks see. Each prints nothing but differences;
// rank 0 prints the number of comparisons. Exit code 1: there was a difference.
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/mpi.h"
#include "fixtures/tiny_model.h"
#include "foretoken/catalogue.h"
#include "kernels/dispatch.h"
#include "loader/ranks/follower.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"
#include "model/ranks/lead_runner.h"

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
  std::vector<int> even(static_cast<std::size_t>(n_ranks), 1), uneven = even;
  uneven.back() = 3;
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
  std::vector<int> uneven(static_cast<std::size_t>(n_ranks), 1);
  uneven.back() = 3;
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

void Check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "rank_bits: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T Checked(Result<T> result) {
  Check(result.has_value(), result ? "" : result.error().message);
  return std::move(*result);
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
  auto config = Checked(model::ConfigFromMetadata(file.metadata()));
  config.vocabulary = *model::VocabularyRows(file);
  const kernels::Kernels& kernels = *kernels::KernelsFromEnvironment().value();
  const model::TileCache cache(kept);
  const model::LoadOptions load = {.cache = &cache, .paged = !kept.empty()};
  Runners runners;
  runners.push_back(Checked(
      model::LocalRunner::Load(file, config, OptionsOf(ranks, division), kernels, pool, load)));
  if (copy) {
    runners.push_back(Checked(model::LocalRunner::LoadCopy(
        file, OptionsOf(ranks, division), *copy, kernels, {pool, pool}, *runners[0], {})));
    return runners;
  }
  if (head_file == nullptr) return runners;
  const auto head_config = Checked(model::HeadConfigFromFile(*head_file));
  model::RunnerOptions head_options = OptionsOf(nullptr, {});
  if (model::ReducibleOutput(*head_file, head_config, file) != nullptr)
    for (Token token = 1; token < 300; token += 2) head_options.output_tokens.push_back(token);
  runners.push_back(Checked(model::LocalRunner::LoadHead(*head_file, head_config, head_options,
                                                         kernels, pool, *runners[0])));
  return runners;
}

// A prompt in two parts, then drafts, then single tokens. The states are copied behind the first part;
// then the text is read again from that copy.
int Compare(model::Runner& many, model::Runner& one, const std::string& what) {
  const std::vector<std::int32_t> blocks = {2, 0, 1};
  Pos position = 0, taken_in = 0;  // by the states: the first row of each pass at once
  int n_compared = 0;
  for (const int n_rows : {20, 31, 1, 5, 1, 31, 4}) {
    const bool again = n_compared == 58;
    if (again) position = taken_in = 20;
    std::vector<Token> tokens;
    std::vector<int> logit_rows;
    for (int i = 0; i < n_rows; ++i) {
      tokens.push_back(3 + (position + i) * 37 % 290);
      logit_rows.push_back(i);
    }
    const kv::Segment segment = {.row_begin = 0,
                                 .n_rows = n_rows,
                                 .first_position = position,
                                 .blocks = blocks,
                                 .window_blocks = blocks,
                                 .state = {.from = taken_in,
                                           .to = position == 0 ? n_rows : position + 1,
                                           .source = again ? 1 : -1,
                                           .checkpoint = position == 0 ? 1 : -1}};
    taken_in = segment.state.to;
    const model::Pass pass = {
        .tokens = tokens, .segments = {&segment, 1}, .logit_rows = logit_rows};
    const model::PassResult &got = many.Run(pass), &wanted = one.Run(pass);
    const auto bytes = static_cast<std::size_t>(many.info().vocabulary) * sizeof(float);
    for (int i = 0; i < n_rows; ++i, ++n_compared)
      Check(std::memcmp(got.Logits(i), wanted.Logits(i), bytes) == 0 && got.Finite(i),
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
  Check(std::memcmp(got.scores, wanted.scores,
                    n * static_cast<std::size_t>(got.n) * sizeof(float)) == 0,
        what + ": other scores of candidates");
}

// Runs one pass of a head on both, and compares the logits and the head's own features of all rows.
// features: [n_rows, width]; empty: the pass has none. Returns the own features.
std::vector<float> CompareHeads(model::Runner& many, model::LocalRunner& one, int first, int n_rows,
                                const std::vector<float>& features, bool own_features,
                                const std::string& what) {
  const std::vector<std::int32_t> blocks = {2, 0, 1};
  std::vector<Token> tokens;
  std::vector<int> logit_rows;
  for (int i = 0; i < n_rows; ++i) {
    tokens.push_back(3 + (first + i) * 31 % 290);
    logit_rows.push_back(i);
  }
  const kv::Segment segment = {.row_begin = 0,
                               .n_rows = n_rows,
                               .first_position = first,
                               .blocks = blocks,
                               .window_blocks = blocks};
  model::Pass pass = {.tokens = tokens,
                      .segments = {&segment, 1},
                      .logit_rows = logit_rows,
                      .features = features.empty() ? nullptr : features.data(),
                      .own_features = own_features};
  const model::PassResult &got = many.Run(pass), &wanted = one.Run(pass);
  const auto dim = static_cast<std::size_t>(one.config().features_width(true)),
             vocabulary = static_cast<std::size_t>(one.info().vocabulary);
  std::vector<float> own;
  for (int i = 0; i < n_rows; ++i) {
    const std::string at = " at position " + std::to_string(first + i);
    Check(std::memcmp(got.Logits(i), wanted.Logits(i), vocabulary * sizeof(float)) == 0,
          what + ": other logits" + at);
    Check(std::memcmp(got.OwnFeature(i), wanted.OwnFeature(i), dim * sizeof(float)) == 0,
          what + ": other features of the head" + at);
    own.insert(own.end(), wanted.OwnFeature(i), wanted.OwnFeature(i) + dim);
  }
  CompareCandidates(got.candidates, wanted.candidates, n_rows, what);
  const std::size_t n_reduced = one.info().reduced_tokens.size();
  pass.reduced = n_reduced != 0;
  if (!pass.reduced) return own;
  const model::PassResult &few = many.Run(pass), &wanted_few = one.Run(pass);
  for (int i = 0; i < n_rows; ++i)
    Check(few.Finite(i) &&
              std::memcmp(few.Logits(i), wanted_few.Logits(i), n_reduced * sizeof(float)) == 0,
          what + ": other reduced logits at position " + std::to_string(first + i));
  return own;
}

// Injects features, then drafts a block twice: the second one takes the place of the first.
int CompareBlocks(model::Runner& many, model::LocalRunner& one, int n_rows,
                  const std::vector<float>& features, const std::string& what) {
  const std::vector<std::int32_t> blocks = {2, 0, 1};
  const std::vector<Token> tokens(static_cast<std::size_t>(n_rows));
  const kv::Segment segment = {
      .row_begin = 0, .n_rows = n_rows, .first_position = 0, .blocks = blocks};
  const model::Pass pass = {
      .tokens = tokens, .segments = {&segment, 1}, .logit_rows = {}, .features = features.data()};
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
  const std::vector<std::int32_t> blocks = {2, 0, 1};
  std::vector<Token> tokens;
  for (int i = 0; i < kRows; ++i) tokens.push_back(3 + i * 37 % 290);
  const kv::Segment segment = {.row_begin = 0,
                               .n_rows = kRows,
                               .first_position = 0,
                               .blocks = blocks,
                               .window_blocks = blocks};
  const model::Pass pass = {.tokens = tokens, .segments = {&segment, 1}, .logit_rows = {}};
  const model::PassResult &got = many.Run(pass), &wanted = one.Run(pass);
  const std::vector<float> features(wanted.features,
                                    wanted.features + std::int64_t{kRows} * wanted.features_width);
  Check(std::memcmp(got.features, features.data(), features.size() * sizeof(float)) == 0,
        what + ": other features");
  const model::HeadConfig& head = *one_head.config().head;
  if (head.kind == model::HeadKind::kBlock)
    return CompareBlocks(many_head, one_head, kRows, features, what);
  if (head.reads_cache()) {  // one row at a time, all at the next position
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

// A pass of n_rows rows from position `first` on. States take in the rows of a text's first pass alone.
model::Pass RowsAt(kv::Segment& segment, std::vector<Token>& tokens, std::vector<int>& logit_rows,
                   int first, int n_rows) {
  static const std::vector<std::int32_t> blocks = {2, 0, 1};
  tokens.clear(), logit_rows.clear();
  for (int i = 0; i < n_rows; ++i) {
    tokens.push_back(3 + (first + i) * 29 % 290);
    logit_rows.push_back(i);
  }
  segment = {.row_begin = 0,
             .n_rows = n_rows,
             .first_position = first,
             .blocks = blocks,
             .window_blocks = blocks,
             .state = {.from = first, .to = first == 0 ? n_rows : first}};
  return {.tokens = tokens, .segments = {&segment, 1}, .logit_rows = logit_rows};
}

// The network reads a beginning; then its copy drafts behind it, which reads the network's cache and states.
int CompareCopy(model::Runner& many, model::Runner& one, model::Runner& many_copy,
                model::Runner& one_copy, const std::string& what) {
  kv::Segment segment;
  std::vector<Token> tokens;
  std::vector<int> logit_rows;
  constexpr int kRows = 20, kDrafts = 5;
  const auto bytes = static_cast<std::size_t>(one.info().vocabulary) * sizeof(float);
  const model::Pass text = RowsAt(segment, tokens, logit_rows, 0, kRows);
  many.Run(text), one.Run(text);
  const model::Pass drafts = RowsAt(segment, tokens, logit_rows, kRows, kDrafts);
  std::vector<float> network(one.Run(drafts).Logits(0),
                             one.Run(drafts).Logits(0) + one.info().vocabulary);
  const model::PassResult &got = many_copy.Run(drafts), &wanted = one_copy.Run(drafts);
  for (int i = 0; i < kDrafts; ++i)
    Check(std::memcmp(got.Logits(i), wanted.Logits(i), bytes) == 0,
          what + ": other logits of the copy in row " + std::to_string(i));
  Check(std::memcmp(wanted.Logits(0), network.data(), bytes) != 0,
        what + ": the copy computes what the network does");
  return kDrafts;
}

// The file that rank 0 has written, opened on each rank.
std::unique_ptr<formats::Checkpoint> Share(comm::Ranks& ranks, std::string path) {
  path.resize(1024);
  Check(ranks.Broadcast(std::as_writable_bytes(std::span(path))), ranks.why());
  return Checked(formats::OpenCheckpoint(path.c_str()));
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
