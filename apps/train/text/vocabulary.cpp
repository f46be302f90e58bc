// SPDX-License-Identifier: Apache-2.0
#include "train/text/vocabulary.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>

#include "formats/gguf_writer.h"
#include "train/text/documents.h"

namespace foretoken::train {
namespace {

// Lines of the documents, every n-th one where there are more than max_bytes.
class LineIterator : public sentencepiece::SentenceIterator {
 public:
  LineIterator(const std::vector<std::string>& documents, std::int64_t max_bytes) {
    std::int64_t bytes = 0;
    std::vector<std::string> all;
    for (const std::string& document : documents)
      for (std::size_t begin = 0; begin < document.size();) {
        std::size_t end = document.find('\n', begin);
        if (end == std::string::npos) end = document.size();
        // Long paragraphs in parts: the trainer drops what is longer than its limit.
        for (; begin < end; begin += std::min<std::size_t>(4000, end - begin)) {
          all.push_back(document.substr(begin, std::min<std::size_t>(4000, end - begin)));
          bytes += static_cast<std::int64_t>(all.back().size());
        }
        begin = end + 1;
      }
    const auto stride = static_cast<std::size_t>(bytes / std::max<std::int64_t>(1, max_bytes)) + 1;
    for (std::size_t i = 0; i < all.size(); i += stride) lines_.push_back(std::move(all[i]));
  }
  bool done() const override { return next_ >= lines_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return lines_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> lines_;
  std::size_t next_ = 0;
};

}  // namespace

Status TrainVocabulary(const VocabularyOptions& options) {
  if (options.size < 300 || options.size > 1 << 20)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("vocabulary size: {} is out of range; use 300 to 1048576", options.size));
  std::vector<std::string> documents;
  for (const std::string& path : options.text) {
    FORETOKEN_TRY(auto some, ReadDocuments(path));
    std::move(some.begin(), some.end(), std::back_inserter(documents));
  }
  LineIterator lines(documents, options.max_bytes);
  std::string model;
  const auto trained = sentencepiece::SentencePieceTrainer::Train(
      fmt::format("--model_type=bpe --vocab_size={} --byte_fallback=true "
                  "--normalization_rule_name=identity "
                  "--remove_extra_whitespaces=false --character_coverage=0.9999 --num_threads={} "
                  "--max_sentence_length=8192 --minloglevel=2 --split_digits=true",
                  options.size, options.threads),
      &lines, &model);
  if (!trained.ok())
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("vocabulary: {}; give more text or a smaller --size", trained.error_message()));
  sentencepiece::SentencePieceProcessor pieces;
  if (const auto loaded = pieces.LoadFromSerializedProto(model); !loaded.ok())
    return Fail(ErrorCode::kInvalidFile, fmt::format("vocabulary: {}", loaded.error_message()));

  std::vector<std::string> tokens;
  std::vector<double> scores;
  std::vector<std::int64_t> types;
  for (int id = 0; id < pieces.GetPieceSize(); ++id) {
    tokens.push_back(pieces.IdToPiece(id));
    scores.push_back(static_cast<double>(pieces.GetScore(id)));
    types.push_back(pieces.IsUnknown(id)   ? 2
                    : pieces.IsControl(id) ? 3
                    : pieces.IsByte(id)    ? 6
                                           : 1);
  }
  formats::GgufWriter writer;
  writer.Set("general.architecture", std::string("llama"));
  writer.Set("general.type", std::string("vocabulary"));
  writer.Set("tokenizer.ggml.model", std::string("llama"));
  writer.Set("tokenizer.ggml.tokens", tokens);
  writer.Set("tokenizer.ggml.scores", scores);
  writer.Set("tokenizer.ggml.token_type", types);
  writer.Set("tokenizer.ggml.unknown_token_id", std::int64_t{pieces.unk_id()});
  writer.Set("tokenizer.ggml.bos_token_id", std::int64_t{pieces.bos_id()});
  writer.Set("tokenizer.ggml.eos_token_id", std::int64_t{pieces.eos_id()});
  writer.Set("tokenizer.ggml.add_bos_token", true);
  writer.Set("tokenizer.ggml.add_eos_token", false);
  writer.Set("tokenizer.ggml.add_space_prefix", true);
  return writer.Write(options.out);
}

}  // namespace foretoken::train
