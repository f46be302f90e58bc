// SPDX-License-Identifier: Apache-2.0
// lossless/bundled_testing.h: for tests that need the models of this repository.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace foretoken {

inline std::string Bundled(const std::string& name) {
  return FORETOKEN_SOURCE_DIR "/models/tales-" + name + ".gguf";
}

// Skips tests where they are not there; Base: testing::Test, or testing::TestWithParam.
template <typename Base = testing::Test>
class WithBundledModels : public Base {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(Bundled("9m-q8_0"))) GTEST_SKIP() << "no bundled models";
  }
};

}  // namespace foretoken
