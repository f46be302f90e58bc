// SPDX-License-Identifier: Apache-2.0
// settings/idle_settings.h: settings from flags, files or variables that have no effect.
#pragma once

#include <string>
#include <vector>

#include "foretoken/options.h"
#include "settings/generate_flags.h"

namespace foretoken::settings {

// The place of a setting without effect, and the reason: "--ngram-max", "only ngram reads it".
struct IdleSetting {
  std::string name, why;
};

// `use`: what applies to the requests of this run. Settings of a file count if they differ from
// their defaults, so that one file can list them all.
std::vector<IdleSetting> IdleSettings(const GenerateSettings& settings, const SpeculativeUse& use);

// Those settings and `more` in one line; empty if all have an effect.
std::string IdleNotice(const GenerateSettings& settings, const SpeculativeUse& use,
                       std::vector<IdleSetting> more = {});

}  // namespace foretoken::settings
