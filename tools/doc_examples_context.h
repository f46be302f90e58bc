// SPDX-License-Identifier: Apache-2.0
// What the examples of documents and public headers may use without declaring it. The source that
// tools/doc_examples.py makes includes all public headers before this one. Examples are compiled
// and never run, so nothing here is defined.
#pragma once

#include <atomic>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

// An example may return an exit code, or an error by FORETOKEN_TRY.
struct Outcome {
  Outcome(int) {}
  Outcome(tl::unexpected<foretoken::Error>) {}
};

int Print(const std::string& message);

// Objects that an example says it has. A local declaration takes the place of each.
extern std::unique_ptr<foretoken::Engine> engine;
extern foretoken::SpeculativeDecoder& decoder;
extern foretoken::StandaloneSpeculativeDecodingPipeline& pipeline;
extern std::shared_ptr<foretoken::Drafter> drafter;
extern foretoken::EngineOptions options;
extern foretoken::Request request, one, two, three, fox, girl;
extern std::string schema;
extern std::vector<std::int32_t> prompt, tokens, committed, drafts, text;
extern std::vector<float> q, probabilities, logits;
extern int n, n_kept, drafted, accepted;
extern std::atomic<bool> client_gone;
extern foretoken::ProfileMachine machine;
extern foretoken::ProfileModel target;
