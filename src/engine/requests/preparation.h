// SPDX-License-Identifier: Apache-2.0
// engine/requests/preparation.h: checks requests, the only place that does, and makes of them what
// the engine's thread can begin at once.
//
// Any thread.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/requests/speculation_rules.h"
#include "foretoken/engine.h"
#include "loader/grammars.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::engine {

struct RequestLimits {
  int vocabulary = 0;
  int context = 0;            // positions of a text
  int most_positions = 0;     // that one text can have in the cache
  bool records = false;       // the engine writes a trace
  bool scores_pairs = false;  // the model has a head for Pooling::kRank
  int slots = 1;              // Request::slot is below
};

class Preparation {
 public:
  // The references must outlive it. end_tokens: those that end a text.
  Preparation(const RequestLimits& limits, const text::Tokenizer& tokenizer,
              const SpeculationRules& rules, std::vector<Token> end_tokens)
      : limits_(limits),
        tokenizer_(tokenizer),
        rules_(rules),
        end_tokens_(std::move(end_tokens)),
        grammars_(tokenizer, end_tokens_) {}

  // Errors: kInvalidArgument (a parameter out of range, a grammar), kTooLarge (the prompt or the
  // grammar does not fit), kNoMemory.
  [[nodiscard]] Result<PreparedRequest> Prepare(Request request) const;
  // The parameters without the tokens that the model file says are never drawn.
  SamplingParameters Drawable(SamplingParameters sampling) const;
  // Null where the parameters have no grammar. Errors: kInvalidArgument, kTooLarge, kNoMemory.
  [[nodiscard]] Result<std::shared_ptr<const grammar::Grammar>> GrammarOf(
      const SamplingParameters& sampling) const {
    return grammars_.Of(sampling);
  }
  // All grammars together take at most so many bytes. Any thread.
  void LimitGrammars(std::size_t max_bytes) const noexcept { grammars_.Limit(max_bytes); }
  // Grammars grow while they are used; this bounds their memory. After each step.
  void BoundGrammars() const noexcept { grammars_.Bound(); }

  bool Made(const PreparedRequest& request) const { return request.prepared_by_ == this; }
  // The part of it that needs no memory of its own.
  [[nodiscard]] Status Check(const Request& request, std::span<const Token> prompt) const;

 private:
  [[nodiscard]] Status CheckOutput(const Request& request) const;
  [[nodiscard]] Status CheckEmbedding(const Request& request) const;
  [[nodiscard]] Status CheckRoom(const Request& request, std::span<const Token> prompt) const;
  [[nodiscard]] Status CheckDrafts(const Request& request, int n_prompt) const;
  [[nodiscard]] Status CheckGenerated(const Request& request, int n_prompt,
                                      const std::shared_ptr<const grammar::Grammar>& grammar) const;
  std::vector<Token> PromptTokens(Request& request) const;
  std::vector<Token> PredictionTokens(const Request& request) const;

  const RequestLimits limits_;
  const text::Tokenizer& tokenizer_;
  const SpeculationRules& rules_;
  const std::vector<Token> end_tokens_;
  mutable loader::Grammars grammars_;  // which any thread may use
};

}  // namespace foretoken::engine
