// SPDX-License-Identifier: Apache-2.0
#include "train/text/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"

namespace foretoken::train {
namespace {

constexpr int kPeriod = 1000;  // shares are exact to a thousandth

// A permutation of 0..n-1 without a table: a Feistel network over the next power of four, walked
// until it lands inside.
std::int64_t Permuted(std::int64_t i, std::int64_t n, std::uint64_t key) {
  int half = 1;
  while ((std::int64_t{1} << (2 * half)) < n) ++half;
  const std::uint32_t mask = (1U << half) - 1;
  auto x = static_cast<std::uint64_t>(i);
  do {
    auto left = static_cast<std::uint32_t>(x >> half), right = static_cast<std::uint32_t>(x) & mask;
    for (std::uint32_t round = 0; round < 4; ++round) {
      const auto noise = Philox({right, round, 0, 0}, {static_cast<std::uint32_t>(key),
                                                       static_cast<std::uint32_t>(key >> 32)});
      const std::uint32_t next = left ^ (noise[0] & mask);
      left = right, right = next;
    }
    x = std::uint64_t{left} << half | right;
  } while (x >= static_cast<std::uint64_t>(n));
  return static_cast<std::int64_t>(x);
}

}  // namespace

Result<TextSource> ParseTextSource(const std::string& text) {
  TextSource source{text, 1};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return source;
  std::size_t used = 0;
  try {
    source.share = std::stod(text.substr(colon + 1), &used);
  } catch (const std::exception&) {
    return source;  // the colon belongs to the path
  }
  if (used != text.size() - colon - 1) return source;
  source.path = text.substr(0, colon);
  if (!(source.share > 0) || !std::isfinite(source.share))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("text: the share of {} is {}; use a number above 0", source.path,
                            source.share));
  return source;
}

Result<Corpus> Corpus::Load(const std::vector<TextSource>& sources,
                            const text::Tokenizer& tokenizer, int length, std::uint64_t seed) {
  if (sources.empty())
    return Fail(ErrorCode::kInvalidArgument, "text: none is given; give a file with --text");
  Corpus corpus;
  corpus.length_ = length, corpus.seed_ = seed;
  double total = 0;
  for (const TextSource& given : sources) {
    FORETOKEN_TRY(const auto documents, ReadDocuments(given.path));
    Source source{.share = given.share};
    for (const std::string& document : documents) {
      source.n_bytes += static_cast<std::int64_t>(document.size());
      if (tokenizer.bos()) source.tokens.push_back(*tokenizer.bos());
      const auto tokens = tokenizer.Encode(document, {.add_special = false});
      source.tokens.insert(source.tokens.end(), tokens.begin(), tokens.end());
      if (tokenizer.eos()) source.tokens.push_back(*tokenizer.eos());
    }
    if (static_cast<std::int64_t>(source.tokens.size()) <= length)
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: its {} tokens are less than one window of {}; give more text or a "
                      "smaller --window",
                      given.path, source.tokens.size(), length + 1));
    total += source.share;
    corpus.sources_.push_back(std::move(source));
  }
  std::vector<std::int64_t> count(sources.size());
  for (int i = 0; i < kPeriod; ++i) {
    corpus.before_.push_back(count);
    std::size_t next = 0;
    double most = -1e300;
    for (std::size_t s = 0; s < sources.size(); ++s) {
      const double behind =
          (i + 1) * corpus.sources_[s].share / total - static_cast<double>(count[s]);
      if (behind > most) most = behind, next = s;
    }
    ++count[next];
    corpus.pattern_.push_back(static_cast<int>(next));
  }
  corpus.before_.push_back(count);
  return corpus;
}

std::int64_t Corpus::Windows(const Source& source) const {
  return std::max<std::int64_t>(
      1, (static_cast<std::int64_t>(source.tokens.size()) - 1) / length_ - 1);
}

void Corpus::Copy(const Source& source, std::int64_t begin, std::int64_t* row) const {
  std::copy_n(source.tokens.begin() + begin, length_ + 1, row);
}

torch::Tensor Corpus::Rows(std::int64_t first_row, int n_rows) const {
  auto rows = torch::empty({n_rows, length_ + 1}, torch::kInt64);
  for (int r = 0; r < n_rows; ++r) {
    const std::int64_t row = first_row + r;
    const auto place = static_cast<std::size_t>(row % kPeriod);
    const auto s = static_cast<std::size_t>(pattern_[place]);
    const Source& source = sources_[s];
    const std::int64_t n = row / kPeriod * before_[kPeriod][s] + before_[place][s],
                       windows = Windows(source);
    const std::uint64_t key = seed_ * 1000003 + static_cast<std::uint64_t>(n / windows) * 101 + s;
    // Each pass cuts the source at other places.
    const std::int64_t slack =
        static_cast<std::int64_t>(source.tokens.size()) - 1 - windows * length_;
    const std::int64_t shift =
        static_cast<std::int64_t>(Philox({7, 7, 7, 7}, {static_cast<std::uint32_t>(key), 1})[0]) %
        (slack + 1);
    Copy(source, Permuted(n % windows, windows, key) * length_ + shift,
         rows[r].data_ptr<std::int64_t>());
  }
  return rows;
}

torch::Tensor Corpus::EvenRows(int n_rows) const {
  const int each = std::max(1, n_rows / static_cast<int>(sources_.size()));
  std::vector<torch::Tensor> parts;
  for (const Source& source : sources_) {
    const std::int64_t last = static_cast<std::int64_t>(source.tokens.size()) - 1 - length_;
    const auto n = static_cast<int>(std::min<std::int64_t>(each, last / length_ + 1));
    auto rows = torch::empty({n, length_ + 1}, torch::kInt64);
    for (int r = 0; r < n; ++r)
      Copy(source, n == 1 ? 0 : last * r / (n - 1), rows[r].data_ptr<std::int64_t>());
    parts.push_back(rows);
  }
  return torch::cat(parts);
}

std::int64_t Corpus::n_tokens() const {
  return std::accumulate(sources_.begin(), sources_.end(), std::int64_t{0},
                         [](std::int64_t n, const Source& s) {
                           return n + static_cast<std::int64_t>(s.tokens.size());
                         });
}

std::int64_t Corpus::n_bytes() const {
  return std::accumulate(sources_.begin(), sources_.end(), std::int64_t{0},
                         [](std::int64_t n, const Source& s) { return n + s.n_bytes; });
}

std::int64_t Corpus::windows() const {
  return std::accumulate(sources_.begin(), sources_.end(), std::int64_t{0},
                         [this](std::int64_t n, const Source& s) { return n + Windows(s); });
}

std::string Corpus::Fingerprint() const {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a
  for (const Source& source : sources_)
    for (const std::int32_t token : source.tokens)
      hash = (hash ^ static_cast<std::uint64_t>(token)) * 1099511628211ULL;
  std::string text = fmt::format("text {:016x} window {} seed {}", hash, length_, seed_);
  for (const Source& source : sources_)
    text += fmt::format(" {}:{}", source.tokens.size(), source.share);
  return text;
}

}  // namespace foretoken::train
