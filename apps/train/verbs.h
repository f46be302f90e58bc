// SPDX-License-Identifier: Apache-2.0
// train/verbs.h: the verbs of foretoken-train; each gives an exit code.
#pragma once

#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::train {

using Arguments = std::vector<std::string>;  // without program and verb

// One line on stderr; the exit code (2 for bad usage).
int Report(const Error& error);

int ModelVerb(const Arguments& arguments);
int SampleVerb(const Arguments& arguments);
int DistillVerb(const Arguments& arguments);
int EagleVerb(const Arguments& arguments);
int MtpVerb(const Arguments& arguments);
int BlockVerb(const Arguments& arguments);

}  // namespace foretoken::train
