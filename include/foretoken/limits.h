// SPDX-License-Identifier: Apache-2.0
// foretoken/limits.h: limits that no setting changes.
#pragma once

namespace foretoken {

inline constexpr int kMaxDraft = 64;  // tokens of one draft, whatever is asked for

}  // namespace foretoken
