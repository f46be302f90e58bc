// SPDX-License-Identifier: Apache-2.0
// Blocks that several texts share: random programs against a map, and the order in which idle ones
// are taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/hash.h"
#include "kv/block_tables.h"
#include "kv/transaction.h"

namespace foretoken::kv {
namespace {

constexpr int kCacheSequences = 4, kPrefixBlock = tensor::kKvBlock;

TablesShape PrefixShape(int n_blocks) {
  return {
      .n_sequences = kCacheSequences, .max_positions = 200, .n_positions = n_blocks * kPrefixBlock};
}

// The tables, and memory that a runner would have: one number stands for the row of a position.
struct Cache : BlockTables {
  explicit Cache(const TablesShape& shape)
      : BlockTables(shape), rows(static_cast<std::size_t>(shape.n_blocks() * kPrefixBlock)) {}
  std::vector<float> rows;
};

using Text = std::vector<Token>;

// What a network would write at the last position of a text: it depends on all of it.
float RowOf(const Text& text) {
  return static_cast<float>(HashOf(text) % 100'000);
}

float& RowAt(Cache& cache, SeqId seq, int position) {
  const int block = cache.Blocks(seq)[static_cast<std::size_t>(position / kPrefixBlock)];
  return cache.rows[static_cast<std::size_t>(block * kPrefixBlock + position % kPrefixBlock)];
}

void Append(Cache& cache, SeqId seq, Text& text, std::span<const Token> tokens, int kept) {
  Segment segment{
      .seq = seq, .n_rows = static_cast<int>(tokens.size()), .first_position = cache.length(seq)};
  Transaction transaction(cache, {&segment, 1});
  Text longer = text;
  for (const Token token : tokens) {
    longer.push_back(token);
    RowAt(cache, seq, static_cast<int>(longer.size()) - 1) = RowOf(longer);
  }
  transaction.Commit({&kept, 1});
  text.insert(text.end(), tokens.begin(), tokens.begin() + kept);
}

Text PrefixTokens(int n, Token first = 0) {
  Text text(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) text[static_cast<std::size_t>(i)] = first + i;
  return text;
}

// Reads a whole text into a sequence that is empty.
Text Written(Cache& cache, SeqId seq, int n, Token first = 0) {
  Text text;
  Append(cache, seq, text, PrefixTokens(n, first), n);
  return text;
}

// Prefixes kept as plain texts: which prefixes are known, who holds them, and since when nobody
// does.
class Model {
 public:
  explicit Model(int n_blocks) : n_blocks_(n_blocks) {}

  struct Sequence {
    Text text;
    int n_published = 0;
  };
  Sequence sequences[kCacheSequences];

  int Used() const {
    int own = 0;
    for (const Sequence& s : sequences)
      own += (static_cast<int>(s.text.size()) + kPrefixBlock - 1) / kPrefixBlock - s.n_published;
    return own + static_cast<int>(std::count_if(known_.begin(), known_.end(), [](auto& entry) {
             return entry.second.n_users > 0;
           }));
  }
  int Idle() const {
    return static_cast<int>(tails_.size() +
                            std::count_if(known_.begin(), known_.end(),
                                          [](auto& entry) { return entry.second.n_users == 0; }));
  }
  int Free() const { return n_blocks_ - Used() - Idle(); }

  // Idle prefixes go, the longest idle first, until the blocks fit.
  void Evict() {
    while (Free() < 0) {
      auto oldest = known_.end();
      for (auto it = known_.begin(); it != known_.end(); ++it)
        if (it->second.n_users == 0 &&
            (oldest == known_.end() || it->second.idle_since < oldest->second.idle_since))
          oldest = it;
      const auto tail = std::min_element(
          tails_.begin(), tails_.end(),
          [](const Tail& a, const Tail& b) { return a.idle_since < b.idle_since; });
      ASSERT_TRUE(tail != tails_.end() || oldest != known_.end());
      if (tail != tails_.end() &&
          (oldest == known_.end() || tail->idle_since < oldest->second.idle_since))
        tails_.erase(tail);
      else
        known_.erase(oldest);
    }
  }
  int Share(SeqId seq, const Text& text) {
    Sequence& s = sequences[seq];
    if (static_cast<int>(s.text.size()) != s.n_published * kPrefixBlock) return 0;
    int gained = 0;
    for (;; ++s.n_published, gained += kPrefixBlock) {
      const std::size_t end = static_cast<std::size_t>(s.n_published + 1) * kPrefixBlock;
      const auto found = end > text.size() ? known_.end() : known_.find(Prefix(text, end));
      if (found == known_.end()) return gained + TakeTail(s, text);
      ++found->second.n_users;
      s.text = Prefix(text, end);
    }
  }
  // The newest of those that have the most in common with the text, if that is half of it.
  int TakeTail(Sequence& s, const Text& text) {
    const auto before = static_cast<std::size_t>(s.n_published) * kPrefixBlock;
    auto best = tails_.end();
    std::size_t most = 0;
    for (auto tail = tails_.begin(); tail != tails_.end(); ++tail) {
      if (tail->n_before != before || Prefix(tail->text, before) != Prefix(text, before)) continue;
      const auto parts =
          std::mismatch(tail->text.begin(), tail->text.end(), text.begin(), text.end());
      const auto common = static_cast<std::size_t>(parts.first - tail->text.begin()) - before;
      if (common > most || (common == most && most > 0 && tail->idle_since > best->idle_since))
        most = common, best = tail;
    }
    if (best == tails_.end() || 2 * most < best->text.size() - before) return 0;
    s.text = Prefix(text, before + most);
    tails_.erase(best);
    return static_cast<int>(most);
  }
  void End(SeqId seq) {
    Publish(seq);
    Sequence& s = sequences[seq];
    const auto before = static_cast<std::size_t>(s.n_published) * kPrefixBlock;
    if (s.text.size() > before) {
      const auto sibling = [&](const Tail& tail) {
        return tail.n_before == before && Prefix(tail.text, before) == Prefix(s.text, before);
      };
      const auto end = std::remove_if(tails_.begin(), tails_.end(),
                                      [&](const Tail& tail) { return tail.text == s.text; });
      tails_.erase(end, tails_.end());
      if (std::count_if(tails_.begin(), tails_.end(), sibling) == PrefixIndex::kMostTails)
        tails_.erase(std::find_if(tails_.begin(), tails_.end(), sibling));
      tails_.push_back({.text = s.text, .n_before = before, .idle_since = ++clock_});
    }
    Truncate(seq, 0);
  }
  void Publish(SeqId seq) {
    Sequence& s = sequences[seq];
    for (; (s.n_published + 1) * kPrefixBlock <= static_cast<int>(s.text.size()); ++s.n_published)
      ++known_[Prefix(s.text, static_cast<std::size_t>(s.n_published + 1) * kPrefixBlock)].n_users;
  }
  void Truncate(SeqId seq, int length) {
    Sequence& s = sequences[seq];
    while (s.n_published * kPrefixBlock > length) {
      Known& known = known_[Prefix(s.text, static_cast<std::size_t>(s.n_published) * kPrefixBlock)];
      if (--known.n_users == 0) known.idle_since = ++clock_;
      --s.n_published;
    }
    s.text.resize(static_cast<std::size_t>(length));
  }

 private:
  struct Known {
    int n_users = 0, idle_since = 0;
  };
  static Text Prefix(const Text& text, std::size_t n) {
    return Text(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
  }
  struct Tail {
    Text text;  // all of it
    std::size_t n_before = 0;
    int idle_since = 0;
  };

  int n_blocks_, clock_ = 0;
  std::map<Text, Known> known_;
  std::vector<Tail> tails_;  // the oldest first
};

void ExpectSame(Cache& cache, const Model& model) {
  ASSERT_EQ(cache.n_free_blocks(), model.Free());
  ASSERT_EQ(cache.n_idle_blocks(), model.Idle());
  for (SeqId seq = 0; seq < kCacheSequences; ++seq) {
    const Text& text = model.sequences[seq].text;
    ASSERT_EQ(cache.length(seq), static_cast<int>(text.size()));
    Text read;
    for (const Token token : text) {
      read.push_back(token);
      ASSERT_EQ(RowAt(cache, seq, static_cast<int>(read.size()) - 1), RowOf(read));
    }
  }
}

// Texts over two tokens, changed seldom: prefixes are found again, and diverge at any position.
Text PrefixText(std::mt19937& random, int n) {
  Text text(static_cast<std::size_t>(n), 7);
  if (random() % 2 == 0 && n > 0) text[random() % text.size()] = 8;
  return text;
}

void PlayPrefixes(unsigned seed, int n_blocks) {
  Cache cache(PrefixShape(n_blocks));
  Model model(n_blocks);
  std::mt19937 random(seed);
  int shared = 0, tails = 0;
  for (int step = 0; step < 1500; ++step) {
    const auto seq = static_cast<SeqId>(random() % kCacheSequences);
    Model::Sequence& s = model.sequences[seq];
    const auto length = static_cast<int>(s.text.size());
    switch (random() % 8) {
      case 0:
        if (random() % 3 == 0) {
          cache.Truncate(seq, 0);
          model.Truncate(seq, 0);
        } else {
          cache.End(seq, s.text);
          model.End(seq);
        }
        break;
      case 1: {  // to the end of a block, or behind the published ones
        const int blocks =
            static_cast<int>(random() % static_cast<unsigned>(length / kPrefixBlock + 1));
        const int to = random() % 2 == 0 ? blocks * kPrefixBlock
                                         : std::max(s.n_published * kPrefixBlock, length - 5);
        cache.Truncate(seq, std::min(to, length));
        model.Truncate(seq, std::min(to, length));
        break;
      }
      case 2:
      case 3: {
        Text wanted = s.text;
        const Text more = PrefixText(random, static_cast<int>(random() % 100));
        wanted.insert(wanted.end(), more.begin(), more.end());
        wanted.resize(std::min<std::size_t>(wanted.size(), 190));
        const int gained = cache.Share(seq, wanted);
        shared += gained;
        tails += gained % kPrefixBlock != 0;
        ASSERT_EQ(gained, model.Share(seq, wanted));
        break;
      }
      case 4:
        cache.Publish(seq, s.text);
        model.Publish(seq);
        break;
      default: {
        const int n = std::min(cache.room(seq), static_cast<int>(random() % 50));
        if (cache.MissingBlocks(seq, n) > cache.n_available_blocks()) break;
        const Text tokens = PrefixText(random, n);
        // Blocks are taken for all rows, those that do not stay included.
        const Text before = s.text;
        s.text.insert(s.text.end(), tokens.begin(), tokens.end());
        model.Evict();
        const int kept =
            random() % 3 == 0 ? static_cast<int>(random() % static_cast<unsigned>(n + 1)) : n;
        Text text = before;
        Append(cache, seq, text, tokens, kept);
        s.text = text;
        break;
      }
    }
    ExpectSame(cache, model);
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << " step " << step;
  }
  EXPECT_GT(shared, 500) << "the programs share too little to prove anything";
  EXPECT_GT(tails, 4) << "too few texts went on behind a tail";
}

TEST(Prefixes, AreWhatAMapHoldsAfterRandomPrograms) {
  for (unsigned seed = 0; seed < 12; ++seed)
    for (const int n_blocks : {7, 11, 28}) ASSERT_NO_FATAL_FAILURE(PlayPrefixes(seed, n_blocks));
}

TEST(Prefixes, AreSharedInFullBlocksUpToWhereTextsPart) {
  Cache cache(PrefixShape(20));
  const Text first = Written(cache, 0, 100);
  EXPECT_EQ(cache.Share(1, first), 0) << "nothing was published";
  cache.Publish(0, first);
  for (int parts = 0; parts <= 100; ++parts) {
    Text other = PrefixTokens(100);
    if (parts < 100) other[static_cast<std::size_t>(parts)] = 999;
    const int full = std::min(parts, 96) / kPrefixBlock * kPrefixBlock;
    ASSERT_EQ(cache.SharedBlocks(other), full / kPrefixBlock);
    ASSERT_EQ(cache.Share(1, other), full);
    ASSERT_TRUE(
        std::equal(cache.Blocks(1).begin(), cache.Blocks(1).end(), cache.Blocks(0).begin()));
    cache.Truncate(1, 0);
  }
  EXPECT_EQ(cache.Share(1, std::span(first).first(64)), 64);
}

TEST(Prefixes, AreNotFoundByTheirOwnTokensAloneWhereWhatComesBeforeDiffers) {
  Cache cache(PrefixShape(20));
  const Text first = Written(cache, 0, 64);
  cache.Publish(0, first);
  Text other = PrefixTokens(64);
  other[0] = 5;
  EXPECT_EQ(cache.Share(1, other), 0);
  const Text second_block(first.begin() + 32, first.end());
  EXPECT_EQ(cache.Share(1, second_block), 0);
}

TEST(Prefixes, OfEqualTextsAreKeptOnce) {
  Cache cache(PrefixShape(20));
  const Text first = Written(cache, 0, 70);
  const Text second = Written(cache, 1, 70);
  EXPECT_EQ(cache.n_free_blocks(), 14);
  cache.Publish(0, first);
  cache.Publish(1, second);
  EXPECT_EQ(cache.n_free_blocks(), 16);
  EXPECT_EQ(cache.Blocks(0)[1], cache.Blocks(1)[1]);
  EXPECT_NE(cache.Blocks(0)[2], cache.Blocks(1)[2]);  // not full
}

TEST(Prefixes, ThatWereIdleLongestAreTakenFirstAndTheirEndsBeforeTheirBeginnings) {
  Cache cache(PrefixShape(4));
  const Text older = Written(cache, 0, 64);
  const Text younger = Written(cache, 1, 64, 500);
  cache.Publish(0, older);
  cache.Publish(1, younger);
  cache.Truncate(0, 0);
  cache.Truncate(1, 0);
  EXPECT_EQ(cache.n_idle_blocks(), 4);
  Written(cache, 2, 1, 900);
  EXPECT_EQ(cache.n_idle_blocks(), 3);
  EXPECT_EQ(cache.Share(0, PrefixTokens(64)), 32) << "its second block was taken";
  EXPECT_EQ(cache.Share(1, PrefixTokens(64, 500)), 64);
  EXPECT_EQ(cache.n_available_blocks(), 0);
}

TEST(Prefixes, ThatWereUsedAgainCountAsYoung) {
  Cache cache(PrefixShape(3));
  for (const Token first : {0, 100, 200}) {
    const Text text = Written(cache, 0, 32, first);
    cache.Publish(0, text);
    cache.Truncate(0, 0);
  }
  EXPECT_EQ(cache.Share(1, PrefixTokens(32, 0)), 32);
  cache.Truncate(1, 0);
  Written(cache, 0, 1, 900);
  EXPECT_EQ(cache.Share(1, PrefixTokens(32, 100)), 0) << "the longest idle";
  EXPECT_EQ(cache.Share(1, PrefixTokens(32, 0)), 32);
}

TEST(Prefixes, AreSharedWithTextsOfTheSameSaltOnly) {
  Cache cache(PrefixShape(20));
  Text first, second;
  Append(cache, 0, first, PrefixTokens(96), 96);
  cache.Publish(0, first, 7);
  for (const SaltId salt : {SaltId{0}, SaltId{6}, SaltId{8}, SaltId{7} + (SaltId{1} << 32)}) {
    EXPECT_EQ(cache.SharedBlocks(first, salt), 0) << salt;
    EXPECT_EQ(cache.Share(1, first, salt), 0) << salt;
  }
  Append(cache, 1, second, PrefixTokens(96), 96);
  cache.Publish(1, second, 8);
  EXPECT_NE(cache.Blocks(0)[0], cache.Blocks(1)[0]) << "equal texts of two salts are two texts";
  EXPECT_NE(cache.Blocks(0)[2], cache.Blocks(1)[2]);
  EXPECT_EQ(cache.SharedBlocks(first, 7), 3);
  EXPECT_EQ(cache.Share(2, first, 7), 96);
  EXPECT_EQ(cache.Blocks(2)[1], cache.Blocks(0)[1]);
  EXPECT_EQ(cache.Share(3, first, 8), 96);
  EXPECT_EQ(cache.Blocks(3)[2], cache.Blocks(1)[2]);
}

TEST(Tails, LetTheNextTurnReadOnlyWhatIsNew) {
  Cache cache(PrefixShape(20));
  for (int length = 1; length <= 100; ++length) {
    const Text first = Written(cache, 0, length, 1000 * length);
    cache.End(0, first);
    EXPECT_EQ(cache.Blocks(0).size(), 0u);
    Text second = first;
    second.resize(static_cast<std::size_t>(length) + 40, 999);
    ASSERT_EQ(cache.Share(1, second), length);
    ASSERT_EQ(cache.Share(2, second), length / kPrefixBlock * kPrefixBlock) << "it is taken";
    for (Text read; read.size() < first.size();) {
      read.push_back(first[read.size()]);
      ASSERT_EQ(RowAt(cache, 1, static_cast<int>(read.size()) - 1), RowOf(read));
    }
    Text text(second.begin(), second.begin() + length);
    Append(cache, 1, text, std::span(second).subspan(static_cast<std::size_t>(length)), 40);
    cache.End(1, text);
    cache.Truncate(2, 0);
  }
}

TEST(Tails, AreTakenWhereHalfOfThemIsOfUse) {
  for (const int common : {0, 1, 9, 10, 20}) {
    Cache cache(PrefixShape(20));
    const Text first = Written(cache, 0, 52);
    cache.End(0, first);
    Text other = PrefixTokens(60);
    for (std::size_t i = 32 + static_cast<std::size_t>(common); i < other.size(); ++i)
      other[i] += 500;
    EXPECT_EQ(cache.Share(1, other), common < 10 ? 32 : 32 + common) << common;
    EXPECT_EQ(cache.Share(2, first), common < 10 ? 52 : 32) << common;
  }
}

TEST(Tails, HoldNoPositionsBehindTheirText) {
  Cache cache(PrefixShape(20));
  const Text first = Written(cache, 0, 50);
  cache.End(0, std::span(first).first(45));
  EXPECT_EQ(cache.Share(1, first), 45);
}

TEST(Tails, AreOfTheirSaltAndAreNotShared) {
  Cache cache(PrefixShape(20));
  const Text first = Written(cache, 0, 20);
  cache.End(0, first, 7);
  EXPECT_EQ(cache.SharedBlocks(first, 7), 0);
  EXPECT_EQ(cache.Share(1, first, 8), 0);
  EXPECT_EQ(cache.Share(1, std::span(first).first(3), 7), 0);
  EXPECT_EQ(cache.Share(1, first, 7), 20);
}

TEST(Tails, BehindOneBlockAreFew) {
  Cache cache(PrefixShape(40));
  for (Token text = 0; text < 30; ++text) {
    const Text own = Written(cache, 0, 5, 100 * text);
    cache.End(0, own);
  }
  EXPECT_EQ(cache.n_idle_blocks(), PrefixIndex::kMostTails);
  EXPECT_EQ(cache.Share(0, PrefixTokens(9, 2900)), 5);
  EXPECT_EQ(cache.Share(1, PrefixTokens(9, 1400)), 5) << "the oldest that is left";
  EXPECT_EQ(cache.Share(2, PrefixTokens(9, 1300)), 0);
}

TEST(PrefixesDeathTest, APublishedBlockIsNeverCut) {
  Cache cache(PrefixShape(4));
  const Text text = Written(cache, 0, 40);
  cache.Publish(0, text);
  cache.Truncate(0, 33);
  EXPECT_DEATH(cache.Truncate(0, 31), "");
}

}  // namespace
}  // namespace foretoken::kv
