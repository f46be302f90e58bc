// SPDX-License-Identifier: Apache-2.0
#include "foretoken/speculative_pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

using Pipeline = StandaloneSpeculativeDecodingPipeline;
using Batches = std::vector<TextGenerationBatch>;

std::unique_ptr<Pipeline> Make(int max_sequences) {
  return Got(Pipeline::Create(PairOptions(max_sequences)));
}

// Requests of every kind: lengths, draft lengths, seeds, temperatures, stops.
TextGenerationBatch MixedBatch() {
  TextGenerationBatch requests;
  requests["greedy"] = Ask(40, 0, 0, 4);
  requests["plain"] = Ask(25, 0.8f, 1, 0);
  requests["long"] = Ask(30, 0.8f, 2, 8);
  requests["short"] = Ask(7, 1.0f, 3, 1);
  requests["other seed"] = Ask(30, 0.8f, 4, 8);
  requests["stops"] = Ask(40, 0, 0, 3);
  const auto plain = Generated(*OpenEngine(PairOptions()), Ask(40, 0, 0, 0));
  requests["stops"].stop = {plain.text.substr(plain.text.size() / 2, 3)};
  requests["ends"] = Ask(40, 0, 0, 5);
  requests["ends"].stop_token_ids = {plain.token_ids[11]};
  requests["longer prompt"] = Ask(20, 0.8f, 5, 2);
  requests["longer prompt"].prompt = "the old king told a tale of the river and the sea";
  return requests;
}

std::map<std::string, Completion> AloneInPipeline(const TextGenerationBatch& requests) {
  const auto engine = OpenEngine(PairOptions());
  std::map<std::string, Completion> completions;
  for (const auto& [id, request] : requests) completions[id] = Generated(*engine, request);
  return completions;
}

// The collected results of steps.
struct Collected {
  std::map<std::string, TextGenerationOutput> all;
  void Add(const Result<std::map<std::string, TextGenerationOutput>>& outputs) {
    ASSERT_TRUE(outputs) << outputs.error().message;
    for (const auto& [id, output] : *outputs) {
      TextGenerationOutput& sum = all[id];
      sum.tokens.insert(sum.tokens.end(), output.tokens.begin(), output.tokens.end());
      sum.text += output.text;
      sum.done = output.done;
      sum.finish_reason = output.finish_reason;
    }
  }
  bool done(const std::string& id) const { return all.contains(id) && all.at(id).done; }
  void ExpectTexts(const std::map<std::string, Completion>& want) const {
    ASSERT_EQ(all.size(), want.size());
    for (const auto& [id, completion] : want) {
      EXPECT_EQ(all.at(id).tokens, completion.token_ids) << id;
      EXPECT_EQ(all.at(id).text, completion.text) << id;
      EXPECT_EQ(all.at(id).finish_reason, completion.finish_reason) << id;
    }
  }
};

// Distributes requests over three replicas, without those that are done.
Batches Split(const TextGenerationBatch& requests, const Collected& collected) {
  Batches replicas(3);
  std::size_t next = 0;
  for (const auto& [id, request] : requests)
    if (!collected.done(id)) replicas[next++ % 3][id] = request;
  return replicas;
}
bool Empty(const Batches& replicas) {
  return std::all_of(replicas.begin(), replicas.end(), [](const auto& b) { return b.empty(); });
}

TEST(SpeculativePipeline, FlattenedReplicasGiveTheTextOfEachRequestAlone) {
  const auto requests = MixedBatch();
  const auto want = AloneInPipeline(requests);
  const auto pipeline = Make(static_cast<int>(requests.size()));
  Collected collected;
  for (Batches step = Split(requests, collected); !Empty(step); step = Split(requests, collected))
    collected.Add(pipeline->Execute(step));
  collected.ExpectTexts(want);
  std::int64_t drafted = 0;
  for (const auto& [id, completion] : want) {
    const Completion released = Got(pipeline->Release(id));
    EXPECT_EQ(released.text, completion.text);
    EXPECT_EQ(released.finish_reason, completion.finish_reason);
    EXPECT_EQ(released.speculation.drafted, completion.speculation.drafted) << id;
    drafted += completion.speculation.drafted;
  }
  EXPECT_GT(drafted, 0);
}

// Each request takes part only in every second or third step.
TEST(SpeculativePipeline, RequestsThatRestGoOnAsIfTheyHadNot) {
  const auto requests = MixedBatch();
  const auto want = AloneInPipeline(requests);
  const auto pipeline = Make(static_cast<int>(requests.size()));
  Collected collected;
  std::map<std::string, std::size_t> before;
  for (int step = 0; step < 400; ++step) {
    Batches replicas(2);
    int number = 0;
    bool open = false;
    for (const auto& [id, request] : requests) {
      ++number;
      if (collected.done(id)) continue;
      open = true;
      if ((step + number) % (2 + number % 2) == 0)
        replicas[static_cast<std::size_t>(number % 2)][id] = request;
    }
    if (!open) break;
    for (const auto& [id, output] : collected.all) before[id] = output.tokens.size();
    collected.Add(pipeline->Execute(replicas));
    for (const auto& [id, n] : before) {
      const bool rests = !replicas[0].contains(id) && !replicas[1].contains(id);
      if (rests) {
        ASSERT_EQ(collected.all[id].tokens.size(), n) << id;
      }
    }
  }
  collected.ExpectTexts(want);
}

