// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/special_tokens.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/work_count.h"
#include "text/tokenizer/encode/string_table.h"
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
                                          "<|ifm|im_end|>",
                                          "[e~[",
                                          "<eos>",
                                          "<turn|>",
                                          "<|tool_response>",
                                          "<｜end▁of▁sentence｜>"};

// Marks of gpt-oss's message format. They are always found in a text, as its templates need.
constexpr std::string_view kMessageMarks[] = {"<|channel|>", "<|message|>", "<|start|>",
                                              "<|constrain|>"};

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

bool Contains(const std::vector<Token>& tokens, Token token) {
  return std::binary_search(tokens.begin(), tokens.end(), token);
}

bool IsSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// The tokens of the texts above: the first of each that the vocabulary has.
class NamedTokens {
 public:
  explicit NamedTokens(const Vocabulary& vocabulary) {
    Search(kEndTexts);
    Search(kMessageMarks);
    for (const FillToken& fill : kFillTokens) Search(fill.texts);
    for (Token token = 0; token < vocabulary.size(); ++token) {
      // A token that the model's own tokenizer has as ordinary text stays so.
      if (vocabulary.exact && !vocabulary.IsSpecial(token)) continue;
      const std::int32_t name = names_.Find(vocabulary.texts[token]);
      if (name != StringTable::kAbsent && tokens_[name] == kNoToken) tokens_[name] = token;
    }
  }
  Token operator[](std::string_view text) const {
    const std::int32_t name = names_.Find(text);
    return name == StringTable::kAbsent ? kNoToken : tokens_[name];
  }

 private:
  void Search(std::span<const std::string_view> texts) {
    for (const std::string_view text : texts)
      if (names_.Insert(text, static_cast<std::int32_t>(tokens_.size())))
        tokens_.push_back(kNoToken);
  }

  StringTable names_;          // of places in tokens_
  std::vector<Token> tokens_;  // kNoToken: the vocabulary has no such text
};

// Some texts end a generation in one model and are ordinary text in another; which, the other end
// tokens tell.
void DropOrdinaryEnds(const NamedTokens& named, Vocabulary& vocabulary) {
  std::vector<Token>& ends = vocabulary.end_tokens;
  const auto is_end = [&](std::string_view text) {
    return named[text] != kNoToken && Contains(ends, named[text]);
  };
  // If messages end with <|return|> or <|call|>, <|end|> only ends a part of a message.
  const bool has_call = is_end("<|call|>") || is_end("<|calls|>");
  if (has_call && (is_end("<|return|>") || is_end("<|flush|>")) && is_end("<|end|>")) {
    std::erase(ends, named["<|end|>"]);
    vocabulary.types[named["<|end|>"]] = TokenType::kUserDefined;
  }
  // If there are tool responses, </s> is ordinary text (Gemma 4).
  if (is_end("<|tool_response>") && is_end("</s>")) {
    std::erase(ends, named["</s>"]);
    vocabulary.types[named["</s>"]] = TokenType::kNormal;
  }
}

}  // namespace

void FindEndTokens(const formats::Metadata& metadata, Vocabulary& vocabulary) {
  const NamedTokens named(vocabulary);
  const auto stated = [&](std::string_view key) {
    const auto id = metadata.Int(key);
    return id && vocabulary.Has(*id) ? static_cast<Token>(*id) : kNoToken;
  };
  std::vector<Token>& ends = vocabulary.end_tokens;

  for (const std::string_view text : kEndTexts) {
    const Token token = named[text];
    if (token == kNoToken) continue;
    vocabulary.types[token] = TokenType::kControl;
    ends.push_back(token);
  }
  for (const FillToken& fill : kFillTokens) {
    Token token = stated(fill.key);
    for (std::size_t i = 0; token == kNoToken && i < fill.texts.size(); ++i) {
      token = named[fill.texts[i]];
      if (token != kNoToken) vocabulary.types[token] = TokenType::kControl;
    }
    if (fill.ends && token != kNoToken) ends.push_back(token);
  }
  for (const std::string_view text : kMessageMarks)
    if (const Token token = named[text]; token != kNoToken)
      vocabulary.types[token] = TokenType::kUserDefined;
  for (const Token token : {vocabulary.eos, stated("tokenizer.ggml.eot_token_id"),
                            stated("tokenizer.ggml.eom_token_id")})
    if (token != kNoToken) ends.push_back(token);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  DropOrdinaryEnds(named, vocabulary);
}

