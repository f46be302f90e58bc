// SPDX-License-Identifier: Apache-2.0
// verify/judge_testing.h: rounds of speculation on laws written down by hand, and what they commit.
#pragma once

#include <array>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "sampling/law_testing.h"
#include "verify/verifier.h"

namespace foretoken::verify {

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

// The probabilities of the head's tokens and of all others together.
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

// What drafts are drawn from: a law q over the vocabulary, or (empty) a certain draft: in round r
// the r-th token of the head, whatever the noise.
struct Drafts {
  std::vector<float> q;
  Token Draw(const sampling::Sampler& sampler, const Noise& noise, int round, Pos position) const {
    if (q.empty()) return static_cast<Token>(round % kHead);
    return sampler.Draw(q.data(), noise.Uniform(Stream::kDraft, position));
  }
};

inline Drafts UniformOverHead(int vocabulary) {
  Drafts drafts{std::vector<float>(static_cast<std::size_t>(vocabulary))};
  std::fill_n(drafts.q.begin(), kHead, 0.2f);
  return drafts;
}
// Nine tenths on one token of the tail and on the head's least likely one, a little everywhere.
inline Drafts FarFromTheTarget(int vocabulary) {
  Drafts drafts{std::vector<float>(static_cast<std::size_t>(vocabulary),
                                   0.1f / static_cast<float>(vocabulary))};
  drafts.q[kHead - 1] += 0.5f, drafts.q[static_cast<std::size_t>(vocabulary) - 1] += 0.4f;
  return drafts;
}

// Likes one token of the head, which every law keeps, far too much.
inline Drafts PeakedAtTwo(int vocabulary) {
  Drafts drafts{std::vector<float>(static_cast<std::size_t>(vocabulary))};
  std::fill_n(drafts.q.begin(), kHead, 0.1f);
  drafts.q[2] = 0.6f;
  return drafts;
}

struct Tally {
  std::array<std::vector<std::int64_t>, 2> committed{std::vector<std::int64_t>(kHead + 1),
                                                     std::vector<std::int64_t>(kHead + 1)};
  std::vector<std::int64_t> pairs =
      std::vector<std::int64_t>((kHead + 1) * (kHead + 1));  // of the first two committed tokens
  std::vector<std::int64_t> recovered = std::vector<std::int64_t>(kHead + 1), bonus = recovered;
  std::int64_t drafted = 0, accepted = 0;
};

struct Experiment {
  SamplingParameters parameters;
  std::vector<float>
      logits;  // of a vocabulary; every row is rotated by the token before it, see RowAfter
  Drafts drafts;
  int n_drafts = 1;
  int rounds = 40000;
  std::vector<Token> prompt = {1, 0, 0};
  bool rows_depend_on_text = false;  // the head's logits rotate by the last token

  std::vector<float> RowAfter(Token token) const {
    std::vector<float> row = logits;
    if (rows_depend_on_text)
      std::rotate(row.begin(), row.begin() + std::min(token, Token{kHead}) % kHead,
                  row.begin() + kHead);
    return row;
  }
};

// Plays rounds of one proposal each, with independent noise, and then, where the round gave but one
// token, plain rounds for a second one. Judge is any callable with the signature of
// Verifier::Judge.
template <typename Judge>
Tally Play(const Experiment& e, Judge&& judge) {
  const int vocabulary = static_cast<int>(e.logits.size());
  std::vector<std::vector<float>> rows;
  for (Token t = 0; t <= kHead; ++t) rows.push_back(e.RowAfter(t));
  std::vector<float> logits(static_cast<std::size_t>(vocabulary * (e.n_drafts + 1)), 0.0f),
      scratch(static_cast<std::size_t>(2 * vocabulary));
  std::vector<float> q;
  for (int i = 0; i < e.n_drafts; ++i) q.insert(q.end(), e.drafts.q.begin(), e.drafts.q.end());

  Tally tally;
  for (int round = 0; round < e.rounds; ++round) {
    const Noise noise(99, static_cast<std::uint64_t>(round));
    sampling::Sampler sampler({.parameters = e.parameters, .end_tokens = {}, .noise = noise},
                              vocabulary, sampling::BestKernels());
    sampler.Begin(e.prompt, e.n_drafts + 2);
    std::vector<Token> drafts, committed;
    const auto put_row = [&](int i, Token before) {
      std::copy(rows[BucketOf(before)].begin(), rows[BucketOf(before)].end(),
                logits.begin() + i * vocabulary);
    };
    const auto commit = [&](const round::Verdict& v, std::span<const Token> proposed) {
      committed.insert(committed.end(), proposed.begin(), proposed.begin() + v.accepted);
      committed.push_back(v.next);
    };
    put_row(0, e.prompt.back());
    for (int i = 0; i < e.n_drafts; ++i) {
      drafts.push_back(e.drafts.Draw(sampler, noise, round + i, sampler.position() + i));
      put_row(i + 1, drafts.back());
    }
    const round::Verdict verdict = judge(
        round::Proposal{
            .tokens = drafts, .q = q.empty() ? nullptr : q.data(), .q_stride = vocabulary},
        LogitsView{logits.data(), vocabulary}, sampler, scratch.data());
    commit(verdict, drafts);
    tally.drafted += e.n_drafts, tally.accepted += verdict.accepted;
    ++(verdict.kind == round::NextKind::kBonus ? tally.bonus
                                               : tally.recovered)[BucketOf(verdict.next)];
    if (committed.size() < 2) {
      sampler.Push(committed[0]);
      put_row(0, committed[0]);
      commit(
          judge(round::Proposal{}, LogitsView{logits.data(), vocabulary}, sampler, scratch.data()),
          {});
    }
    for (std::size_t i = 0; i < 2; ++i) ++tally.committed[i][BucketOf(committed[i])];
    ++tally.pairs[BucketOf(committed[0]) * (kHead + 1) + BucketOf(committed[1])];
  }
  return tally;
}

inline auto JudgeOf(const Verifier& verifier) {
  return [&verifier](const round::Proposal& p, LogitsView l, sampling::Sampler& s, float* scratch) {
    return verifier.Judge(p, l, s, scratch);
  };
}

// One proposal, judged. rows: logits, one row for each draft and one more.
inline round::Verdict JudgeOnce(const Verifier& verifier, const std::vector<Token>& drafts,
                                const std::vector<std::vector<float>>& rows,
                                const std::vector<std::vector<float>>& q,
                                sampling::Sampler& sampler) {
  std::vector<float> logits, laws, scratch(2 * rows[0].size(), sampling::kNan);
  for (const auto& row : rows) logits.insert(logits.end(), row.begin(), row.end());
  for (const auto& law : q) laws.insert(laws.end(), law.begin(), law.end());
  const auto stride = static_cast<std::int64_t>(rows[0].size());
  return verifier.Judge(
      {.tokens = drafts, .q = q.empty() ? nullptr : laws.data(), .q_stride = stride},
      {logits.data(), stride}, sampler, scratch.data());
}

}  // namespace foretoken::verify
