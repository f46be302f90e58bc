// SPDX-License-Identifier: Apache-2.0
// Copies of recurrent states: random programs that share prefixes, return to copies, and lose them.
#include "kv/checkpoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kv/block_tables.h"
#include "kv/transaction.h"

namespace foretoken::kv {
namespace {

using Text = std::vector<Token>;
constexpr int kRunnerSequences = 3, kBlock = tensor::kKvBlock, kRunnerRows = 40, kSeen = 3;

TablesShape CheckpointShape(int n_blocks, int n_checkpoints, int interval = 96) {
  return {.n_sequences = kRunnerSequences,
          .max_positions = 320,
          .n_positions = n_blocks * kBlock,
          .state_rows = kRunnerRows,
          .n_checkpoints = n_checkpoints,
          .checkpoint_tokens = interval};
}

std::uint64_t Next(std::uint64_t state, std::uint64_t input) {
  return (state ^ input) * 0x9E3779B97F4A7C15u + 1;
}

// What a recurrent layer gives at each position of a text: it depends on the state and on the inputs
// that a convolution sees.
std::vector<std::uint64_t> Results(const Text& text) {
  std::vector<std::uint64_t> results;
  std::uint64_t state = 0;
  for (std::size_t p = 0; p < text.size(); ++p) {
    state = Next(state, static_cast<std::uint64_t>(text[p]));
    std::uint64_t result = state;
    for (std::size_t i = p - std::min<std::size_t>(p, kSeen); i < p; ++i)
      result = Next(result, static_cast<std::uint64_t>(text[i]));
    results.push_back(result);
  }
  return results;
}

// The tables, and what a runner keeps: a state and a ring of inputs of each sequence, copies, and a
// number for each row of the cache.
struct Runner {
  explicit Runner(const TablesShape& shape)
      : tables(shape),
        states(kRunnerSequences),
        copies(static_cast<std::size_t>(shape.n_checkpoints)),
        cache(static_cast<std::size_t>(shape.n_blocks() * kBlock)) {}

  struct State {
    std::uint64_t state = 0;
    std::vector<Token> inputs = std::vector<Token>(kRunnerRows + kSeen);  // by position
    Token& Input(Pos p) { return inputs[static_cast<std::size_t>(p) % inputs.size()]; }
  };
  BlockTables tables;
  std::vector<State> states;
  struct Copy {
    std::uint64_t state = 0;
    std::vector<Token> inputs;  // kSeen positions before, and kCopiedInputs behind
  };
  std::vector<Copy> copies;
  std::vector<std::uint64_t> cache;
  int n_restored = 0, n_copied = 0, n_rows_copied = 0, last_rows = 0;

  std::uint64_t& Row(SeqId seq, Pos p) {
    const bool elsewhere = tables.RowsOf(seq) >= 0 && p / kBlock == tables.length(seq) / kBlock;
    const int block =
        elsewhere ? tables.RowsOf(seq) : tables.Blocks(seq)[static_cast<std::size_t>(p / kBlock)];
    return cache[static_cast<std::size_t>(block * kBlock + p % kBlock)];
  }