void FindSuppressedTokens(const formats::Metadata& metadata, Vocabulary& vocabulary) {
  const auto* list = metadata.Ints("tokenizer.ggml.suppress_tokens");
  if (list == nullptr) return;
  for (const std::int64_t id : *list)
    if (vocabulary.Has(id)) vocabulary.never_drawn.push_back(static_cast<Token>(id));
}

void FindStrippingTokens(const formats::Metadata& metadata, Vocabulary& vocabulary) {
  const auto lower = [&](std::string_view key) {
    const std::string* value = metadata.String(key);
    std::string text = value == nullptr ? std::string() : *value;
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
  };
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  const std::string name = lower("general.name");
  const std::string architecture = lower("general.architecture");
  std::string_view mask;
  if (has(vocabulary.pattern_name, "jina-v2-") || has(architecture, "nomic-bert-moe") ||
      has(architecture, "jina-bert-v3")) {
    mask = "<mask>";
  } else if (has(name, "modern-bert")) {
    mask = "[MASK]";
  }
  const bool phi3 = mask.empty() && (has(name, "phi-3") || has(name, "phi3"));
  if (mask.empty() && !phi3) return;
  for (Token token = 0; token < vocabulary.size(); ++token) {
    const std::string_view text = vocabulary.texts[token];
    if (!mask.empty() && text == mask) vocabulary.strip_before.push_back(token);
    const bool kept = text == "<unk>" || text == "<s>" || text == "<|endoftext|>";
    if (phi3 && !kept && vocabulary.IsSpecial(token)) vocabulary.strip_after.push_back(token);
  }
}

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
  std::vector<PrefixIndex::Entry> all;
  std::vector<PrefixIndex::Entry> user_defined;
  for (Token token = 0; token < vocabulary.size(); ++token) {
    if (!vocabulary.IsSpecial(token)) continue;
    all.push_back({vocabulary.texts[token], token});
    if (vocabulary.types[token] == TokenType::kUserDefined) user_defined.push_back(all.back());
  }
  all_ = PrefixIndex(std::move(all));
  user_defined_ = PrefixIndex(std::move(user_defined));
}

std::vector<SpecialTokens::Occurrence> SpecialTokens::FindAll(std::string_view text,
                                                              const PrefixIndex& index) const {
  std::vector<Occurrence> found;
  for (std::size_t at = 0; at < text.size(); ++at) {
    PrefixIndex::Node node = index.Root();
    CountWork();
    for (std::size_t end = at; end < text.size() && index.Step(node, text[end]); ++end) {
      CountWork();
      const Token token = index.At(node);
      if (token != kNoToken) found.push_back({at, token});
    }
  }
  return found;
}

// Where the text from `begin` to `end` begins, once the token before it has swallowed white space.
std::size_t SpecialTokens::TextBegin(std::string_view text, std::size_t begin, std::size_t end,
                                     Token before) const {
  if (Contains(vocabulary_.strip_after, before)) {
    while (begin < end && IsSpace(text[begin])) ++begin;
  }
  return begin;
}

// Where the text ends, with the token behind it.
std::size_t SpecialTokens::TextEnd(std::string_view text, std::size_t begin, std::size_t end,
                                   Token behind) const {
  if (Contains(vocabulary_.strip_before, behind)) {
    while (begin < end && IsSpace(text[end - 1])) --end;
  }
  return end;
}

std::vector<Fragment> SpecialTokens::Split(std::string_view text, bool parse_special) const {
  std::vector<Occurrence> found = FindAll(text, parse_special ? all_ : user_defined_);
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
  Token before = kNoToken;
  const auto add_text = [&](std::size_t end, Token behind) {
    const std::size_t begin = TextBegin(text, done, end, before);
    end = TextEnd(text, begin, end, behind);
    if (end > begin) fragments.push_back({kNoToken, begin, end - begin});
  };
  for (const Occurrence& occurrence : kept) {
    add_text(occurrence.begin, occurrence.token);
    fragments.push_back({occurrence.token, occurrence.begin, size_of(occurrence.token)});
    done = occurrence.begin + size_of(occurrence.token);
    before = occurrence.token;
  }
  add_text(text.size(), kNoToken);
  return fragments;
}

}  // namespace foretoken::text
