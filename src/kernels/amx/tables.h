// SPDX-License-Identifier: Apache-2.0
// kernels/amx/tables.h: what AMX adds to the table of AVX-512.
#pragma once

#include "kernels/kernels.h"

namespace foretoken::kernels::amx {

// Products of quantised weights only.
extern const Kernels kTable;
// The same code on an emulated unit, for all numbers of rows: for tests on machines without AMX.
extern const Kernels kEmulatedTable;

}  // namespace foretoken::kernels::amx
