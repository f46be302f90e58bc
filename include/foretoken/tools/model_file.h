// SPDX-License-Identifier: Apache-2.0
// foretoken/tools/model_file.h: reads a model file's metadata, tensors and tokenizer without loading it,
// tells which drafters fit it, and writes it in another number type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/result.h"

namespace foretoken {

struct TensorSummary {
  std::string name, type;           // "Q4_0"
  std::vector<std::int64_t> shape;  // ggml's order: row length first
  std::int64_t bytes = 0;
  bool supported = true;  // foretoken computes with this type
  // Whether a vector kernel computes with this type here (FORETOKEN_ISA counts), not the slow scalar
  // one.
  bool has_vector_kernel = true;
};

// Compares two vocabularies id by id. A model or head can draft for a target if nearly all of the
// target's tokens have the same ids in its own vocabulary. The other tokens, padding or a few special
// ones, are never drafted; where the text has them, the draft model reads another token. A draft model
// of another vocabulary uses a TokenMap instead; a head cannot.
struct VocabularyDifference {
  int target = 0, draft = 0;            // numbers of tokens
  std::vector<std::int32_t> differing;  // ids with different texts in the two; ascending
  std::vector<std::string> first;       // the first few of these: "17: 'a' / 'b'"

  // How many of the target's tokens the draft has too.
  int shared() const;
  bool same() const { return target == draft && differing.empty(); }
  // "152064 and 151936 tokens, of which 151936 are shared", and the first ids that differ.
  std::string Describe() const;
  // Why the two are not one vocabulary, with the words of Describe; "" if nearly all tokens are shared.
  std::string obstacle() const;
};

// How a draft model of another vocabulary reads and writes a target's tokens.
//
// Two tokens are a pair if they stand for the same bytes and are of the same kind: both text, or both
// control tokens of one spelling. The tokens that begin a text are a pair too, and those that end one.
// A draft model may draft the tokens of the pairs: its distribution over them, renormalised, is that
// of the draft. It reads the target's text token by token: of a pair its own token, else its own
// encoding of the token's bytes; a control token without a counterpart is left out. So every position
// of the text has one reading, whatever follows.
struct TokenMap {
  struct Pair {
    std::int32_t target = 0, draft = 0;
  };
  int target = 0, draft = 0;  // numbers of tokens
  std::vector<Pair> pairs;    // ascending by the target's token; no token of either comes twice
  // The draft's tokens for each of the target's, one behind the other; those of token t begin at
  // begins[t] and end at begins[t + 1].
  std::vector<std::int32_t> tokens;
  std::vector<std::size_t> begins;

  // REQUIRES: 0 <= token < target.
  std::span<const std::int32_t> Reading(std::int32_t token) const {
    const auto at = static_cast<std::size_t>(token);
    return std::span(tokens).subspan(begins[at], begins[at + 1] - begins[at]);
  }
};

// What an engine takes that runs one text with this model.
struct ModelMemory {
  MemoryNeeds needs;
  int context_size = 0;              // tokens of the text
  std::int64_t available_bytes = 0;  // memory that is to be had now
  bool experts_paged = false;        // the experts do not fit, and passes read them from a file
  std::string obstacle = {};         // why the model cannot be opened here; "" if it can
};

class ModelFile {
 public:
  // Errors: those of the file, each with its place.
  [[nodiscard]] static Result<std::unique_ptr<ModelFile>> Open(const std::string& path);
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  std::string format() const;  // "GGUF v3"
  std::int64_t file_bytes() const;
  std::int64_t parameters() const;
  std::string type() const;  // of most weights
  // Key and value as text, sorted by key; long arrays are shortened: "[32000 strings: <unk>, <s>,
  // ...]".
  std::vector<std::pair<std::string, std::string>> metadata() const;
  std::vector<TensorSummary> tensors() const;
  // "" if this build can run the model, else the reason.
  std::string obstacle() const;
  // False for a head, which only drafts for the target that it was trained for.
  bool is_whole_model() const;
  // The speculative method for this file: "eagle", "mtp" (a head, or a model that contains one),
  // else "standalone".
  std::string drafts_as() const;

  // context_size: 0: the model's. Errors: the file is not a whole model, or not one that runs here.
  [[nodiscard]] Result<ModelMemory> Memory(int context_size = 0);

  // A description of the file's tokenizer; works for vocabulary-only files too. Errors: the file
  // has none, or an unsupported one.
  [[nodiscard]] Result<std::string> DescribeTokenizer();
  [[nodiscard]] Result<std::vector<std::int32_t>> Tokenize(const std::string& text,
                                                           bool add_special, bool parse_special);
  [[nodiscard]] Result<std::string> Detokenize(std::span<const std::int32_t> tokens, bool special);
  [[nodiscard]] Result<std::vector<std::string>> Pieces(
      std::span<const std::int32_t> tokens);  // each token's text, as the file spells it
  // Compares this file, as the target, with another that drafts for it. Errors: as
  // DescribeTokenizer.
  [[nodiscard]] Result<VocabularyDifference> CompareVocabulary(ModelFile& draft);
  // How that file's model reads and writes this one's tokens. Errors: as DescribeTokenizer.
  [[nodiscard]] Result<TokenMap> MapTokens(ModelFile& draft);

