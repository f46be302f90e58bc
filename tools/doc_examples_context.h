// SPDX-License-Identifier: Apache-2.0
// What the examples of documents and public headers may use without declaring it
// (tools/doc_examples.py). They are compiled and never run, so nothing here is defined.
#pragma once

#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretoken/adaptive_lookahead.h"
#include "foretoken/built_in_drafters.h"
#include "foretoken/bus_errors.h"
#include "foretoken/chat.h"
#include "foretoken/draft_session.h"
#include "foretoken/drafter.h"
#include "foretoken/engine.h"
#include "foretoken/measure.h"
#include "foretoken/profile.h"
#include "foretoken/quantize.h"
#include "foretoken/replay.h"
#include "foretoken/scorer.h"
#include "foretoken/speculative_config.h"
#include "foretoken/speculative_decoder.h"
#include "foretoken/speculative_pipeline.h"
#include "foretoken/structured_output.h"
#include "foretoken/verification.h"
#include "foretoken/verifier.h"

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
extern int n, n_kept, proposed, accepted;
extern foretoken::ProfileMachine machine;
extern foretoken::ProfileModel target;
