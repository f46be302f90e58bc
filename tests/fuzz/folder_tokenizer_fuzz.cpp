// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a model folder: the input as tokenizer.json. What is read is an error of one line or
// metadata that make a tokenizer, which encodes.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"
#include "base/json/json_reader.h"
#include "formats/huggingface/tokenizer.h"
#include "fuzz/json_seeds.h"
#include "text/tokenizer/tokenizer.h"

namespace {

using namespace foretoken;  // NOLINT: a program of its own

constexpr std::string_view kSeeds[] = {
    R"({"added_tokens": [{"id": 0, "content": "<s>", "special": true}, {"id": 9, "content": "<|x|>"}],
"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}, "pre_tokenizer": null,
"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
{"Sequence": {"id": "A", "type_id": 0}}]}, "model": {"type": "BPE", "unk_token": "<unk>",
"byte_fallback": true, "ignore_merges": false, "vocab": {"<s>": 0, "<unk>": 1, "<0x41>": 2, "▁": 3,
"a": 4, "b": 5, "ab": 6}, "merges": [["a", "b"], "▁ ab"]}})",
    R"({"added_tokens": [{"id": 8, "content": "<|endoftext|>", "special": true}],
"normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split",
"pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
"behavior": "Isolated", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false,
"use_regex": false}]}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġa": 4},
"merges": ["a b", "Ġ a"]}})",
    R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"},
"model": {"vocab": {"▁": 0, "<0x00>": 1, "a": 2}, "byte_fallback": true, "merges": []}})"};

void CheckLine(const Error& error) {
  FORETOKEN_CHECK(error.message.find('\n') == std::string::npos);
}

// In memory, if the machine has such a folder.
const std::string& Folder() {
  static const std::string folder = [] {
    std::string path =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/folder-XXXXXX" : "folder-XXXXXX";
    FORETOKEN_CHECK(mkdtemp(path.data()) != nullptr);
    return path;
  }();
  return folder;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return MutateJson(kSeeds, data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::ofstream(Folder() + "/tokenizer.json", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  static const Json kConfig = JsonOrNull(R"({"eos_token_id": [1, 2], "bos_token_id": 0})");
  formats::Metadata metadata;
  constexpr std::int64_t kRows = 12;
  const auto read = formats::huggingface::ReadTokenizer(Folder(), kConfig, kRows, metadata);
  if (!read) return CheckLine(read.error()), 0;
  const auto tokenizer = text::Tokenizer::Load(metadata);
  if (!tokenizer) return CheckLine(tokenizer.error()), 0;
  const auto tokens =
      (*tokenizer)->Encode("ab <|x|> \xff\n a", {.add_special = true, .parse_special = true});
  for (const Token token : tokens)
    FORETOKEN_CHECK(token >= 0 && token < (*tokenizer)->vocabulary_size());
  (*tokenizer)->Decode(tokens);
  return 0;
}
