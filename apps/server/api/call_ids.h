// SPDX-License-Identifier: Apache-2.0
// server/api/call_ids.h: the ids of calls in a conversation, in the form that the model's template
// takes.
#pragma once

#include <vector>

#include "calls/call_format.h"
#include "foretoken/chat.h"

namespace foretoken::server {

// Gives each call of the conversation, and each result, an id of this form in place of the client's.
// Equal ids stay equal, and an id is the same in every turn.
void WriteCallIds(calls::CallIds form, std::vector<ChatMessage>& messages);

}  // namespace foretoken::server
