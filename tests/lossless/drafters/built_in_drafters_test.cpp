// SPDX-License-Identifier: Apache-2.0
// foretoken's drafters as objects for programs: outside an engine they draft what the engine's own
// draft, bit for bit, and inside one they serve as a program's own drafter.
#include "foretoken/built_in_drafters.h"

#include <gtest/gtest.h>

#include "foretoken/draft_session.h"
#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

std::shared_ptr<ModelDrafter> OpenedDrafter(ModelDrafterOptions options = {}) {
  options.threads = 1;
  return Got(OpenDrafter(Pair().draft, options));
}
std::unique_ptr<DraftSession> SessionOf(std::shared_ptr<Drafter> drafter, int vocabulary = 0) {
  return Got(DraftSession::Create(std::move(drafter), vocabulary));
}
Drafts Proposed(DraftSession& session, int k, bool distributions = false) {
  return Got(session.Propose(k, {.distributions = distributions}));
}

// The drafts of the engine's drafter and of the session for one request.
struct Compared {
  int rounds = 0, drafts = 0, uncertain = 0, rejected = 0;
};

// Steps an engine's request and, beside it, a session with the same text.
Compared Compare(const EngineOptions& options, const Request& request,
                 std::shared_ptr<Drafter> drafter) {
  Compared seen;
  const auto decoder = MakeDecoder(options);
  const auto session = SessionOf(std::move(drafter), 320);
  const auto first = decoder->Begin(request);
  EXPECT_TRUE(first) << first.error().message;
  const bool shares = decoder->completion().strategy == "sample-match";
  EXPECT_TRUE(
      session->Begin({.prompt = decoder->completion().prompt_token_ids,
                      .max_new_tokens = request.max_new_tokens,
                      .min_new_tokens = request.min_new_tokens,
                      .sampling = request.speculative.draft_sampling.value_or(request.sampling),
                      .draft_p_min = request.speculative.draft_p_min.value_or(0),
                      .seed = request.seed,
                      .id = request.id,
                      .shares_noise = shares}));
  EXPECT_TRUE(session->Observe(first->tokens));
  const int k = *request.speculative.num_speculative_tokens;
  while (!decoder->done()) {
    const auto want = *decoder->Draft();
    const int left =
        request.max_new_tokens - static_cast<int>(decoder->completion().token_ids.size()) - 1;
    const Drafts got = Proposed(*session, std::min(k, left));
    const std::vector<std::int32_t> tokens(want.tokens.begin(), want.tokens.end());
    EXPECT_EQ(got.tokens, tokens);
    EXPECT_TRUE(SameBits(got.probabilities, want.probabilities));
    for (const float p : got.probabilities) seen.uncertain += p < 1;
    const auto round = decoder->Verify();
    EXPECT_TRUE(round);
    ++seen.rounds, seen.drafts += round->drafted, seen.rejected += round->drafted - round->accepted;
    EXPECT_TRUE(session->Observe(round->tokens));
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_TRUE(session->notices().empty());
  return seen;
}

TEST(BuiltInDrafters, ADraftModelDraftsWhatTheEnginesOwnDoes) {
  for (const VerifyStrategy strategy : {VerifyStrategy::kSampleMatch, VerifyStrategy::kResidual})
    for (const float temperature : {0.0f, 0.8f})
      for (const bool filtered : {false, true}) {
        Request request = Ask(60, temperature, 11);
        request.id = 3;
        if (temperature > 0) request.speculative.strategy = strategy;
        if (filtered) {
          request.sampling.top_k = 12;
          request.sampling.repetition_penalty = 1.3f;
          request.sampling.logit_bias = {{60, 2.0f}};
          request.speculative.draft_p_min = 0.1f;
        }
        const Compared seen = Compare(PairOptions(), request, OpenedDrafter());
        EXPECT_GT(seen.drafts, 20);
        EXPECT_GT(seen.rejected, 0);
        EXPECT_EQ(seen.uncertain > 20, temperature > 0);
        if (HasFailure()) return;
      }
}

TEST(BuiltInDrafters, ADraftModelsOwnSamplingParametersAreTheRequests) {
  SamplingParameters own;
  own.temperature = 0.4f;
  own.top_p = 0.9f;
  Request request = Ask(60, 0.9f, 5);
  request.speculative.draft_sampling = own;
  EXPECT_GT(Compare(PairOptions(), request, OpenedDrafter()).uncertain, 20);
  // These parameters, given to the drafter: it uses them whatever the request says.
  const auto by_request = SessionOf(OpenedDrafter()),
             by_drafter = SessionOf(OpenedDrafter({.sampling = own}));
  ASSERT_TRUE(by_request->Begin({.prompt = {1, 60, 61}, .sampling = own, .seed = 4}));
  ASSERT_TRUE(by_drafter->Begin({.prompt = {1, 60, 61}, .seed = 4}));
  const Drafts want = Proposed(*by_request, 8, true), got = Proposed(*by_drafter, 8, true);
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_TRUE(SameBits(got.distributions, want.distributions));
}

TEST(BuiltInDrafters, LookupsDraftWhatTheEnginesOwnDo) {
  for (const char* method : {"ngram", "suffix"}) {
    EngineOptions options = OptionsOfMethod(method);
    const auto drafter =
        Got(method == std::string("ngram") ? MakeNgramDrafter() : MakeSuffixDrafter());
    Request request = Ask(40, 0.2f, 2);
    request.prompt = "once upon a time once upon a time once upon a";
    request.sampling.logit_bias = {{60, 9.0f}, {61, 9.0f}};  // a text that repeats itself
    EXPECT_GT(Compare(options, request, drafter).drafts, 20) << method;
  }
}

TEST(BuiltInDrafters, ReportTheDistributionOfEachDraft) {
  const auto session = SessionOf(OpenedDrafter());
  ASSERT_TRUE(session->Begin({.prompt = {1, 60, 61}, .seed = 4}));
  const Drafts drafts = Proposed(*session, 5, true);
  ASSERT_EQ(drafts.tokens.size(), 5u);
  ASSERT_EQ(drafts.distributions.size(), 5u * 320u);
  for (std::size_t i = 0; i < 5; ++i) {
    double sum = 0;
    for (std::size_t x = 0; x < 320; ++x)
      sum += static_cast<double>(drafts.distributions[i * 320 + x]);
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_EQ(drafts.distributions[i * 320 + static_cast<std::size_t>(drafts.tokens[i])],
              drafts.probabilities[i]);
  }
  // Nothing was observed: the same drafts again.
  EXPECT_EQ(Proposed(*session, 5).tokens, drafts.tokens);
}

// A window of 8 positions leaves out the second block of 32 and later ones, which the text goes past.
// The engine's own leaves out the middle of a text that has 64 tokens more than the window, where no text depends
// on that; the texts at temperature 0 are shorter.
TEST(BuiltInDrafters, AWindowIsThatOfTheEnginesOwnDraftModel) {
  for (const float temperature : {0.0f, 0.8f}) {
    EngineOptions options = PairOptions();
    options.speculative.draft_window = 8;
    const Request request = Ask(temperature > 0 ? 70 : 35, temperature, 11);
    EXPECT_GT(Compare(options, request, OpenedDrafter({.draft_window = 8})).drafts, 20);
  }
  const std::vector<std::int32_t> text(80, 60);
  const auto distributions = [&](int window) {
    const auto session = SessionOf(OpenedDrafter({.draft_window = window}));
    EXPECT_TRUE(session->Begin({.prompt = text, .sampling = {.temperature = 1}, .seed = 4}));
    return Proposed(*session, 4, true).distributions;
  };
  EXPECT_FALSE(SameBits(distributions(8), distributions(0)));
  EXPECT_TRUE(SameBits(distributions(96), distributions(0)));
}

// A proposal reads at most 512 tokens of a text; a session continues until there are drafts.
TEST(BuiltInDrafters, ALongTextIsReadToItsEnd) {
  const std::string path =
      fixtures::WriteTinyModel(fixtures::TemporaryFolder(), {.seed = 51, .context_length = 1400});
  const auto session = SessionOf(Got(OpenDrafter(path, {.threads = 1})));
  std::vector<std::int32_t> text = {1};
  for (int i = 0; i < 1300; ++i) text.push_back(60 + i * 7 % 200);
  ASSERT_TRUE(session->Begin({.prompt = text, .seed = 2}));
  EXPECT_EQ(Proposed(*session, 4).tokens.size(), 4u);
}

// After a text that replaces another, drafts are the same as if it had been there from the start,
// and only the part that differs is read.
TEST(BuiltInDrafters, ADivergingTextRollsTheCacheBack) {
  std::vector<std::int32_t> text = {1};
  for (int i = 0; i < 60; ++i) text.push_back(60 + i * 7 % 200);
  const auto session = SessionOf(OpenedDrafter());
  const auto drafts_of = [](DraftSession& from, const std::vector<std::int32_t>& prompt) {
    EXPECT_TRUE(from.Begin({.prompt = prompt, .max_new_tokens = 20, .seed = 9}));
    return Proposed(from, 6, true);
  };
  const auto check = [&](const std::vector<std::int32_t>& prompt, int most_read) {
    session->TakeWork();
    const Drafts got = drafts_of(*session, prompt);
    EXPECT_LE(session->TakeWork().read_tokens, most_read);
    const auto fresh = SessionOf(OpenedDrafter());
    const Drafts want = drafts_of(*fresh, prompt);
    EXPECT_EQ(got.tokens, want.tokens);
    EXPECT_TRUE(SameBits(got.distributions, want.distributions));
    EXPECT_GT(fresh->TakeWork().read_tokens, most_read);
  };
  drafts_of(*session, text);
  auto other = text;
  other[50] = 33;
  check(other, 11);  // 50 of 61 tokens are known
  other.resize(40);
  check(other, 2);  // a shorter one
  other.resize(52, 44);
  check(other, 13);
  // Observed tokens that differ from the drafts.
  const Drafts drafts = Proposed(*session, 6);
  const std::vector<std::int32_t> instead = {drafts.tokens[0], (drafts.tokens[1] + 1) % 320, 5};
  ASSERT_TRUE(session->Observe(instead));
  other.insert(other.end(), instead.begin(), instead.end());
  EXPECT_EQ(std::vector<std::int32_t>(session->text().begin(), session->text().end()), other);
  session->TakeWork();
  const Drafts after = Proposed(*session, 6, true);
  EXPECT_LE(session->TakeWork().read_tokens, 3);
  const auto fresh = SessionOf(OpenedDrafter());
  ASSERT_TRUE(fresh->Begin({.prompt = other, .max_new_tokens = 20, .seed = 9}));
  const Drafts want = Proposed(*fresh, 6, true);
  EXPECT_EQ(after.tokens, want.tokens);
  EXPECT_TRUE(SameBits(after.distributions, want.distributions));
  // All of the drafts and nothing else; some of them and nothing else.
  for (const std::size_t n : {std::size_t{6}, std::size_t{2}}) {
    const Drafts more = Proposed(*session, 6);
    ASSERT_GE(more.tokens.size(), n);
    ASSERT_TRUE(session->Observe(std::span(more.tokens).first(n)));
    other.insert(other.end(), more.tokens.begin(), more.tokens.begin() + static_cast<long>(n));
    ASSERT_TRUE(fresh->Begin({.prompt = other, .max_new_tokens = 20, .seed = 9}));
    EXPECT_TRUE(SameBits(Proposed(*session, 4, true).distributions,
                         Proposed(*fresh, 4, true).distributions))
        << n;
  }
}

// Two texts that are drafted in turn with one drafter: each gets the drafts that it gets alone.
TEST(BuiltInDrafters, TwoSessionsOfOneDrafterKeepTheirTextsApart) {
  const std::vector<std::vector<std::int32_t>> prompts = {{1, 60, 61, 62}, {1, 90, 70, 90, 70, 90}};
  const auto shared = OpenedDrafter({.max_sequences = 2});
  const auto lookup = *MakeNgramDrafter({.max_sequences = 2}), other = *MakeNgramDrafter(),
             third = *MakeNgramDrafter();
  const std::vector<std::vector<std::shared_ptr<Drafter>>> drafters = {
      {shared, shared, OpenedDrafter(), OpenedDrafter()}, {lookup, lookup, other, third}};
  for (const auto& four : drafters) {
    std::vector<std::unique_ptr<DraftSession>> sessions;
    for (const auto& drafter : four) sessions.push_back(SessionOf(drafter, 320));
    for (std::size_t i = 0; i < 4; ++i)
      ASSERT_TRUE(sessions[i]->Begin({.prompt = prompts[i % 2], .max_new_tokens = 40, .seed = 3}));
    int drafted = 0;
    for (int round = 0; round < 6; ++round)
      for (std::size_t i = 0; i < 2; ++i) {
        const Drafts got = Proposed(*sessions[i], 4, true),
                     want = Proposed(*sessions[i + 2], 4, true);
        EXPECT_EQ(got.tokens, want.tokens) << round << " " << i;
        EXPECT_TRUE(SameBits(got.distributions, want.distributions));
        EXPECT_EQ(sessions[i]->TakeWork().read_tokens, sessions[i + 2]->TakeWork().read_tokens);
        drafted += static_cast<int>(got.tokens.size());
        std::vector<std::int32_t> committed = got.tokens;
        committed.resize(committed.size() / 2);
        committed.push_back(90 + round % 2 * -20);
        for (const std::size_t j : {i, i + 2}) ASSERT_TRUE(sessions[j]->Observe(committed));
      }
    EXPECT_GT(drafted, 10);
  }
}

TEST(BuiltInDrafters, ASessionWithoutASequenceIsRefused) {
  const auto drafter = OpenedDrafter();
  const auto first = SessionOf(drafter), second = SessionOf(drafter);
  ASSERT_TRUE(first->Begin({.prompt = {1, 60}, .seed = 1}));
  const Drafts want = Proposed(*first, 4);
  EXPECT_EQ(
      MessageOf(second->Begin({.prompt = {1, 99}})),
      "drafter 'draft-file': it drafts for 1 text(s) at a time, and other sessions have begun "
      "as many; end one, or make it for more (max_sequences)");
  EXPECT_FALSE(second->Propose(4));
  EXPECT_EQ(Proposed(*first, 4).tokens, want.tokens);
  ASSERT_TRUE(first->Begin({.prompt = {1, 61}}));  // its own sequence
  EngineOptions options = TargetOptions();
  options.drafter = drafter;
  EXPECT_TRUE(Begins(MessageOf(Engine::Open(options)),
                     "drafter 'draft-file': another engine, or a session"));
  first->End();
  {
    const auto opened = OpenEngine(options);
    EXPECT_FALSE(first->Begin({.prompt = {1, 60}}));
    EXPECT_FALSE(Engine::Open(options));
  }
  EXPECT_TRUE(second->Begin({.prompt = {1, 99}}));
}

// Sessions that draft together share the passes, and each gets what it gets alone.
TEST(BuiltInDrafters, SessionsDraftTogetherInSharedPasses) {
  const auto drafter = OpenedDrafter({.max_sequences = 3});
  std::vector<std::unique_ptr<DraftSession>> sessions, alone;
  std::vector<DraftSession*> batch;
  for (std::uint64_t i = 0; i < 3; ++i) {
    sessions.push_back(SessionOf(drafter)), alone.push_back(SessionOf(OpenedDrafter()));
    SessionText request{.prompt = std::vector<std::int32_t>(5 + 9 * i, 60), .seed = i};
    request.prompt.push_back(70 + static_cast<std::int32_t>(i));
    request.sampling.temperature = i == 1 ? 0.0f : 0.9f;
    ASSERT_TRUE(sessions.back()->Begin(request) && alone.back()->Begin(request));
    batch.push_back(sessions.back().get());
  }
  for (int round = 0; round < 4; ++round) {
    const auto drafts =
        Got(DraftSession::ProposeAll(batch, 4, {.distributions = true, .logits = true}));
    const auto forwards = sessions[0]->TakeWork().forwards;
    EXPECT_LE(forwards, round == 0 ? 5 : 4);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto want = Got(alone[i]->Propose(4, {.distributions = true, .logits = true}));
      EXPECT_EQ(drafts[i].tokens, want.tokens);
      EXPECT_TRUE(SameBits(drafts[i].distributions, want.distributions));
      EXPECT_EQ(drafts[i].logits.size(), want.tokens.size() * 320);
      EXPECT_TRUE(SameBits(drafts[i].logits, want.logits));
      const auto committed = std::span(want.tokens).first(3);
      ASSERT_TRUE(sessions[i]->Observe(committed) && alone[i]->Observe(committed));
    }
  }
  std::vector<DraftSession*> bad = {batch[0], batch[0]};
  EXPECT_FALSE(DraftSession::ProposeAll(bad, 4));
  bad[1] = alone[0].get();
  EXPECT_FALSE(DraftSession::ProposeAll(bad, 4));
  EXPECT_TRUE(DraftSession::ProposeAll({}, 4)->empty());
}