  void Restore(const Segment& s) {
    if (s.state.source < 0) return;
    const Copy& copy = copies[static_cast<std::size_t>(s.state.source)];
    State& own = states[static_cast<std::size_t>(s.seq)];
    own.state = copy.state;
    Pos p = s.state.from - std::min(kSeen, s.state.from);
    for (const Token input : copy.inputs) own.Input(p++) = input;
    ++n_restored;
  }
  void CopyRows(const Segment& s) {
    if (s.rows_of < 0) return;
    const auto begin = [this](std::int32_t block) { return cache.begin() + block * kBlock; };
    std::copy_n(begin(s.rows_of), kBlock,
                begin(s.blocks[static_cast<std::size_t>(s.first_position / kBlock)]));
    ++n_rows_copied;
  }
  void Save(const Segment& s) {
    if (s.state.checkpoint < 0) return;
    State& own = states[static_cast<std::size_t>(s.seq)];
    Copy& copy = copies[static_cast<std::size_t>(s.state.checkpoint)];
    copy = {.state = own.state, .inputs = {}};
    for (Pos p = s.state.to - std::min(kSeen, s.state.to); p < s.state.to + kCopiedInputs; ++p)
      copy.inputs.push_back(own.Input(p));
    ++n_copied;
  }
  // The results of the segment's rows.
  std::vector<std::uint64_t> Walk(const Segment& s, const Text& rows) {
    State& own = states[static_cast<std::size_t>(s.seq)];
    if (s.state.from == 0) own.state = 0;
    const State before = own;
    const auto input = [&](Pos p) {
      return p < s.first_position ? State(before).Input(p)
                                  : rows[static_cast<std::size_t>(p - s.first_position)];
    };
    std::vector<std::uint64_t> results;
    std::uint64_t now = own.state;
    for (Pos p = s.state.from; p < s.first_position + s.n_rows; ++p) {
      if (p == s.state.to) own.state = now;
      now = Next(now, static_cast<std::uint64_t>(input(p)));
      if (p < s.first_position) continue;
      std::uint64_t result = now;
      for (Pos i = p - std::min(p, kSeen); i < p; ++i)
        result = Next(result, static_cast<std::uint64_t>(input(i)));
      results.push_back(result);
    }
    if (s.state.to == s.first_position + s.n_rows) own.state = now;
    for (Pos p = std::max(s.first_position, s.state.to - kSeen); p < s.first_position + s.n_rows;
         ++p)
      own.Input(p) = input(p);
    return results;
  }

  // One pass; rows[i] are the tokens of segments[i].
  void Pass(std::vector<Segment> segments, const std::vector<Text>& rows,
            const std::vector<int>& kept, std::vector<Text>& texts) {
    Transaction transaction(tables, segments);
    for (const Segment& s : segments)
      ASSERT_TRUE(s.state.checkpoint < 0 || s.ends_prompt || s.state.to % kBlock == 0);
    for (const Segment& s : segments) Restore(s), CopyRows(s);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const Segment& s = segments[i];
      Text& text = texts[static_cast<std::size_t>(s.seq)];
      ASSERT_LE(s.state.from, s.first_position);
      ASSERT_LE(s.first_position + s.n_rows - s.state.to, kRunnerRows);
      Text whole = text;
      whole.insert(whole.end(), rows[i].begin(), rows[i].end());
      const std::vector<std::uint64_t> got = Walk(s, rows[i]), wanted = Results(whole);
      ASSERT_TRUE(std::equal(got.begin(), got.end(), wanted.end() - s.n_rows));
      for (int row = 0; row < s.n_rows; ++row)
        Row(s.seq, s.first_position + row) = got[static_cast<std::size_t>(row)];
      text.insert(text.end(), rows[i].begin(), rows[i].begin() + kept[i]);
    }
    for (const Segment& s : segments) Save(s);
    transaction.Commit(kept);
  }
  // Reads a text in passes of at most n rows, up to its end.
  void Read(SeqId seq, const Text& text, std::vector<Text>& texts, int n = 64) {
    while (tables.length(seq) < static_cast<int>(text.size())) {
      const int at = tables.length(seq), left = static_cast<int>(text.size()) - at;
      const int rows = std::min({n, left, tables.RowsToBranch(seq)});
      const Text part(text.begin() + at, text.begin() + at + rows);
      last_rows = rows;
      Pass({{.seq = seq,
             .n_rows = rows,
             .first_position = at,
             .n_certain = rows,
             .ends_prompt = rows == left}},
           {part}, {rows}, texts);
      tables.Publish(seq, texts[static_cast<std::size_t>(seq)]);
    }
  }
  // Reads n more tokens of an answer, one by one.
  void Answer(SeqId seq, Text& text, int n, std::vector<Text>& texts) {
    for (int i = 0; i < n; ++i) {
      text.push_back(1000 + i);
      Pass({{.seq = seq, .n_rows = 1, .first_position = tables.length(seq), .n_certain = 1}},
           {{text.back()}}, {1}, texts);
      tables.Publish(seq, text);
    }
  }
  int Begin(SeqId seq, const Text& text, std::vector<Text>& texts) {
    tables.Truncate(seq, 0);
    const int known = tables.Share(seq, text);
    texts[static_cast<std::size_t>(seq)].assign(text.begin(), text.begin() + known);
    return known;
  }
};

// Texts over two tokens, changed seldom: prefixes are found again, and part at any position.
Text CheckpointedText(std::mt19937& random, int n) {
  Text text(static_cast<std::size_t>(n), 7);
  if (random() % 3 == 0 && n > 0) text[random() % text.size()] = 8;
  return text;
}

struct Counts {
  int shared = 0, went_on = 0, returned = 0, restored = 0, copied = 0, rows_copied = 0;
};

class CheckpointProgram {
 public:
  CheckpointProgram(unsigned seed, const TablesShape& shape) : runner_(shape), random_(seed) {}

