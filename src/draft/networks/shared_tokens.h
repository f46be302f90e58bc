// SPDX-License-Identifier: Apache-2.0
// draft/networks/shared_tokens.h: what the vocabularies of a drafter's model and of its target have in
// common. Drafts and their distributions live on the shared ids; every other id of the target's is
// never drafted, which costs acceptance and never exactness.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "foretoken/tools/model_file.h"

namespace foretoken::draft {

struct SharedTokens {
  // Both have the same vocabulary.
  SharedTokens(int vocabulary) : SharedTokens(vocabulary, vocabulary, {}) {}
  // differing: ascending.
  SharedTokens(int of_target, int of_drafter, std::vector<Token> differing_ids)
      : target(of_target), drafter(of_drafter), differing(std::move(differing_ids)) {}

  // Another vocabulary, of which a draft model drafts the tokens of the map's pairs.
  explicit SharedTokens(std::shared_ptr<const TokenMap> other)
      : target(other->target), drafter(other->draft), map(std::move(other)) {}

  bool all() const { return map == nullptr && drafter >= target && differing.empty(); }
  // Whether the id means the same token to both. Not for loops over the vocabulary. REQUIRES: no map.
  bool Has(Token id) const {
    return id >= 0 && id < std::min(target, drafter) &&
           !std::binary_search(differing.begin(), differing.end(), id);
  }

  int target, drafter;           // numbers of tokens: ids [0, target) and [0, drafter)
  std::vector<Token> differing;  // ids that both have, for different tokens
  std::shared_ptr<const TokenMap>
      map;  // null: ids that both have mean the same, but for `differing`
};

}  // namespace foretoken::draft
