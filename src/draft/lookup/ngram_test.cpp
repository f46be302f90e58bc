// SPDX-License-Identifier: Apache-2.0
#include "draft/lookup/ngram.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "draft/drafting_testing.h"

namespace foretoken::draft {
namespace {

// A text, and the tokens that were likely for the target at each of its positions.
struct NaiveText {
  Tokens tokens;
  std::vector<Tokens> likely = {};  // empty, or an entry for each position
};

constexpr int kMaxMatch = 16;

// How many tokens before `end` equal the last tokens of the context.
int NaiveMatch(const Tokens& context, const Tokens& tokens, int end) {
  int n = 0;
  while (n < kMaxMatch && n < static_cast<int>(context.size()) && n <= end &&
         context[context.size() - 1 - static_cast<std::size_t>(n)] ==
             tokens[static_cast<std::size_t>(end - n)])
    ++n;
  return n;
}

// The tokens that followed the context's last n tokens at their 32 latest occurrences in the texts,
// the latest text first. The best one has the longest match, then the most votes, then the latest
// occurrence.
Token NaiveNgramFollower(const Tokens& context, int n, std::span<const NaiveText> texts) {
  Tokens order;  // the latest occurrence first; of a position, its own token first
  std::map<Token, std::pair<int, int>> votes;  // the longest match, and the number of votes
  int seen = 0, matched = 0;
  const auto count = [&](Token t) {
    if (votes[t].second++ == 0) order.push_back(t);
    votes[t].first = std::max(votes[t].first, matched);
  };
  for (const auto& [tokens, likely] : texts)
    for (int end = static_cast<int>(tokens.size()) - 2; end >= n - 1 && seen < 32; --end) {
      if (!std::equal(context.end() - n, context.end(), tokens.begin() + (end + 1 - n))) continue;
      ++seen;
      matched = std::max(n, NaiveMatch(context, tokens, end));
      const auto next = static_cast<std::size_t>(end + 1);
      count(tokens[next]);
      if (likely.empty()) continue;
      for (const Token t : likely[next])
        if (t != tokens[next]) count(t);
    }
  const auto best = std::max_element(order.begin(), order.end(),
                                     [&](Token a, Token b) { return votes[a] < votes[b]; });
  return best == order.end() ? kNoToken : *best;
}

// The definition: scans all texts for every draft. The first text is the one to continue, and it
// takes precedence over the others.
Tokens NaiveNgramDraft(const std::vector<NaiveText>& texts, int n_max, int n_min, int most) {
  Tokens context = texts[0].tokens, drafts;
  while (static_cast<int>(drafts.size()) < most) {
    Token next = kNoToken;
    for (int n = std::min(n_max, static_cast<int>(context.size())); n >= n_min && next == kNoToken;
         --n) {
      next = NaiveNgramFollower(context, n, std::span(texts).first(1));
      if (next == kNoToken) next = NaiveNgramFollower(context, n, std::span(texts).subspan(1));
    }
    if (next == kNoToken) break;
    context.push_back(next);
    drafts.push_back(next);
  }
  return drafts;
}

Tokens RandomTokens(std::mt19937& random, int alphabet, std::size_t n) {
  Tokens tokens(n);
  for (Token& t : tokens) t = static_cast<Token>(random() % static_cast<unsigned>(alphabet));
  return tokens;
}

NgramSettings ContextsOf(int n_max, int n_min = 1) {
  return {.max_sequences = 2, .max_context = 1000, .ngram_max = n_max, .ngram_min = n_min};
}

TEST(NgramDrafter, DraftsWhatANaiveScanOfTheTextDrafts) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const int alphabet = 2 + round % 7, n_max = 1 + round % 4, n_min = 1 + round % n_max;
    NgramDrafter drafter(ContextsOf(n_max, n_min));
    Tokens texts[2];
    for (SeqId seq = 0; seq < 2; ++seq) {
      texts[seq] = RandomTokens(random, alphabet, static_cast<std::size_t>(1 + round));
      Start(drafter, texts[seq], {.seq = seq, .sampling = {}});
    }
    for (int step = 0; step < 40; ++step)
      for (SeqId seq = 0; seq < 2; ++seq) {
        ASSERT_EQ(Drafted(drafter, 6, seq), NaiveNgramDraft({{texts[seq]}}, n_max, n_min, 6))
            << "round " << round << " step " << step;
        const Tokens next = RandomTokens(random, alphabet, 1 + random() % 3);
        Commit(drafter, next, seq);
        texts[seq].insert(texts[seq].end(), next.begin(), next.end());
      }
  }
}

