// SPDX-License-Identifier: Apache-2.0
// What every drafter without a model must do for the engine. A new drafter joins the list at the
// end. The program counts every allocation it makes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <random>
#include <set>

#include "draft/lookup/ngram.h"
#include "draft/lookup/prediction.h"
#include "draft/lookup/suffix.h"
#include "foretoken/drafts.h"

namespace {
std::size_t n_allocations = 0;
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++n_allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++n_allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace foretoken::draft {
namespace {

constexpr int kSuiteSequences = 3, kSuiteContext = 2000;
constexpr Token kSuiteEnd = 999;

struct DrafterKind {
  const char* name;
  std::function<std::unique_ptr<Drafter>(std::span<const Token> corpus)> make;
};

// A text that often repeats what it said before.
std::vector<Token> Story(unsigned seed, int n, Token first_token) {
  std::mt19937 random(seed);
  std::vector<Token> text;
  std::size_t from = 0;
  while (static_cast<int>(text.size()) < n) {
    if (random() % 12 == 0 && text.size() > 4) from = random() % text.size();
    const bool copy = from < text.size() && random() % 10 != 0;
    text.push_back(copy ? text[from++] : first_token + static_cast<Token>(random() % 20));
  }
  return text;
}

// A request whose output is known. The drafter proposes, and a target that would write `output`
// verifies.
struct Play {
  SeqId seq = 0;
  std::vector<Token> prompt, output, prediction;
  int max_tokens = 8;
  int min_new_tokens = 0;
  int n_written = 0;
  int n_drafted = 0, n_accepted = 0;
  std::vector<std::vector<Token>> drafts;  // one entry for each round
  std::size_t n_allocations_of_rounds = 0;
  // Reserved, so that the test itself allocates nothing during a round.
  std::vector<Token> draft, likely;

  Play(SeqId sequence, unsigned seed, int n, Token first_token) : seq(sequence) {
    auto text = Story(seed, 60 + n, first_token);
    output.assign(text.begin() + 60, text.end());
    prompt.assign(text.begin(), text.begin() + 60);
    for (std::size_t i = 0; i < output.size(); ++i)  // an edited output
      if (i % 13 != 5) prediction.push_back(i % 17 == 3 ? first_token : output[i]);
    draft.reserve(64);
    likely.reserve(65 * 16);
  }

  void Begin(Drafter& drafter) const {
    static const std::vector<Token> ends = {kSuiteEnd - 1, kSuiteEnd};
    drafter.Begin({.seq = seq,
                   .prompt = prompt,
                   .max_new_tokens = static_cast<int>(output.size()),
                   .sampling = {},
                   .end_tokens = ends,
                   .min_new_tokens = min_new_tokens,
                   .noise = {},
                   .prediction = prediction});
  }
  bool done() const { return n_written == static_cast<int>(output.size()); }

  void Round(Drafter& drafter) {
    const std::size_t before = n_allocations;
    const Ask ask{seq, max_tokens};
    round::Proposal proposal;
    drafter.Propose({&ask, 1}, {&proposal, 1});
    n_allocations_of_rounds += n_allocations - before;
    EXPECT_EQ(proposal.q, nullptr);
    EXPECT_GE(proposal.evidence, 0);
    EXPECT_LE(proposal.evidence, 3);
    drafts.emplace_back(proposal.tokens.begin(), proposal.tokens.end());
    Verify(drafter);
  }
  void Verify(Drafter& drafter) {
    draft.assign(drafts.back().begin(), drafts.back().end());
    const auto rest = std::span(output).subspan(static_cast<std::size_t>(n_written));
    std::size_t accepted = 0;
    while (accepted < draft.size() && accepted + 1 < rest.size() &&
           draft[accepted] == rest[accepted])
      ++accepted;
    const auto committed = rest.first(accepted + 1);
    likely.clear();
    const int k = drafter.LikelyTokens();
    for (const Token t : committed)
      for (int i = 0; i < k; ++i) likely.push_back(i == 1 ? t : output[(t + i) % output.size()]);
    const Observation observation{.seq = seq,
                                  .committed = committed,
                                  .drafted = static_cast<int>(draft.size()),
                                  .accepted = static_cast<int>(accepted),
                                  .likely = k > 0 ? likely.data() : nullptr,
                                  .n_likely = k};
    const std::size_t before = n_allocations;
    drafter.Observe({&observation, 1});
    n_allocations_of_rounds += n_allocations - before;
    n_written += static_cast<int>(committed.size());
    n_drafted += static_cast<int>(draft.size());
    n_accepted += static_cast<int>(accepted);
  }
  void Whole(Drafter& drafter) {
    Begin(drafter);
    while (!done()) Round(drafter);
    drafter.End(seq);
  }
};

class ModelFreeDrafter : public testing::TestWithParam<DrafterKind> {
 protected:
  const std::vector<Token> corpus_ = Story(90, 400, 100);
  std::unique_ptr<Drafter> Make() const { return GetParam().make(corpus_); }
  // Without this test the properties below would hold for a drafter that never drafts.
  static void ExpectDrafts(const Play& play) {
    EXPECT_GT(play.n_drafted, 20);
    EXPECT_GT(play.n_accepted, 5);
  }
};

TEST_P(ModelFreeDrafter, ProposesNoMoreThanItIsAskedFor) {
  const auto drafter = Make();
  for (const int most : {0, 1, 2, 7, 64, 1000}) {
    Play play(0, 1, 400, 100);
    play.max_tokens = most;
    play.Whole(*drafter);
    for (const auto& draft : play.drafts)
      ASSERT_LE(static_cast<int>(draft.size()), std::min(most, kMaxDraft));
    if (most > 1) ExpectDrafts(play);
  }
}

TEST_P(ModelFreeDrafter, ProposesOnlyTokensThatItWasTold) {
  const auto drafter = Make();
  std::set<Token> known(corpus_.begin(), corpus_.end());
  for (unsigned seed = 2; seed < 6; ++seed) {
    Play play(0, seed, 300, 100);
    known.insert(play.prompt.begin(), play.prompt.end());
    known.insert(play.output.begin(), play.output.end());
    known.insert(play.prediction.begin(), play.prediction.end());
    play.Whole(*drafter);
    for (const auto& draft : play.drafts)
      for (const Token t : draft) ASSERT_TRUE(known.contains(t)) << t;
    ExpectDrafts(play);
  }
}

TEST_P(ModelFreeDrafter, EndsADraftWithAnEndToken) {
  const auto drafter = Make();
  int n_ends = 0;
  for (unsigned seed = 7; seed < 10; ++seed) {
    Play play(0, seed, 400, 100);
    for (std::size_t i = 6; i < play.output.size(); i += 11) play.output[i] = kSuiteEnd;
    play.prediction = play.output;
    play.prediction.erase(play.prediction.begin() + 30);
    play.Whole(*drafter);
    for (const auto& draft : play.drafts)
      for (std::size_t i = 0; i < draft.size(); ++i) {
        n_ends += draft[i] == kSuiteEnd;
        if (draft[i] == kSuiteEnd) {
          ASSERT_EQ(i + 1, draft.size());
        }
      }
  }
  EXPECT_GT(n_ends, 10);
}

TEST_P(ModelFreeDrafter, ProposesNoEndTokenThatIsMasked) {
  const auto drafter = Make();
  int n_ends = 0;
  for (unsigned seed = 11; seed < 14; ++seed) {
    Play play(0, seed, 400, 100);
    for (std::size_t i = 6; i < play.output.size(); i += 11) play.output[i] = kSuiteEnd;
    play.prediction = play.output;
    play.min_new_tokens = 200;
    play.Begin(*drafter);
    while (!play.done()) {
      const int written = play.n_written;
      play.Round(*drafter);
      const auto& draft = play.drafts.back();
      for (std::size_t i = 0; i < draft.size(); ++i) {
        if (draft[i] != kSuiteEnd) continue;
        ++n_ends;
        ASSERT_GE(written + static_cast<int>(i), play.min_new_tokens);
      }
    }
    drafter->End(0);
  }
  EXPECT_GT(n_ends, 5);
}

TEST_P(ModelFreeDrafter, DraftsNothingOfAnEarlierTextForOneThatSharesNoToken) {
  const auto drafter = Make();
  Play first(1, 15, 300, 100);
  first.Whole(*drafter);
  ExpectDrafts(first);
  Play second(1, 16, 300, 300);
  second.Whole(*drafter);
  for (const auto& draft : second.drafts)
    for (const Token t : draft) ASSERT_GE(t, 300);
  ExpectDrafts(second);
}

TEST_P(ModelFreeDrafter, ASequenceDoesNotChangeAnothersDrafts) {
  const auto together = Make();
  std::vector<Play> plays;
  for (SeqId seq = 0; seq < kSuiteSequences; ++seq)
    plays.emplace_back(seq, 20 + static_cast<unsigned>(seq), 300 + 50 * seq, 100);
  for (const Play& play : plays) play.Begin(*together);
  for (bool more = true; more;) {
    more = false;
    for (Play& play : plays) {
      if (play.done()) continue;
      play.Round(*together);
      more = true;
    }
  }
  for (SeqId seq = 0; seq < kSuiteSequences; ++seq) {
    const auto alone = Make();
    Play play(seq, 20 + static_cast<unsigned>(seq), 300 + 50 * seq, 100);
    play.Whole(*alone);
    EXPECT_EQ(plays[static_cast<std::size_t>(seq)].drafts, play.drafts) << "sequence " << seq;
    ExpectDrafts(play);
  }
}

TEST_P(ModelFreeDrafter, AnswersAllAsksOfABatchAsItAnswersThemOneByOne) {
  const auto drafter = Make();
  std::vector<Play> plays;
  std::vector<Ask> asks;
  for (SeqId seq = 0; seq < kSuiteSequences; ++seq) {
    plays.emplace_back(seq, 30 + static_cast<unsigned>(seq), 200, 100);
    plays.back().Begin(*drafter);
    for (int i = 0; i < 40 && !plays.back().done(); ++i) plays.back().Round(*drafter);
    asks.push_back({seq, 3 + seq});
  }
  std::vector<std::vector<Token>> one_by_one;
  for (const Ask& ask : asks) {
    round::Proposal proposal;
    drafter->Propose({&ask, 1}, {&proposal, 1});
    one_by_one.emplace_back(proposal.tokens.begin(), proposal.tokens.end());
  }
  std::vector<round::Proposal> proposals(asks.size());
  drafter->Propose(asks, proposals);
  for (std::size_t i = 0; i < asks.size(); ++i)
    EXPECT_EQ(std::vector<Token>(proposals[i].tokens.begin(), proposals[i].tokens.end()),
              one_by_one[i]);
}

TEST_P(ModelFreeDrafter, AllocatesNothingInARound) {
  const auto drafter = Make();
  for (unsigned seed = 40; seed < 44; ++seed) {
    Play play(static_cast<SeqId>(seed % kSuiteSequences), seed, 900, 100);
    const std::size_t before = n_allocations;
    play.Begin(*drafter);
    if (seed == 40) {
      EXPECT_GT(n_allocations, before);  // the control: allocations are counted
    }
    while (!play.done()) play.Round(*drafter);
    drafter->End(play.seq);
    EXPECT_EQ(play.n_allocations_of_rounds, 0u);
    ExpectDrafts(play);
  }
}

TEST_P(ModelFreeDrafter, AllocatesNothingForMoreTokensThanWereAnnounced) {
  const auto drafter = Make();
  Play play(0, 50, 1500, 100);
  std::vector<Token> output = play.output;
  play.output.resize(10);  // announced
  play.Begin(*drafter);
  play.output = std::move(output);
  while (!play.done()) play.Round(*drafter);
  EXPECT_EQ(play.n_allocations_of_rounds, 0u);
}

TEST_P(ModelFreeDrafter, DraftsTheSameForTheSame) {
  const auto one = Make(), other = Make();
  for (unsigned seed = 60; seed < 68; ++seed) {
    Play play(static_cast<SeqId>(seed % kSuiteSequences), seed % 3, 300, 100), again = play;
    play.Whole(*one);
    again.Whole(*other);
    ASSERT_EQ(play.drafts, again.drafts);
  }
}

std::vector<DrafterKind> Kinds() {
  const auto ngram = [](NgramSettings settings, bool corpus) {
    return [=](std::span<const Token> tokens) {
      NgramSettings s = settings;
      s.max_sequences = kSuiteSequences;
      s.max_context = kSuiteContext;
      if (corpus) s.corpus = tokens;
      return std::make_unique<NgramDrafter>(s);
    };
  };
  const auto suffix = [](int max_tokens) {
    return [=](std::span<const Token>) {
      return std::make_unique<SuffixDrafter>(SuffixSettings{.max_sequences = kSuiteSequences,
                                                            .max_context = kSuiteContext,
                                                            .max_tokens = max_tokens});
    };
  };
  constexpr auto kSingle = NgramStorage::kSingleLevel;
  return {
      {"ngram", ngram({}, false)},
      {"ngram_single_level", ngram({.storage = kSingle}, false)},
      {"ngram_filler", ngram({.filler_top_k = 3}, false)},
      {"ngram_keep", ngram({.keep = true, .max_kept_tokens = 1000}, false)},
      {"ngram_corpus", ngram({}, true)},
      {"ngram_all", ngram({.storage = kSingle, .filler_top_k = 3, .keep = true}, true)},
      {"suffix", suffix(1 << 20)},
      {"suffix_short_memory", suffix(500)},
      {"suffix_no_memory", suffix(0)},
      {"prediction",
       [](std::span<const Token>) {
         return std::make_unique<PredictionDrafter>(kSuiteSequences, kSuiteContext);
       }},
  };
}

INSTANTIATE_TEST_SUITE_P(All, ModelFreeDrafter, testing::ValuesIn(Kinds()),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace foretoken::draft