TEST(SpeculativePipeline, TheHalvesAreExecute) {
  const auto requests = MixedBatch();
  const auto whole = Make(8), halves = Make(8);
  Collected a, b;
  for (Batches step = Split(requests, a); !Empty(step); step = Split(requests, a)) {
    a.Add(whole->Execute(step));
    ASSERT_TRUE(halves->PrepareBatch(step));
    const auto drafts = Got(halves->GenerateDraftTokens());
    b.Add(halves->VerifyDraftTokensWithTargetModel());
    for (const auto& [id, output] : a.all) ASSERT_EQ(output.tokens, b.all[id].tokens) << id;
  }
  const auto x = whole->SpecDecodeMetrics(), y = halves->SpecDecodeMetrics();
  EXPECT_EQ(x.drafted, y.drafted);
  EXPECT_EQ(x.accepted_per_position, y.accepted_per_position);
}

std::vector<std::int32_t> Row(const RaggedBatch& batch, std::size_t i) {
  return {batch.tokens.begin() + batch.row_offsets[i],
          batch.tokens.begin() + batch.row_offsets[i + 1]};
}

// Together, each model has read what was prepared for it: the text except its last token.
TEST(SpeculativePipeline, PreparesWhatTheNextPassReads) {
  const auto pipeline = Make(2);
  Batches replicas = {{{"a", Ask(30, 0, 0, 4)}}, {{"b", Ask(30, 0.9f, 1, 2)}}};
  replicas[1]["b"].prompt = "the old king";
  std::map<std::string, std::vector<std::int32_t>> text, target, draft;
  for (const auto& batch : replicas)
    for (const auto& [id, request] : batch)
      text[id] = pipeline->engine().Tokenize(request.prompt, true, false);
  Collected collected;
  bool more_than_one = false;
  for (int step = 0; step < 6; ++step) {
    const auto before = Got(pipeline->PrepareBatch(replicas));
    for (const RaggedBatch* batch : {&before.target, &before.draft}) {
      ASSERT_EQ(batch->request_ids, (std::vector<std::string>{"a", "b"}));
      ASSERT_EQ(batch->row_offsets.size(), 3u);
      ASSERT_EQ(batch->row_offsets.front(), 0);
      ASSERT_EQ(batch->row_offsets.back(), static_cast<int>(batch->tokens.size()));
    }
    const auto drafts = Got(pipeline->GenerateDraftTokens());
    const auto after = Got(pipeline->PrepareBatch(replicas));
    EXPECT_TRUE(after.draft.tokens.empty());
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string id = before.target.request_ids[i];
      auto row = Row(before.target, i);
      const auto fed = static_cast<std::ptrdiff_t>(row.size());
      ASSERT_EQ(row, std::vector<std::int32_t>(text[id].end() - fed, text[id].end())) << id;
      target[id].insert(target[id].end(), row.begin(), row.end());
      EXPECT_EQ(target[id], text[id]) << id;
      const auto missing = Row(before.draft, i);
      EXPECT_EQ(missing.empty(), step == 0);
      more_than_one |= step > 1 && missing.size() == 2;
      ASSERT_TRUE(std::equal(missing.rbegin(), missing.rend(), text[id].rbegin()));
      const auto& d = drafts.at(id);
      EXPECT_EQ(d.tokens.size(), step == 0 ? 0u : id == "a" ? 4u : 2u);
      EXPECT_EQ(d.probabilities.size(), id == "a" ? 0u : d.tokens.size());
      row.insert(row.end(), d.tokens.begin(), d.tokens.end());
      EXPECT_EQ(Row(after.target, i), row);
    }
    const auto outputs = pipeline->VerifyDraftTokensWithTargetModel();
    collected.Add(outputs);
    for (const auto& [id, output] : *outputs) {
      text[id].insert(text[id].end(), output.tokens.begin(), output.tokens.end());
      // This pass has read the accepted drafts.
      target[id].insert(target[id].end(), output.tokens.begin(), output.tokens.end() - 1);
    }
  }
  EXPECT_TRUE(more_than_one) << "no draft was accepted whole";
}

