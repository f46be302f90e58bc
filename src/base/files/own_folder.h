// SPDX-License-Identifier: Apache-2.0
// base/files/own_folder.h: files and folders that no other user can change, for what the program keeps
// between two starts.
#pragma once

#include <sys/stat.h>

#include <string>

namespace foretoken {

// Why other users could change the file or folder of this status, or "" if they cannot.
std::string WhyNotOurs(const struct stat& status);
// WhyNotOurs, but root's files are trusted too.
std::string WhyNotTrusted(const struct stat& status);
// As WhyNotOurs for the folder of this path, and also where there is none.
std::string WhyNotOurFolder(const std::string& folder);
// Makes the folder, for this user only, if there is none. Its parents get the permissions of the
// umask. Returns what WhyNotOurFolder says then.
std::string MakeOurFolder(const std::string& folder);
// The user's folder for what can be made again: $XDG_CACHE_HOME/foretoken, otherwise
// $HOME/.cache/foretoken, and on Windows %LOCALAPPDATA%/foretoken; "" where none of them is set.
std::string UserCacheFolder();

}  // namespace foretoken
