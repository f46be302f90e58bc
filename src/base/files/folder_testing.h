// SPDX-License-Identifier: Apache-2.0
// base/files/folder_testing.h: tests with a folder of their own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace foretoken {

// It is removed at the end.
struct PassingFolder {
  PassingFolder() {
    std::string name = testing::TempDir() + "foretoken_XXXXXX";
    path = mkdtemp(name.data());
  }
  ~PassingFolder() { std::filesystem::remove_all(path); }
  std::string path;
};

class FolderTest : public testing::Test {
 protected:
  std::string At(const std::string& name) const { return folder_ + "/" + name; }
  // The path of a file with this text.
  std::string Written(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(At(name)).parent_path());
    std::ofstream(At(name), std::ios::binary) << text;
    return At(name);
  }

  const PassingFolder own_;
  const std::string& folder_ = own_.path;
};

}  // namespace foretoken
