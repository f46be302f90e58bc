// SPDX-License-Identifier: Apache-2.0
// base/machine/standard_streams.h: standard input and output that behave alike on each system.
#pragma once

namespace foretoken {

// A write that fails is an error and not the end of the program, and bytes go through unchanged. On Windows texts are
// UTF-8 from now on, and TERM says whether the console has escape sequences. Call it once, at the start.
void PrepareStandardStreams();

}  // namespace foretoken
