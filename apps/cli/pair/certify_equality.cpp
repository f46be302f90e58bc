// SPDX-License-Identifier: Apache-2.0
#include "cli/pair/certify_equality.h"
#include "foretoken/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace foretoken::cli {
namespace {

constexpr int kTopLogprobs = 4;

bool SameBits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

bool Same(const TokenLogprobs& a, const TokenLogprobs& b) {
  return SameBits(a.logprob, b.logprob) &&
         std::equal(a.top.begin(), a.top.end(), b.top.begin(), b.top.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && SameBits(x.second, y.second);
                    });
}

// Null if there is none.
std::optional<Difference> FirstDifference(const Completion& plain, const Completion& other) {
  const std::size_t n = std::min(plain.token_ids.size(), other.token_ids.size());
  std::size_t i = 0;
  while (i < n && plain.token_ids[i] == other.token_ids[i] &&
         Same(plain.logprobs[i], other.logprobs[i]))
    ++i;
  if (i == n && plain.token_ids.size() == other.token_ids.size()) return std::nullopt;
  Difference difference;
  difference.position = static_cast<int>(i);
  difference.what = i == n                                     ? "length"
                    : plain.token_ids[i] != other.token_ids[i] ? "token"
                                                               : "log-probability";
  const auto take = [i](const Completion& from, auto& token, float& logprob) {
    if (i >= from.token_ids.size()) return;
    token = from.token_ids[i];
    logprob = from.logprobs[i].logprob;
  };
  take(plain, difference.plain, difference.plain_logprob);
  take(other, difference.speculative, difference.speculative_logprob);
  return difference;
}

class Comparer {
 public:
  Comparer(Engine& engine, const EqualityPlan& plan) : engine_(engine), plan_(plan) {}

  Result<Equality> All() {
    const bool sampled = !plan_.request.sampling.greedy();
    const int batches = static_cast<int>(plan_.batches.size()),
              ks = static_cast<int>(plan_.ks.size());
    const auto wide = static_cast<int>(std::count_if(plan_.batches.begin(), plan_.batches.end(),
                                                     [](int batch) { return batch > 1; }));
    runs_ = (sampled ? 2 : 1) * (1 + batches * ks + wide);
    FORETOKEN_CHECK_OK(Texts("greedy"));
    if (sampled)
      FORETOKEN_CHECK_OK(Texts("sampled"));
    else
      result_.sampled_left_out = "the temperature is 0";
    return std::move(result_);
  }

 private:
  Request RequestOf(std::size_t i, int k) const {
    Request request = plan_.request;
    request.prompt = plan_.prompts[i].text;
    request.id = i;
    request.logprobs = kTopLogprobs;
    request.speculative.enabled = k > 0;
    request.speculative.num_speculative_tokens = k;
    // Greedy drafts are verified by sample-match, where the text depends on the seed alone.
    request.speculative.draft_sampling = request.sampling;
    request.speculative.draft_sampling->temperature = 0;
    if (text_ == "greedy") request.sampling.temperature = 0;
    return request;
  }

  Status Texts(const std::string& text) {
    text_ = text;
    FORETOKEN_TRY(plain_, Completions(1, 0));
    if (text == "sampled") {
      FORETOKEN_TRY(const Completion probe, Generate(0, plan_.ks.back()));
      if (!KeepsText(probe.strategy)) {
        result_.sampled_left_out = fmt::format(
            "'{}' follows no seed; --stochastic tests its distribution", probe.strategy);
        return {};
      }
      result_.strategy = probe.strategy;
    }
    for (const int batch : plan_.batches) {
      if (batch > 1) FORETOKEN_CHECK_OK(Compare(batch, 0));
      for (const int k : plan_.ks) FORETOKEN_CHECK_OK(Compare(batch, k));
    }
    return {};
  }

  Result<Completion> Generate(std::size_t i, int k) {
    auto completion = engine_.Generate(RequestOf(i, k));
    if (!completion) return Fail(std::move(completion).error().In(plan_.prompts[i].origin));
    return completion;
  }

  // All prompts, `batch` together. The last batch is filled up with prompts from the start.
  Result<std::vector<Completion>> Completions(int batch, int k) {
    if (plan_.on_run) plan_.on_run(++run_, runs_);
    std::vector<Completion> all;
    const std::size_t n = plan_.prompts.size(), size = static_cast<std::size_t>(batch);
    for (std::size_t first = 0; first < n; first += size) {
      std::vector<Request> requests;
      for (std::size_t i = first; i < first + size; ++i) requests.push_back(RequestOf(i % n, k));
      auto some = engine_.GenerateBatch(requests, [this](const RoundEvent& round) {
        Count(round);
        return true;
      });
      if (!some) return Fail(std::move(some).error().In(plan_.prompts[first].origin));
      for (Completion& completion : *some) all.push_back(std::move(completion));
    }
    return all;
  }

  void Count(const RoundEvent& round) {
    if (round.drafted == 0) return;
    DrafterCount& count = result_.drafters[std::string(round.drafter)];
    ++count.rounds;
    count.drafted += round.drafted;
    count.accepted += std::count_if(
        round.events.begin(), round.events.end(),
        [](const TokenEvent& event) { return event.origin == TokenOrigin::kAccepted; });
  }

  Status Compare(int batch, int k) {
    FORETOKEN_TRY(const std::vector<Completion> completions, Completions(batch, k));
    EqualityRow row{.text = text_,
                    .k = k,
                    .batch = batch,
                    .prompts = static_cast<int>(completions.size()),
                    .differing = 0,
                    .tokens = 0,
                    .stats = {}};
    if (k > 0 && text_ == "greedy") result_.greedy_strategy = completions.front().strategy;
    for (std::size_t i = 0; i < completions.size(); ++i) {
      const std::size_t prompt = i % plan_.prompts.size();
      row.tokens += static_cast<std::int64_t>(completions[i].token_ids.size());
      row.stats.Add(completions[i].speculation);
      auto difference = FirstDifference(plain_[prompt], completions[i]);
      if (!difference) continue;
      ++row.differing;
      if (result_.first) continue;
      difference->text = text_;
      difference->origin = plan_.prompts[prompt].origin;
      difference->k = k;
      difference->batch = batch;
      result_.first = std::move(difference);
    }
    result_.rows.push_back(std::move(row));
    return {};
  }

  Engine& engine_;
  const EqualityPlan& plan_;
  Equality result_;
  std::string text_;
  std::vector<Completion> plain_;
  int run_ = 0, runs_ = 0;
};

}  // namespace

Result<Equality> CompareWithPlain(Engine& engine, const EqualityPlan& plan) {
  return Comparer(engine, plan).All();
}

}  // namespace foretoken::cli
