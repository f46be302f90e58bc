// SPDX-License-Identifier: Apache-2.0
// foretoken/speculative_use.h: what settings of speculation apply to when requests run. A setting
// that nothing reads has no effect; SpeculativeKey::idle (speculative_config.h) gives the reason.
#pragma once

#include <string>
#include <vector>

namespace foretoken {

struct SpeculativeUse {
  std::vector<std::string> methods;     // methods that draft: "ngram"; empty: nothing drafts
  std::vector<std::string> strategies;  // that verify: "residual"; "greedy" at temperature 0
  std::string lookahead;                // the controller of draft lengths: "ewma"
  bool relaxes_thinking = false;        // relaxed verifies the drafts of parts that think
  bool sampled = false;                 // some text is drawn at a temperature above 0
  bool sampled_drafts = false;   // some draft is drawn from a distribution, at such a temperature
  bool several_requests = true;  // one after the other, on the same engine
  // Some lookup may use what other requests taught; never if the text depends on the drafts.
  bool learns_from_others = false;
  int max_sequences = 1;  // requests that run together

  // Combines two uses.
  void Add(const SpeculativeUse& other);
};

}  // namespace foretoken
