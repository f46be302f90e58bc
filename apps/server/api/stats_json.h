// SPDX-License-Identifier: Apache-2.0
// server/api/stats_json.h: what speculation did, as the JSON of every program has it.
#pragma once

#include <string>

#include "base/json/json.h"
#include "foretoken/event_stream.h"
#include "foretoken/stats.h"

namespace foretoken::server {

// The counts and the rates of them, by the names of SpeculationStats; a rate without a denominator
// is absent. Times are left out.
void PutCounts(Json& object, const SpeculationStats& stats);
// As PutCounts, with the times.
void PutTimedCounts(Json& object, const SpeculationStats& stats);
// The members of such an object as reply_texts.cpp writes them: "rounds: integer, ...".
std::string NotationOfStats();
Json DrafterCountsJson(const DrafterCounts& drafters);

}  // namespace foretoken::server
