// SPDX-License-Identifier: Apache-2.0
// train/text/corpus.h: text as tokens, and the order in which training reads them.
//
// Each document becomes BOS, its tokens, EOS; a source is the sequence of a file's documents.
// Training reads windows of `length + 1` tokens. The window of a row in a batch is a pure function
// of (seed, number of the row since the start). So a run that was stopped continues as if nothing
// had happened, and within one pass over a source no window comes twice.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "text/tokenizer/tokenizer.h"
#include "train/text/documents.h"

namespace foretoken::train {

// "stories.txt:0.5" on the command line: a file, and its share of the rows.
struct TextSource {
  std::string path;
  double share = 1;
};
[[nodiscard]] Result<TextSource> ParseTextSource(const std::string& text);

class Corpus {
 public:
  // Reads and encodes every source. Errors: those of ReadDocuments; kInvalidArgument (no source, a
  // source shorter than one window).
  [[nodiscard]] static Result<Corpus> Load(const std::vector<TextSource>& sources,
                                           const text::Tokenizer& tokenizer, int length,
                                           std::uint64_t seed);

  // Rows first_row .. first_row + n_rows - 1 of the whole run: int64 [n_rows, length + 1].
  torch::Tensor Rows(std::int64_t first_row, int n_rows) const;

  // At most n_rows windows, spread evenly over each source: the same ones each time.
  torch::Tensor EvenRows(int n_rows) const;

  std::int64_t n_tokens() const;
  std::int64_t n_bytes() const;  // of text
  std::int64_t windows() const;  // of one pass over every source
  // A text that changes when any token of any source, a share or the seed changes.
  std::string Fingerprint() const;

 private:
  struct Source {
    double share = 1;
    std::int64_t n_bytes = 0;
    std::vector<std::int32_t> tokens;
  };
  void Copy(const Source& source, std::int64_t begin, std::int64_t* row) const;
  std::int64_t Windows(const Source& source) const;

  std::vector<Source> sources_;
  std::vector<int> pattern_;  // which source the rows of a period read, by their shares
  std::vector<std::vector<std::int64_t>> before_;  // [period][source]: its rows before this one
  int length_ = 0;
  std::uint64_t seed_ = 0;
};

}  // namespace foretoken::train
