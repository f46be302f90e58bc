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

#include "engine/recorder.h"
#include "engine/requests/admission.h"
#include "engine/requests/preparation.h"
#include "engine/step/accounting.h"
#include "engine/step/drafting.h"
#include "engine/step/scheduler.h"
#include "foretoken/drafts.h"
#include "kernels/dispatch.h"
#include "kv/transaction.h"
#include "loader/drafts/fake_drafter_testing.h"
#include "model/fake_runner_testing.h"
#include "text/fake_tokenizer_testing.h"

namespace foretoken::engine {

// A greedy request for n tokens behind a prompt of p tokens, which `first` makes its own.
inline Request Ask(int p, int n, Token first = 1) {
  Request request;
  for (int i = 0; i < p; ++i) request.prompt_tokens.push_back((first + i * 7) % 50);
  request.max_new_tokens = n;
  request.sampling.temperature = 0;
  return request;
}

struct FakeEngineOptions {
  model::FakeRunnerOptions runner = {.max_rows = 160, .max_logit_rows = 160, .n_blocks = 32};
  int sequences = 2;
  int context = 256;
  int drafts = 4;  // of a round
  std::string controller = "fixed";
  bool instant = false;          // the drafter drafts before the lengths are chosen
  int least_drafts = 0;          // of a round that has any
  int mixed_drafts = kMaxDraft;  // in a pass that also reads a prompt
  std::vector<int> widths = {};  // that cost-model chooses among
  bool prefix_cache = true;
  std::vector<Token> end_tokens = {};
  std::string record = {};  // path of a trace; empty: none
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
    auto made = std::make_unique<loader::FakeDrafter>(runner, o.runner.vocabulary);
    drafter = made.get();
    drafters.Add({.method = "fake",
                  .name = "fake",
                  .full_name = "fake",
                  .file = "fake.gguf",
                  .drafter = std::move(made),
                  .instant = o.instant});
    FORETOKEN_CHECK(drafters.SetDefaults("fake").has_value());
    rules.emplace(options, drafters, verify::Verifiers(options.speculative));
    preparation.emplace(
        RequestLimits{.vocabulary = o.runner.vocabulary,
                      .context = o.context,
                      .most_positions = std::min(o.context, cache.n_blocks() * tensor::kKvBlock),
                      .records = !o.record.empty()},
        tokenizer, *rules, o.end_tokens);
    const int rows = o.runner.max_rows;
    estimates.emplace(options, rows, drafters.size());
    recorder.emplace(options, drafters);
    record_status = recorder->Open(EngineSummary{}, o.runner.vocabulary);
    admission.emplace(
        AdmissionSettings{.vocabulary = o.runner.vocabulary,
                          .dim = o.runner.dim,
                          .context = o.context,
                          .end_tokens = o.end_tokens},
        options, tokenizer, kernels, *rules, drafters, cache, [this](SeqId seq, const Sequence& s) {
          if (s.drafts())
            estimates->controller->Begin(seq, {s.least_drafts, s.most_drafts, s.follows_drafts});
          recorder->Begin(seq, s, s.completion.controller);
        });
    scheduler.emplace(SchedulerSettings{.max_rows = rows,
                                        .max_sequences = o.sequences,
                                        .most_mixed_drafts = o.mixed_drafts,
                                        .prefix_cache = o.prefix_cache},
                      cache, drafters, estimates->costs, estimates->prompt_rows);
    drafting.emplace(o.sequences, drafters, *estimates,
                     [this](std::string what) { notices.push_back(std::move(what)); });
    verification.emplace(o.runner.vocabulary);
    MakeCommit(o);
    accounting.emplace(*estimates, cache, drafters, o.runner.max_logit_rows, o.prefix_cache);
    pass.emplace(o.sequences, rows);
    pass->chooses = o.runner.chooses && o.record.empty();
  }

  // For drafters that were changed since. REQUIRES: nothing runs.
  void MakeCommit(const Options& o) {
    commit.emplace(CommitSettings{.vocabulary = o.runner.vocabulary,
                                  .dim = o.runner.dim,
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
    recorder->ReadDistributions(plan, drafts, *pass, *result, sequences());
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
    recorder->Add(record, times);
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
  text::FakeTokenizer tokenizer;
  const kernels::Kernels& kernels = kernels::KernelsFor(kernels::Isa::kScalar);
  model::FakeRunner runner;
  kv::BlockTables cache;
  loader::FakeDrafter* drafter = nullptr;
  loader::DrafterSet drafters;
  std::vector<std::string> notices;
  std::optional<SpeculationRules> rules;
  std::optional<Preparation> preparation;
  std::optional<Estimates> estimates;
  std::optional<Recorder> recorder;
  Status record_status;
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
    options.record = o.record;
    options.speculative.method = "fake";
    options.speculative.controller = o.controller;
    options.speculative.num_speculative_tokens = o.drafts;
    options.speculative.min_speculative_tokens = o.least_drafts;
    options.speculative.adaptive_speculative_widths = o.widths;
    return options;
  }
};

}  // namespace foretoken::engine
