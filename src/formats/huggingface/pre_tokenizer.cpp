// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/pre_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace foretoken::formats::huggingface {

namespace {

constexpr std::string_view kPreTokenizerAdvice =
    "convert the folder to GGUF with llama.cpp's convert_hf_to_gguf.py";

// What models publish, as Describe writes it, and GGUF's name for the same words. Names that do
// with fewer merges come first.
struct Row {
  std::string_view published, name;
  bool ignores_merges = false;
};

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define CASES_TO_LOWER \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
#define CASES_TO_UPPER \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"

constexpr Row kRows[] = {
    {"words", "gpt-2"},
    {"digit/words", "smollm"},
    {"split:" CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES,
     "qwen2"},
    {"split:" CONTRACTION
     R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" SPACES,
     "qwen35"},
    {"split:" CONTRACTION
     R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES,
     "llama-bpe", true},
    {"split:" CONTRACTION
     R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES,
     "dbrx"},
    {"split:" CASES_TO_LOWER CONTRACTION "?|" CASES_TO_UPPER CONTRACTION
     R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES,
     "gpt-4o"},
    {"split:" CASES_TO_LOWER "|" CASES_TO_UPPER R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES,
     "tekken", true},
    {"split:\\p{N}{1,3}/split:[一-龥\u3040-ゟ゠-ヿ]+/split:[!\"#$%&'()*+,\\-./"
     ":;<=>?@\\[\\\\\\]^_`{|}~]"
     "[A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|"
     "\\s+(?!\\S)|\\s+",
     "deepseek-v3"},
};

#undef CONTRACTION
#undef SPACES
#undef CASES_TO_LOWER
#undef CASES_TO_UPPER

// The parts of a sequence, or the one that there is.
std::vector<const Json*> PartsOf(const Json* object, std::string_view list) {
  std::vector<const Json*> parts;
  if (object == nullptr) return parts;
  const Json& all = object->at(list);
  if (!all.is_array()) return {object};
  for (const Json& part : all) parts.push_back(&part);
  return parts;
}

// "" if there is no such field or it is not a string.
std::string StringOf(const Json& part, const char* name) {
  const Json& value = part.at(name);
  return value.is_string() ? value.text() : std::string();
}

std::string TypeOf(const Json& part) {
  return StringOf(part, "type");
}

bool FlagOf(const Json& part, const char* name, bool fallback) {
  const Json& value = part.at(name);
  return value.is_boolean() ? value.boolean() : fallback;
}

// "split:EXPRESSION", "digit", "words"; nullopt for a part that no row has.
std::optional<std::string> Describe(const Json& part) {
  const std::string type = TypeOf(part);
  if (type == "Digits" && FlagOf(part, "individual_digits", false)) return "digit";
  if (type != "Split") return std::nullopt;
  const Json& expression = part.at("pattern").at("Regex");
  if (!expression.is_string()) return std::nullopt;
  // Words are the matches; what lies between them is a word too, or there is none.
  const bool inverted = FlagOf(part, "invert", false);
  if (part.at("behavior") != (inverted ? "Removed" : "Isolated")) return std::nullopt;
  return "split:" + expression.text();
}

Result<std::string> NameOf(const JsonFields& file, const std::vector<const Json*>& parts,
                           bool ignores_merges) {
  std::string published;
  const auto unknown = [&] {
    return file.Unsupported(
        "pre_tokenizer",
        fmt::format("its way to cut a text into words is not known ({})", Shown(published)),
        kPreTokenizerAdvice);
  };
  for (const Json* part : parts) {
    std::optional<std::string> described = Describe(*part);
    if (TypeOf(*part) == "ByteLevel") {
      if (FlagOf(*part, "add_prefix_space", false)) return unknown();
      if (!FlagOf(*part, "use_regex", true)) continue;
      described = "words";
    }
    if (!described) {
      published += part->is_object() ? part->dump({.sorted = true}) : "?";
      return unknown();
    }
    published += (published.empty() ? "" : "/") + *described;
  }
  for (const Row& row : kRows)
    if (row.published == published && row.ignores_merges == ignores_merges)
      return std::string(row.name);
  return unknown();
}

}  // namespace

Result<PreTokenizer> ReadPreTokenizer(const JsonFields& file, bool ignores_merges) {
  FORETOKEN_TRY(const Json* object, file.Object("pre_tokenizer"));
  const auto parts = PartsOf(object, "pretokenizers");
  PreTokenizer result;
  result.byte_level = std::any_of(parts.begin(), parts.end(),
                                  [](const Json* part) { return TypeOf(*part) == "ByteLevel"; });
  if (result.byte_level) {
    FORETOKEN_TRY(result.name, NameOf(file, parts, ignores_merges));
    return result;
  }
  for (const Json* part : parts) {
    const std::string type = TypeOf(*part);
    const bool between_spaces = type == "Split" && part->at("pattern") == Json{{"String", " "}};
    if (type == "Metaspace") {
      const std::string scheme = StringOf(*part, "prepend_scheme");
      if (scheme == "never") continue;
      result.space_prefix = true;
      result.metaspace = scheme == "first" ? scheme : "always";
    } else if (!between_spaces)
      return file.Unsupported("pre_tokenizer", fmt::format("{} is not supported", Shown(type)),
                              kPreTokenizerAdvice);
  }
  return result;
}

}  // namespace foretoken::formats::huggingface
