# Toolchain file for 64-bit ARM: Debian's cross compiler (g++-aarch64-linux-gnu), programs run under qemu-aarch64 (qemu-user).
# It serves the modules base, tensor and kernels and their tests (preset `aarch64`), which need no other library for
# ARM than the compiler's own: fmt and tl::expected are taken as headers, gtest is compiled from Debian's sources.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# What CMake's find modules would find in /usr are the host's libraries; these know better.
list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}/cross")
# /usr/include behind the compiler's own folders: there only for headers that these lack, never for those of the C library.
set(CMAKE_CXX_FLAGS_INIT "-idirafter /usr/include")
# A processor with the dot product and nothing later: an instruction beyond it ends the program.
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-cpu;neoverse-n1;-L;/usr/aarch64-linux-gnu")
