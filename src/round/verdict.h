// SPDX-License-Identifier: Apache-2.0
// round/verdict.h: the result of verifying a proposal.
#pragma once

#include "base/ids.h"

namespace foretoken::round {

enum class NextKind {
  kPlain,      // there was no draft
  kRecovered,  // the token in place of the first rejected draft
  kBonus,      // every draft was accepted; one more from the target
};

struct Verdict {
  int accepted = 0;  // drafts kept, a prefix of the proposal
  Token next = kNoToken;
  NextKind kind = NextKind::kPlain;
};

}  // namespace foretoken::round
