// SPDX-License-Identifier: Apache-2.0
// train/written_testing.h: the folder of a test program, and texts in it.
#pragma once

#include <random>
#include <vector>

#include "base/files/folder_testing.h"

namespace foretoken::train {

inline const std::string& TestFolder() {
  static const PassingFolder folder;
  return folder.path;
}

// Each returns the path.
inline std::string WriteText(const std::string& name, const std::string& text) {
  const std::string path = TestFolder() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}
inline std::string WriteText(const std::string& text) {
  static int n = 0;
  return WriteText("written" + std::to_string(n++), text);
}
// n of the words at random.
inline std::string WriteWords(const std::string& name, const std::vector<std::string>& words, int n,
                              unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  for (int i = 0; i < n; ++i) text += words[random() % words.size()];
  return WriteText(name, text);
}

}  // namespace foretoken::train
