// SPDX-License-Identifier: Apache-2.0
// verify/rounds_testing.h: rounds of speculation with distributions written by hand, and the tokens
// that they commit.
#pragma once

#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sampling/distribution_testing.h"
#include "verify/registry.h"

namespace foretoken::verify {

// The names of all verifiers of the registry.
inline std::vector<std::string_view> VerifierNames() {
  std::vector<std::string_view> names;
  for (const StrategyInfo* row : AllStrategies()) names.emplace_back(row->name);
  return names;
}

inline std::unique_ptr<Verifier> VerifierNamed(std::string_view name,
                                               const SpeculativeOptions& settings = {}) {
  for (const VerifierSpec* const row : Strategies())
    if (row->info.name == name) return row->make(settings);
  throw std::invalid_argument(std::string(name));
}

// A sampler of a text that begins with one token, 0.
inline sampling::Sampler SamplerOf(int vocabulary, const SamplingParameters& parameters = {},
                                   const Noise& noise = {}, int max_new_tokens = 8) {
  sampling::Sampler sampler({.parameters = parameters, .end_tokens = {}, .noise = noise},
                            vocabulary, sampling::BestKernels());
  sampler.Begin(std::vector<Token>{0}, max_new_tokens);
  return sampler;
}

inline constexpr int kHead = 5;

// Five likely tokens (.28 .20 .13 .10 .07) over a lognormal tail that shares the rest.
inline std::vector<double> HeadAndTail(int vocabulary) {
  std::vector<double> p = {.28, .20, .13, .10, .07};
  std::mt19937 engine(11);
  std::lognormal_distribution<double> draw(0.0, 1.0);
  double sum = 0;
  for (int i = kHead; i < vocabulary; ++i) sum += p.emplace_back(draw(engine));
  for (int i = kHead; i < vocabulary; ++i) p[static_cast<std::size_t>(i)] *= .22 / sum;
  return p;
}

// The probabilities of the head's tokens, and of all others together.
inline std::vector<double> Buckets(const std::vector<double>& p) {
  std::vector<double> buckets(kHead + 1);
  for (std::size_t i = 0; i < p.size(); ++i) buckets[std::min<std::size_t>(i, kHead)] += p[i];
  return buckets;
}
inline std::size_t BucketOf(Token token) {
  return static_cast<std::size_t>(std::min(token, Token{kHead}));
}

inline std::vector<float> Floats(const std::vector<double>& p) {
  return {p.begin(), p.end()};
}

// What drafts are drawn from: a distribution q over the vocabulary, or (empty) a certain draft,
// which in round r is the r-th token of the head, whatever the noise.
struct Drafts {
  std::vector<float> q;
};

inline Drafts UniformOverHead(int vocabulary) {
  Drafts drafts{std::vector<float>(static_cast<std::size_t>(vocabulary))};
  std::fill_n(drafts.q.begin(), kHead, 0.2f);
  return drafts;
}
// Nine tenths are on one token of the tail and on the head's least likely one; the rest is spread.
inline Drafts FarFromTheTarget(int vocabulary) {
  Drafts drafts{std::vector<float>(static_cast<std::size_t>(vocabulary),
                                   0.1f / static_cast<float>(vocabulary))};
  drafts.q[kHead - 1] += 0.5f, drafts.q[static_cast<std::size_t>(vocabulary) - 1] += 0.4f;
  return drafts;
}

// Favours one token of the head far too much. Every filter keeps that token.
inline Drafts PeakedAtTwo(int vocabulary) {
  Drafts drafts{std::vector<float>(static_cast<std::size_t>(vocabulary))};
  std::fill_n(drafts.q.begin(), kHead, 0.1f);
  drafts.q[2] = 0.6f;
  return drafts;
}

inline constexpr std::size_t kBuckets = kHead + 1;
inline constexpr std::size_t kTold = 3;  // committed tokens of a round that are counted

// A chi-square that chance exceeds with probability 1e-5 (Wilson and Hilferty 1931).
inline double Bound(std::size_t freedom) {
  const double n = static_cast<double>(freedom), variance = 2 / (9 * n);
  return n * std::pow(1 - variance + 4.265 * std::sqrt(variance), 3);
}

struct Tally {
  // Counts of the first, the second and the third committed token; of the first two together; of
  // the first three.
  std::array<std::vector<std::int64_t>, kTold> committed{std::vector<std::int64_t>(kBuckets),
                                                         std::vector<std::int64_t>(kBuckets),
                                                         std::vector<std::int64_t>(kBuckets)};
  std::vector<std::int64_t> pairs = std::vector<std::int64_t>(kBuckets * kBuckets);
  std::vector<std::int64_t> triples = std::vector<std::int64_t>(kBuckets * kBuckets * kBuckets);
  std::vector<std::int64_t> recovered = std::vector<std::int64_t>(kHead + 1), bonus = recovered;
  std::int64_t drafted = 0, accepted = 0;
};

struct Experiment {
  SamplingParameters parameters;
  // Logits of a vocabulary; each row is rotated by the token before it, see RowAfter.
  std::vector<float> logits;
  Drafts drafts;
  int n_drafts = 1;
  int rounds = 40000;
  std::vector<Token> prompt = {1, 0, 0};
  bool rows_depend_on_text = false;  // the head's logits rotate by the last token
  Token last_draft = kNoToken;       // a draft ends with this token, if not before
  std::size_t told = kTold;          // tokens of a round that the test reads, at most kTold

