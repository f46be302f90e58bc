// SPDX-License-Identifier: Apache-2.0
// cli/idle_report.h: one notice on standard error about settings that have no effect.
#pragma once

#include <vector>

#include "foretoken/engine.h"
#include "settings/idle_settings.h"

namespace foretoken::cli {

// For a verb that runs this request once or several times. Nothing with --quiet. `more`: settings
// that the verb itself ignores.
void ReportIdleSettings(const settings::GenerateSettings& settings, const SpeculativeUse& use,
                        std::vector<settings::IdleSetting> more = {});

}  // namespace foretoken::cli
