// SPDX-License-Identifier: Apache-2.0
// engine/step/fake_engine_testing.h: the parts of an engine around a FakeRunner, for their unit
// tests: no model file, no thread. A test moves them by hand, or by Step as the engine does.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/requests/admission.h"
#include "engine/requests/preparation.h"
#include "engine/step/accounting.h"
#include "engine/step/drafting.h"
#include "engine/step/scheduler.h"
#include "foretoken/limits.h"
#include "kernels/dispatch.h"
#include "kv/transaction.h"
#include "model/fake_runner_testing.h"

namespace foretoken::engine {

// Token i is the letter i of the alphabet, again and again.
class FakeTokenizer final : public text::Tokenizer {
 public:
  explicit FakeTokenizer(int vocabulary) : vocabulary_(vocabulary) {
    for (int i = 0; i < vocabulary; ++i) texts_.emplace_back(1, static_cast<char>('a' + i % 26));
  }
  std::vector<Token> Encode(std::string_view text, text::EncodeOptions) const override {
    std::vector<Token> tokens;
    for (const char c : text) tokens.push_back(c - 'a');
    return tokens;
  }
  std::vector<Token> EncodeParts(std::span<const text::TextPart> parts) const override {
    std::string whole;
    for (const text::TextPart& part : parts) whole += part.text;
    return Encode(whole, {});
  }
  std::string Piece(Token token, bool) const override { return TokenText(token); }
  std::string Decode(std::span<const Token> tokens, bool, bool) const override {
    std::string text;
    for (const Token token : tokens) text += TokenText(token);
    return text;
  }
  int vocabulary_size() const override { return vocabulary_; }
  const std::string& TokenText(Token token) const override {
    return texts_[static_cast<std::size_t>(token)];
  }
  bool IsControl(Token) const override { return false; }
  bool IsEndOfGeneration(Token) const override { return false; }
  std::vector<Token> end_tokens() const override { return {}; }
  std::optional<Token> bos() const override { return std::nullopt; }
  std::optional<Token> eos() const override { return std::nullopt; }
  bool add_bos() const override { return false; }
  bool add_eos() const override { return false; }
  bool adds_space_prefix() const override { return false; }
  std::string description() const override { return "letters"; }

 private:
  int vocabulary_;
  std::vector<std::string> texts_;
};

// Drafts what the target would choose at temperature 0, but for every wrong_every-th token of a
// draft (0: never), and at most `most` tokens.
class FakeDrafter final : public draft::Drafter {
 public:
  FakeDrafter(const model::FakeRunner& target, int vocabulary)
      : target_(target), vocabulary_(vocabulary) {}

  std::string_view name() const override { return "fake"; }
  bool ReportsLaws() const override { return false; }
  int LikelyTokens() const override { return n_likely; }
  void Begin(const draft::SequenceStart& start) override {
    At(start.seq).assign(start.prompt.begin(), start.prompt.end());
  }
  void Propose(std::span<const draft::Ask> asks,
               std::span<round::Proposal> proposals) noexcept override {
    drafts_.resize(asks.size());
    for (std::size_t i = 0; i < asks.size(); ++i) {
      std::vector<Token> text = At(asks[i].seq);
      const std::size_t before = text.size();
      for (int n = 1; n <= std::min(asks[i].max_tokens, most); ++n) {
        const auto logits = target_.LogitsAfter(text);
        const auto best =
            static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
        const bool wrong = wrong_every > 0 && n % wrong_every == 0;
        text.push_back(wrong ? (best + 1) % vocabulary_ : best);
      }
      drafts_[i].assign(text.begin() + static_cast<std::ptrdiff_t>(before), text.end());
      proposals[i] = {.tokens = drafts_[i], .evidence = evidence};
    }
  }
  void Observe(std::span<const draft::Observation> observations) noexcept override {
    for (const draft::Observation& o : observations) {
      At(o.seq).insert(At(o.seq).end(), o.committed.begin(), o.committed.end());
      n_accepted += o.accepted, n_drafted += o.drafted;
      if (o.likely != nullptr) likely.assign(o.likely, o.likely + o.n_likely);
    }
  }
  void End(SeqId seq) noexcept override { At(seq).clear(); }
  Work TakeWork() noexcept override { return {.not_finite = not_finite}; }