 private:
  class Impl;
  explicit ModelFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Which models and heads an engine would find in and beside a model's file to draft with
// (EngineOptions::find_drafters). No weights are loaded.
struct FoundDrafters {
  struct Drafter {
    std::string method;  // "eagle"
    std::string path;    // the model's own where its file contains the head
  };
  std::vector<Drafter> drafters;              // in the order in which an engine lists them
  std::vector<std::string> notices, details;  // about other files, as in EngineSummary
};

// The drafters of Engine::Open with the same options, if these name no file. Errors: those of the model's
// file, and as Engine::Open where a method that is named finds no file.
[[nodiscard]] Result<FoundDrafters> FindDrafters(EngineOptions options);

// The copy of its weights with which a model would draft for itself, in the types of
// SpeculativeOptions::self_draft.
struct ModelCopy {
  std::string types;       // "Q2_K"
  std::int64_t bytes = 0;  // of memory, more than without the copy
  double pass_share = 0;   // what its passes read over what those of the model read
  bool is_likely_to_pay =
      false;             // one that an engine would make unasked, if there is memory for it
  std::string obstacle;  // why memory has no room for it; ""
};

// That of Engine::Open with the same options. No weights are loaded. Errors: those of the model's file;
// kInvalidArgument (no types).
[[nodiscard]] Result<ModelCopy> DescribeCopy(EngineOptions options);

// Those among which Engine::Open chooses, from the quickest one to the one whose drafts are accepted most: one where
// SpeculativeOptions::self_draft names its types. Errors: as DescribeCopy.
[[nodiscard]] Result<std::vector<ModelCopy>> DescribeCopies(EngineOptions options);

// ---- In another number type ---------------------------------------------------------------------
//
//   auto report = foretoken::QuantizeFile({.input = "model-F16.gguf",
//                                          .output = "model-Q4_K_M.gguf",
//                                          .type = "Q4_K_M"});
//
// Matrices are converted, vectors (norms, biases) and other tensors are copied, metadata are kept.
// Types: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q6_K, and mixes, which give some tensors more
// bits: Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M, Q3_K_S, Q3_K_M, Q3_K_L, Q2_K, IQ4_NL, IQ4_XS, MXFP4_MOE. Q3_K,
// Q4_K and Q5_K are other names of the _M mixes. Which
// tensor gets which type, and the blocks' numbers, follow llama.cpp's llama-quantize (without an
// importance matrix); docs/formats.md has the rules.

struct QuantizeProgress {
  std::string tensor;   // the one being converted
  double fraction = 0;  // [0, 1] of the whole file
};

struct QuantizeOptions {
  std::string input = {};   // a GGUF file; of a split model the first part
  std::string output = {};  // is replaced if it exists; one file, also for a split model
  std::string type = {};    // one of QuantizeTypes(), in capitals or not
  int threads = 0;          // 0: FORETOKEN_THREADS, else the cores
  // Quantised tensors lose more when they are quantised again, so that is an error unless this is
  // set. They may always be converted to F32, F16 and BF16.
  bool allow_requantize = false;
  bool pure = false;  // every matrix in the type itself: no mix, no larger type for the output head
  // Number types of single tensors, "" for the rule's type: the output head (the token embedding if
  // it serves as head), and the token embedding.
  std::string output_tensor_type = {};
  std::string token_embedding_type = {};
  // Called from time to time on the caller's thread; false stops, and no output is left.
  std::function<bool(const QuantizeProgress&)> on_progress = {};
};

// The tensors of one number type in the output.
struct QuantizedType {
  std::string type;
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
  std::int64_t converted = 0;  // values that had another type before
  double rmse = 0;             // root of the mean squared error of those
};

struct QuantizeReport {
  std::string type;  // "Q4_K_M"
  std::int64_t input_bytes = 0, output_bytes = 0;
  std::int64_t parameters = 0;
  double bits_per_weight = 0;  // of the output, vectors included
  double rmse = 0;             // over all converted values
  std::int64_t fallbacks = 0;  // tensors whose rows do not fit the blocks of their type
  double seconds = 0;
  int threads = 0;
  std::vector<QuantizedType> types;  // the one with the most bytes first
};

// Names that QuantizeOptions::type may have.
std::vector<std::string> QuantizeTypes();

// Reads and writes in pieces: memory stays at some tens of megabytes for files of any size. The
// result is the same for any number of threads. The output appears when it is complete; after an
// error, a stop or a kill there is none, or the old one.
//
// Errors: those of the input file; kInvalidArgument (an unknown type, the input as output, a
// quantised tensor without allow_requantize); kUnsupported (a matrix of a type that foretoken does
// not read); kInvalidFile (NaN, infinities, values too large for the new type); kIo (no space, a
// stop by on_progress).
[[nodiscard]] Result<QuantizeReport> QuantizeFile(const QuantizeOptions& options);

}  // namespace foretoken