TEST(NgramDrafter, ProposesNothingForWordsItNeverSaw) {
  NgramDrafter drafter(ContextsOf(3));
  Start(drafter, {1, 2, 3, 4});
  EXPECT_TRUE(Drafted(drafter, 4).empty());
}

TEST(NgramDrafter, TheLongestContextWinsOverTheMostFrequentFollower) {
  NgramDrafter drafter(ContextsOf(2));
  Start(drafter, {5, 1, 7, 9, 1, 8, 9, 1, 8, 5, 1});  // after "1": 8 twice; after "5 1": 7
  EXPECT_EQ(Drafted(drafter, 1), Tokens{7});
}

TEST(NgramDrafter, TheMostFrequentFollowerWinsAndOfEqualsTheLatest) {
  NgramDrafter drafter(ContextsOf(1));
  const Tokens frequent = {1, 8, 1, 8, 1, 7, 1}, recent = {1, 8, 1, 7, 1};
  Start(drafter, frequent);
  Start(drafter, recent, {.seq = 1, .sampling = {}});
  EXPECT_EQ(Drafted(drafter, 1), Tokens{8});
  EXPECT_EQ(Drafted(drafter, 1, 1), Tokens{7});
}

// "2 3" was mostly followed by 9, but after "7 2 3" came 8.
TEST(NgramDrafter, OfOccurrencesThoseThatAgreeFarthestBackDecide) {
  for (const int ngram_max : {1, 2}) {
    NgramDrafter drafter(ContextsOf(ngram_max));
    const Tokens prompt = {7, 2, 3, 8, 5, 2, 3, 9, 6, 2, 3, 9, 4, 2, 3, 9, 7, 2, 3};
    Start(drafter, prompt);
    EXPECT_EQ(Drafted(drafter, 2), (Tokens{8, 5})) << ngram_max;
  }
}

TEST(NgramDrafter, DraftsAreNoEvidenceForDrafts) {
  NgramDrafter drafter(ContextsOf(2));
  const Tokens prompt = {1, 2, 1, 3, 1, 2, 1, 2};
  Start(drafter, prompt);
  const auto first = Drafted(drafter, 8);
  EXPECT_EQ(first, NaiveNgramDraft({{prompt}}, 2, 1, 8));
  EXPECT_EQ(Drafted(drafter, 8), first);  // proposing changes nothing
}

TEST(NgramDrafter, StopsWhereTheTextOutgrowsWhatWasAnnounced) {
  NgramDrafter drafter({.max_sequences = 1, .max_context = 6, .ngram_max = 3, .ngram_min = 1});
  const Tokens prompt = {1, 2, 1, 2};
  Start(drafter, prompt, {.max_new_tokens = std::numeric_limits<int>::max(), .sampling = {}});
  EXPECT_EQ(Drafted(drafter, 2), (Tokens{1, 2}));
  Commit(drafter, Tokens(50, 1));
  EXPECT_TRUE(Drafted(drafter, 2).empty());
}

TEST(NgramDrafter, ProposesNoMoreThanItIsAskedFor) {
  NgramDrafter drafter(ContextsOf(3));
  const Tokens prompt(20, 1);
  Start(drafter, prompt);
  EXPECT_TRUE(Drafted(drafter, 0).empty());
  EXPECT_EQ(Drafted(drafter, 5).size(), 5u);
  EXPECT_EQ(Drafted(drafter, 1000).size(), 64u);
}

TEST(NgramDrafter, EndsADraftWithAnEndTokenAndKeepsIt) {
  NgramDrafter drafter(ContextsOf(3));
  const Tokens prompt = {4, 5, 2, 6, 4}, ends = {2};
  Start(drafter, prompt, {.sampling = {}, .end_tokens = ends});
  EXPECT_EQ(Drafted(drafter, 6), (Tokens{5, 2}));
}