  int wrong_every = 0, most = kMaxDraft, evidence = 0, n_likely = 0, not_finite = 0;
  int n_accepted = 0, n_drafted = 0;  // as it was told
  std::vector<Token> likely;          // of the last observation, at its first token

 private:
  std::vector<Token>& At(SeqId seq) { return texts_[static_cast<std::size_t>(seq)]; }

  const model::FakeRunner& target_;
  int vocabulary_;
  std::vector<Token> texts_[8];
  std::vector<std::vector<Token>> drafts_;
};

struct FakeEngineOptions {
  model::FakeRunnerOptions runner = {.max_rows = 160, .max_logit_rows = 160, .n_blocks = 32};
  int sequences = 2;
  int context = 256;
  int drafts = 4;        // of a round
  bool instant = false;  // the drafter drafts before the lengths are chosen
  int least_drafts = 0;  // of a round that has any
  bool prefix_cache = true;
  std::vector<Token> end_tokens = {};
};

class FakeEngine {
 public:
  using Options = FakeEngineOptions;

  explicit FakeEngine(const Options& o = {})
      : options(OptionsOf(o)),
        tokenizer(o.runner.vocabulary),
        runner(o.runner),
        cache({.n_sequences = o.sequences,
               .max_positions = o.context,
               .n_positions = o.runner.n_blocks * tensor::kKvBlock}) {
    auto made = std::make_unique<FakeDrafter>(runner, o.runner.vocabulary);
    drafter = made.get();
    drafters.Add({.method = "fake",
                  .name = "fake",
                  .full_name = "fake",
                  .file = "fake.gguf",
                  .drafter = std::move(made),
                  .instant = o.instant});
    FORETOKEN_CHECK(drafters.SetDefaults("fake").has_value());
    rules.emplace(options, drafters, Verifiers(options.speculative));
    preparation.emplace(
        RequestLimits{.vocabulary = o.runner.vocabulary,
                      .context = o.context,
                      .most_positions = std::min(o.context, cache.n_blocks() * tensor::kKvBlock)},
        tokenizer, *rules, o.end_tokens);
    const int rows = o.runner.max_rows;
    estimates.emplace(options, rows, drafters.size());
    admission.emplace(
        AdmissionSettings{
            .vocabulary = o.runner.vocabulary, .context = o.context, .end_tokens = o.end_tokens},
        options, tokenizer, kernels, *rules, drafters, cache, [this](SeqId seq, const Sequence& s) {
          if (s.drafts())
            estimates->controller->Begin(seq, {s.least_drafts, s.most_drafts, s.follows_drafts});
        });
    scheduler.emplace(
        SchedulerSettings{
            .max_rows = rows, .max_sequences = o.sequences, .prefix_cache = o.prefix_cache},
        cache, drafters, estimates->costs, estimates->prompt_rows);
    drafting.emplace(o.sequences, drafters, *estimates,
                     [this](std::string what) { notices.push_back(std::move(what)); });
    verification.emplace(o.runner.vocabulary);
    MakeCommit(o);
    accounting.emplace(*estimates, cache, o.runner.max_logit_rows, o.prefix_cache);
    pass.emplace(o.sequences, rows);
  }

  // For drafters that were changed since. REQUIRES: nothing runs.
  void MakeCommit(const Options& o) {
    commit.emplace(CommitSettings{.vocabulary = o.runner.vocabulary,
                                  .max_rows = o.runner.max_rows,
                                  .max_sequences = o.sequences,
                                  .prefix_cache = o.prefix_cache,
                                  .target_path = "fake.gguf"},
                   cache, drafters, kernels);
    commits = commit->MakeCommits();
  }

  Ticket Begin(Request request, OnRound on_round = {}) {
    auto prepared = preparation->Prepare(std::move(request));
    FORETOKEN_CHECK(prepared.has_value());
    return admission->Add(*std::move(prepared), std::move(on_round));
  }