// The logits of a session are those that the engine's drafter has.
TEST(BuiltInDrafters, SessionsShowTheLogitsOfTheModel) {
  for (const float temperature : {0.0f, 0.9f}) {
    const auto decoder = MakeDecoder(PairOptions());
    const Request request = Ask(20, temperature, 3);
    const auto first = decoder->Begin(request);
    const auto session = SessionOf(OpenedDrafter());
    ASSERT_TRUE(session->Begin({.prompt = decoder->completion().prompt_token_ids,
                                .sampling = request.sampling,
                                .seed = 3,
                                .shares_noise = false}));
    ASSERT_TRUE(session->Observe(first->tokens));
    const auto want = decoder->Draft({.logits = true});
    const auto got = Got(session->Propose(static_cast<int>(want->tokens.size()), {.logits = true}));
    ASSERT_EQ(got.logits.size(), 4u * 320u);
    for (int i = 0; i < 4; ++i)
      EXPECT_TRUE(SameBits(std::span(got.logits).subspan(static_cast<std::size_t>(i) * 320, 320),
                           want->logits.Row(i)));
    EXPECT_TRUE(Proposed(*session, 4).logits.empty());
  }
  const auto lookup = SessionOf(*MakeNgramDrafter(), 320);
  ASSERT_TRUE(lookup->Begin({.prompt = {1, 2, 3, 1, 2}}));
  EXPECT_TRUE(lookup->Propose(2, {.logits = true})->logits.empty());
}