  void Run(Counts& counts) {
    for (int step = 0; step < 2500; ++step) {
      const auto seq = static_cast<SeqId>(random_() % kRunnerSequences);
      Text& text = texts_[static_cast<std::size_t>(seq)];
      switch (random_() % 8) {
        case 0:
          if (random_() % 3 == 0)
            Tables().Truncate(seq, 0);
          else
            Tables().End(seq, text);
          text.clear();
          n_published_[static_cast<std::size_t>(seq)] = 0;
          break;
        case 1:
          Cut(seq, text, counts);
          break;
        case 2:
        case 3:
          Share(seq, text, counts);
          break;
        case 4:
          Publish(seq);
          break;
        default:
          Pass(seq);
      }
      if (testing::Test::HasFatalFailure()) FAIL() << "step " << step;
      Check();
    }
    counts.restored += runner_.n_restored, counts.copied += runner_.n_copied;
    counts.rows_copied += runner_.n_rows_copied;
  }

 private:
  BlockTables& Tables() { return runner_.tables; }

  void Publish(SeqId seq) {
    const auto i = static_cast<std::size_t>(seq);
    Tables().Publish(seq, texts_[i]);
    n_published_[i] = std::max(n_published_[i], Tables().length(seq) / kBlock);
  }
  // Behind what was published, or at the end of a block.
  void Cut(SeqId seq, Text& text, Counts& counts) {
    const int published = n_published_[static_cast<std::size_t>(seq)] * kBlock,
              n = static_cast<int>(text.size());
    int to = std::max(0, n - static_cast<int>(random_() % 70));
    if (to < published) to = to / kBlock * kBlock;
    const int length = Tables().Truncate(seq, to);
    ASSERT_LE(length, to);
    counts.returned += length > 0 && length < to;
    text.resize(static_cast<std::size_t>(length));
    n_published_[static_cast<std::size_t>(seq)] = std::min(published, length) / kBlock;
  }
  void Share(SeqId seq, Text& text, Counts& counts) {
    Text wanted = text;
    const Text more = CheckpointedText(random_, static_cast<int>(random_() % 200));
    wanted.insert(wanted.end(), more.begin(), more.end());
    wanted.resize(std::min<std::size_t>(wanted.size(), 300));
    const int gained = Tables().Share(seq, wanted);
    if (gained == 0) return;
    ++counts.shared;
    counts.went_on += gained % kBlock != 0;
    text.assign(wanted.begin(), wanted.begin() + Tables().length(seq));
    n_published_[static_cast<std::size_t>(seq)] = Tables().length(seq) / kBlock;
  }
  // One or two sequences read tokens, some certain and some not.
  void Pass(SeqId first) {
    std::vector<Segment> segments;
    std::vector<Text> rows;
    std::vector<int> kept;
    int blocks = 0;
    for (SeqId i = 0; i < 1 + static_cast<SeqId>(random_() % 2); ++i) {
      const SeqId seq = (first + i) % kRunnerSequences;
      const int certain = random_() % 2 == 0 ? static_cast<int>(random_() % 60) : 1,
                drafts = random_() % 2 == 0 ? static_cast<int>(random_() % (kRunnerRows - 1)) : 0,
                n = std::min(Tables().room(seq), certain + drafts);
      blocks += Tables().MissingBlocks(seq, n);
      if (n == 0 || blocks > Tables().n_available_blocks()) break;
      const int sure = std::min(certain, n);
      segments.push_back({.seq = seq,
                          .n_rows = n,
                          .first_position = Tables().length(seq),
                          .n_certain = sure,
                          .ends_prompt = random_() % 8 == 0});
      rows.push_back(CheckpointedText(random_, n));
      kept.push_back(sure + static_cast<int>(random_() % static_cast<unsigned>(n - sure + 1)));
    }
    if (!segments.empty()) runner_.Pass(segments, rows, kept, texts_);
  }
  void Check() {
    const Checkpoints& copies = Tables().checkpoints();
    ASSERT_LE(copies.n_free(), copies.n_places());
    for (SeqId seq = 0; seq < kRunnerSequences; ++seq) {
      const Text& text = texts_[static_cast<std::size_t>(seq)];
      ASSERT_EQ(Tables().length(seq), static_cast<int>(text.size()));
      const auto results = Results(text);
      for (std::size_t p = 0; p < text.size(); ++p)
        ASSERT_EQ(runner_.Row(seq, static_cast<Pos>(p)), results[p]) << p;
    }
  }

