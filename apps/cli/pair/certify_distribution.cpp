// SPDX-License-Identifier: Apache-2.0
#include "cli/pair/certify_distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace foretoken::cli {
namespace {

constexpr double kFamilyLevel = 1e-3;
constexpr std::size_t kContextTokens = 8;  // of the prompt: the prefill is most of the work
constexpr int kGreedyTokens = 12;          // the context's end is searched among these
constexpr int kTokens = 4;                 // of a text: the prefill's, two drafts, one more
constexpr std::size_t kTests = 4;
constexpr std::array<const char*, kTests> kTestNames = {"2", "3", "4", "2 and 3"};

enum Kind { kPlain, kSpeculative, kControl, kKinds };
constexpr std::array<const char*, kKinds> kKindNames = {"plain decoding", "speculation",
                                                        "the control"};

// The distribution of the best tokens at temperature t, as far as they are known.
struct DistributionShape {
  double peak = 0, entropy = 0;
};
DistributionShape DistributionShapeOf(const TokenLogprobs& logprobs, double t) {
  double sum = 0;
  for (const auto& entry : logprobs.top)
    sum += std::exp((entry.second - logprobs.top[0].second) / t);
  DistributionShape shape{.peak = 1 / sum, .entropy = 0};
  for (const auto& entry : logprobs.top) {
    const double p = std::exp((entry.second - logprobs.top[0].second) / t) / sum;
    if (p > 0) shape.entropy -= p * std::log(p);
  }
  return shape;
}

// A place where the next token is nearly certain, so that all texts share it, and those after it
// are not.
std::size_t SharpestPlace(const std::vector<TokenLogprobs>& logprobs, double t) {
  std::size_t best = 0;
  double most = -1;
  for (std::size_t i = 0; i + kTokens <= logprobs.size(); ++i) {
    double open = 0;
    for (std::size_t j = i + 1; j < i + kTokens; ++j)
      open += std::min(2.0, DistributionShapeOf(logprobs[j], t).entropy);
    const double worth = DistributionShapeOf(logprobs[i], t).peak * open;
    if (worth > most) most = worth, best = i;
  }
  return best;
}

// A context: a part of the prompt and of its greedy continuation.
Result<std::vector<std::int32_t>> ContextOf(Engine& engine, const DistributionPlan& plan,
                                            const BenchPrompt& prompt) {
  auto tokens = engine.Tokenize(prompt.text, plan.request.add_special, plan.request.parse_special);
  if (tokens.size() > kContextTokens)  // the first may be the begin token
    tokens.erase(tokens.begin() + 1, tokens.end() - (kContextTokens - 1));
  Request request = plan.request;
  request.prompt_tokens = tokens;
  request.sampling.temperature = 0;
  request.speculative.enabled = false;
  request.speculative.draft_sampling.reset();
  request.max_new_tokens = kGreedyTokens;
  request.ignore_eos = true;
  request.logprobs = 64;
  auto completion = engine.Generate(request);
  if (!completion) return Fail(std::move(completion).error().In(prompt.origin));
  const std::size_t n = SharpestPlace(completion->logprobs, plan.request.sampling.temperature);
  const auto& text = completion->token_ids;
  tokens.insert(tokens.end(), text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
  return tokens;
}

Request RequestFor(const DistributionPlan& plan, Kind kind) {
  Request request = plan.request;
  request.max_new_tokens = kTokens;
  request.min_new_tokens = 0;
  request.ignore_eos = true;
  request.logprobs = -1;
  request.stop.clear();
  request.speculative.enabled = kind != kPlain;
  // Each kind has its own noise, because the test needs independent sets.
  request.seed += 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(kind);
  return request;
}

class DistributionTester {
 public:
  DistributionTester(Engine& engine, Engine& control, const DistributionPlan& plan)
      : engine_(engine), control_(control), plan_(plan) {}

  Result<DistributionVerdict> Test() {
    for (const BenchPrompt& prompt : plan_.prompts) {
      FORETOKEN_TRY(auto context, ContextOf(engine_, plan_, prompt));
      contexts_.push_back({.origin = prompt.origin, .tokens = std::move(context), .counts = {}});
    }
    FORETOKEN_CHECK_OK(DrawUpTo(plan_.samples));
    while (!verdict_.control_failed() && drawn_ < plan_.most_samples)
      FORETOKEN_CHECK_OK(DrawUpTo(std::min(2 * drawn_, plan_.most_samples)));
    if (stats_.drafted == 0)
      return Fail(ErrorCode::kInvalidArgument,
                  "certify: nothing was drafted, so nothing was tested; give other prompts or "
                  "another drafter");
    verdict_.acceptance_rate = stats_.acceptance_rate().value_or(0);
    return std::move(verdict_);
  }

 private:
  struct Context {
    std::string origin;
    std::vector<std::int32_t> tokens;
    std::array<std::array<lab::Counts, kTests>, kKinds> counts;
  };

  Status DrawUpTo(int samples) {
    for (std::size_t c = 0; c < contexts_.size(); ++c)
      for (const Kind kind : {kPlain, kSpeculative, kControl}) {
        const double work = static_cast<double>(contexts_.size() * kKinds);
        const double done = static_cast<double>(c * kKinds + static_cast<std::size_t>(kind));
        for (int first = drawn_; first < samples;) {
          const int n = std::min(256, samples - first);
          FORETOKEN_CHECK_OK(Draw(contexts_[c], kind, first, n));
          first += n;
          if (plan_.on_progress)
            plan_.on_progress(
                fmt::format("{} texts by {}", samples, kKindNames[kind]),
                (done + static_cast<double>(first - drawn_) / (samples - drawn_)) / work);
        }
      }
    drawn_ = samples;
    Conclude();
    return {};
  }

  Status Draw(Context& context, Kind kind, int first, int n) {
    Request request = RequestFor(plan_, kind);
    request.prompt_tokens = context.tokens;
    std::vector<Request> requests(static_cast<std::size_t>(n), request);
    for (int i = 0; i < n; ++i)
      requests[static_cast<std::size_t>(i)].id = static_cast<std::uint64_t>(first + i);
    auto completions = (kind == kControl ? control_ : engine_).GenerateBatch(requests);
    if (!completions) return Fail(std::move(completions).error().In(context.origin));
    for (const Completion& completion : *completions) {
      Count(completion, context.counts[kind]);
      if (kind == kSpeculative) {
        stats_.Add(completion.speculation);
        verdict_.strategy = completion.strategy;
      }
    }
    return {};
  }

  void Count(const Completion& completion, std::array<lab::Counts, kTests>& counts) const {
    const auto& t = completion.token_ids;
    if (t.size() < kTokens) return;  // the context is full: the same for all kinds
    const std::int64_t vocabulary = engine_.summary().target.vocabulary_size;
    ++counts[0][t[1]];
    ++counts[1][t[2]];
    ++counts[2][t[3]];
    ++counts[3][t[1] * vocabulary + t[2]];
  }

  void Conclude() {
    verdict_.samples = drawn_;
    verdict_.tests.clear();
    for (const Context& context : contexts_)
      for (std::size_t i = 0; i < kTests; ++i) {
        const auto with = [&](Kind kind) {
          return lab::CompareDistributions(context.counts[kPlain][i], context.counts[kind][i]);
        };
        verdict_.tests.push_back(
            {context.origin, kTestNames[i], with(kSpeculative), with(kControl)});
      }
    verdict_.level = kFamilyLevel / static_cast<double>(verdict_.tests.size());
  }

  Engine& engine_;
  Engine& control_;
  const DistributionPlan& plan_;
  std::vector<Context> contexts_;
  SpeculationStats stats_;  // of speculation, not of the negative control
  DistributionVerdict verdict_;
  int drawn_ = 0;
};

}  // namespace

bool DistributionVerdict::passed() const {
  return std::all_of(tests.begin(), tests.end(),
                     [this](const DistributionTest& test) { return test.speculation.p >= level; });
}

bool DistributionVerdict::control_failed() const {
  return std::any_of(tests.begin(), tests.end(),
                     [this](const DistributionTest& test) { return test.control.p < level; });
}

EngineOptions ControlOptions(EngineOptions options, const std::string& strategy,
                             std::string& name) {
  SpeculativeOptions& speculative = options.speculative;
  if (strategy == "residual") {
    speculative.strategy = VerifyStrategy::kResidual;
    speculative.skip_sample_adjustment = true;
    name = "residual without adjustment";
  } else {
    speculative.strategy = VerifyStrategy::kTypicalAcceptance;
    speculative.acceptance_threshold = 0;
    speculative.skip_sample_adjustment = false;
    name = "typical-acceptance";
  }
  return options;
}

Result<std::string> StrategyOf(Engine& engine, const DistributionPlan& plan) {
  Request request = RequestFor(plan, kSpeculative);
  request.prompt = plan.prompts.front().text;
  request.max_new_tokens = 1;
  auto completion = engine.Generate(request);
  if (!completion) return Fail(std::move(completion).error().In(plan.prompts.front().origin));
  return completion->strategy;
}

Result<DistributionVerdict> TestDistribution(Engine& engine, Engine& control,
                                             const DistributionPlan& plan) {
  return DistributionTester(engine, control, plan).Test();
}

}  // namespace foretoken::cli