TEST(NgramDrafter, DoesNotProposeAnEndTokenThatIsStillMasked) {
  NgramDrafter drafter(ContextsOf(3));
  const Tokens prompt = {4, 5, 2, 6, 4}, ends = {2};
  for (const int min_new_tokens : {0, 1, 2, 3}) {
    Start(drafter, prompt, {.sampling = {}, .end_tokens = ends, .min_new_tokens = min_new_tokens});
    // The end token would be the output's second token.
    const Tokens expected = min_new_tokens <= 1 ? Tokens{5, 2} : Tokens{5};
    EXPECT_EQ(Drafted(drafter, 6), expected) << min_new_tokens;
    drafter.End(0);
  }
}

TEST(NgramDrafter, ForgetsATextWhenItsSequenceEnds) {
  NgramDrafter drafter(ContextsOf(3));
  const Tokens first = {1, 2, 3, 1, 2, 3}, second = {1, 2};
  Start(drafter, first);
  EXPECT_EQ(Drafted(drafter, 2), (Tokens{1, 2}));
  drafter.End(0);
  Start(drafter, second);
  EXPECT_TRUE(Drafted(drafter, 2).empty());
}

// Requests follow one another, each with random tokens. `kept` holds the earlier texts, the latest
// first.
class NgramProgram {
 public:
  NgramProgram(const NgramSettings& settings, unsigned seed)
      : settings_(settings),
        random_(seed),
        corpus_(RandomTokens(random_, 5, settings.corpus.empty() ? 0 : 300)),
        drafter_(WithCorpus()) {}

  void CompareOneRequest(int round) {
    NaiveText text{RandomTokens(random_, 5, 1 + random_() % 30)};
    text.likely.resize(text.tokens.size());
    Start(drafter_, text.tokens);
    for (int step = 0; step < 40; ++step) {
      std::vector<NaiveText> texts = {text};
      texts.insert(texts.end(), kept_.begin(), kept_.end());
      texts.push_back({corpus_});
      const int n_min = settings_.storage == NgramStorage::kSingleLevel ? settings_.ngram_max
                                                                        : settings_.ngram_min;
      const auto expected = NaiveNgramDraft(texts, settings_.ngram_max, n_min, 6);
      ASSERT_EQ(Drafted(drafter_, 6), expected) << "request " << round << " step " << step;
      n_drafted_ += static_cast<int>(expected.size());
      CommitSome(text);
    }
    drafter_.End(0);
    if (settings_.keep) kept_.insert(kept_.begin(), text);
  }
  int n_drafted() const { return n_drafted_; }

 private:
  NgramSettings WithCorpus() {
    NgramSettings settings = settings_;
    settings.corpus = corpus_;
    return settings;
  }
  void CommitSome(NaiveText& text) {
    const auto next = RandomTokens(random_, 5, 1 + random_() % 3);
    const auto k = static_cast<std::size_t>(drafter_.LikelyTokens());
    Tokens likely;
    for (std::size_t i = 0; i < next.size(); ++i) {
      Tokens order = {0, 1, 2, 3, 4};
      std::shuffle(order.begin(), order.end(), random_);
      text.likely.emplace_back(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k));
      likely.insert(likely.end(), text.likely.back().begin(), text.likely.back().end());
    }
    text.tokens.insert(text.tokens.end(), next.begin(), next.end());
    const Observation observation{.committed = next,
                                  .likely = k > 0 ? likely.data() : nullptr,
                                  .n_likely = static_cast<int>(k)};
    drafter_.Observe({&observation, 1});
  }

  NgramSettings settings_;
  std::mt19937 random_;
  Tokens corpus_;
  NgramDrafter drafter_;
  std::vector<NaiveText> kept_;
  int n_drafted_ = 0;
};

