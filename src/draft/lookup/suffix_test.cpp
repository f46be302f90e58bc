// SPDX-License-Identifier: Apache-2.0
#include "draft/lookup/suffix.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "draft/drafting_testing.h"

namespace foretoken::draft {
namespace {

using Texts = std::vector<Tokens>;
constexpr int kMaxContext = SuffixAutomaton::kMaxContext;

// The tokens that followed the longest suffix of `text` (of at most kMaxContext tokens) that has a
// follower in `source`, found by scanning all of it.
struct Known {
  int length = 0;
  SuffixAutomaton::Follower follower;
};

Known NaiveSuffixFollower(const Tokens& text, const Texts& source) {
  for (int n = std::min(kMaxContext, static_cast<int>(text.size())); n > 0; --n) {
    Tokens followers;  // in order of time
    for (const Tokens& s : source)
      for (int end = n; end < static_cast<int>(s.size()); ++end)
        if (std::equal(text.end() - n, text.end(), s.begin() + (end - n)))
          followers.push_back(s[static_cast<std::size_t>(end)]);
    if (followers.empty()) continue;
    Known known{n, {kNoToken, 0, static_cast<int>(followers.size())}};
    for (auto t = followers.rbegin(); t != followers.rend(); ++t)
      if (const auto count = std::count(followers.begin(), followers.end(), *t);
          count > known.follower.count)
        known.follower.token = *t, known.follower.count = static_cast<int>(count);
    return known;
  }
  return {};
}

Tokens RandomTextFor(std::mt19937& random, unsigned alphabet, std::size_t n) {
  Tokens text;
  std::size_t from = 0;
  while (text.size() < n) {
    if (random() % 8 == 0 && !text.empty()) from = random() % text.size();
    text.push_back(from < text.size() && random() % 3 != 0
                       ? text[from++]
                       : static_cast<Token>(random() % alphabet));
  }
  return text;
}

void ExpectKnows(const SuffixAutomaton& automaton, const SuffixAutomaton::Match& match,
                 const Known& expected) {
  const auto followed = automaton.Followed(match);
  ASSERT_EQ(followed.length, expected.length);
  if (followed.length == 0) return;
  const auto follower = automaton.Next(followed);
  ASSERT_EQ(follower.token, expected.follower.token);
  ASSERT_EQ(follower.count, expected.follower.count);
  ASSERT_EQ(follower.total, expected.follower.total);
}

TEST(SuffixAutomaton, KnowsWhatANaiveScanOfOneTextKnows) {
  std::mt19937 random(1);
  for (unsigned round = 0; round < 40; ++round) {
    const Tokens text = RandomTextFor(random, 1 + round % 6, 20 + 8 * round);
    SuffixAutomaton automaton;
    Tokens so_far;
    for (const Token t : text) {
      automaton.Add(t);
      so_far.push_back(t);
      const Known expected = NaiveSuffixFollower(so_far, {so_far});
      ASSERT_NO_FATAL_FAILURE(ExpectKnows(automaton, automaton.newest(), expected))
          << "round " << round << " at " << so_far.size();
    }
  }
}

TEST(SuffixAutomaton, KnowsWhatANaiveScanOfSeveralTextsKnows) {
  std::mt19937 random(2);
  for (unsigned round = 0; round < 30; ++round) {
    SuffixAutomaton automaton;
    Texts source;
    for (unsigned i = 0; i < 1 + round % 5; ++i) {
      automaton.StartText();
      source.push_back(RandomTextFor(random, 1 + round % 5, 1 + random() % 90));
      for (const Token t : source.back()) automaton.Add(t);
    }
    SuffixAutomaton::Match match;
    Tokens text;
    for (const Token t : RandomTextFor(random, 1 + round % 5, 200)) {
      text.push_back(t);
      match = automaton.Advance(match, t);
      const Known expected = NaiveSuffixFollower(text, source);
      ASSERT_NO_FATAL_FAILURE(ExpectKnows(automaton, match, expected))
          << "round " << round << " at " << text.size();
    }
  }
}

TEST(SuffixAutomaton, SeesNoFurtherBackThanItsLongestContext) {
  SuffixAutomaton automaton;
  for (int i = 0; i < 3 * kMaxContext; ++i) automaton.Add(5);
  EXPECT_EQ(automaton.newest().length, kMaxContext);
  const auto match = automaton.Followed(automaton.newest());
  EXPECT_EQ(match.length, kMaxContext);
  EXPECT_EQ(automaton.Next(match).total, 2 * kMaxContext);
}

TEST(SuffixAutomaton, DoesNotTellContextsApartByWhatStandsBeforeTheirLongest) {
  Tokens w(kMaxContext);
  std::iota(w.begin(), w.end(), 100);
  const auto around = [&](Token before, Token after) {
    Tokens text = w;
    text.insert(text.begin(), before);
    text.push_back(after);
    return text;
  };
  const Texts source = {around(1, 7), around(2, 8), around(3, 8), {1}};
  SuffixAutomaton apart, joined;
  for (const Tokens& text : source) {
    apart.StartText();
    for (const Token t : text) apart.Add(t), joined.Add(t);
  }
  SuffixAutomaton::Match match = apart.newest();
  for (const Token t : w) match = apart.Advance(match, t), joined.Add(t);
  for (const auto& [automaton, m] :
       {std::pair(&apart, match), std::pair(&joined, joined.newest())}) {
    const auto followed = automaton->Followed(m);
    EXPECT_EQ(followed.length, kMaxContext);
    EXPECT_EQ(automaton->Next(followed).token, 8);  // 7 followed once, after a 1 as here
    EXPECT_EQ(automaton->Next(followed).total, 3);
  }
}

// The definition of the drafter. memory: generations, the younger one first.
Tokens NaiveSuffixDraft(const Tokens& committed, const std::vector<Texts>& memory, int most,
                        const SuffixSettings& settings, float p_min) {
  Tokens text = committed;
  std::vector<Texts> sources = {{committed}};
  sources.insert(sources.end(), memory.begin(), memory.end());
  std::size_t best = 0;
  int length = 0;
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (const int n = NaiveSuffixFollower(text, sources[i]).length; n > length)
      best = i, length = n;
  most = std::min(most, static_cast<int>(settings.length_factor * length));
  double path = 1;
  while (static_cast<int>(text.size() - committed.size()) < most) {
    const Known known = NaiveSuffixFollower(text, sources[best]);
    if (known.length == 0) break;
    const double share = static_cast<double>(known.follower.count) / known.follower.total;
    path *= share;
    if (path < settings.min_path_probability || share < static_cast<double>(p_min)) break;
    text.push_back(known.follower.token);
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(committed.size()), text.end()};
}

// The outputs that a drafter with these settings remembers.
class NaiveMemory {
 public:
  explicit NaiveMemory(int max_tokens) : most_(static_cast<std::size_t>(max_tokens / 2)) {}
  void Remember(Tokens output) {
    if (output.size() > most_) output.erase(output.begin(), output.end() - most_);
    if (output.empty()) return;
    if (n_ + output.size() > most_) {
      generations_[1] = std::move(generations_[0]);
      generations_[0].clear();
      n_ = 0;
    }
    n_ += output.size();
    generations_[0].push_back(std::move(output));
  }
  const std::vector<Texts>& generations() const { return generations_; }

