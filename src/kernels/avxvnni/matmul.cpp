// SPDX-License-Identifier: Apache-2.0
#include "kernels/avxvnni/dot.h"
#include "kernels/avxvnni/vpdpbusd.h"

constinit const foretoken::kernels::Kernels foretoken::kernels::avxvnni::kMatmul =
    foretoken::kernels::avxvnni::ProductsWith<foretoken::kernels::avxvnni::DotAvxVnni>();