  // A greedy request for n tokens behind a prompt of p tokens, which `first` makes its own.
  static Request Ask(int p, int n, Token first = 1) {
    Request request;
    for (int i = 0; i < p; ++i) request.prompt_tokens.push_back((first + i * 7) % 50);
    request.max_new_tokens = n;
    request.sampling.temperature = 0;
    return request;
  }
  // What plain greedy decoding gives.
  std::vector<Token> Expected(const Request& request) const {
    std::vector<Token> text = request.prompt_tokens;
    for (int i = 0; i < request.max_new_tokens; ++i) {
      const auto logits = runner.LogitsAfter(text);
      text.push_back(
          static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
    return {text.end() - request.max_new_tokens, text.end()};
  }

  const Sequences& sequences() const { return admission->sequences(); }
  Sequence& At(SeqId seq) const { return sequences().At(seq); }

  // The parts of a step, in order.
  const PassPlan& Plan() {
    admission->AdmitWaiting(
        [this](const Job& job) { return scheduler->MayJoin(job, sequences()); });
    scheduler->Plan(sequences(), plan);
    return plan;
  }
  const Proposals& Propose(const DraftWants& wants = {}) {
    drafting->Propose(plan, sequences(), wants, drafts);
    return drafts;
  }
  const Verdicts& Verify() {
    Flatten(plan, drafts, sequences(), cache, *pass);
    kv::Transaction pending(cache, pass->segments);
    result = &runner.Run(pass->View());
    times.passed = std::chrono::steady_clock::now();
    verification->Verify(plan, drafts, *pass, *result, sequences(), verdicts);
    pending.Commit(verdicts.kept);
    return verdicts;
  }
  const Commits& Apply() {
    commit->Apply(plan, drafts, *pass, verdicts, *result, sequences(), commits);
    return commits;
  }
  void Observe() {
    const PassRecord record{plan, drafts, *pass, verdicts, commits, *result, sequences()};
    accounting->Observe(record, times);
    drafting->Observe(record);
    for (std::size_t i = 0; i < plan.size(); ++i)
      if (commits.entries[i].ended)
        admission->Finish(*At(plan.entries[i].seq).job, *commits.entries[i].ended);
  }
  bool Step() {
    if (Plan().empty()) return false;
    Propose(), Verify(), Apply(), Observe();
    return true;
  }
  Completion Run(Request request, OnRound on_round = {}) {
    const Ticket ticket = Begin(std::move(request), std::move(on_round));
    while (Step()) continue;
    return *admission->Take(ticket);
  }

  const EngineOptions options;
  FakeTokenizer tokenizer;
  const kernels::Kernels& kernels = kernels::KernelsFor(kernels::Isa::kScalar);
  model::FakeRunner runner;
  kv::BlockTables cache;
  FakeDrafter* drafter = nullptr;
  DrafterSet drafters;
  std::vector<std::string> notices;
  std::optional<SpeculationRules> rules;
  std::optional<Preparation> preparation;
  std::optional<Estimates> estimates;
  std::optional<Admission> admission;
  std::optional<Scheduler> scheduler;
  std::optional<Drafting> drafting;
  std::optional<Verification> verification;
  std::optional<Commit> commit;
  std::optional<Accounting> accounting;
  PassPlan plan;
  Proposals drafts;
  std::optional<FlatPass> pass;
  Verdicts verdicts;
  Commits commits;
  PassTimes times;
  const model::PassResult* result = nullptr;

 private:
  static EngineOptions OptionsOf(const Options& o) {
    EngineOptions options;
    options.max_sequences = o.sequences;
    options.context_size = o.context;
    options.prefix_cache = o.prefix_cache;
    options.speculative.method = "fake";
    options.speculative.lookahead = "fixed";
    options.speculative.num_speculative_tokens = o.drafts;
    options.speculative.min_speculative_tokens = o.least_drafts;
    return options;
  }
};

}  // namespace foretoken::engine