  Runner runner_;
  std::mt19937 random_;
  std::vector<Text> texts_ = std::vector<Text>(kRunnerSequences);
  std::vector<int> n_published_ = std::vector<int>(kRunnerSequences);
};

TEST(Checkpoints, HoldWhatWasReadThroughRandomPrograms) {
  Counts counts;
  for (unsigned seed = 0; seed < 6; ++seed)
    for (const int n_blocks : {10, 16, 40})
      for (const int n_copies : {1, 2, 7, 40}) {
        CheckpointProgram program(seed,
                                  CheckpointShape(n_blocks, n_copies, seed % 2 == 0 ? 32 : 96));
        ASSERT_NO_FATAL_FAILURE(program.Run(counts)) << seed << " " << n_blocks << " " << n_copies;
      }
  EXPECT_GT(counts.shared, 2000);
  EXPECT_GT(counts.went_on, 300);
  EXPECT_GT(counts.returned, 300);
  EXPECT_GT(counts.restored, 2000);
  EXPECT_GT(counts.copied, 10000);
  EXPECT_GT(counts.rows_copied, 500);
}

Text CheckpointTokens(int n, Token first = 0) {
  Text text;
  for (int i = 0; i < n; ++i) text.push_back(first + i);
  return text;
}

struct Checkpointed : testing::Test {
  Runner runner{CheckpointShape(40, 6)};
  std::vector<Text> texts = std::vector<Text>(kRunnerSequences);
};

TEST_F(Checkpointed, LetASecondTurnReadOnlyWhatIsNew) {
  const Text first = CheckpointTokens(150);
  runner.Read(0, first, texts);
  Text whole = first;
  runner.Answer(0, whole, 75, texts);
  runner.tables.Truncate(0, 0);
  const Text edited = CheckpointTokens(170);
  EXPECT_EQ(runner.Begin(1, edited, texts), 150) << "the end of the prompt";
  Text second = whole;
  for (int i = 0; i < 20; ++i) second.push_back(2000 + i);
  EXPECT_EQ(runner.Begin(0, second, texts), 224) << "the end of the answer";
  runner.Read(0, second, texts);
  runner.Read(1, edited, texts);
}

// The state of a text that has ended goes on where its sequence is taken again, at the very end.
TEST_F(Checkpointed, AreNotNeededWhereTheSequenceStillHasTheState) {
  const auto answer = [&](SeqId seq, Text& text, int n) {
    runner.Answer(seq, text, n, texts);
    runner.tables.End(seq, text);
  };
  Text first = CheckpointTokens(70), second = CheckpointTokens(20, 5000);
  runner.Read(0, first, texts);
  runner.Read(1, second, texts);
  answer(0, first, 25);
  answer(1, second, 6);
  EXPECT_EQ(runner.tables.SequenceOf(first), 0);
  EXPECT_EQ(runner.tables.SequenceOf(second), 1);
  EXPECT_GT(runner.tables.ended(1), runner.tables.ended(0));
  EXPECT_EQ(runner.tables.ended(2), 0);
  first.push_back(1), second.push_back(2);
  EXPECT_EQ(runner.Begin(2, second, texts), 20) << "that sequence has no state of its end";
  EXPECT_EQ(runner.Begin(0, first, texts), 95);
  EXPECT_EQ(runner.Begin(1, second, texts), 26);
  runner.Read(0, first, texts);
  runner.Read(1, second, texts);
  answer(0, first, 3);
  EXPECT_EQ(runner.Begin(0, CheckpointTokens(40, 9000), texts), 0);
  runner.Read(0, CheckpointTokens(40, 9000), texts);
  EXPECT_EQ(runner.tables.SequenceOf(first), BlockTables::kNoSequence) << "its state is lost";
}

TEST_F(Checkpointed, AreMadeWhereKnownTextsPart) {
  Text first = CheckpointTokens(200), second = CheckpointTokens(180), third = CheckpointTokens(190);
  for (std::size_t i = 75; i < 180; ++i) second[i] += 500, third[i] += 700;
  EXPECT_EQ(runner.Begin(0, first, texts), 0);
  runner.Read(0, first, texts, 100);
  EXPECT_EQ(runner.Begin(1, second, texts), 0) << "no copy was made at 64";
  EXPECT_EQ(runner.tables.RowsToBranch(1), 64);
  runner.Read(1, second, texts, 100);
  EXPECT_EQ(runner.tables.RowsToBranch(1), runner.tables.room(1));
  EXPECT_EQ(runner.Begin(2, third, texts), 64);
  runner.Read(2, third, texts, 100);
}

TEST_F(Checkpointed, LetASequenceReturnToTheNewestCopy) {
  const Text text = CheckpointTokens(150);
  runner.Read(0, text, texts, 32);
  Text& own = texts[0];
  EXPECT_EQ(runner.tables.Truncate(0, 128), 128);
  own.resize(128);
  runner.Read(0, text, texts, 32);
  runner.tables.Truncate(0, 0);
  EXPECT_EQ(runner.Begin(0, text, texts), 128) << "copies stay when a text has ended";
  EXPECT_EQ(runner.tables.Truncate(0, 96), 96) << "the interval is 96";
  own.resize(96);
  EXPECT_EQ(runner.tables.Truncate(0, 64), 0) << "nothing was left there";
}

TEST_F(Checkpointed, AreTakenFromTheTextsThatWereIdleLongest) {
  for (Token text = 0; text < 9; ++text) {
    const Text own = CheckpointTokens(40, 100 * text);
    EXPECT_EQ(runner.Begin(0, own, texts), 0);
    runner.Read(0, own, texts);
    runner.tables.End(0, own);
    EXPECT_EQ(runner.Begin(1, CheckpointTokens(40), texts), 40) << "it was used again and again";
  }
  EXPECT_EQ(runner.tables.checkpoints().n_free(), 0);
  EXPECT_EQ(runner.Begin(2, CheckpointTokens(40, 200), texts), 0);
  EXPECT_EQ(runner.Begin(2, CheckpointTokens(40, 800), texts), 40);
}

// Conversations that take turns. A client sends an answer back as it was, or from some token on in other
// words, and something new behind it.
class Conversations {
 public:
  Conversations(unsigned seed, int n_agents, int n_copies)
      : runner_(CheckpointShape(300, n_copies, 1 << 20)),
        random_(seed),
        agents_(static_cast<std::size_t>(n_agents)) {}

