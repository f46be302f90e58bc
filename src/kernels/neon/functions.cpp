// SPDX-License-Identifier: Apache-2.0
#include "kernels/generic/functions.h"
#include "kernels/neon/lanes.h"

constinit const foretoken::kernels::Kernels foretoken::kernels::neon::kFunctions =
    foretoken::kernels::generic::FunctionsOf<foretoken::kernels::neon::Lanes>();
