// SPDX-License-Identifier: Apache-2.0
// tests/ranks/rank_bits.cpp: whether several ranks give the logits of one, to the bit, for every
// architecture of the registry. Started by mpirun.
//
// usage: rank_bits FOLDER [ARCHITECTURE...]
// Rank 0 writes small models into FOLDER, which all ranks see. Each prints nothing but differences;
// rank 0 prints the number of comparisons. Exit code 1: there was a difference.
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/mpi.h"
#include "fixtures/tiny_model.h"
#include "foretoken/catalogue.h"
#include "kernels/dispatch.h"
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
};

// Each architecture, small and somewhat larger, as floats and quantised, in even and uneven shares.
std::vector<Case> CasesOf(const std::string& architecture, int n_ranks) {
  std::vector<Case> cases;
  std::vector<int> even(static_cast<std::size_t>(n_ranks), 1), uneven = even;
  uneven.back() = 3;
  fixtures::TinyModelOptions small = fixtures::SmallestOf(architecture);
  cases.push_back({"smallest", small, even});
  fixtures::TinyModelOptions larger = small;
  larger.seed = 5;
  larger.dim = 128, larger.ff = 160, larger.n_heads = 8;
  if (larger.n_kv_heads > 1) larger.n_kv_heads = 4;
  if (larger.n_experts != 0) larger.expert_ff = 96;
  if (larger.shared_ff != 0) larger.shared_ff = 96;
  if (larger.layer_input != 0) larger.layer_input = 32;
  if (larger.q_rank != 0) larger.q_rank = 64, larger.head_dim = 48, larger.rope_dimensions = 16;
  cases.push_back({"F32", larger, even});
  larger.weight_type = tensor::DType::kQ8_0;
  cases.push_back({"Q8_0", larger, even});
  cases.push_back({"Q8_0 uneven", larger, uneven});
  return cases;
}

void Check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "rank_bits: %s\n", what.c_str());
  std::exit(1);
}

std::unique_ptr<model::LocalRunner> Open(const formats::Checkpoint& checkpoint, ThreadPool& pool,
                                         comm::Ranks* ranks, const model::Division& division) {
  auto config = model::ConfigFromMetadata(checkpoint.metadata());
  Check(config.has_value(), config ? "" : config.error().message);
  config->vocabulary = *model::VocabularyRows(checkpoint);
  model::RunnerOptions options;
  options.max_rows = options.max_logit_rows = kMaxRows;
  options.max_positions = kPositions;
  options.cache.n_blocks = kPositions / tensor::kKvBlock;
  options.ranks = ranks;
  options.division = division;
  auto runner = model::LocalRunner::Load(checkpoint, *config, options,
                                         *kernels::KernelsFromEnvironment().value(), pool, {});
  Check(runner.has_value(), runner ? "" : runner.error().message);
  return std::move(*runner);
}

// A prompt in two parts, then drafts, then single tokens.
int Compare(model::Runner& many, model::Runner& one, const std::string& what) {
  const std::vector<std::int32_t> blocks = {2, 0, 1};
  Pos position = 0;
  int n_compared = 0;
  for (const int n_rows : {20, 31, 1, 5, 1}) {
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
                                 .window_blocks = blocks};
    const model::Pass pass = {
        .tokens = tokens, .segments = {&segment, 1}, .logit_rows = logit_rows};
    const model::PassResult &got = many.Run(pass), &wanted = one.Run(pass);
    const auto bytes = static_cast<std::size_t>(many.info().vocabulary) * sizeof(float);
    for (int i = 0; i < n_rows; ++i, ++n_compared)
      Check(std::memcmp(got.Logits(i), wanted.Logits(i), bytes) == 0 && got.Finite(i),
            what + ": other logits at position " + std::to_string(position + i));
    position += n_rows;
  }
  return n_compared;
}

int Run(const std::string& folder, const std::vector<std::string>& architectures) {
  auto joined = comm::JoinMpi({});
  Check(joined.has_value(), joined ? "" : joined.error().message);
  comm::Ranks& ranks = **joined;
  ThreadPool pool(1);
  int n_compared = 0;
  for (const std::string& architecture : architectures)
    for (const Case& c : CasesOf(architecture, ranks.size())) {
      std::string path(1024, '\0');
      if (ranks.leads()) path.replace(0, 0, fixtures::WriteTinyModel(folder, c.options));
      path.resize(1024);
      Check(ranks.Broadcast(std::as_writable_bytes(std::span(path))), ranks.why());
      auto checkpoint = formats::OpenCheckpoint(path.c_str());
      Check(checkpoint.has_value(), checkpoint ? "" : checkpoint.error().message);
      std::vector<std::unique_ptr<model::LocalRunner>> own;
      own.push_back(Open(**checkpoint, pool, &ranks, model::Division(ranks.rank(), c.speeds)));
      if (!ranks.leads()) {
        const Status status = model::Follow(own, ranks);
        Check(status.has_value(), status ? "" : status.error().message);
        continue;
      }
      const auto alone = Open(**checkpoint, pool, nullptr, {});
      model::LeadRunner lead(std::move(own[0]), 0, ranks);
      n_compared += Compare(lead, *alone, architecture + " " + c.name);
    }
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
  }
  return argc < 2 ? 2 : foretoken::Run(argv[1], architectures);
}
