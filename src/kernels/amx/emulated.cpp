// SPDX-License-Identifier: Apache-2.0
// An emulated tile unit: loops that do what Intel's manual says of TILELOADD, TDPBSSD and
// TILESTORED. It shares the code around it with the real unit, so on a machine without AMX only the
// instructions themselves go untested.
#include "kernels/amx/rows.h"

namespace foretoken::kernels::amx {
namespace {

struct Emulated {
  static constexpr int kMaxRows = 16, kMaxBytes = 64;
  struct Register {
    int rows, bytes;
    std::uint8_t data[kMaxRows][kMaxBytes];
  };
  static inline thread_local Register registers[8];

  static void Configure(int rows) {
    for (int i = 0; i < 8; ++i) {
      registers[i].bytes = i == 4 || i == 5 ? kBlock : 64;
      registers[i].rows = i < 6 ? rows : kBlock / 4;
    }
  }
  static void Release() {
    for (Register& r : registers) r = {};
  }

  template <int i>
  static void Zero() {
    __builtin_memset(registers[i].data, 0, sizeof registers[i].data);
  }
  template <int i>
  static void Load(const void* p, std::ptrdiff_t stride) {
    Zero<i>();
    for (int row = 0; row < registers[i].rows; ++row)
      __builtin_memcpy(registers[i].data[row], static_cast<const char*>(p) + row * stride,
                       static_cast<std::size_t>(registers[i].bytes));
  }
  template <int c, int a, int b>
  static void Dot() {
    Register &sum = registers[c], &x = registers[a], &w = registers[b];
    for (int row = 0; row < sum.rows; ++row) {
      for (int k = 0; k < x.bytes / 4; ++k) {
        for (int o = 0; o < sum.bytes / 4; ++o) {
          std::int32_t element;
          __builtin_memcpy(&element, &sum.data[row][4 * o], 4);
          for (int j = 0; j < 4; ++j)
            element += static_cast<std::int8_t>(x.data[row][4 * k + j]) *
                       static_cast<std::int8_t>(w.data[k][4 * o + j]);
          __builtin_memcpy(&sum.data[row][4 * o], &element, 4);
        }
      }
    }
  }
  template <int i>
  static void Store(std::int32_t (*p)[16]) {
    for (int row = 0; row < registers[i].rows; ++row)
      __builtin_memcpy(p[row], registers[i].data[row],
                       static_cast<std::size_t>(registers[i].bytes));
  }
};

template <class Type>
using EmulatedProduct = UnitProduct<Emulated, Type>;

constexpr Kernels Products() {
  Kernels table = {};
  generic::SetProducts<EmulatedProduct>(UnitTypes(), table);
  return table;
}

}  // namespace

constinit const Kernels kEmulatedMatmul = Products();

}  // namespace foretoken::kernels::amx
