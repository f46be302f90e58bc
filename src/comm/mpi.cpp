// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "comm/mpi_plugin.h"
#include "foretoken/catalogue.h"

namespace foretoken::comm {
namespace {

constexpr std::string_view kPluginFile = "libforetoken_mpi.so";
constexpr const char* kPluginSymbol = "foretoken_mpi_plugin";

// The loader of the system names the file that is missing first: the plug-in, or a library that it needs.
Error NotLoaded(const std::string& why) {
  const bool no_plugin = why.starts_with(kPluginFile);
  return {ErrorCode::kUnsupported,
          fmt::format("ranks: MPI cannot be loaded: {}; {}", why,
                      no_plugin
                          ? "build foretoken where libopenmpi-dev or libmpich-dev is installed, "
                            "and install this file in its folder of libraries"
                          : "install the MPI that foretoken was built with, openmpi-bin or mpich")};
}

// It stays open until the process ends: MPI libraries leave threads and handlers behind. Open MPI opens
// further files that look for its functions among those of the whole process, hence RTLD_GLOBAL.
Result<const MpiPlugin*> OpenPlugin() {
  void* const library = dlopen(kPluginFile.data(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return tl::unexpected(NotLoaded(dlerror()));
  const auto* const plugin = static_cast<const MpiPlugin*>(dlsym(library, kPluginSymbol));
  if (plugin != nullptr && plugin->size_of_ranks == sizeof(Ranks) &&
      std::strcmp(plugin->version, kVersion) == 0)
    return plugin;
  return Fail(ErrorCode::kUnsupported,
              fmt::format("ranks: {} is not of this foretoken ({}): the two come from different "
                          "builds; install both from one",
                          kPluginFile, kVersion));
}

}  // namespace

Result<std::unique_ptr<Ranks>> JoinMpi(const MpiOptions& options) {
  FORETOKEN_TRY(const MpiPlugin* const plugin, OpenPlugin());
  return plugin->join(options);
}

}  // namespace foretoken::comm
