// SPDX-License-Identifier: Apache-2.0
// foretoken/speculative_pipeline.h: many requests, one step at a time, for a caller that schedules
// them itself, such as a server with batches of its own.
//
//   auto pipeline = foretoken::StandaloneSpeculativeDecodingPipeline::Create(
//       {.model = "target.gguf", .draft_model = "draft.gguf", .max_sequences = 8});
//   std::vector<foretoken::TextGenerationBatch> replicas(2);
//   replicas[0] = {{"a", one}, {"b", two}};
//   replicas[1] = {{"c", three}};
//   auto outputs = (*pipeline)->Execute(replicas);  // one step for a, b and c
//   for (auto& [id, output] : *outputs) std::cout << id << ": " << output.text << '\n';
//   auto completion = (*pipeline)->Release("a");
//
// Each step is one pass of the target over the requests of all replicas. Each request has its own
// draft length. Its text is the one that Engine::Generate gives for it alone, whatever steps it
// takes part in and whatever runs beside it.
//
// One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretoken/drafts.h"
#include "foretoken/engine.h"

namespace foretoken {

// The requests of one replica, by request id. A request is read when its id is new, and ignored
// afterwards.
using TextGenerationBatch = std::map<std::string, Request>;

// Rows of different lengths: tokens[row_offsets[i], row_offsets[i + 1]) belong to request_ids[i].
struct RaggedBatch {
  std::vector<std::string> request_ids;  // [n], in the order of the replicas' batches
  std::vector<std::int32_t> tokens;
  std::vector<int> row_offsets;  // [n + 1]
};

// What the next pass of each model reads.
struct PreparedBatch {
  // Committed tokens that its cache lacks, then the drafts, once they are made. A long prompt takes
  // several passes.
  RaggedBatch target;
  // Committed tokens that its cache lacks; its own drafts follow one by one. Empty for a prompt
  // that the target has not prefilled, and once the drafts are made.
  RaggedBatch draft;
};

struct VerifyOptions {
  bool target_logits = false;  // return them in the outputs
};

struct TextGenerationOutput {
  std::vector<std::int32_t> tokens;  // committed in this step; none during the prefill
  std::string text;                  // what this step shows: whole characters
  bool done = false;
  std::optional<FinishReason> finish_reason;  // once done
  int drafted = 0, accepted = 0;
  // The last of the tokens, by its origin: in place of a rejected draft, or behind drafts that were
  // all accepted. Neither for a plain token, and if the text ended before it.
  std::optional<std::int32_t> recovered_token, bonus_token;
  // [tokens]: the target's log-probabilities, if Request.logprobs asks for them.
  std::vector<TokenLogprobs> logprobs;
  // [drafted + 1, vocabulary], a copy, if VerifyOptions asks for it: the target's unprocessed
  // logits. Row i verified draft i; the last one follows all drafts.
  std::vector<float> target_logits;
  int vocabulary_size = 0;  // numbers of a row
};

// Since the start or the last reset, over all requests. A rate without a denominator is absent.
struct SpeculativeDecodingMetrics {
  std::int64_t rounds = 0, draft_rounds = 0;  // decoding rounds; those with at least one draft
  std::int64_t drafted = 0, accepted = 0, emitted = 0;
  std::vector<std::int64_t> drafted_per_position, accepted_per_position;
  std::optional<double> acceptance_rate;  // accepted / drafted
  // [position]: accepted there / drafted there, and / verified there: all earlier ones were
  // accepted.
  std::vector<std::optional<double>> acceptance_rate_per_position;
  std::vector<std::optional<double>> conditional_acceptance_rate_per_position;
  // Tokens of a round that drafted: the accepted drafts and the target's own token.
  std::optional<double> mean_acceptance_length;
};

class StandaloneSpeculativeDecodingPipeline {
 public:
  // max_sequences bounds the requests of all replicas that have begun and are not done, including
  // those that take no part in a step. Errors: as Engine::Open; kInvalidArgument without a draft
  // model, or if another method is named.
  [[nodiscard]] static Result<std::unique_ptr<StandaloneSpeculativeDecodingPipeline>> Create(
      EngineOptions options);
  ~StandaloneSpeculativeDecodingPipeline();

  // One step for exactly these requests: new ids begin, known ones continue, all others pause.
  // Requests that are done give an output without tokens. Errors, with nothing begun:
  // kInvalidArgument (an id in two batches, a parameter out of range, drafts of other requests that
  // wait for Verify...), kTooLarge (more requests than max_sequences, a prompt beyond the context).
  [[nodiscard]] Result<std::map<std::string, TextGenerationOutput>> Execute(
      std::span<const TextGenerationBatch> replicas);

  // The parts of Execute: choose the requests and their rows; draft; run the target's pass.
  [[nodiscard]] Result<PreparedBatch> PrepareBatch(std::span<const TextGenerationBatch> replicas);
  // The drafts of each request, by its id. Errors: kInvalidArgument (nothing is prepared, num_steps
  // out of range).
  [[nodiscard]] Result<std::map<std::string, Drafts>> GenerateDraftTokens(
      const DraftOptions& options = {});
  // PrepareBatch and the drafts, num_steps for each request. Errors: as both.
  [[nodiscard]] Result<std::map<std::string, Drafts>> GenerateDraftTokens(
      std::span<const TextGenerationBatch> replicas, int num_steps, DraftOptions options = {});
  // Errors: kInvalidArgument (no drafts were generated).
  [[nodiscard]] Result<std::map<std::string, TextGenerationOutput>>
  VerifyDraftTokensWithTargetModel(const VerifyOptions& options = {});

  SpeculativeDecodingMetrics SpecDecodeMetrics() const;
  void ResetMetrics();

  // Forgets an id, which may then be used again. Returns the completion; a request that is not done
  // ends as "cancelled". Errors: kNotFound (an unknown id).
  [[nodiscard]] Result<Completion> Release(const std::string& request_id);

  const Engine& engine() const;  // for Tokenize, Detokenize, FormatChat, summary

 private:
  class Impl;
  explicit StandaloneSpeculativeDecodingPipeline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
