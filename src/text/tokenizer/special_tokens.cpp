// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/special_tokens.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

constexpr std::string_view kEndTexts[] = {"<|eot_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<|flush|>",
                                          "<|calls|>",
                                          "<end_of_turn>",
                                          "<|endoftext|>",
                                          "</s>",
                                          "<|eom_id|>",
                                          "<EOT>",
                                          "_<EOT>",
                                          "[EOT]",
                                          "[EOS]",
                                          "<|end_of_text|>",
                                          "<end_of_utterance>",
                                          "<eos>",
                                          "<turn|>",
                                          "<|tool_response>",
                                          "<｜end▁of▁sentence｜>"};

// Tokens of fill-in-the-middle prompts: the first text that the vocabulary has counts, unless the
// metadata names the token. Those that separate files also end a generation.
struct FillToken {
  std::string_view key;
  bool ends;
  std::span<const std::string_view> texts;
};
constexpr std::string_view kFillPrefix[] = {"<|fim_prefix|>",  "<fim-prefix>", "<fim_prefix>",
                                            "<｜fim▁begin｜>", "<PRE>",        "▁<PRE>",
                                            "<|code_prefix|>", "<|prefix|>"};
constexpr std::string_view kFillSuffix[] = {"<|fim_suffix|>",  "<fim-suffix>", "<fim_suffix>",
                                            "<｜fim▁hole｜>",  "<SUF>",        "▁<SUF>",
                                            "<|code_suffix|>", "<|suffix|>"};
constexpr std::string_view kFillMiddle[] = {"<|fim_middle|>",  "<fim-middle>", "<fim_middle>",
                                            "<｜fim▁end｜>",   "<MID>",        "▁<MID>",
                                            "<|code_middle|>", "<|middle|>"};
constexpr std::string_view kFillPad[] = {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"};
constexpr std::string_view kFillRepository[] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>",
                                                "<REPO>", "<reponame>"};
constexpr std::string_view kFillSeparator[] = {"<|file_sep|>"};
constexpr FillToken kFillTokens[] = {
    {"tokenizer.ggml.fim_pre_token_id", false, kFillPrefix},
    {"tokenizer.ggml.fim_suf_token_id", false, kFillSuffix},
    {"tokenizer.ggml.fim_mid_token_id", false, kFillMiddle},
    {"tokenizer.ggml.fim_pad_token_id", true, kFillPad},
    {"tokenizer.ggml.fim_rep_token_id", true, kFillRepository},
    {"tokenizer.ggml.fim_sep_token_id", true, kFillSeparator},
};

}  // namespace

void FindEndTokens(const formats::Metadata& metadata, Vocabulary& vocabulary) {
  std::map<std::string_view, Token> by_text;
  for (Token token = 0; token < vocabulary.size(); ++token) {
    const std::string& text = vocabulary.texts[token];
    if (text.size() < 32) by_text.emplace(text, token);
  }
  std::vector<Token>& ends = vocabulary.end_tokens;
  const auto named = [&](std::string_view text) {
    const auto found = by_text.find(text);
    return found == by_text.end() ? kNoToken : found->second;
  };
  const auto stated = [&](std::string_view key) {
    const auto id = metadata.Int(key);
    return id && vocabulary.Has(*id) ? static_cast<Token>(*id) : kNoToken;
  };

  for (const std::string_view text : kEndTexts) {
    const Token token = named(text);
    if (token == kNoToken) continue;
    vocabulary.types[token] = TokenType::kControl;
    ends.push_back(token);
  }
  for (const FillToken& fill : kFillTokens) {
    Token token = stated(fill.key);
    for (std::size_t i = 0; token == kNoToken && i < fill.texts.size(); ++i) {
      token = named(fill.texts[i]);
      if (token != kNoToken) vocabulary.types[token] = TokenType::kControl;
    }
    if (fill.ends && token != kNoToken) ends.push_back(token);
  }
  for (const Token token : {vocabulary.eos, stated("tokenizer.ggml.eot_token_id"),
                            stated("tokenizer.ggml.eom_token_id")}) {
    if (token != kNoToken) ends.push_back(token);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());

  // If messages end with <|return|> or <|call|>, <|end|> only ends a part of a message.
  const auto is_end = [&](std::string_view text) {
    const Token token = named(text);
    return token != kNoToken && std::binary_search(ends.begin(), ends.end(), token);
  };
  const bool has_call = is_end("<|call|>") || is_end("<|calls|>");
  if (has_call && (is_end("<|return|>") || is_end("<|flush|>")) && is_end("<|end|>")) {
    std::erase(ends, named("<|end|>"));
    vocabulary.types[named("<|end|>")] = TokenType::kUserDefined;
  }
  // If there are tool responses, </s> is ordinary text (Gemma 4).
  if (is_end("<|tool_response>") && is_end("</s>")) {
    std::erase(ends, named("</s>"));
    vocabulary.types[named("</s>")] = TokenType::kNormal;
  }
}

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary), first_byte_(256, false) {
  for (Token token = 0; token < vocabulary.size(); ++token) {
    if (!vocabulary.IsSpecial(token)) continue;
    by_text_.push_back(token);
    first_byte_[static_cast<unsigned char>(vocabulary.texts[token][0])] = true;
  }
  std::stable_sort(by_text_.begin(), by_text_.end(),
                   [&](Token a, Token b) { return vocabulary.texts[a] < vocabulary.texts[b]; });
}