TEST(NgramDrafter, DraftsWhatANaiveScanDraftsInEverySetting) {
  const Tokens some = {1};
  unsigned seed = 0;
  for (const auto storage : {NgramStorage::kMultiLevel, NgramStorage::kSingleLevel})
    for (const int filler_top_k : {1, 2, 4})
      for (const bool keep : {false, true})
        for (const bool corpus : {false, true}) {
          NgramProgram program({.max_context = 1000,
                                .ngram_max = 2 + static_cast<int>(seed % 2),
                                .storage = storage,
                                .filler_top_k = filler_top_k,
                                .keep = keep,
                                .corpus = corpus ? std::span(some) : std::span<const Token>()},
                               ++seed);
          for (int round = 0; round < 5; ++round) program.CompareOneRequest(round);
          EXPECT_GT(program.n_drafted(), 300);
        }
}

TEST(NgramDrafter, EvidenceIsWhatSpeaksForTheFirstDraft) {
  ExpectEvidence([] { return NgramDrafter({.max_context = 100}); },
                 {{{1, 2, 3}, 0},                       // nothing
                  {{1, 2, 3, 1}, 0},                    // one token
                  {{1, 2, 3, 1, 2, 4, 1}, 1},           // twice
                  {{1, 2, 3, 1, 2}, 1},                 // two tokens
                  {{1, 2, 3, 1, 2, 3, 1, 2, 3, 1}, 3},  // three, ...
                  {{5, 1, 2, 3, 6, 1, 2, 3, 7, 1, 2}, 2},
                  {{1, 2, 3, 4, 1, 2, 3}, 2},
                  {{1, 2, 3, 9, 1, 2, 4, 8, 1, 2}, 0}});
}

TEST(NgramDrafter, ALikelyTokenCountsOncePerOccurrenceWhateverWasCommitted) {
  NgramDrafter drafter({.max_context = 100, .ngram_max = 1, .filler_top_k = 2});
  EXPECT_EQ(drafter.LikelyTokens(), 2);
  Start(drafter, {1});
  // After 1: 7 (7 and 8 likely), 8 (8 and 7), 9 (7 and 9): seven 3 times, not 4.
  const Tokens committed = {7, 1, 8, 1, 9, 1}, likely = {7, 8, 0, 0, 8, 7, 0, 0, 7, 9, 0, 0};
  const Observation observation{.committed = committed, .likely = likely.data(), .n_likely = 2};
  drafter.Observe({&observation, 1});
  EXPECT_EQ(Drafted(drafter, 1), Tokens{7});
  NgramDrafter without({.max_context = 100, .ngram_max = 1});
  EXPECT_EQ(without.LikelyTokens(), 0);
  Start(without, {1});
  without.Observe({&observation, 1});
  EXPECT_EQ(Drafted(without, 1), Tokens{9});
}

TEST(NgramDrafter, SingleLevelStorageKnowsTheLongestContextOnly) {
  NgramDrafter drafter({.max_context = 100, .ngram_max = 2, .storage = NgramStorage::kSingleLevel});
  Start(drafter, {1, 2, 3, 4, 2});
  EXPECT_TRUE(Drafted(drafter, 2).empty());
  Commit(drafter, {3});
  EXPECT_EQ(Drafted(drafter, 2), (Tokens{4, 2}));
}

TEST(NgramDrafter, KeptTextsServeTheNextRequestsUntilTheyAreTheOldest) {
  NgramDrafter drafter({.max_context = 100, .keep = true, .max_kept_tokens = 20});
  for (const Token first : {10, 20, 30}) {  // 8 tokens each: one fills a generation
    Start(drafter, {first, first + 1, first + 2, first + 3});
    Commit(drafter, {first + 4, first + 5, first + 6, first + 7});
    drafter.End(0);
  }
  const auto drafts = [&](Token last) {
    Start(drafter, {last});
    return Drafted(drafter, 3);
  };
  EXPECT_EQ(drafts(32), (Tokens{33, 34, 35}));
  EXPECT_EQ(drafts(24), (Tokens{25, 26, 27}));
  EXPECT_TRUE(drafts(12).empty());
}

