// SPDX-License-Identifier: Apache-2.0
#include "server/routes/fill_marks.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace foretoken::server {
namespace {

// The names of one family of models; "": there is none. ends: what they write behind the gap.
struct FillNames {
  std::string_view prefix, suffix, middle, repository, file, end;
};
constexpr FillNames kFillNames[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>",
     "<|fim_pad|>"},  // Qwen; CodeGemma, without repositories
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>",
     "<fim_pad>"},                                                          // StarCoder, Granite
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", "", "", "<fim-pad>"},  // SantaCoder
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "", "", ""},     // DeepSeek
    {"<|fim_begin|>", "<|fim_hole|>", "<|fim_end|>", "", "", ""},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "", "", ""},  // GLM
    {"<PRE>", "<SUF>", "<MID>", "", "", "<EOT>"},                           // Code Llama
    {"▁<PRE>", "▁<SUF>", "▁<MID>", "", "", "▁<EOT>"}};

// The token of this name. A token whose text is only spelt so is none.
std::optional<std::int32_t> MarkOf(const Engine& engine, std::string_view name) {
  if (name.empty()) return std::nullopt;
  const auto token = engine.TokenOf(std::string(name), true);
  return token ? std::optional(*token) : std::nullopt;
}

void Append(std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

// A text of the client's, in which nothing is a control token.
std::vector<std::int32_t> PlainTokens(const Engine& engine, const std::string& text) {
  return text.empty() ? std::vector<std::int32_t>() : engine.Tokenize(text, false, false);
}

// Another file.
std::vector<std::int32_t> FileTokens(const Engine& engine, const FillMarks& marks,
                                     const std::string& name, const std::string& text) {
  if (!marks.file) return PlainTokens(engine, text + "\n");
  std::vector<std::int32_t> tokens = {*marks.file};
  Append(tokens, PlainTokens(engine, name + "\n" + text + "\n"));
  return tokens;
}

// The other files, with the mark of the file that has the gap behind them.
std::vector<std::int32_t> ExtraTokens(const Engine& engine, const FillMarks& marks,
                                      const LlamaCppGap& gap, std::size_t room,
                                      std::size_t& n_left_out) {
  std::vector<std::int32_t> tokens, before, behind;
  if (marks.file && marks.repository) {
    before.push_back(*marks.repository);
    Append(before, PlainTokens(engine, "repository\n"));
  }
  if (marks.file) behind = FileTokens(engine, {.file = marks.file}, "file", "");
  std::vector<std::vector<std::int32_t>> files;  // the last one first
  std::size_t size = before.size() + behind.size();
  for (auto file = gap.extra.rbegin(); file != gap.extra.rend(); ++file) {
    files.push_back(FileTokens(engine, marks, file->first, file->second));
    size += files.back().size();
    if (size <= room) continue;
    files.pop_back();
    break;
  }
  n_left_out = gap.extra.size() - files.size();
  if (files.empty()) return tokens;
  tokens = std::move(before);
  for (auto file = files.rbegin(); file != files.rend(); ++file) Append(tokens, *file);
  Append(tokens, behind);
  return tokens;
}

}  // namespace

Parsed<FillMarks> FindFillMarks(const Engine& engine) {
  for (const FillNames& names : kFillNames) {
    const auto prefix = MarkOf(engine, names.prefix), suffix = MarkOf(engine, names.suffix),
               middle = MarkOf(engine, names.middle);
    if (!prefix || !suffix || !middle) continue;
    FillMarks marks{.prefix = *prefix,
                    .suffix = *suffix,
                    .middle = *middle,
                    .repository = MarkOf(engine, names.repository),
                    .file = MarkOf(engine, names.file)};
    for (const auto& end : {MarkOf(engine, names.end), marks.repository, marks.file})
      if (end) marks.ends.push_back(*end);
    return marks;
  }
  return Refuse({.status = 501,
                 .message =
                     "infill: this model has no tokens that mark the text before a gap, the "
                     "text behind it and the gap (such as <|fim_prefix|>, <|fim_suffix|> and "
                     "<|fim_middle|>), so it cannot fill one; use /completion, or a model for "
                     "code",
                 .code = "not_supported"});
}

std::vector<std::int32_t> GapTokens(const Engine& engine, const FillMarks& marks,
                                    const LlamaCppGap& gap, std::size_t room,
                                    std::size_t& n_left_out) {
  std::vector<std::int32_t> before = {marks.prefix};
  Append(before, PlainTokens(engine, gap.prefix));
  Append(before, PlainTokens(engine, gap.prompt));
  before.push_back(marks.suffix);
  Append(before, PlainTokens(engine, gap.suffix));
  before.push_back(marks.middle);
  std::vector<std::int32_t> tokens = engine.Tokenize("", true, false);  // what texts begin with
  const std::size_t taken = std::min(room, tokens.size() + before.size());
  Append(tokens, ExtraTokens(engine, marks, gap, room - taken, n_left_out));
  Append(tokens, before);
  return tokens;
}

}  // namespace foretoken::server
