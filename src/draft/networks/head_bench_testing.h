// SPDX-License-Identifier: Apache-2.0
// draft/networks/head_bench_testing.h: a tiny target and one of its heads, for unit tests of drafters
// that read features. The features are noise: drafts are a function of tokens and features, whatever
// these mean.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/normal_testing.h"
#include "draft/drafter.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "kv/block_tables.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"

namespace foretoken::draft {

struct Drafts {
  std::vector<Token> tokens;
  std::vector<float> distributions;

  bool operator==(const Drafts& other) const {
    return tokens == other.tokens && distributions.size() == other.distributions.size() &&
           (distributions.empty() || std::memcmp(distributions.data(), other.distributions.data(),
                                                 distributions.size() * sizeof(float)) == 0);
  }
  Drafts First(std::size_t n) const {
    return {{tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)},
            {distributions.begin(),
             distributions.begin() +
                 static_cast<std::ptrdiff_t>(n * distributions.size() / tokens.size())}};
  }
};

// What the drafter proposes for a sequence. vocabulary: the size of its distributions.
inline Drafts Proposed(Drafter& drafter, SeqId seq, int n, int vocabulary) {
  const Ask ask{seq, n};
  round::Proposal proposal;
  drafter.Propose({&ask, 1}, {&proposal, 1});
  Drafts drafts{{proposal.tokens.begin(), proposal.tokens.end()}, {}};
  for (int i = 0; proposal.q != nullptr && i < proposal.length(); ++i)
    drafts.distributions.insert(drafts.distributions.end(), proposal.Distribution(i),
                                proposal.Distribution(i) + vocabulary);
  return drafts;
}

inline std::vector<Token> RandomText(std::mt19937& random, int n) {
  std::vector<Token> text(static_cast<std::size_t>(n));
  for (Token& token : text) token = 3 + static_cast<Token>(random() % 300);
  return text;
}

class HeadBench {
 public:
  static constexpr int kMaxDraft = 6, kSequences = 2, kVocabulary = 320;

  struct Options {
    std::string target, head;  // files; the target has kVocabulary tokens
    int positions = 128, max_rows = 24, window = 0;
    std::vector<Token> reduced = {};  // the tokens of the head's reduced output; empty: it has none
    const kernels::Kernels* kernels = nullptr;  // null: this processor's best
  };
  explicit HeadBench(const Options& options)
      : target_file_(*formats::OpenCheckpoint(options.target)),
        head_file_(*formats::OpenCheckpoint(options.head)),
        reduced_(options.reduced),
        kernels_(options.kernels != nullptr
                     ? *options.kernels
                     : kernels::KernelsFor(kernels::AvailableIsas().back())) {
    auto config = *model::ConfigFromMetadata(target_file_->metadata());
    config.vocabulary = kVocabulary;
    tables_ = {.n_sequences = kSequences,
               .max_positions = options.positions,
               .window = options.window,
               .pass_rows = options.max_rows};
    options_ = {
        .max_rows = options.max_rows,
        .max_logit_rows = kSequences * kMaxDraft,
        .max_positions = options.positions,
        .cache = {.n_blocks = tables_.n_blocks(), .n_window_blocks = tables_.n_window_blocks()}};
    target_ = *model::LocalRunner::Load(*target_file_, config, options_, kernels_, pool_, {});
    config_ = *model::HeadConfigFromFile(*head_file_);
    width_ = config_.head->features_width();
    features_ = Normal(kSequences * kFeatureRows * width_, 9);
  }

  std::unique_ptr<model::Runner> LoadHead() {
    model::RunnerOptions options = options_;
    options.output_tokens = reduced_;
    auto head =
        model::LocalRunner::LoadHead(*head_file_, config_, options, kernels_, pool_, *target_);
    EXPECT_TRUE(head) << head.error().message;
    return std::move(*head);
  }
  const model::HeadConfig& config() const { return *config_.head; }
  const float* features() const { return features_.data(); }  // of the first sequence
  const kv::TablesShape& tables() const { return tables_; }
  const kernels::Kernels& kernels() const { return kernels_; }

  static void Begin(Drafter& drafter, SeqId seq, std::span<const Token> prompt, float temperature,
                    float p_min = 0) {
    SamplingParameters sampling;
    sampling.temperature = temperature;
    drafter.Begin({.seq = seq,
                   .prompt = prompt,
                   .max_new_tokens = 150,
                   .sampling = sampling,
                   .noise = Noise(7, static_cast<std::uint64_t>(seq)),
                   .draft_p_min = p_min});
  }

  // The target has processed positions [first, first + n) of the sequence; its drafter's text begins
  // `cut` positions later.
  void Observe(Drafter& drafter, SeqId seq, std::span<const Token> committed, int first, int n,
               int cut = 0) {
    const Observation o{.seq = seq,
                        .committed = committed,
                        .features = features_.data() + (seq * kFeatureRows + first) * width_,
                        .n_features = n,
                        .first_position = first - cut};
    drafter.Observe({&o, 1});
  }

