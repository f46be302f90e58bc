#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_isa_symbols.sh [source folder]: fails if an object of an instruction set folder holds a weak symbol.
#
# A weak symbol (an inline function or template of a shared header) may be chosen by the linker for the whole program: code
# for AVX-512 would then run on a processor without it. The objects are built anew without optimisation, where nothing
# is inlined away, so this looks at the worst case.
set -eu

source_dir=$(cd "${1:-$(dirname "$0")/..}" && pwd)
compiler=${CXX:-c++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A cross compiler, where there is one, brings in the folder of the other kind of processor.
cross=aarch64-linux-gnu-
case "$(uname -m)" in
  x86_64 | amd64)
    isas="avx2 avxvnni avx512 amx"
    if command -v "${cross}g++" >/dev/null; then isas="$isas neon"; fi ;;
  aarch64 | arm64) isas=neon cross= ;;
  *) echo "check_isa_symbols: nothing to check on $(uname -m)"; exit 0 ;;
esac

# The flags of isa_flags.cmake, so that they stand in one place.
flags_of() {
  sed -n "s/^set(FORETOKEN_ISA_FLAGS_$1 \"\(.*\)\")$/\1/p" "$source_dir/cmake/isa_flags.cmake" | tr ';' ' '
}

failed=0 checked=0
for isa in $isas; do
  build=$compiler names=nm
  if [ "$isa" = neon ] && [ -n "$cross" ]; then build=${cross}g++ names=${cross}nm; fi
  flags=$(flags_of "$isa")
  [ -n "$flags" ] || { echo "check_isa_symbols: no flags for $isa in cmake/isa_flags.cmake"; exit 1; }
  for source in "$source_dir/src/kernels/$isa"/*.cpp; do
    object=$work/$isa-$(basename "$source" .cpp).o
    # shellcheck disable=SC2086
    "$build" -std=c++20 -O0 -fPIC -w -ffp-contract=off -fno-math-errno $flags \
      -I"$source_dir/src" -I"$source_dir/include" -c "$source" -o "$object"
    # The pointer to the unwinder's personality routine is data, and the same in every object of the program.
    weak=$("$names" -C "$object" | grep -E ' [WwVvu] ' | grep -v 'DW.ref.__gxx_personality_v0$' || true)
    if [ -n "$weak" ]; then
      echo "src/kernels/$isa/$(basename "$source"): weak symbols (use an anonymous namespace; include no shared inline code):"
      echo "$weak" | sed 's/^/  /'
      failed=1
    fi
    checked=$((checked + 1))
  done
done
[ "$failed" = 0 ] && echo "check_isa_symbols: $checked objects, no weak symbol"
exit "$failed"
