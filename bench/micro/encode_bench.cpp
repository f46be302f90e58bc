// SPDX-License-Identifier: Apache-2.0
// bench/micro/encode_bench.cpp: how long a tokenizer takes for a text, on one thread.
//
//   encode_bench FILE.gguf TEXT [REPEATS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "text/tokenizer/tokenizer.h"

namespace {

using foretoken::text::Tokenizer;

foretoken::Result<std::unique_ptr<Tokenizer>> Open(const char* path) {
  FORETOKEN_TRY(const auto file, foretoken::formats::OpenCheckpoint(path));
  return Tokenizer::Load(file->metadata());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: encode_bench FILE.gguf TEXT [REPEATS]\n");
    return 2;
  }
  const auto tokenizer = Open(argv[1]);
  if (!tokenizer) {
    std::fprintf(stderr, "encode_bench: %s\n", tokenizer.error().message.c_str());
    return 1;
  }
  std::ifstream stream(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream || text.empty()) {
    std::fprintf(stderr, "encode_bench: %s cannot be read or is empty; give a text\n", argv[2]);
    return 1;
  }
  const int repeats = argc == 4 ? std::max(1, std::atoi(argv[3])) : 9;
  std::vector<double> times;
  std::size_t n_tokens = 0;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    n_tokens = (*tokenizer)->Encode(text).size();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::sort(times.begin(), times.end());
  std::printf("%s: %zu bytes, %zu tokens, %.2f ms (%.2f-%.2f of %d), %.1f ns a byte\n",
              (*tokenizer)->description().c_str(), text.size(), n_tokens, times[times.size() / 2],
              times.front(), times.back(), repeats,
              times[times.size() / 2] * 1e6 / static_cast<double>(text.size()));
  return 0;
}