  std::vector<float> RowAfter(Token token) const {
    std::vector<float> row = logits;
    const auto head = std::min<std::ptrdiff_t>(kHead, std::ssize(row));
    if (rows_depend_on_text)
      std::rotate(row.begin(), row.begin() + std::min(token, Token{kHead}) % head,
                  row.begin() + head);
    return row;
  }
};

// The proposals of an experiment, and what is needed to verify them.
class Table {
 public:
  explicit Table(const Experiment& e)
      : e_(&e),
        vocabulary_(static_cast<int>(e.logits.size())),
        logits_(static_cast<std::size_t>(vocabulary_ * (e.n_drafts + 1)), 0.0f),
        scratch_(static_cast<std::size_t>(2 * vocabulary_)) {
    for (Token t = 0; t <= kHead; ++t) rows_.push_back(e.RowAfter(t));
    for (int i = 0; i < e.n_drafts; ++i) q_.insert(q_.end(), e.drafts.q.begin(), e.drafts.q.end());
  }

  sampling::Sampler Sampler(const Noise& noise, int max_new_tokens) const {
    sampling::Sampler sampler({.parameters = e_->parameters, .end_tokens = {}, .noise = noise},
                              vocabulary_, sampling::BestKernels());
    sampler.Begin(e_->prompt, max_new_tokens);
    return sampler;
  }

  // Drafts up to n tokens behind the text with the noise of `index`, and verifies them.
  template <typename Verify>
  round::Verdict Play(sampling::Sampler& sampler, int n, int round, std::uint32_t index,
                      Verify&& verify) {
    drafts_.clear(), raw_logits_.clear();
    PutRow(0, sampler.text().back());
    for (int i = 0; i < n && (i == 0 || drafts_.back() != e_->last_draft); ++i) {
      const Pos position = sampler.position() + i;
      drafts_.push_back(e_->drafts.q.empty() ? static_cast<Token>((round + i) % kHead)
                                             : sampler.Draw(e_->drafts.q.data(),
                                                            sampler.noise().Uniform(
                                                                Stream::kDraft, position, index)));
      raw_logits_.push_back(e_->drafts.q.empty()
                                ? 0.0f
                                : std::log(e_->drafts.q[static_cast<std::size_t>(drafts_.back())]));
      PutRow(i + 1, drafts_.back());
    }
    return verify(round::Proposal{.tokens = drafts_,
                                  .q = q_.empty() ? nullptr : q_.data(),
                                  .q_stride = vocabulary_,
                                  .raw_logits = raw_logits_.data()},
                  LogitsView{logits_.data(), vocabulary_}, sampler, scratch_.data());
  }

  std::span<const Token> drafts() const { return drafts_; }

 private:
  void PutRow(int i, Token before) {
    const auto& row = rows_[BucketOf(before)];
    std::copy(row.begin(), row.end(), logits_.begin() + i * vocabulary_);
  }

