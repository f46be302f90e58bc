// SPDX-License-Identifier: Apache-2.0
#include "base/files/own_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace foretoken {

std::string WhyNotTrusted(const struct stat& status) {
  if (status.st_uid != 0 && status.st_uid != geteuid()) return "it belongs to another user";
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return "others may write to it (chmod go-w makes it this user's alone)";
  return "";
}

std::string WhyNotOurs(const struct stat& status) {
  return status.st_uid == geteuid() ? WhyNotTrusted(status) : "it belongs to another user";
}

std::string WhyNotOurFolder(const std::string& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) return std::strerror(errno);
  return S_ISDIR(status.st_mode) ? WhyNotOurs(status) : "it is not a folder";
}

std::string MakeOurFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
  mkdir(folder.c_str(), 0700);
  return WhyNotOurFolder(folder);
}

std::string UserCacheFolder() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string cache = set("XDG_CACHE_HOME"); !cache.empty()) return cache + "/foretoken";
  if (const std::string home = set("HOME"); !home.empty()) return home + "/.cache/foretoken";
  if (const std::string local = set("LOCALAPPDATA"); !local.empty()) return local + "/foretoken";
  return "";
}

}  // namespace foretoken