TEST(BuiltInDrafters, SummariesHaveTheEndTokens) {
  const std::vector<std::int32_t> want = {2};
  EXPECT_EQ(OpenedDrafter()->summary().end_tokens, want);
  EXPECT_EQ(OpenEngine(PairOptions())->summary().target.end_tokens, want);
  EngineOptions options = PairOptions();
  options.end_tokens = {70, 71};
  EXPECT_EQ(OpenEngine(options)->summary().target.end_tokens, options.end_tokens);
}

// That object in an engine: the text is the target's, and the drafts are those of the engine's
// own draft model, in a batch too.
TEST(BuiltInDrafters, ServeAnEngineAsItsOwnDraftModelDoes) {
  for (const int n : {1, 3}) {
    std::vector<Request> requests;
    for (int i = 0; i < 6; ++i)
      requests.push_back(Ask(40, i % 2 == 0 ? 0.8f : 0.0f, static_cast<std::uint64_t>(i)));
    requests[2].sampling.grammar = "root ::= [a-z ]+";
    requests[4].min_new_tokens = 20, requests[4].ignore_eos = false;
    requests[5].speculative.draft_p_min = 0.2f;
    const auto want = GeneratedTogether(*OpenEngine(PairOptions(n)), requests);
    EngineOptions options = TargetOptions(n);
    options.drafter = OpenedDrafter({.name = "mine", .max_sequences = n});
    const auto engine = OpenEngine(options);
    EXPECT_EQ(engine->summary().method, "mine");
    const auto got = GeneratedTogether(*engine, requests);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].token_ids, want[i].token_ids) << i;
      EXPECT_EQ(got[i].speculation.drafted, want[i].speculation.drafted) << i;
      EXPECT_EQ(got[i].speculation.accepted, want[i].speculation.accepted) << i;
      EXPECT_EQ(got[i].speculation.draft_forwards, want[i].speculation.draft_forwards) << i;
    }
    EXPECT_TRUE(engine->summary().notices.empty());
  }
}

