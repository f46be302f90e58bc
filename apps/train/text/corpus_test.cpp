// SPDX-License-Identifier: Apache-2.0
#include "train/text/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"
#include "train/networks/gguf.h"
#include "train/written_testing.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

constexpr int kCorpusTestLength = 16;

const text::Tokenizer& Vocabulary() {
  static std::unique_ptr<formats::Checkpoint> file;
  static const auto tokenizer =
      *OpenVocabulary(fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {}), file);
  return *tokenizer;
}

// Random letters between `first` and `last`: no two windows are alike.
std::string Letters(char first, char last, int n, unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  for (int i = 0; i < n; ++i)
    text += static_cast<char>(first + random() % static_cast<unsigned>(last - first + 1));
  return text;
}

Corpus Load(const std::vector<TextSource>& sources, std::uint64_t seed = 1) {
  return Got(Corpus::Load(sources, Vocabulary(), kCorpusTestLength, seed));
}

std::vector<std::int64_t> Values(const Tensor& row) {
  return {row.data_ptr<std::int64_t>(), row.data_ptr<std::int64_t>() + row.numel()};
}

std::vector<std::int64_t> TokensOf(const std::vector<std::string>& documents) {
  std::vector<std::int64_t> tokens;
  for (const std::string& document : documents) {
    tokens.push_back(*Vocabulary().bos());
    for (const Token token : Vocabulary().Encode(document, {.add_special = false}))
      tokens.push_back(token);
    tokens.push_back(*Vocabulary().eos());
  }
  return tokens;
}

// The place of a row in the tokens; -1: it is not there.
std::int64_t PlaceOf(const std::vector<std::int64_t>& row,
                     const std::vector<std::int64_t>& tokens) {
  const auto found = std::search(tokens.begin(), tokens.end(), row.begin(), row.end());
  return found == tokens.end() ? -1 : found - tokens.begin();
}

TEST(Corpus, PassCoversTheTextAndNoWindowComesTwice) {
  const std::vector<std::string> documents = {Letters('a', 'z', 3000, 1),
                                              Letters('a', 'z', 900, 2)};
  const auto tokens = TokensOf(documents);
  const Corpus corpus = Load({{WriteText(documents[0] + "<|endoftext|>" + documents[1])}});
  ASSERT_EQ(corpus.n_tokens(), static_cast<std::int64_t>(tokens.size()));
  ASSERT_EQ(corpus.n_bytes(), 3900);
  const std::int64_t windows = corpus.windows();
  std::vector<std::int64_t> order[2];
  for (int pass = 0; pass < 2; ++pass) {
    const Tensor rows = corpus.Rows(pass * windows, static_cast<int>(windows));
    std::set<std::int64_t> places;
    for (std::int64_t r = 0; r < windows; ++r) {
      const std::int64_t place = PlaceOf(Values(rows[r]), tokens);
      ASSERT_GE(place, 0) << "row " << r << " is not in the text";
      order[pass].push_back(place);
      places.insert(place);
    }
    // All distinct, and neighbours are a window apart: each token is read once, except those left
    // over at both ends.
    EXPECT_EQ(static_cast<std::int64_t>(places.size()), windows);
    EXPECT_EQ(*places.rbegin() - *places.begin(), (windows - 1) * kCorpusTestLength);
    EXPECT_LE(static_cast<std::int64_t>(tokens.size()) - windows * kCorpusTestLength,
              2 * kCorpusTestLength + 1);
  }
  EXPECT_FALSE(std::is_sorted(order[0].begin(), order[0].end()));
  EXPECT_NE(order[0], order[1]) << "each pass has an order of its own";
}

TEST(Corpus, RowsDependOnTheirNumberAndTheSeedAlone) {
  const std::string text = WriteText(Letters('a', 'z', 3000, 3));
  const Corpus corpus = Load({{text}}), again = Load({{text}}), other = Load({{text}}, 2);
  const Tensor rows = corpus.Rows(0, 64);
  EXPECT_TRUE(torch::equal(rows, again.Rows(0, 64)));
  EXPECT_FALSE(torch::equal(rows, other.Rows(0, 64)));
  EXPECT_TRUE(torch::equal(rows.narrow(0, 21, 7), corpus.Rows(21, 7)))
      << "a run that was stopped goes on";
  EXPECT_EQ(rows.sizes(), (torch::IntArrayRef{64, kCorpusTestLength + 1}));
}

