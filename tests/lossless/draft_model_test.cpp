// SPDX-License-Identifier: Apache-2.0
// A draft model's cache: after any rounds it is as long as the rules say, and holds what reading
// the committed text at once would have put there.
#include "draft/draft_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "fixtures/tiny_model.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"

namespace foretoken::draft {
namespace {

constexpr int kMaxDraft = 6, kSequences = 2, kPositions = 128;

class Bench {
 public:
  Bench() {
    fixtures::TinyModelOptions options{.seed = 6};
    file_ =
        *formats::OpenCheckpoint(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), options));
    config_ = *model::ConfigFromMetadata(file_->metadata());
    config_.vocabulary = options.vocab;
  }
  std::unique_ptr<DraftModel> Make() {
    const auto& kernels = kernels::KernelsFor(kernels::AvailableIsas().back());
    auto loaded = model::Model::Load(
        *file_, config_,
        {.max_rows = 16, .max_logit_rows = kSequences, .max_positions = kPositions}, kernels, pool_,
        {});
    EXPECT_TRUE(loaded);
    auto cache = kv::Cache::Create({.n_layers = config_.n_layers,
                                    .n_kv_heads = config_.n_kv_heads,
                                    .head_dim = config_.head_dim,
                                    .n_sequences = kSequences,
                                    .max_positions = kPositions});
    return std::make_unique<DraftModel>(std::move(*loaded), std::move(*cache), config_.vocabulary,
                                        kMaxDraft, kernels);
  }
  static void Begin(DraftModel& drafter, SeqId seq, std::span<const Token> text,
                    float temperature) {
    SamplingParameters sampling;
    sampling.temperature = temperature;
    drafter.Begin({.seq = seq,
                   .prompt = text,
                   .max_new_tokens = 150,
                   .sampling = sampling,
                   .noise = Noise(7, static_cast<std::uint64_t>(seq))});
  }
  int vocabulary() const { return config_.vocabulary; }

 private:
  std::unique_ptr<formats::Checkpoint> file_;
  model::ModelConfig config_;
  ThreadPool pool_{1};
};

struct Drafts {
  std::vector<Token> tokens;
  std::vector<float> laws;
  bool operator==(const Drafts& other) const {
    return tokens == other.tokens && laws.size() == other.laws.size() &&
           std::memcmp(laws.data(), other.laws.data(), laws.size() * sizeof(float)) == 0;
  }
};

Drafts Proposed(DraftModel& drafter, SeqId seq, int n, int vocabulary) {
  const Ask ask{seq, n};
  round::Proposal proposal;
  drafter.Propose({&ask, 1}, {&proposal, 1});
  Drafts drafts{{proposal.tokens.begin(), proposal.tokens.end()}, {}};
  for (int i = 0; proposal.q != nullptr && i < proposal.length(); ++i)
    drafts.laws.insert(drafts.laws.end(), proposal.Law(i), proposal.Law(i) + vocabulary);
  return drafts;
}

Token RandomToken(std::mt19937& random) {
  return 3 + static_cast<Token>(random() % 300);
}

TEST(DraftModel, HoldsTheCommittedTextAfterAnyAcceptsAndRejects) {
  Bench bench;
  std::mt19937 random(17);
  int whole = 0, none = 0;
  for (const float temperature : {0.0f, 0.9f}) {
    const auto drafter = bench.Make();
    std::vector<Token> texts[kSequences];
    for (SeqId seq = 0; seq < kSequences; ++seq) {
      for (int i = 0; i < 4 + 17 * seq; ++i) texts[seq].push_back(RandomToken(random));
      Bench::Begin(*drafter, seq, texts[seq], temperature);
    }
    for (int round = 0; round < 60; ++round) {
      const SeqId seq = static_cast<SeqId>(random() % kSequences);
      auto& text = texts[seq];
      const int n = static_cast<int>(text.size()), before = drafter->cached(seq);
      if (n > 110) continue;
      ASSERT_LE(before, n - 1);
      const int asked = static_cast<int>(random() % (kMaxDraft + 1));
      Drafts drafts;
      if (asked > 0) {
        drafts = Proposed(*drafter, seq, asked, bench.vocabulary());
        const auto fresh = bench.Make();
        Bench::Begin(*fresh, seq, text, temperature);
        ASSERT_TRUE(Proposed(*fresh, seq, asked, bench.vocabulary()) == drafts) << round;
      }
      const int m = static_cast<int>(drafts.tokens.size());
      ASSERT_EQ(m, asked);
      if (m > 0) ASSERT_EQ(drafter->cached(seq), n + m - 1);
      const int accepted = m == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(m + 1));
      std::vector<Token> committed(drafts.tokens.begin(), drafts.tokens.begin() + accepted);
      committed.push_back(RandomToken(random));
      const Observation o{.seq = seq, .committed = committed, .drafted = m, .accepted = accepted};
      drafter->Observe({&o, 1});
      text.insert(text.end(), committed.begin(), committed.end());
      const int want = m == 0 ? before : std::min(n + m - 1, n + accepted);
      ASSERT_EQ(drafter->cached(seq), want) << "C " << n << ", m " << m << ", A " << accepted;
      whole += m > 0 && accepted == m, none += m > 0 && accepted == 0;
    }
    drafter->End(0);
    EXPECT_EQ(drafter->cached(0), 0);
  }
  EXPECT_GT(whole, 5);
  EXPECT_GT(none, 5);
}

}  // namespace
}  // namespace foretoken::draft