// A drafter with the target's own file has the target's distributions: under sample-match, which
// the default controller uses, every draft is the target's own token.
TEST(BuiltInDrafters, TheTargetItselfIsAcceptedWhole) {
  for (const char* controller : {"cost-model", "batch-size"}) {
    EngineOptions options = TargetOptions();
    options.speculative.controller = controller;
    if (controller == std::string("batch-size"))
      options.speculative.num_speculative_tokens_per_batch_size = {{1, 8, 4}};
    options.drafter = Got(OpenDrafter(Pair().target, {.threads = 1}));
    const auto engine = OpenEngine(options);
    std::int64_t drafted = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Request request = Ask(60, 0.9f, seed);
      request.sampling.top_p = 0.95f;
      const auto got = Generated(*engine, request);
      EXPECT_EQ(got.speculation.accepted, got.speculation.drafted);
      EXPECT_EQ(got.strategy, "sample-match");
      drafted += got.speculation.drafted;
    }
    if (controller == std::string("batch-size")) EXPECT_GT(drafted, 300);
  }
}

// One of foretoken's drafters inside a program's own drafter.
class Cautious final : public Drafter {
 public:
  explicit Cautious(std::shared_ptr<Drafter> inner) : inner_(std::move(inner)) {}
  std::string_view name() const override { return "cautious"; }
  bool ReportsDistributions() const override { return inner_->ReportsDistributions(); }
  DrafterLimits limits() const override { return inner_->limits(); }
  void Begin(const DrafterText& request) override { inner_->Begin(request); }
  void Propose(int sequence, DraftProposal& proposal) override {
    inner_->Propose(sequence, proposal);
    ++calls;
  }
  void Observe(const DrafterRound& round) override { inner_->Observe(round); }
  void End(int sequence) override { inner_->End(sequence); }
  int calls = 0;

