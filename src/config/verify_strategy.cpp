// SPDX-License-Identifier: Apache-2.0
#include "foretoken/verify_strategy.h"

#include <array>
#include <cstddef>

namespace foretoken {

const char* Name(VerifyStrategy strategy) {
  constexpr std::array<const char*, 9> kNames = {"auto",
                                                 "greedy",
                                                 "residual",
                                                 "sample-match",
                                                 "typical-acceptance",
                                                 "target-probability",
                                                 "logit-comparison",
                                                 "block",
                                                 "relaxed"};
  return kNames[static_cast<std::size_t>(strategy)];
}

}  // namespace foretoken