// What another salt's text teaches is not drafted, also where its n-grams are the same ones.
TEST(NgramDrafter, DraftsFromKeptTextsOfTheSameSaltOnly) {
  NgramDrafter drafter({.max_context = 100, .keep = true, .max_kept_tokens = 200});
  const auto run = [&](SaltId salt, const Tokens& prompt, bool teaches = true) {
    Start(drafter, prompt, {.sampling = {}, .salt = salt, .teaches = teaches});
    const auto drafts = Drafted(drafter, 3);
    drafter.End(0);
    return drafts;
  };
  run(5, {1, 2, 3, 40, 41, 42});
  run(6, {1, 2, 3, 50, 51, 52});
  run(7, {1, 2, 3, 60, 61, 62}, false);
  const Tokens ask = {1, 2, 3};
  EXPECT_EQ(run(5, ask), (Tokens{40, 41, 42}));
  EXPECT_EQ(run(6, ask), (Tokens{50, 51, 52}));
  EXPECT_TRUE(run(7, ask).empty()) << "it taught nothing";
  EXPECT_TRUE(run(kNoSalt, ask).empty());
}

// 400 texts of other salts that hold this one's n-gram: not one occurrence of theirs is walked, so
// a look-up finds its own text however many have come since.
TEST(NgramDrafter, TextsOfOtherSaltsTakeNoPartInALookUp) {
  NgramText text;
  text.Begin({.ngram_max = 2, .ngram_min = 1}, 2000);
  text.StartText(1);
  for (const Token t : {1, 2, 77}) text.Add(t, {});
  for (int i = 0; i < 400; ++i) {
    text.StartText(2 + i);
    for (const Token t : {1, 2, 9}) text.Add(t, {});
  }
  NgramVotes own, nobodys;
  const Tokens context = {1, 2};
  text.Count(context, 2, own, 1);
  EXPECT_EQ(own.n_occurrences(), 1);
  EXPECT_EQ(own.Best().token, 77);
  text.Count(context, 2, nobodys, 1000);
  EXPECT_EQ(nobodys.n_occurrences(), 0);
}

TEST(NgramDrafter, ForgetsKeptTextsWhenItIsTold) {
  NgramDrafter drafter({.max_context = 100, .keep = true, .max_kept_tokens = 40});
  for (int request = 0; request < 2; ++request) {  // one is kept, one has just ended
    Start(drafter, {1, 2, 3, 4});
    drafter.End(0);
  }
  drafter.Forget();
  Start(drafter, {2, 3});
  EXPECT_TRUE(Drafted(drafter, 3).empty());
}

TEST(NgramDrafter, TheOwnTextOutranksOthersWithAContextOfTheSameLength) {
  const Tokens corpus = {5, 1, 8, 6, 1, 8, 7, 1, 8};
  NgramDrafter drafter({.max_context = 100, .keep = true, .corpus = corpus});
  Start(drafter, {3, 1, 8, 4, 1, 8});
  drafter.End(0);
  Start(drafter, {2, 1, 9, 2, 9, 1});  // 9 once here; 8 five times elsewhere
  EXPECT_EQ(Drafted(drafter, 1), Tokens{9});
  Start(drafter, {2, 1, 9, 2, 5, 1});  // elsewhere a longer context
  EXPECT_EQ(Drafted(drafter, 1), Tokens{8});
}

TEST(NgramDrafter, NothingFollowsTheEndOfAKeptText) {
  NgramDrafter drafter({.max_context = 100, .keep = true});
  for (const Token first : {10, 20}) {
    Start(drafter, {first, first + 1});
    drafter.End(0);
  }
  Start(drafter, {11});
  EXPECT_TRUE(Drafted(drafter, 3).empty());
}

TEST(NgramDrafter, OfATextThatIsTooLongTheEndIsKept) {
  NgramDrafter drafter({.max_context = 100, .keep = true, .max_kept_tokens = 8});
  Start(drafter, {10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  drafter.End(0);
  Start(drafter, {16});
  EXPECT_EQ(Drafted(drafter, 8), (Tokens{17, 18, 19}));
  Start(drafter, {14});
  EXPECT_TRUE(Drafted(drafter, 8).empty());
}

}  // namespace
}  // namespace foretoken::draft