 private:
  std::shared_ptr<Drafter> inner_;
};

TEST(BuiltInDrafters, MayLieInsideADrafterOfTheProgram) {
  EngineOptions options = PairOptions();
  const auto want = Generated(*OpenEngine(options), Ask(40, 0.8f, 3));
  options.draft_model.clear();
  const auto outer = std::make_shared<Cautious>(OpenedDrafter());
  options.drafter = outer;
  const auto got = Generated(*OpenEngine(options), Ask(40, 0.8f, 3));
  EXPECT_EQ(got.token_ids, want.token_ids);
  EXPECT_EQ(got.speculation.accepted, want.speculation.accepted);
  EXPECT_GT(outer->calls, 5);
}

TEST(BuiltInDrafters, ErrorsSayWhatIsWrong) {
  const std::string folder = fixtures::TemporaryFolder();
  EXPECT_TRUE(Fails(OpenDrafter(folder + "/absent.gguf"), folder + "/absent.gguf"));
  const std::string head = fixtures::WriteTinyHead(folder, {.target = {.seed = 51}, .eagle = true});
  EXPECT_EQ(MessageOf(OpenDrafter(head)),
            head +
                ": this is an EAGLE-3 head, which drafts from a target's hidden states; give it "
                "to an engine as its draft model");
  EXPECT_TRUE(Fails(OpenDrafter(Pair().draft, {.context_size = -1}), "context size: -1"));
  EXPECT_TRUE(Fails(OpenDrafter(Pair().draft, {.draft_window = -1}), "draft_window: -1"));
  EXPECT_FALSE(MakeNgramDrafter({.ngram_max = 2, .ngram_min = 3}));
  EXPECT_FALSE(MakeSuffixDrafter({.max_sequences = 0}));

  EngineOptions options = TargetOptions(2);
  options.drafter = OpenedDrafter();
  EXPECT_EQ(MessageOf(Engine::Open(options)),
            "drafter 'draft-file': it drafts for 1 text(s) at a time, and the engine runs 2; make "
            "it for as many");
  options.max_sequences = 1;
  options.drafter = *OpenDrafter(fixtures::WriteTinyModel(folder, {.seed = 4, .vocab = 330}), {});
  EXPECT_TRUE(Fails(Engine::Open(options), ErrorCode::kMismatch));

  const auto session = SessionOf(OpenedDrafter());
  EXPECT_FALSE(session->Propose(4));
  EXPECT_FALSE(session->Observe({}));
  EXPECT_FALSE(session->Begin({}));
  EXPECT_FALSE(session->Begin({.prompt = {400}}));
  EXPECT_FALSE(session->Begin({.prompt = {1}, .sampling = {.temperature = -1}}));
  ASSERT_TRUE(session->Begin({.prompt = {1}, .max_new_tokens = 2}));
  EXPECT_FALSE(session->Propose(65));
  EXPECT_EQ(Proposed(*session, 9).tokens.size(), 2u);  // the text has room for no more
  EXPECT_FALSE(session->Observe(std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_TRUE(session->Observe(std::vector<std::int32_t>{1, 2}));
  EXPECT_TRUE(Proposed(*session, 4).tokens.empty());
  EXPECT_FALSE(DraftSession::Create(nullptr));
  EXPECT_FALSE(DraftSession::Create(OpenedDrafter(), 330));
  const auto lookup = SessionOf(*MakeNgramDrafter());
  ASSERT_TRUE(lookup->Begin({.prompt = {1, 2, 3, 1, 2}}));
  EXPECT_EQ(Proposed(*lookup, 2).tokens, (std::vector<std::int32_t>{3, 1}));
  EXPECT_FALSE(lookup->Propose(2, {.distributions = true}));
}

}  // namespace
}  // namespace foretoken
