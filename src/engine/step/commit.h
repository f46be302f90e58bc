// SPDX-License-Identifier: Apache-2.0
// engine/step/commit.h: what a pass gives its requests: tokens, events, log-probabilities, ends.
//
// Each request by itself: where memory runs out for one, the others are committed all the same.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "engine/requests/sequence.h"
#include "engine/step/flat_pass.h"
#include "engine/step/verification.h"
#include "foretoken/request.h"
#include "kv/block_tables.h"
#include "loader/drafts/drafter_set.h"
#include "model/pass.h"
#include "model/weights/rerank_head.h"
#include "sampling/logprobs.h"

namespace foretoken::engine {

struct CommittedSequence {
  int n_committed = 0, n_accepted = 0;  // tokens, after the request's end has cut them
  int n_relaxed = 0;                    // accepted ones, in parts that think
  int n_fresh = 0;                      // positions that no pass had read before
  int n_known = 0;  // of the kept positions, whose features the drafters have already
  std::optional<FinishReason> ended;
  bool whole = false;     // its tokens were committed; false: an error came before
  bool reported = false;  // the request's owner was told
  std::chrono::steady_clock::time_point done;  // when they were committed

  double MillisecondsAfter(std::chrono::steady_clock::time_point begin) const {
    return std::chrono::duration<double, std::milli>(done - begin).count();
  }
};

struct Commits {
  std::vector<CommittedSequence> entries;  // as in the plan
  // [committed tokens, n_likely]: the target's best tokens, of sequences whose drafters want them.
  std::vector<Token> likely;
  int n_likely = 0;  // the most that a drafter wants at a position

  Token* Likely(int row) { return likely.data() + std::ptrdiff_t{row} * n_likely; }
  const Token* Likely(int row) const { return likely.data() + std::ptrdiff_t{row} * n_likely; }
};

struct CommitSettings {
  int vocabulary = 0;
  int dim = 0;       // numbers of a hidden state
  int max_rows = 0;  // of a pass
  int max_sequences = 1;
  bool kv_cache = true, prefix_cache = true;
  std::string target_path;  // for errors
  const model::RerankHead* rerank_head = nullptr;
};

class Commit {
 public:
  // All references must outlive it.
  Commit(const CommitSettings& settings, kv::BlockTables& cache, const loader::DrafterSet& drafters,
         const kernels::Kernels& kernels);

  // REQUIRES: the cache has committed the rows that were kept.
  void Apply(const PassPlan& plan, const Proposals& drafts, const FlatPass& pass,
             const Verdicts& verdicts, const model::PassResult& result, const Sequences& sequences,
             Commits& commits) noexcept;

  // With room for any pass.
  Commits MakeCommits() const;
  // The error of a request whose logits are not finite after n_tokens tokens of text.
  Error NotFinite(int n_tokens) const;

 private:
  struct Part;  // of the pass: what concerns one sequence
  void ApplyOne(const Part& part);
  void ReadPromptLogprobs(const Part& part);
  void ReadEmbedding(const Part& part) const;
  void EndEmbedding(const Part& part) const;
  void CommitTokens(const Part& part);
  void CommitToken(const Part& part, int i, TokenEvent& event);
  bool Report(const Part& part) const;
  bool FollowsGrammar(const Part& part) const;

  const CommitSettings settings_;
  kv::BlockTables& cache_;
  const loader::DrafterSet& drafters_;
  sampling::LogprobReader logprobs_;
  int n_likely_rows_ = 0;  // of this pass so far
  std::vector<TokenEvent> events_;
};

}  // namespace foretoken::engine