TEST(Corpus, KeepsTheSharesOfItsSources) {
  const std::vector<std::string> letters = {Letters('a', 'h', 4000, 4), Letters('p', 'z', 500, 5)};
  const Corpus corpus = Load({{WriteText(letters[0]), 1}, {WriteText(letters[1]), 3}});
  const std::vector<std::int64_t> first = TokensOf({letters[0]});
  const Tensor rows = corpus.Rows(0, 1000);
  int of_first = 0;
  for (int r = 0; r < 1000; ++r) {
    of_first += PlaceOf(Values(rows[r]), first) >= 0;
    ASSERT_LE(std::abs(of_first - (r + 1) / 4.0), 1.0) << "after row " << r;
  }
  EXPECT_EQ(of_first, 250);
}

TEST(Corpus, EvenRowsSpanEachSource) {
  const std::vector<std::string> letters = {Letters('a', 'h', 4000, 6), Letters('p', 'z', 500, 7)};
  const Corpus corpus = Load({{WriteText(letters[0])}, {WriteText(letters[1])}});
  const Tensor rows = corpus.EvenRows(8);
  ASSERT_EQ(rows.size(0), 8);
  for (int source = 0; source < 2; ++source) {
    const auto tokens = TokensOf({letters[static_cast<std::size_t>(source)]});
    EXPECT_EQ(PlaceOf(Values(rows[4 * source]), tokens), 0);
    EXPECT_EQ(PlaceOf(Values(rows[4 * source + 3]), tokens),
              static_cast<std::int64_t>(tokens.size()) - kCorpusTestLength - 1);
  }
}

TEST(Corpus, FingerprintTellsTextSharesAndSeedApart) {
  const std::string text = Letters('a', 'z', 400, 8);
  std::string changed = text;
  changed[200] = changed[200] == 'q' ? 'x' : 'q';
  const std::string path = WriteText(text), other = WriteText(text);
  std::set<std::string> all = {
      Load({{path}}).Fingerprint(),          Load({{path}}, 2).Fingerprint(),
      Load({{path, 2}}).Fingerprint(),       Load({{WriteText(changed)}}).Fingerprint(),
      Load({{path}, {other}}).Fingerprint(), Load({{path}, {other, 2}}).Fingerprint()};
  EXPECT_EQ(all.size(), 6);
  EXPECT_EQ(Load({{path}}).Fingerprint(), Load({{other}}).Fingerprint()) << "the path is not text";
}

std::string LoadError(const std::vector<TextSource>& sources) {
  const auto corpus = Corpus::Load(sources, Vocabulary(), kCorpusTestLength, 1);
  return corpus ? "none" : corpus.error().message;
}

TEST(Corpus, RefusesWhatIsNoText) {
  const std::string good = WriteText(Letters('a', 'z', 300, 9));
  EXPECT_NE(LoadError({}).find("none is given"), std::string::npos);
  EXPECT_NE(LoadError({{good}, {WriteText("")}}).find("holds no text"), std::string::npos);
  EXPECT_NE(LoadError({{good}, {WriteText("\x7f\x45\x4c\x46")}}).find("is not text"),
            std::string::npos);
  EXPECT_NE(LoadError({{good}, {WriteText("caf\xE9")}}).find("is not text"), std::string::npos);
  EXPECT_NE(LoadError({{good}, {"/no/such/text"}}).find("/no/such/text: no such file"),
            std::string::npos);
}

TEST(Corpus, RefusesLessThanAWindow) {
  const std::string text = Letters('a', 'z', 30, 10);
  const auto tokens = static_cast<int>(TokensOf({text}).size());
  EXPECT_TRUE(Corpus::Load({{WriteText(text)}}, Vocabulary(), tokens - 1, 1));
  const auto corpus = Corpus::Load({{WriteText(text)}}, Vocabulary(), tokens, 1);
  ASSERT_FALSE(corpus);
  EXPECT_NE(corpus.error().message.find("less than one window"), std::string::npos);
}

TEST(TextSource, IsAPathAndPerhapsAShare) {
  const auto parse = [](const std::string& text) { return *ParseTextSource(text); };
  EXPECT_EQ(parse("a.txt").path, "a.txt");
  EXPECT_EQ(parse("a.txt").share, 1);
  EXPECT_EQ(parse("a.txt:0.25").path, "a.txt");
  EXPECT_EQ(parse("a.txt:0.25").share, 0.25);
  EXPECT_EQ(parse("C:/a.txt").path, "C:/a.txt") << "a colon of the path";
  EXPECT_EQ(parse("a:1b").path, "a:1b");
  for (const char* bad : {"a.txt:0", "a.txt:-1", "a.txt:inf", "a.txt:nan"})
    EXPECT_FALSE(ParseTextSource(bad)) << bad;
}

}  // namespace
}  // namespace foretoken::train
