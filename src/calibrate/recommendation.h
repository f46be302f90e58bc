// SPDX-License-Identifier: Apache-2.0
// calibrate/recommendation.h: how a profile's recommendation becomes options.
#pragma once

#include <string>

#include "foretoken/options.h"
#include "foretoken/tools/profile.h"

namespace foretoken::calibrate {

// Where `options` name a profile, and neither a method nor a file nor K: sets those of the profile's
// recommendation, and its controller in place of the default one; no text changes. The draft's file
// must lie beside the model or beside the profile, and be the one that was measured. A profile of
// another machine or model changes nothing. machine: this one. Returns what people should know of
// it, "" if there is nothing. Errors: a profile or a model that cannot be read.
[[nodiscard]] Result<std::string> TakeRecommendation(const ProfileMachine& machine,
                                                     EngineOptions& options);

}  // namespace foretoken::calibrate
