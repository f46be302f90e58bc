// SPDX-License-Identifier: Apache-2.0
// bench/draft_length/world.h: simulated machines and texts on which the cost model plays.
//
// Time is in microseconds of the simulation. A pass of r rows takes `pass_us` (1 + row (r - 1)), times
// the machine's speed and noise; a model's draft takes `draft` of a pass for all sequences that
// draft together, and a token that it missed a fifth of that. A plan costs a microsecond for each
// sequence that has one.
#pragma once

#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "draft_length/cost_model.h"

namespace foretoken::bench {

inline constexpr int kMostDrafts = 16;

// How drafts are accepted, token by token.
enum class Text {
  kSteady,    // with one probability
  kChapters,  // easy and hard parts of 200 tokens in turn
  kCopies,    // runs of 30 tokens that are nearly certain, in hard text
  kLate,      // one long request: hard until half of the rounds are over, then easy
};

struct Scenario {
  std::string name;
  double pass_us = 1000;
  double row = 0.05;      // cost of a row more, as a share of a pass
  double draft = 0.1;     // of a model's draft; 0: a lookup's, which is made before the plan
  double accepted = 0.7;  // the probability, of easy parts
  Text text = Text::kSteady;
  int sequences = 1;
  bool portfolio = false;  // a lookup beside the model
  int prompt = 0;          // tokens that a head must read before its first draft
  double start_error = 1;  // measured at the start over true cost of rows and drafts
  // At the start passes of bad_from to bad_to rows were measured at `bad` times their cost, and
  // drafts at bad_draft times theirs.
  int bad_from = 0, bad_to = 0;
  double bad = 1, bad_draft = 1;
  bool measured = true;       // whether anything was measured at the start
  double noise = 0.03;        // of a pass
  bool spikes = false;        // one pass of 100 takes five times as long
  bool slow_minutes = false;  // 1,000 passes of each 4,000 take 1.7 times as long
  // Now and then, for 16 rounds, each draft and each pass takes once to twice its time by chance.
  bool bursts = false;
  // Such bursts for so many rounds of an engine's start.
  int slow_start = 0;
  // The first 12 rounds with drafts take so much longer than later ones, because nothing lies in the
  // processor's caches.
  double cold = 0;
  double hidden = 0;  // cost of a pass with drafts that no reading shows
  // The positions before a text, of every second one where `turns`; what a thousand of them cost as a share
  // of a pass: of a sequence, of each row, and of a model's draft. Nothing of it is measured at the start.
  int context = 256;
  bool turns = false;
  double bytes = 0, arithmetic = 0, draft_bytes = 0;
  int request_tokens = 400;
  int most_tokens = 0;    // that a request asks for; 0: its own
  int engine_rounds = 0;  // a new engine, which has learned nothing, after so many; 0: one for all
  bool kept = false;      // a new engine knows how the last one's drafts were accepted
  bool other_texts = false;  // every second engine has a text whose drafts are accepted with 0.1
};

// Tokens per second with the cost model, relative to plain decoding on the same machine.
double Play(const Scenario& scenario, int rounds, unsigned seed);
// Tokens per second with k drafts in each round, relative to plain decoding.
double PlayFixed(const Scenario& scenario, int k, int rounds, unsigned seed);

std::vector<Scenario> Scenarios();

}  // namespace foretoken::bench
