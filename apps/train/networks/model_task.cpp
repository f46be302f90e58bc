// SPDX-License-Identifier: Apache-2.0
#include "train/networks/model_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>
#include <set>

#include "train/run/machine.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

class ModelTask : public Task {
 public:
  ModelTask(ModelOptions options, std::string out)
      : options_(std::move(options)), out_(std::move(out)) {}

  Status Open(const TrainingOptions& training) {
    FORETOKEN_TRY(const auto tokenizer, OpenVocabulary(options_.vocabulary, vocabulary_));
    FORETOKEN_TRY(config_, ConfigOf(options_.shape, tokenizer->vocabulary_size()));
    FORETOKEN_TRY(corpus_, LoadCorpus(options_.text, *tokenizer, training));
    if (!options_.held_out.empty()) {
      FORETOKEN_TRY(held_out_, LoadCorpus(options_.held_out, *tokenizer, training));
    }
    parameters_ = InitModel(config_, options_.shape.tied, training.seed);
    for (Parameter& p : parameters_.all()) p.value = p.value.to(BestDevice());
    return {};
  }

  Parameters& parameters() override { return parameters_; }

  Tensor Loss(const Leaves& leaves, std::int64_t first_row, int n_rows) override {
    const Tensor rows = corpus_->Rows(first_row, n_rows).to(BestDevice());
    const std::int64_t length = rows.size(1) - 1;
    const Tensor normed = RunModel(config_, leaves, rows.narrow(1, 0, length));
    return CrossEntropy(Logits(leaves, normed).flatten(0, 1),
                        rows.narrow(1, 1, length).reshape(-1));
  }

  std::string Evaluate(const Leaves& leaves) override {
    return held_out_ ? HeldOutLoss(config_, leaves, *held_out_) : "no held-out text";
  }

  std::string Fingerprint() const override {
    return fmt::format("model {} tied {} vocabulary {} {}", options_.shape.Text(),
                       options_.shape.tied, config_.vocabulary, corpus_->Fingerprint());
  }

  Status Export() override {
    return WriteModel(out_, config_, parameters_, vocabulary_->metadata(), options_.type,
                      options_.name, options_.license);
  }

 private:
  ModelOptions options_;
  std::string out_;
  std::unique_ptr<formats::Checkpoint> vocabulary_;
  NetworkConfig config_;
  std::optional<Corpus> corpus_, held_out_;
  Parameters parameters_;
};

// The convolutions are blocks of the model, each named once, and not all of them.
Status CheckConvolutions(const ModelShape& s) {
  const auto refuse = [](std::string what) {
    return Fail(ErrorCode::kInvalidArgument, std::move(what));
  };
  for (const int block : s.convolutions)
    if (block < 0 || block >= s.layers)
      return refuse(fmt::format("convolutions: {} is none of the {} blocks; use 0 to {}", block,
                                s.layers, s.layers - 1));
  const std::set<int> all(s.convolutions.begin(), s.convolutions.end());
  if (all.size() != s.convolutions.size())
    return refuse(fmt::format("convolutions: '{}' names a block twice; name each once",
                              fmt::join(s.convolutions, ",")));
  if (static_cast<int>(all.size()) == s.layers)
    return refuse("convolutions: no block is left for attention; leave one");
  return {};
}

}  // namespace

std::string ModelShape::Text() const {
  return fmt::format("{}x{} heads {}/{} ff {} context {} convolutions {}", layers, dim, heads,
                     kv_heads, ff, context, fmt::join(convolutions, ","));
}

Result<NetworkConfig> ConfigOf(const ModelShape& s, int vocabulary) {
  const auto refuse = [](std::string what) {
    return Fail(ErrorCode::kInvalidArgument, std::move(what));
  };
  if (s.layers < 1 || s.dim < 8 || s.heads < 1 || s.kv_heads < 1 || s.ff < 8 || s.context < 8)
    return refuse(
        "shape: layers, width, heads and feed-forward width must be positive (widths and context "
        "at least 8)");
  if (s.dim % s.heads != 0 || s.dim / s.heads % 8 != 0)
    return refuse(
        fmt::format("shape: a width of {} does not give {} heads of a multiple of 8; "
                    "change one",
                    s.dim, s.heads));
  if (s.heads % s.kv_heads != 0)
    return refuse(fmt::format("shape: {} heads cannot share {} key heads; use a divisor", s.heads,
                              s.kv_heads));
  FORETOKEN_CHECK_OK(CheckConvolutions(s));
  NetworkConfig config;
  config.architecture = "llama";
  config.n_layers = s.layers, config.dim = s.dim, config.ff = s.ff;
  config.n_heads = s.heads, config.n_kv_heads = s.kv_heads, config.head_dim = s.dim / s.heads;
  config.vocabulary = vocabulary, config.context_length = s.context;
  config.rope.n_rot = config.head_dim;
  if (s.convolutions.empty()) return config;
  config.architecture = "lfm2";
  config.output_norm = "token_embd_norm";
  config.rope.interleaved = false;
  config.qk_norm = true;
  config.convolutions = s.convolutions, config.taps = 3;
  return config;
}

Result<Corpus> LoadCorpus(const std::vector<std::string>& texts, const text::Tokenizer& tokenizer,
                          const TrainingOptions& training) {
  std::vector<TextSource> sources;
  for (const std::string& text : texts) {
    FORETOKEN_TRY(auto source, ParseTextSource(text));
    sources.push_back(std::move(source));
  }
  return Corpus::Load(sources, tokenizer, training.window, training.seed);
}

std::string HeldOutLoss(const NetworkConfig& config, const Leaves& leaves, const Corpus& corpus) {
  const Tensor rows = corpus.EvenRows(32);
  double loss = 0;
  for (std::int64_t r = 0; r < rows.size(0); ++r) {
    const Tensor row = rows.narrow(0, r, 1).to(BestDevice());
    const std::int64_t length = row.size(1) - 1;
    const Tensor normed = RunModel(config, leaves, row.narrow(1, 0, length));
    loss += CrossEntropy(Logits(leaves, normed).flatten(0, 1), row.narrow(1, 1, length).reshape(-1))
                .item<double>();
  }
  loss /= static_cast<double>(rows.size(0));
  const double tokens_per_byte =
      static_cast<double>(corpus.n_tokens()) / static_cast<double>(corpus.n_bytes());
  return fmt::format("held-out loss {:.4f} nats per token, {:.4f} bits per byte", loss,
                     loss / std::log(2.0) * tokens_per_byte);
}

Status WriteModel(const std::string& path, const NetworkConfig& config,
                  const Parameters& parameters, const formats::Metadata& vocabulary, FileType type,
                  const std::string& name, const std::string& license) {
  formats::GgufWriter writer;
  TensorStore store(type);
  DescribeModel(config, name, license, writer);
  writer.Set("general.file_type", store.file_type());
  CopyVocabulary(vocabulary, writer);
  for (const Parameter& p : parameters.all()) store.Add(writer, p);
  return writer.Write(path);
}

Result<std::unique_ptr<Task>> MakeModelTask(const ModelOptions& options,
                                            const TrainingOptions& training) {
  auto task = std::make_unique<ModelTask>(options, training.out);
  FORETOKEN_CHECK_OK(task->Open(training));
  return task;
}

}  // namespace foretoken::train