void SpecialTokens::FindAt(std::string_view text, std::size_t at, bool parse_special,
                           std::vector<Occurrence>& found) const {
  auto low = by_text_.begin();
  auto high = by_text_.end();
  for (std::size_t depth = 0; low != high && at + depth < text.size(); ++depth) {
    const auto byte = static_cast<unsigned char>(text[at + depth]);
    const auto byte_of = [&](Token token) {
      return static_cast<unsigned char>(vocabulary_.texts[token][depth]);
    };
    low = std::partition_point(low, high, [&](Token token) { return byte_of(token) < byte; });
    high = std::partition_point(low, high, [&](Token token) { return byte_of(token) == byte; });
    // Texts that end here come first in the range.
    for (; low != high && vocabulary_.texts[*low].size() == depth + 1; ++low) {
      if (parse_special || vocabulary_.types[*low] == TokenType::kUserDefined) {
        found.push_back({at, *low});
      }
    }
  }
}

std::vector<Fragment> SpecialTokens::Split(std::string_view text, bool parse_special) const {
  std::vector<Occurrence> found;
  for (std::size_t at = 0; !by_text_.empty() && at < text.size(); ++at) {
    if (first_byte_[static_cast<unsigned char>(text[at])]) FindAt(text, at, parse_special, found);
  }
  const auto size_of = [&](Token token) { return vocabulary_.texts[token].size(); };
  std::sort(found.begin(), found.end(), [&](const Occurrence& a, const Occurrence& b) {
    if (size_of(a.token) != size_of(b.token)) return size_of(a.token) > size_of(b.token);
    return a.token != b.token ? a.token < b.token : a.begin < b.begin;
  });

  // What was found before is at least as long as what is searched now, so an overlap shows at one
  // of the two ends.
  std::vector<bool> taken(found.empty() ? 0 : text.size(), false);
  std::vector<Occurrence> kept;
  for (const Occurrence& occurrence : found) {
    const std::size_t end = occurrence.begin + size_of(occurrence.token);
    if (taken[occurrence.begin] || taken[end - 1]) continue;
    std::fill(taken.begin() + static_cast<std::ptrdiff_t>(occurrence.begin),
              taken.begin() + static_cast<std::ptrdiff_t>(end), true);
    kept.push_back(occurrence);
  }
  std::sort(kept.begin(), kept.end(),
            [](const Occurrence& a, const Occurrence& b) { return a.begin < b.begin; });

  std::vector<Fragment> fragments;
  std::size_t done = 0;
  for (const Occurrence& occurrence : kept) {
    if (occurrence.begin > done) fragments.push_back({kNoToken, done, occurrence.begin - done});
    fragments.push_back({occurrence.token, occurrence.begin, size_of(occurrence.token)});
    done = occurrence.begin + size_of(occurrence.token);
  }
  if (done < text.size()) fragments.push_back({kNoToken, done, text.size() - done});
  return fragments;
}

}  // namespace foretoken::text