  static Drafts Propose(Drafter& drafter, SeqId seq, int n) {
    return Proposed(drafter, seq, n, kVocabulary);
  }

  // What a drafter reads before it drafts is told, except the rows of the last round, or a few. of_prompt:
  // rows of a prompt whose 13 positions were processed.
  void ExpectReadsFirst(Drafter& drafter, int of_prompt) {
    std::mt19937 random(15);
    Begin(drafter, 0, RandomText(random, 14), 0);
    Observe(drafter, 0, {}, 0, 13);
    ExpectMissing(drafter, of_prompt);
    Observe(drafter, 0, RandomText(random, 3), 13, 3);
    ExpectMissing(drafter, 0);
    for (int i = 0; i < 10; ++i) Observe(drafter, 0, RandomText(random, 1), 16 + i, 1);
    ExpectMissing(drafter, 9);
    const auto committed = RandomText(random, 10);
    const Observation all_accepted{.seq = 0,
                                   .committed = committed,
                                   .drafted = 9,
                                   .accepted = 9,
                                   .features = features_.data() + 26 * width_,
                                   .n_features = 10,
                                   .first_position = 26};
    drafter.Observe({&all_accepted, 1});
    ExpectMissing(drafter, 0);
  }

  // After any pattern of rounds the drafts equal those of a drafter that got the same text at once.
  // So nothing of a rejected draft stays, and no feature is lost or shifted. make: makes a drafter.
  template <typename Make>
  void ExpectDraftsOfTextAndFeaturesAlone(Make make) {
    std::mt19937 random(11);
    for (const float temperature : {0.0F, 0.8F}) {
      auto drafter = make();
      std::vector<Token> texts[kSequences];
      int processed[kSequences] = {};
      for (SeqId seq = 0; seq < kSequences; ++seq) {
        texts[seq] = RandomText(random, 3 + 30 * seq);
        processed[seq] = ReadInPieces(*drafter, seq, texts[seq], temperature, random);
      }
      for (int round = 0; round < 40; ++round) {
        const SeqId seq = static_cast<SeqId>(random() % kSequences);
        std::vector<Token>& text = texts[seq];
        if (text.size() > 110) break;
        const int asked = static_cast<int>(random() % (kMaxDraft + 1));
        if (asked > 0) {
          const Drafts drafts = Propose(*drafter, seq, asked);
          ASSERT_EQ(static_cast<int>(drafts.tokens.size()), asked);
          auto fresh = make();
          Begin(*fresh, seq, text, temperature);
          Observe(*fresh, seq, {}, 0, processed[seq]);
          ASSERT_TRUE(Propose(*fresh, seq, asked) == drafts)
              << "round " << round << " temperature " << temperature;
        }
        const auto committed = RandomText(random, 1 + static_cast<int>(random() % 4));
        text.insert(text.end(), committed.begin(), committed.end());
        const int n = static_cast<int>(text.size()) - 1 - processed[seq];
        Observe(*drafter, seq, committed, processed[seq], n);
        processed[seq] += n;
      }
    }
  }

 private:
  static constexpr int kFeatureRows = 200;

  // The rows are read and told with the next proposal, perhaps with the newest one.
  static void ExpectMissing(Drafter& drafter, int missing) {
    EXPECT_EQ(drafter.Missing(0), missing);
    EXPECT_EQ(Propose(drafter, 0, 2).tokens.size(), 2U);
    const Drafter::Work work = drafter.TakeWork();
    EXPECT_GE(work.catch_up_rows, missing);
    EXPECT_LE(work.catch_up_rows, missing == 0 ? 0 : missing + 1);
    EXPECT_EQ(work.catch_up_ms > 0, missing > 0);
    EXPECT_EQ(drafter.Missing(0), 0);
  }

  // The prompt comes in chunks; the last brings the first token, which joins the text. Returns the
  // positions that were processed.
  int ReadInPieces(Drafter& drafter, SeqId seq, std::vector<Token>& text, float temperature,
                   std::mt19937& random) {
    Begin(drafter, seq, text, temperature);
    const int n = static_cast<int>(text.size());
    for (int at = 0; at < n; at += 7) {
      const int chunk = std::min(7, n - at);
      const auto next = at + chunk == n ? RandomText(random, 1) : std::vector<Token>();
      text.insert(text.end(), next.begin(), next.end());
      Observe(drafter, seq, next, at, chunk);
    }
    return n;
  }

  std::unique_ptr<formats::Checkpoint> target_file_, head_file_;
  const std::vector<Token> reduced_;
  const kernels::Kernels& kernels_;
  ThreadPool pool_{1};
  kv::TablesShape tables_;
  model::RunnerOptions options_;
  std::unique_ptr<model::LocalRunner> target_;
  model::ModelConfig config_;
  int width_ = 0;
  std::vector<float> features_;
};

}  // namespace foretoken::draft
