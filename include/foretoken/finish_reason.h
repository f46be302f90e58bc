// SPDX-License-Identifier: Apache-2.0
// foretoken/finish_reason.h: why a request ended.
#pragma once

namespace foretoken {

// kStop: an end token or a stop string. kLength: it has all the tokens that it asked for, or its
// context is full. kError: see Completion::error.
enum class FinishReason { kStop, kLength, kCancelled, kError };
const char* Name(FinishReason reason);

}  // namespace foretoken