  void Run(int n_turns) {
    for (int turn = 0; turn < n_turns; ++turn) {
      Turn(agents_[random_() % agents_.size()]);
      if (testing::Test::HasFatalFailure()) FAIL() << "turn " << turn;
    }
  }
  int n_whole = 0, n_other = 0;  // answers that were sent back as they were, and in other words

 private:
  struct Agent {
    Text text;
    int prompt = 0, least = 0;  // where the newest prompt ends, and from where on its copy reaches
    int turn = 0;
  };
  Text Fresh(unsigned most) {
    Text text(1 + random_() % most);
    for (Token& token : text) token = ++newest_;
    return text;
  }
  static void Extend(Text& text, const Text& more) {
    text.insert(text.end(), more.begin(), more.end());
  }
  // A conversation that was given up leaves its state in a sequence.
  bool HasASequence(const Agent& agent) const {
    return agents_.size() <= kRunnerSequences && agent.turn > last_begun_;
  }

  // The tokens that must not be read again.
  int Known(const Agent& agent, const Text& next) {
    const auto parts =
        std::mismatch(agent.text.begin(), agent.text.end(), next.begin(), next.end());
    const int common = static_cast<int>(parts.first - agent.text.begin());
    const int whole = static_cast<int>(agent.text.size());
    ++(common == whole ? n_whole : n_other);
    const bool parked = common == whole && whole % kBlock != 0 && HasASequence(agent);
    return parked ? whole : std::min(common, agent.prompt);
  }
  void Turn(Agent& agent) {
    ++turn_;
    Text next = agent.text;
    if (next.size() > 200 || next.empty()) {
      next = CheckpointTokens(50);  // a system message
      agent = {};
      last_begun_ = turn_;
    } else if (random_() % 2 == 0) {
      const auto least = static_cast<std::size_t>(agent.least);
      next.resize(least + random_() % (next.size() - least + 1));
    }
    const int begun = static_cast<int>(next.size());
    // A prompt that is hardly longer than the system message could be that of any conversation.
    do Extend(next, Fresh(40));
    while (next.size() <= 50 + kCopiedInputs);
    const int known = agent.text.empty() ? 0 : Known(agent, next);
    const SeqId seq = Choose(next);
    runner_.tables.Truncate(seq, 0);
    Text& text = texts_[static_cast<std::size_t>(seq)];
    const int found = runner_.tables.Share(seq, std::span(next).first(next.size() - 1));
    ASSERT_GE(found, known) << agent.text.size() << " " << agent.prompt << " " << begun;
    text.assign(next.begin(), next.begin() + found);
    runner_.Read(seq, next, texts_, 50);
    agent.prompt = static_cast<int>(next.size());
    agent.least = std::max(begun, agent.prompt - std::min(runner_.last_rows, kCopiedInputs));
    Answer(seq);
    agent.text = text, agent.turn = turn_;
    runner_.tables.End(seq, text);
  }
  // As the engine does.
  SeqId Choose(const Text& text) {
    const SeqId own = runner_.tables.SequenceOf(text);
    if (own != BlockTables::kNoSequence) return own;
    SeqId found = 0;
    for (SeqId seq = 1; seq < kRunnerSequences; ++seq)
      if (runner_.tables.ended(seq) < runner_.tables.ended(found)) found = seq;
    return found;
  }
  void Answer(SeqId seq) {
    for (auto left = random_() % 12; left > 0; --left) {
      const Text rows = Fresh(6);
      const int n = static_cast<int>(rows.size());
      const int kept = 1 + static_cast<int>(random_() % rows.size());
      runner_.Pass(
          {{.seq = seq, .n_rows = n, .first_position = runner_.tables.length(seq), .n_certain = 1}},
          {rows}, {kept}, texts_);
      runner_.tables.Publish(seq, texts_[static_cast<std::size_t>(seq)]);
    }
  }

