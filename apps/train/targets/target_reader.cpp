// SPDX-License-Identifier: Apache-2.0
#include "train/targets/target_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/dispatch.h"
#include "kv/transaction.h"
#include "model/arch/registry.h"
#include "tensor/dtype.h"
#include "train/networks/gguf.h"
#include "train/run/machine.h"
#include "train/text/sample.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

constexpr int kRows = 256;  // of one pass

Tensor RowsOf(const formats::TensorView& view, const std::int64_t* rows, std::int64_t n) {
  Tensor values = torch::empty({n, view.shape[0]});
  const tensor::DType type = tensor::FindDType(view.ggml_type)->type;
  for (std::int64_t i = 0; i < n; ++i)
    tensor::Dequantize(type, view.Row(rows[i]), view.shape[0],
                       values.data_ptr<float>() + i * view.shape[0]);
  return values;
}

// 0, 1, ..., n - 1
std::vector<std::int64_t> Numbers(std::int64_t n) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// A window is one text, and nothing of it is taken back.
kv::TablesShape TablesFor(const model::ModelConfig& config, int window) {
  kv::TablesShape shape{.max_positions = window, .pass_rows = kRows};
  for (const model::LayerConfig& layer : config.layers) {
    shape.window = std::max(shape.window, layer.window());
    if (layer.recurrent()) shape.state_rows = 1;
  }
  return shape;
}

}  // namespace

Result<std::unique_ptr<TargetReader>> TargetReader::Open(const std::string& path,
                                                         const TrainingOptions& training) {
  if (path.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "target: none is given; name a model file with --target");
  std::unique_ptr<formats::Checkpoint> file;
  FORETOKEN_TRY(auto tokenizer, OpenVocabulary(path, file));
  const int threads = training.threads > 0 ? training.threads : at::get_num_threads();
  std::unique_ptr<TargetReader> reader(
      new TargetReader(std::move(file), std::move(tokenizer), threads));
  if (auto loaded = reader->Load(training); !loaded)
    return Fail(loaded.error().code == ErrorCode::kInvalidArgument
                    ? std::move(loaded).error()
                    : std::move(loaded).error().In(path));
  return reader;
}

Status TargetReader::Load(const TrainingOptions& training) {
  FORETOKEN_TRY(auto config, model::ConfigFromMetadata(file_->metadata()));
  FORETOKEN_TRY(config.vocabulary, model::VocabularyRows(*file_));
  if (tokenizer_->vocabulary_size() > config.vocabulary)
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("tokenizer: it has {} tokens, the embedding only {} rows; the file is "
                            "inconsistent",
                            tokenizer_->vocabulary_size(), config.vocabulary));
  if (training.window > config.context_length)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("window: {} tokens are more than the target's context of {}; use a "
                            "smaller --window",
                            training.window, config.context_length));
  FORETOKEN_CHECK_OK(CheckRoom(model::WeightBytesOf(*file_).tiles() * 5 / 4, 0, training.out));
  const kv::TablesShape shape = TablesFor(config, training.window);
  tables_.emplace(shape);
  FORETOKEN_TRY(const kernels::Kernels* kernels, kernels::KernelsFromEnvironment());
  const model::RunnerOptions options = {
      .max_rows = kRows,
      .max_logit_rows = 1,
      .max_positions = config.context_length,  // as an engine has it: rotations may depend on it
      .cache = {.n_blocks = shape.n_blocks(), .n_window_blocks = shape.n_window_blocks()},
      .state = {.n_sequences = 1, .rows = shape.state_rows}};
  FORETOKEN_TRY(runner_, model::LocalRunner::Load(*file_, config, options, *kernels, pool_, {}));
  hash_ = HashOfWeights(*file_);
  window_.resize(static_cast<std::size_t>(training.window));
  Keep({});
  return {};
}

void TargetReader::Keep(const std::vector<int>& layers) {
  runner_->KeepFeatures({.layers = layers, .normed = true});
}

TargetReader::States TargetReader::Read(const Tensor& tokens) {
  const Tensor rows = tokens.to(torch::kCPU).contiguous();
  const std::int64_t batch = rows.size(0), length = rows.size(1),
                     width = runner_->info().features_width, dim = config().dim;
  Tensor states = torch::empty({batch, length, width});
  for (std::int64_t b = 0; b < batch; ++b)
    ReadWindow(rows.data_ptr<std::int64_t>() + b * length, static_cast<int>(length),
               states.data_ptr<float>() + b * length * width);
  states = states.to(BestDevice());
  return {states.narrow(-1, 0, width - dim), states.narrow(-1, width - dim, dim)};
}

// states: [length, features_width]
void TargetReader::ReadWindow(const std::int64_t* tokens, int length, float* states) {
  std::copy_n(tokens, length, window_.begin());
  tables_->Truncate(0, 0);
  for (int begin = 0; begin < length; begin += kRows) {
    const int n = std::min(kRows, length - begin);
    kv::Segment segment{.n_rows = n, .first_position = begin, .n_certain = n};
    kv::Transaction transaction(*tables_, {&segment, 1});
    const model::PassResult& result =
        runner_->Run({.tokens = std::span(window_).subspan(static_cast<std::size_t>(begin),
                                                           static_cast<std::size_t>(n)),
                      .segments = {&segment, 1}});
    std::memcpy(states + begin * result.features_width, result.features,
                static_cast<std::size_t>(n * result.features_width) * sizeof(float));
    transaction.Commit({&n, 1});
  }
}

Tensor TargetReader::Embedded(const Tensor& tokens) const {
  const Tensor ids = tokens.to(torch::kCPU).contiguous();
  std::vector<std::int64_t> sizes = ids.sizes().vec();
  sizes.push_back(config().dim);
  return RowsOf(*file_->Find("token_embd.weight"), ids.data_ptr<std::int64_t>(), ids.numel())
      .view(sizes)
      .to(BestDevice());
}

Tensor TargetReader::OutputRows(const std::vector<std::int64_t>& ids, torch::Dtype type) const {
  constexpr std::int64_t kAtOnce = 4096;  // the F32 copy of a large vocabulary is never whole
  const formats::TensorView* own = file_->Find("output.weight");
  const formats::TensorView& view = own != nullptr ? *own : *file_->Find("token_embd.weight");
  const std::vector<std::int64_t> rows = ids.empty() ? Numbers(view.shape[1]) : ids;
  const auto n = static_cast<std::int64_t>(rows.size());
  Tensor values = torch::empty({n, view.shape[0]}, type);
  for (std::int64_t begin = 0; begin < n; begin += kAtOnce) {
    const std::int64_t some = std::min(kAtOnce, n - begin);
    values.narrow(0, begin, some).copy_(RowsOf(view, rows.data() + begin, some));
  }
  return values.to(BestDevice());
}

std::optional<Tensor> TargetReader::Values(const std::string& name) const {
  const formats::TensorView* view = file_->Find(name);
  if (view == nullptr) return {};
  const std::int64_t n = view->n_rows();
  const std::span shape = std::span(view->shape).first(static_cast<std::size_t>(view->n_dims));
  return RowsOf(*view, Numbers(n).data(), n)
      .view(std::vector<std::int64_t>(shape.rbegin(), shape.rend()));
}

}  // namespace foretoken::train
