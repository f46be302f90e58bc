// SPDX-License-Identifier: Apache-2.0
#include "kernels/generic/functions.h"
#include "kernels/avx512/lanes.h"

constinit const foretoken::kernels::Kernels foretoken::kernels::avx512::kFunctions =
    foretoken::kernels::generic::FunctionsOf<foretoken::kernels::avx512::Lanes>();