  const Experiment* e_;
  int vocabulary_;
  std::vector<std::vector<float>> rows_;
  std::vector<float> logits_, scratch_, q_, raw_logits_;
  std::vector<Token> drafts_;
};

inline void Commit(const round::Verdict& verdict, std::span<const Token> drafts,
                   sampling::Sampler& sampler) {
  for (const Token t : drafts.first(static_cast<std::size_t>(verdict.accepted))) sampler.Push(t);
  sampler.Push(verdict.next);
}

// Plays rounds of one proposal each, with independent noise. If a round gave fewer than e.told
// tokens, plain rounds give the others. Verify is any callable with the signature of
// Verifier::Verify.
template <typename Verify>
Tally Play(const Experiment& e, Verify&& verify) {
  Table table(e);
  Tally tally;
  for (int round = 0; round < e.rounds; ++round) {
    auto sampler = table.Sampler(Noise(99, static_cast<std::uint64_t>(round)),
                                 e.n_drafts + static_cast<int>(kTold) + 1);
    const round::Verdict verdict = table.Play(sampler, e.n_drafts, round, 0, verify);
    tally.drafted += static_cast<std::int64_t>(table.drafts().size());
    tally.accepted += verdict.accepted;
    ++(verdict.kind == round::NextKind::kBonus ? tally.bonus
                                               : tally.recovered)[BucketOf(verdict.next)];
    Commit(verdict, table.drafts(), sampler);
    while (sampler.n_generated() < static_cast<int>(e.told))
      Commit(table.Play(sampler, 0, round, 0, verify), {}, sampler);
    const auto told = sampler.text().subspan(e.prompt.size());
    std::size_t cell = 0;
    for (std::size_t i = 0; i < e.told; ++i) {
      cell = cell * kBuckets + BucketOf(told[i]);
      ++tally.committed[i][BucketOf(told[i])];
      if (i == 1) ++tally.pairs[cell];
    }
    if (e.told == kTold) ++tally.triples[cell];
  }
  return tally;
}

// Plays e.rounds texts of `length` tokens, round after round of e.n_drafts drafts, with one noise
// for all of a text, and counts the texts: cell sum of t_i vocabulary^(length - 1 - i). fresh:
// drafts use the noise of their proposal, as drafters do; else that of their position alone.
template <typename Verify>
std::vector<std::int64_t> PlayTexts(const Experiment& e, int length, bool fresh, Verify&& verify) {
  Table table(e);
  std::size_t n_cells = 1;
  for (int i = 0; i < length; ++i) n_cells *= e.logits.size();
  std::vector<std::int64_t> cells(n_cells);
  for (int text = 0; text < e.rounds; ++text) {
    auto sampler =
        table.Sampler(Noise(5, static_cast<std::uint64_t>(text)), length + e.n_drafts + 1);
    while (sampler.n_generated() < length) {
      const auto index = fresh ? static_cast<std::uint32_t>(sampler.position()) : 0;
      const auto verdict = table.Play(sampler, e.n_drafts, text, index, verify);
      Commit(verdict, table.drafts(), sampler);
    }
    std::size_t cell = 0;
    for (int i = 0; i < length; ++i)
      cell =
          cell * e.logits.size() +
          static_cast<std::size_t>(sampler.text()[e.prompt.size() + static_cast<std::size_t>(i)]);
    ++cells[cell];
  }
  return cells;
}

// Three tokens, and drafts that favour the first one far too much, so that noise used twice shows.
inline Experiment Texts(int n_drafts, bool rows_depend_on_text) {
  return {.parameters = SamplingParameters{},
          .logits = sampling::LogitsOf({.5, .3, .2}),
          .drafts = {{.8f, .1f, .1f}},
          .n_drafts = n_drafts,
          .rounds = 100000,
          .prompt = {0},
          .rows_depend_on_text = rows_depend_on_text};
}

// Compares the counts of PlayTexts with the distribution of such texts.
inline double ChiSquareOfTexts(const Experiment& e, const std::vector<std::int64_t>& cells) {
  const std::size_t vocabulary = e.logits.size();
  std::vector<double> distribution(cells.size());
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    double p = 1;
    Token before = e.prompt.back();
    for (std::size_t part = cells.size() / vocabulary, rest = cell; part > 0;
         rest %= part, part /= vocabulary) {
      const std::size_t token = rest / part;
      p *= sampling::ReferenceDistribution(e.RowAfter(before), e.parameters)[token];
      before = static_cast<Token>(token);
    }
    distribution[cell] = p;
  }
  return sampling::ChiSquare(cells, distribution);
}

inline auto VerifyOf(const Verifier& verifier) {
  return [&verifier](const round::Proposal& p, LogitsView l, sampling::Sampler& s, float* scratch) {
    return verifier.Verify(p, l, s, scratch);
  };
}

// Verifies one proposal. rows: logits, one row for each draft and one more. raw_logits: those of
// the drafts, or none.
inline round::Verdict VerifyOnce(const Verifier& verifier, const std::vector<Token>& drafts,
                                 const std::vector<std::vector<float>>& rows,
                                 const std::vector<std::vector<float>>& q,
                                 sampling::Sampler& sampler,
                                 const std::vector<float>& raw_logits = {}) {
  std::vector<float> logits, distributions, scratch(2 * rows[0].size(), sampling::kNan);
  for (const auto& row : rows) logits.insert(logits.end(), row.begin(), row.end());
  for (const auto& distribution : q)
    distributions.insert(distributions.end(), distribution.begin(), distribution.end());
  const auto stride = static_cast<std::int64_t>(rows[0].size());
  return verifier.Verify({.tokens = drafts,
                          .q = q.empty() ? nullptr : distributions.data(),
                          .q_stride = stride,
                          .raw_logits = raw_logits.empty() ? nullptr : raw_logits.data()},
                         {logits.data(), stride}, sampler, scratch.data());
}

}  // namespace foretoken::verify
