// SPDX-License-Identifier: Apache-2.0
#include "calibrate/copy_comparison.h"

#include <algorithm>

#include "kv/transaction.h"

namespace foretoken::calibrate {
namespace {

constexpr int kTextTokens = 24;

double Median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class CopyComparer {
 public:
  CopyComparer(const Subject& subject, model::Runner& copy) : subject_(subject), copy_(copy) {}
  ~CopyComparer() { subject_.cache.Truncate(0, 0); }
  CopyComparer(const CopyComparer&) = delete;
  CopyComparer& operator=(const CopyComparer&) = delete;

  // False: it was stopped.
  bool Continue(const std::vector<Token>& beginning, std::span<const Token> end_tokens,
                const std::function<bool(int)>& go_on) {
    subject_.cache.Truncate(0, 0);
    const int begin = static_cast<int>(beginning.size()) - 1,
              end = std::min(begin + kTextTokens, subject_.most_positions);
    Token token = beginning.front();
    for (int at = 0; at < end; ++at) {
      if (at <= begin) token = beginning[static_cast<std::size_t>(at)];
      const bool compares = at >= begin;
      if (compares && !go_on(at - begin)) return false;
      const Token drafted = compares ? Best(copy_, token, at, 0) : kNoToken;
      token = Best(subject_.target, token, at, 1);
      if (token == kNoToken) return true;  // its logits are no numbers
      if (!compares) continue;
      ++comparison_.positions;
      comparison_.agreed += token == drafted;
      if (std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end()) return true;
    }
    return true;
  }

  std::optional<CopyComparison> Result() {
    if (comparison_.positions == 0) return std::nullopt;
    comparison_.cost = Median(copy_us_) / std::max(Median(target_us_), 1e-3);
    return comparison_;
  }

 private:
  // The most probable token behind the one at this position; kNoToken: there is none. kept: 1: the position
  // stays in the cache.
  Token Best(model::Runner& runner, Token token, int position, int kept) {
    const Token tokens[] = {runner.info().Readable(token)};
    constexpr int kRow[] = {0};
    kv::Segment segment{.n_rows = 1, .first_position = position, .n_certain = kept};
    kv::Transaction transaction(subject_.cache, {&segment, 1});
    const bool reduced = !runner.info().reduced_tokens.empty();
    const model::PassResult* result = nullptr;
    const double us = foretoken::Microseconds(
        [&] {
          result = &runner.Run({.tokens = tokens,
                                .segments = {&segment, 1},
                                .logit_rows = kRow,
                                .reduced = reduced});
        },
        subject_.now);
    (kept == 0 ? copy_us_ : target_us_).push_back(us);
    if (kept != 0) transaction.Commit({&kept, 1});
    if (!result->Finite(0)) return kNoToken;
    const int columns = reduced ? static_cast<int>(runner.info().reduced_tokens.size())
                                : std::min(runner.info().vocabulary, subject_.vocabulary);
    const float* const logits = result->Logits(0);
    const auto best = std::max_element(logits, logits + columns) - logits;
    return reduced ? runner.info().reduced_tokens[static_cast<std::size_t>(best)]
                   : static_cast<Token>(best);
  }

  const Subject& subject_;
  model::Runner& copy_;
  CopyComparison comparison_;
  std::vector<double> copy_us_, target_us_;
};

}  // namespace

std::optional<CopyComparison> CompareCopy(const Subject& subject, model::Runner& copy,
                                          std::span<const std::vector<Token>> beginnings,
                                          std::span<const Token> end_tokens,
                                          const std::function<bool(double)>& go_on) {
  CopyComparer comparer(subject, copy);
  double done = 0;
  const double all = static_cast<double>(beginnings.size());
  for (const std::vector<Token>& beginning : beginnings) {
    if (!comparer.Continue(beginning, end_tokens,
                           [&](int n) { return go_on((done + n / double{kTextTokens}) / all); }))
      return std::nullopt;
    ++done;
  }
  return comparer.Result();
}

}  // namespace foretoken::calibrate