 private:
  std::size_t most_, n_ = 0;
  std::vector<Texts> generations_{2};
};

// Two sequences run at a time, and a request begins where another one ends.
void CompareWithNaive(const SuffixSettings& settings, unsigned seed, float p_min) {
  std::mt19937 random(seed);
  SuffixDrafter drafter(settings);
  NaiveMemory memory(settings.max_tokens);
  struct Running {
    Tokens text;
    std::size_t n_prompt = 0;
    bool running = false;
  } sequences[2];
  int n_drafted = 0;
  for (int step = 0; step < 400; ++step) {
    const SeqId seq = static_cast<SeqId>(random() % 2);
    Running& s = sequences[seq];
    if (!s.running) {
      for (Running& other : sequences) {  // remembered when the next one begins
        if (other.running) continue;
        memory.Remember(
            {other.text.begin() + static_cast<std::ptrdiff_t>(other.n_prompt), other.text.end()});
        other.text.clear(), other.n_prompt = 0;
      }
      s.text = RandomTextFor(random, 4, 1 + random() % 40);
      s.n_prompt = s.text.size();
      s.running = true;
      Start(drafter, s.text, {.seq = seq, .sampling = {}, .draft_p_min = p_min});
    }
    const Tokens expected = NaiveSuffixDraft(s.text, memory.generations(), 6, settings, p_min);
    ASSERT_EQ(Drafted(drafter, 6, seq), expected) << "seed " << seed << " step " << step;
    n_drafted += static_cast<int>(expected.size());
    Tokens next = random() % 2 == 0 ? expected : Tokens{};
    next.push_back(static_cast<Token>(random() % 4));
    Commit(drafter, next, seq);
    s.text.insert(s.text.end(), next.begin(), next.end());
    if (random() % 12 != 0) continue;
    drafter.End(seq);
    s.running = false;
  }
  EXPECT_GT(n_drafted, 100);
}

TEST(SuffixDrafter, DraftsWhatANaiveScanDrafts) {
  CompareWithNaive({.max_sequences = 2, .max_context = 1000, .max_tokens = 100000}, 3, 0);
}

TEST(SuffixDrafter, DraftsWhatANaiveScanDraftsWhileItForgets) {
  for (const int max_tokens : {0, 1, 30, 200})
    CompareWithNaive({.max_sequences = 2, .max_context = 1000, .max_tokens = max_tokens}, 4, 0);
}

TEST(SuffixDrafter, DraftsWhatANaiveScanDraftsUnderOtherLimits) {
  SuffixSettings settings{.max_sequences = 2, .max_context = 1000, .max_tokens = 500};
  settings.length_factor = 3, settings.min_path_probability = 0.3;
  CompareWithNaive(settings, 5, 0);
  settings.length_factor = 2.5, settings.min_path_probability = 0;
  CompareWithNaive(settings, 6, 0.6f);
}

TEST(SuffixDrafter, DraftsWhatAnEarlierOutputSaidAndNotWhatAnEarlierPromptSaid) {
  SuffixDrafter drafter({.max_sequences = 1, .max_context = 100});
  Start(drafter, {50, 51, 52, 53});
  Commit(drafter, {10, 11, 12, 13, 14});
  drafter.End(0);
  Start(drafter, {9, 10, 11});
  EXPECT_EQ(Drafted(drafter, 8), (Tokens{12, 13, 14}));
  drafter.End(0);
  Start(drafter, {50, 51});
  EXPECT_TRUE(Drafted(drafter, 8).empty());
}

TEST(SuffixDrafter, DraftsFromOutputsOfTheSameSaltOnly) {
  SuffixDrafter drafter({.max_sequences = 2, .max_context = 100});
  const auto begin = [&](SeqId seq, SaltId salt, const Tokens& prompt, bool teaches = true) {
    Start(drafter, prompt, {.seq = seq, .sampling = {}, .salt = salt, .teaches = teaches});
  };
  begin(1, 5, {1, 10, 11});  // it runs while others end
  for (const auto& [salt, first, teaches] :
       {std::tuple{5, 40, true}, {6, 50, true}, {7, 60, false}}) {
    begin(0, salt, {1}, teaches);
    Commit(drafter, {10, 11, first, first + 1});
    drafter.End(0);
  }
  const auto drafts = [&](SaltId salt) {
    begin(0, salt, {2, 10, 11});
    const Tokens proposed = Drafted(drafter, 8);
    drafter.End(0);
    return proposed;
  };
  EXPECT_EQ(drafts(5), (Tokens{40, 41}));
  EXPECT_EQ(drafts(6), (Tokens{50, 51}));
  EXPECT_TRUE(drafts(7).empty()) << "it taught nothing";
  EXPECT_TRUE(drafts(kNoSalt).empty());
  EXPECT_EQ(Drafted(drafter, 8, 1), (Tokens{40, 41}));
}

// One short output for each of many salts: together they stay within the bound, so the first is gone.
TEST(SuffixDrafter, ManySaltsForgetTheOldestOutputs) {
  SuffixDrafter drafter({.max_sequences = 1, .max_context = 100, .max_tokens = 200});
  const auto drafts = [&](SaltId salt) {
    Start(drafter, {2, 10}, {.sampling = {}, .salt = salt});
    return Drafted(drafter, 8);
  };
  for (SaltId salt = 1; salt <= 60; ++salt) {
    drafts(salt);
    Commit(drafter, {10, 12});
    drafter.End(0);
  }
  EXPECT_TRUE(drafts(1).empty());
  EXPECT_FALSE(drafts(60).empty());
}

TEST(SuffixDrafter, ForgetsEarlierOutputsWhenItIsTold) {
  SuffixDrafter drafter({.max_sequences = 1, .max_context = 100});
  for (int request = 0; request < 2; ++request) {  // one is remembered, one has just ended
    Start(drafter, {50, 51});
    Commit(drafter, {10, 11, 12, 13, 14});
    drafter.End(0);
  }
  drafter.Forget();
  Start(drafter, {9, 10, 11});
  EXPECT_TRUE(Drafted(drafter, 8).empty());
}

TEST(SuffixDrafter, ALongerMatchAllowsALongerDraft) {
  SuffixDrafter drafter({.max_sequences = 1, .max_context = 100, .length_factor = 1.5});
  const Tokens known = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 1};
  for (std::size_t n = 1; n <= 4; ++n) {
    Tokens prompt = known;
    prompt.insert(prompt.end(), known.begin(), known.begin() + static_cast<std::ptrdiff_t>(n));
    Start(drafter, prompt);
    EXPECT_EQ(Drafted(drafter, 64).size(), n * 3 / 2) << n;
    drafter.End(0);
  }
}

TEST(SuffixDrafter, StopsWhereWhatFollowsIsUnclear) {
  // 2 always follows 1. 3, 4 and 5 follow 2 equally often, 5 most recently.
  const Tokens prompt = {1, 2, 3, 1, 2, 4, 1, 2, 5, 1};
  for (const double least : {0.3, 0.4}) {
    SuffixDrafter drafter({.max_sequences = 1, .max_context = 100, .min_path_probability = least});
    Start(drafter, prompt);
    EXPECT_EQ(Drafted(drafter, 2), least < 1.0 / 3 ? (Tokens{2, 5}) : Tokens{2});
  }
  SuffixDrafter drafter({.max_sequences = 1, .max_context = 100, .min_path_probability = 0});
  Start(drafter, prompt, {.sampling = {}, .draft_p_min = 0.4f});
  EXPECT_EQ(Drafted(drafter, 2), Tokens{2});
}

TEST(SuffixDrafter, EvidenceIsWhatSpeaksForTheFirstDraft) {
  ExpectEvidence([] { return SuffixDrafter({.max_sequences = 1, .max_context = 100}); },
                 {{{1, 2, 3}, 0},                    // nothing
                  {{1, 2, 3, 1}, 0},                 // one token, once
                  {{1, 2, 3, 1, 2, 4, 1}, 1},        // twice
                  {{1, 2, 3, 1, 2}, 1},              // two tokens
                  {{1, 2, 3, 4, 5, 1, 2, 3, 4}, 2},  // four
                  {{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7}, 3},
                  {{1, 2, 3, 9, 1, 2, 4, 8, 1, 2}, 0}});
}

TEST(SuffixDrafter, RunningSequencesDraftFromOutputsThatEndedMeanwhile) {
  SuffixDrafter drafter({.max_sequences = 3, .max_context = 100});
  Start(drafter, {1, 10, 11});
  Start(drafter, {2}, {.seq = 1, .sampling = {}});
  Commit(drafter, {10, 11, 12, 13}, 1);
  drafter.End(1);
  EXPECT_TRUE(Drafted(drafter, 8).empty());
  Start(drafter, {3}, {.seq = 2, .sampling = {}});
  EXPECT_EQ(Drafted(drafter, 8), (Tokens{12, 13}));
}

TEST(SuffixDrafter, TheOldestOutputsAreForgotten) {
  SuffixDrafter drafter({.max_sequences = 1, .max_context = 100, .max_tokens = 20});
  for (Token first : {10, 20, 30, 40}) {  // 8 tokens each: one fills a generation
    Start(drafter, {1});
    Tokens output(8);
    for (Token& t : output) t = first++;
    Commit(drafter, output);
    drafter.End(0);
  }
  const auto remembers = [&](Token first) {
    Start(drafter, {first, first + 1});
    const bool yes = !Drafted(drafter, 4).empty();
    drafter.End(0);
    return yes;
  };
  EXPECT_TRUE(remembers(40));
  EXPECT_TRUE(remembers(30));
  EXPECT_FALSE(remembers(20));
  EXPECT_FALSE(remembers(10));
}

TEST(SuffixDrafter, StopsWhereTheTextOutgrowsWhatWasAnnounced) {
  SuffixDrafter drafter({.max_sequences = 1, .max_context = 6});
  Start(drafter, {1, 2, 1, 2}, {.max_new_tokens = std::numeric_limits<int>::max(), .sampling = {}});
  EXPECT_EQ(Drafted(drafter, 2), (Tokens{1, 2}));
  Commit(drafter, Tokens(50, 1));
  EXPECT_TRUE(Drafted(drafter, 2).empty());
}

}  // namespace
}  // namespace foretoken::draft