TEST(SpeculativePipeline, MetricsCountAllRequestsSinceTheReset) {
  const auto pipeline = Make(2);
  EXPECT_FALSE(pipeline->SpecDecodeMetrics().acceptance_rate);
  EXPECT_FALSE(pipeline->SpecDecodeMetrics().mean_acceptance_length);
  const Batches replicas = {{{"a", Ask(24, 0, 0, 3)}}, {{"b", Ask(24, 0.8f, 9, 2)}}};
  Collected collected;
  for (int i = 0; i < 4; ++i) collected.Add(pipeline->Execute(replicas));
  auto m = pipeline->SpecDecodeMetrics();
  EXPECT_EQ(m.rounds, 6);
  EXPECT_EQ(m.draft_rounds, 6);
  EXPECT_EQ(m.drafted, 3 * 5);
  EXPECT_EQ(m.drafted_per_position[0], 6);
  EXPECT_EQ(m.drafted_per_position[2], 3);
  EXPECT_EQ(m.emitted, static_cast<std::int64_t>(collected.all["a"].tokens.size() +
                                                 collected.all["b"].tokens.size()));
  EXPECT_EQ(m.accepted, m.emitted - 2 - 6);  // a first token and one for each round
  EXPECT_EQ(*m.acceptance_rate, static_cast<double>(m.accepted) / static_cast<double>(m.drafted));
  EXPECT_EQ(*m.mean_acceptance_length, 1 + static_cast<double>(m.accepted) / 6);
  EXPECT_EQ(*m.acceptance_rate_per_position[0],
            static_cast<double>(m.accepted_per_position[0]) / 6);
  pipeline->ResetMetrics();
  EXPECT_EQ(pipeline->SpecDecodeMetrics().rounds, 0);
  EXPECT_FALSE(pipeline->SpecDecodeMetrics().acceptance_rate);
  collected.Add(pipeline->Execute(replicas));
  EXPECT_EQ(pipeline->SpecDecodeMetrics().rounds, 2);
  ASSERT_TRUE(pipeline->Release("a"));
  EXPECT_EQ(pipeline->SpecDecodeMetrics().rounds, 2);
  EXPECT_EQ(pipeline->SpecDecodeMetrics().drafted, 5);
}

TEST(SpeculativePipeline, AReleasedRequestMakesRoomAndItsIdIsNew) {
  const auto pipeline = Make(1);
  const Batches one = {{{"a", Ask(20, 0.8f, 1)}}}, two = {{{"b", Ask(20, 0.8f, 2)}}};
  const auto alone = AloneInPipeline(two[0]);
  ASSERT_TRUE(pipeline->Execute(one));
  ASSERT_TRUE(pipeline->Execute(one));
  EXPECT_TRUE(Fails(pipeline->Execute(two), ErrorCode::kTooLarge));
  ASSERT_TRUE(pipeline->PrepareBatch(one));
  ASSERT_TRUE(pipeline->GenerateDraftTokens());
  const Completion released = Got(pipeline->Release("a"));  // between the halves
  EXPECT_EQ(released.finish_reason, FinishReason::kCancelled);
  EXPECT_FALSE(released.token_ids.empty());
  EXPECT_FALSE(pipeline->Release("a"));
  const auto rest = pipeline->VerifyDraftTokensWithTargetModel();
  EXPECT_TRUE(rest && rest->empty());
  Collected collected;
  while (!collected.done("b")) collected.Add(pipeline->Execute(two));
  EXPECT_EQ(collected.all["b"].tokens, alone.at("b").token_ids);
  const auto again = Got(pipeline->Execute(two));  // done: nothing more
  EXPECT_TRUE(again.at("b").done);
  EXPECT_TRUE(again.at("b").tokens.empty());
  const Batches anew = {{{"a", Ask(3)}}};
  EXPECT_TRUE(pipeline->Execute(anew));
}

TEST(SpeculativePipeline, SaysWhatIsWrongAndBeginsNothing) {
  EXPECT_FALSE(Pipeline::Create(TargetOptions(2)));
  EngineOptions options = PairOptions(2);
  options.speculative.method = "none";
  EXPECT_FALSE(Pipeline::Create(options));

  const auto pipeline = Make(2);
  EXPECT_FALSE(pipeline->GenerateDraftTokens());
  EXPECT_FALSE(pipeline->VerifyDraftTokensWithTargetModel());
  EXPECT_TRUE(Fails(pipeline->Release("nobody"), ErrorCode::kNotFound));
  const Batches twice = {{{"a", Ask(9)}}, {{"a", Ask(9)}}};
  EXPECT_TRUE(Fails(pipeline->Execute(twice), ErrorCode::kInvalidArgument));
  Request bad = Ask(9);
  bad.sampling.temperature = -1;
  EXPECT_TRUE(
      Begins(MessageOf(pipeline->Execute(Batches{{{"a", Ask(9)}, {"b", bad}}})), "request 'b': "));
  EXPECT_FALSE(pipeline->Release("a"));
  const Batches good = {{{"a", Ask(9)}, {"c", Ask(9)}}}, less = {{{"a", Ask(9)}}};
  ASSERT_TRUE(pipeline->PrepareBatch(good));
  ASSERT_TRUE(pipeline->GenerateDraftTokens());
  EXPECT_FALSE(pipeline->Execute(less));  // drafts of others wait
  EXPECT_TRUE(pipeline->Execute(good));
  EXPECT_TRUE(pipeline->Execute(less));
}

}  // namespace
}  // namespace foretoken
