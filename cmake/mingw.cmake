# Toolchain file for 64-bit Windows: Debian's cross compiler (g++-mingw-w64-x86-64-posix), programs run under wine. tools/windows
# makes the folder FORETOKEN_WINDOWS_PACKAGES of the libraries that foretoken needs there.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FORETOKEN_WINDOWS_PACKAGES)
# What CMake's find modules would find in /usr are the host's libraries; these know better.
list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}/cross")
set(CMAKE_FIND_ROOT_PATH ${FORETOKEN_WINDOWS_PACKAGES} /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${FORETOKEN_WINDOWS_PACKAGES}/lib/pkgconfig)
set(ENV{PKG_CONFIG_PATH} "")
# Windows 10, files of more than 2 GiB, and UTF-8 in the headers that libraries of headers alone share with the host.
set(CMAKE_CXX_FLAGS_INIT "-isystem ${FORETOKEN_WINDOWS_PACKAGES}/include -D_WIN32_WINNT=0x0A00 -D_FILE_OFFSET_BITS=64 -D_POSIX_THREAD_SAFE_FUNCTIONS -DNOMINMAX -DWIN32_LEAN_AND_MEAN -DNOGDI")
set(CMAKE_C_FLAGS_INIT "-D_WIN32_WINNT=0x0A00 -D_FILE_OFFSET_BITS=64")
# g++ stores 32 and 64 byte vectors in stacks that Windows aligns to 16 bytes (its bug 54412), hence moves that need no alignment.
string(APPEND CMAKE_CXX_FLAGS_INIT " -Wa,-muse-unaligned-vector-move")
string(APPEND CMAKE_CXX_FLAGS_INIT " -DPCRE2_STATIC -DUTF8PROC_STATIC -DYAML_CPP_STATIC_DEFINE")  # as tools/windows makes them
# One file runs: the compiler's libraries are in it.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -Wl,--stack,8388608")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static")
