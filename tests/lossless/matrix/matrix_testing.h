// SPDX-License-Identifier: Apache-2.0
// lossless/matrix/matrix_testing.h: every parameter of a request, every drafter and tiny models for them:
// the axes of the parameter matrix.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/engines_testing.h"
#include "foretoken/verifier.h"

namespace foretoken {

// A parameter: `given` is what it needs to have an effect, `set` sets it. Both are applied to a
// request of temperature 0.7.
struct MatrixSetting {
  std::string name;
  std::function<void(Request&)> given, set;
  // Where it has an effect: in the text, in the log-probabilities or only in the drafts.
  enum class Shows { kText, kLogprobs, kDrafts } shows = Shows::kText;
};
const std::vector<MatrixSetting>& MatrixSettings();

// Every drafter of the registry; "own" reports distributions, "own-certain" does not. "portfolio" is the lookups in turn, "all" a
// model and the lookups.
struct MatrixDrafter {
  std::string name;
  bool distributions = false;
};
const std::vector<MatrixDrafter>& MatrixDrafters();

// Every lossless strategy of the registry, and kAuto.
const std::vector<VerifyStrategy>& LosslessStrategies();
// It needs drafters that report their distributions.
bool ReadsDistributions(VerifyStrategy strategy);

struct MatrixEngine {
  std::string drafter = "none";
  VerifyStrategy strategy = VerifyStrategy::kAuto;
  std::string controller = "fixed";  // 3 drafts a round
  int max_sequences = 16;
  bool adjusts = true;  // false: skip_sample_adjustment
};
Result<std::unique_ptr<Engine>> TryOpenMatrix(const MatrixEngine& of);
std::unique_ptr<Engine> OpenMatrix(const MatrixEngine& of);

// A request of n tokens with temperature 0.7 and a prediction for the drafters that use one.
Request MatrixRequest(int n);
// n requests with ids first_id, first_id + 1, ...: equal except for their noise.
std::vector<Request> MatrixRequests(const MatrixSetting& setting, int n_tokens,
                                    std::uint64_t first_id, int n);

}  // namespace foretoken