  Runner runner_;
  std::mt19937 random_;
  std::vector<Agent> agents_;
  std::vector<Text> texts_ = std::vector<Text>(kRunnerSequences);
  Token newest_ = 100;
  int turn_ = 0, last_begun_ = 0;  // turns so far, and the one in which a conversation began
};

// As many conversations as sequences read nothing again of answers that come back as they were.
// Otherwise copies are enough to read nothing again of their prompts.
TEST(Checkpoints, LetTurnsOfSeveralConversationsReadOnlyWhatIsNew) {
  for (const int n_agents : {1, 2, 3, 4, 10}) {
    int n_whole = 0, n_other = 0;
    for (unsigned seed = 0; seed < 10; ++seed) {
      // New conversations leave the copies of those before them.
      Conversations conversations(seed, n_agents, 4 * n_agents + 4);
      ASSERT_NO_FATAL_FAILURE(conversations.Run(200)) << n_agents << " " << seed;
      n_whole += conversations.n_whole, n_other += conversations.n_other;
    }
    EXPECT_GT(n_whole, 400);
    EXPECT_GT(n_other, 400);
  }
}

// Several texts go on behind one prompt, while its answer is still written.
TEST_F(Checkpointed, LetTextsGoOnBehindAPromptAtOnce) {
  const Text prompt = CheckpointTokens(75);
  runner.Read(0, prompt, texts);
  Text whole = prompt;
  runner.Answer(0, whole, 30, texts);
  for (const SeqId seq : {1, 2}) {
    Text other = prompt;
    for (int i = 0; i < 50; ++i) other.push_back(3000 * seq + i);
    for (const int n : {70, 75, 66}) {
      const Text beginning(other.begin(), other.begin() + n);
      EXPECT_EQ(runner.Begin(seq, beginning, texts), n < 67 ? 64 : n) << n;
    }
    EXPECT_EQ(runner.Begin(seq, other, texts), 75);
  }
  for (const SeqId seq : {1, 2}) {
    Text other = prompt;
    for (int i = 0; i < 50; ++i) other.push_back(3000 * seq + i);
    runner.Read(seq, other, texts);
  }
}

TEST(Checkpoints, MoveWithTheirSequenceUntilTheyAreUsed) {
  Checkpoints copies(2, 10, 2);
  const std::int32_t place = copies.Attach(0, 3, {});
  EXPECT_EQ(copies.Of(3), place);
  copies.Attach(0, 4, {});
  EXPECT_EQ(copies.Of(3), Checkpoints::kNone);
  copies.Hold(copies.Of(4));
  copies.Release(copies.Of(4));
  copies.Attach(0, 5, {});
  EXPECT_GE(copies.Of(4), 0);
  EXPECT_EQ(copies.n_free(), 0);
  copies.Hold(copies.Of(4));
  copies.Hold(copies.Of(5));
  EXPECT_EQ(copies.Attach(1, 6, {}), Checkpoints::kNone) << "both are held";
}

// A copy goes with its block, so that no copy belongs to other content.
TEST_F(Checkpointed, GoWithTheirBlocks) {
  Runner small(CheckpointShape(4, 6));
  const auto read = [&](Token first) {
    const Text text = CheckpointTokens(100, first);
    EXPECT_EQ(small.Begin(0, text, texts), 0);
    small.Read(0, text, texts, 32);
    return small.tables.checkpoints().n_free();
  };
  EXPECT_EQ(read(0), 4) << "one copy, where the prompt ends, and one at the last full block";
  EXPECT_EQ(read(500), 4) << "all blocks have other content now";
  EXPECT_EQ(small.Begin(1, CheckpointTokens(100), texts), 0);
  small.tables.Truncate(0, 0);
  EXPECT_EQ(small.Begin(1, CheckpointTokens(100, 500), texts), 96);
}

}  // namespace
}  // namespace foretoken::kv
