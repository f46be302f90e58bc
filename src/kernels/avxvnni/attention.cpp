// SPDX-License-Identifier: Apache-2.0
#include "kernels/avxvnni/attention.h"
#include "kernels/avxvnni/dot.h"
#include "kernels/parts.h"

constinit const foretoken::kernels::Kernels foretoken::kernels::avxvnni::kAttention =
    foretoken::kernels::avxvnni::AttentionWith<foretoken::kernels::avxvnni::DotAvxVnni>();
