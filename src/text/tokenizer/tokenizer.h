// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/tokenizer.h: text to tokens and back, with the vocabulary of a GGUF file.
//
// Five families: SentencePiece BPE ("llama": merges by score, byte fallback), byte-level BPE ("gpt2":
// a pre-tokenizer pattern, then ranked merges), character BPE ("gemma4": the same on characters),
// Unigram ("t5") and WordPiece ("bert"). Immutable after Load; any thread may use it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "foretoken/result.h"
#include "formats/metadata.h"

namespace foretoken::text {

struct EncodeOptions {
  bool add_special = true;  // add BOS / EOS if the file's add_bos / add_eos say so
  // Recognise control tokens written in the text ("<|im_end|>"); otherwise they are plain text.
  bool parse_special = false;
  bool continues = false;  // the text follows other text: no space is put before it
};

// A part of a text. Only trusted parts may contain control tokens.
struct TextPart {
  std::string text;
  bool trusted = false;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Errors: kInvalidFile (missing or inconsistent lists, more than 2^24 tokens, a damaged map of
  // characters), kUnsupported (an
  // unknown tokenizer.ggml.model; the message has its name and the known ones). An unknown
  // tokenizer.ggml.pre falls back to the default pattern; description() then says so.
  [[nodiscard]] static Result<std::unique_ptr<Tokenizer>> Load(const formats::Metadata& metadata);

  // Any bytes are accepted, valid UTF-8 or not; Decode(Encode(x)) gives x back (except
  // SentencePiece's own leading space, and what Unigram and WordPiece leave out).
  virtual std::vector<Token> Encode(std::string_view text, EncodeOptions options = {}) const = 0;

  // Encodes the parts as one text without BOS and EOS: tokens may cross the borders of parts, but
  // control tokens are recognised inside of trusted parts only.
  virtual std::vector<Token> EncodeParts(std::span<const TextPart> parts) const = 0;

  // The bytes that one token stands for. Control tokens give "", or their text if special is set;
  // ids out of range give "".
  virtual std::string Piece(Token token, bool special = false) const = 0;

  // The text of a sequence. If remove_leading_space is set, removes the leading space that
  // SentencePiece's encoder added, if the first text token has one.
  virtual std::string Decode(std::span<const Token> tokens, bool special = false,
                             bool remove_leading_space = true) const = 0;

  virtual int vocabulary_size() const = 0;
  virtual const std::string& TokenText(
      Token token) const = 0;  // as the file spells it ("▁the", "Ġthe", "<0x0A>")
  virtual bool IsControl(Token token) const = 0;
  virtual bool IsEndOfGeneration(
      Token token) const = 0;                         // EOS, EOT, EOM and their relatives by name
  virtual std::vector<Token> end_tokens() const = 0;  // all of those, ascending
  // Tokens that no text may get, although the network gives them probability.
  virtual std::vector<Token> never_drawn() const { return {}; }
  virtual std::optional<Token> bos() const = 0;
  virtual std::optional<Token> eos() const = 0;
  virtual bool add_bos() const = 0;
  virtual bool add_eos() const = 0;
  virtual bool adds_space_prefix() const = 0;  // SentencePiece's add_space_prefix
  virtual std::string description()
      const = 0;  // "SentencePiece BPE, 32000 tokens", "byte-level BPE (llama-bpe), ..."
};

}  // namespace foretoken::text
