// SPDX-License-Identifier: Apache-2.0
// train/verbs.h: the verbs of foretoken-train; each gives an exit code.
#pragma once

#include "train/run_flags.h"

namespace foretoken::train {

int ModelVerb(const Arguments& arguments);
int SampleVerb(const Arguments& arguments);
int DistillVerb(const Arguments& arguments);
int EagleVerb(const Arguments& arguments);
int MtpVerb(const Arguments& arguments);
int BlockVerb(const Arguments& arguments);

}  // namespace foretoken::train
