// SPDX-License-Identifier: Apache-2.0
// The part of POSIX's <dlfcn.h> that foretoken calls, for Windows: see base/windows/README.md. There is no plug-in of MPI.
#pragma once

#define RTLD_NOW 2
#define RTLD_GLOBAL 256

namespace foretoken {

inline void* dlopen(const char*, int) {
  return nullptr;
}
inline void* dlsym(void*, const char*) {
  return nullptr;
}
inline const char* dlerror() {
  return "libforetoken_mpi.so: there is none for Windows";
}

}  // namespace foretoken
