// SPDX-License-Identifier: Apache-2.0
#include "train/head_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>

#include "train/corpus.h"
#include "train/machine.h"
#include "train/model_task.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

auto Refuse(std::string what) {
  return Fail(ErrorCode::kInvalidArgument, std::move(what));
}

// A hash that changes with any weight of the file.
std::uint64_t HashOf(const formats::Checkpoint& file) {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a, eight bytes at a time
  for (const formats::TensorView& tensor : file.tensors())
    for (const auto place : tensor.places())
      for (std::size_t i = 0; i < place.size(); i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, place.data() + i, std::min<std::size_t>(8, place.size() - i));
        hash = (hash ^ word) * 1099511628211ULL;
      }
  return hash;
}

// The most frequent tokens, in ascending order.
std::vector<std::int64_t> MostFrequent(const Corpus& corpus, int vocabulary, int n) {
  constexpr std::int64_t kWindows = 1 << 14;  // of a long text: more would hardly change the order
  const Tensor rows =
      corpus.EvenRows(static_cast<int>(std::min<std::int64_t>(kWindows, corpus.windows())));
  const Tensor counts = torch::bincount(rows.flatten(), {}, vocabulary);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(vocabulary));
  std::iota(ids.begin(), ids.end(), 0);
  const auto* count = counts.data_ptr<std::int64_t>();
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::int64_t a, std::int64_t b) { return count[a] > count[b]; });
  ids.resize(static_cast<std::size_t>(n));
  std::sort(ids.begin(), ids.end());
  return ids;
}

Status CheckLayers(const std::vector<int>& layers, int n_layers) {
  const std::string text = fmt::format("{}", fmt::join(layers, ","));
  if (layers.size() != 3)
    return Refuse(fmt::format("layers: '{}' are {}; an EAGLE-3 head reads three, such as {}",
                              Shown(text), layers.size(), fmt::join(DefaultLayers(n_layers), ",")));
  for (const int layer : layers)
    if (layer < 0 || layer > n_layers)
      return Refuse(
          fmt::format("layers: {} is none of the target's; use 0 to {} ({} is the output of the "
                      "last block)",
                      layer, n_layers, n_layers));
  if (std::set<int>(layers.begin(), layers.end()).size() != layers.size())
    return Refuse(fmt::format("layers: '{}' names one twice; name three", Shown(text)));
  return {};
}

Result<NetworkConfig> BlockConfig(const HeadOptions& o, const NetworkConfig& target) {
  NetworkConfig c = target;
  if (o.kind == HeadKind::kMtp) return c;
  c.architecture = "eagle3";
  c.n_layers = 1, c.n_next_layers = 0;
  c.qkv_bias = c.qk_norm = false;
  c.rope.interleaved = true;
  c.rope.freq_scale = 1;
  if (o.ff > 0) c.ff = o.ff;
  if (o.kv_heads > 0) c.n_kv_heads = o.kv_heads;
  if (o.heads > 0 && o.heads != target.n_heads) {
    if (target.dim % o.heads != 0 || target.dim / o.heads % 8 != 0)
      return Refuse(fmt::format(
          "heads: a width of {} does not give {} heads of a multiple of 8; use another number",
          target.dim, o.heads));
    c.n_heads = o.heads;
    c.head_dim = c.rope.n_rot = target.dim / o.heads;
  }
  if (c.n_heads % c.n_kv_heads != 0)
    return Refuse(fmt::format("heads: {} heads cannot share {} key heads; use a divisor", c.n_heads,
                              c.n_kv_heads));
  return c;
}

// What a head does on held-out text, by step.
struct HeadFigures {
  explicit HeadFigures(int steps)
      : divergence(static_cast<std::size_t>(steps)), agree(divergence), joint(divergence) {}
  std::vector<double> divergence, agree, joint;  // sums over rows
  double rows = 0;

  std::string Text() const {
    const auto list = [&](const std::vector<double>& sums, const char* format) {
      std::string text;
      for (const double sum : sums)
        text += (text.empty() ? "" : " ") + fmt::format(fmt::runtime(format), sum / rows);
      return text;
    };
    const double length = 1 + std::accumulate(joint.begin(), joint.end(), 0.0) / rows;
    return fmt::format(
        "held-out by step: KL {}; agrees with the target's best token {}; with all before it {}; "
        "mean acceptance length {:.3f}",
        list(divergence, "{:.3f}"), list(agree, "{:.3f}"), list(joint, "{:.3f}"), length);
  }
};

class HeadTask : public Task {
 public:
  HeadTask(HeadOptions options, std::string out)
      : options_(std::move(options)), out_(std::move(out)) {}

  Status Open(const TrainingOptions& training) {
    FORETOKEN_CHECK_OK(OpenFrozen());
    FORETOKEN_CHECK_OK(CheckPlaces());
    if (training.window <= 2 * options_.unroll)
      return Refuse(fmt::format("window: {} tokens are too few for {} steps; use a larger --window",
                                training.window, options_.unroll));
    const NetworkConfig& c = target_.config;
    FORETOKEN_TRY(head_.block, BlockConfig(options_, c));
    head_.kind = options_.kind;
    if (options_.kind == HeadKind::kEagle) {
      head_.layers = options_.layers.empty() ? DefaultLayers(c.n_layers) : options_.layers;
      FORETOKEN_CHECK_OK(CheckLayers(head_.layers, c.n_layers));
    } else {
      head_.prefix = fmt::format("blk.{}.", c.n_layers);
    }
    if (options_.draft_vocabulary < 0 || options_.draft_vocabulary > c.vocabulary)
      return Refuse(
          fmt::format("draft vocabulary: {} is out of range; use 1 to the target's {}, "
                      "or 0 for the target's own output head",
                      options_.draft_vocabulary, c.vocabulary));
    FORETOKEN_TRY(corpus_, LoadCorpus(options_.text, *target_.tokenizer, training));
    if (!options_.held_out.empty()) {
      FORETOKEN_TRY(held_out_, LoadCorpus(options_.held_out, *target_.tokenizer, training));
    }
    MakeParameters(training.seed);
    return {};
  }

  Parameters& parameters() override { return parameters_; }

  Tensor Loss(const Leaves& leaves, std::int64_t first_row, int n_rows) override {
    const HeadInput input = Read(corpus_->Rows(first_row, n_rows));
    return UnrolledLoss(Unroll(head_, leaves, input, options_.unroll), OutputHead(leaves),
                        input.normed, target_head_, head_.Shift(), options_.decay);
  }

  std::string Evaluate(const Leaves& leaves) override {
    if (!held_out_) return "no held-out text";
    constexpr std::int64_t kTogether = 4;
    HeadFigures figures(options_.unroll);
    const Tensor rows = held_out_->EvenRows(32);
    for (std::int64_t r = 0; r < rows.size(0); r += kTogether)
      Measure(leaves, rows.narrow(0, r, std::min(kTogether, rows.size(0) - r)), figures);
    return figures.Text();
  }

  std::string Fingerprint() const override {
    const NetworkConfig& c = head_.block;
    return fmt::format(
        "{} of target {:016x} layers {} heads {}/{} size {} ff {} draft vocabulary {} unroll {} "
        "decay {} {}",
        options_.kind == HeadKind::kEagle ? "eagle" : "mtp", hash_, fmt::join(head_.layers, ","),
        c.n_heads, c.n_kv_heads, c.head_dim, c.ff, options_.draft_vocabulary, options_.unroll,
        options_.decay, corpus_->Fingerprint());
  }

  Status Export() override {
    if (options_.kind == HeadKind::kEagle) return ExportEagle();
    FORETOKEN_CHECK_OK(ExportMtp(out_, false));
    return options_.into.empty() ? Status{} : ExportMtp(options_.into, true);
  }

 private:
  Status OpenFrozen() {
    if (options_.target.empty())
      return Refuse("target: none is given; name a GGUF model with --target");
    FORETOKEN_TRY(target_, OpenTarget(options_.target));
    if (options_.kind == HeadKind::kMtp && target_.config.n_next_layers > 0)
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format("{}: it holds an MTP head already; use the file without", options_.target));
    if (options_.kind == HeadKind::kMtp) FORETOKEN_CHECK_OK(CheckBlocks());
    hash_ = HashOf(*target_.file);
    const torch::Dtype compute = FastType(target_.parameters.all()[0].value);
    frozen_.emplace(target_.parameters, compute, false);
    full_head_ =
        (*frozen_)[frozen_->Has("output.weight") ? "output.weight" : "token_embd.weight"].to(
            compute);
    return {};
  }

  // The head is the block behind the target's last; its place must be free.
  Status CheckBlocks() const {
    const std::string block = fmt::format("blk.{}.", target_.config.n_layers);
    for (const formats::TensorView& tensor : target_.file->tensors())
      if (tensor.name.starts_with(block))
        return Fail(ErrorCode::kInvalidFile,
                    fmt::format("{}: tensor {}: the metadata tell of {} blocks only; the file is "
                                "damaged, fetch it again",
                                options_.target, Shown(tensor.name), target_.config.n_layers));
    return {};
  }

  Status CheckPlaces() const {
    if (options_.into.empty()) return {};
    std::error_code none;
    for (const std::string& other : {options_.target, out_})
      if (options_.into == other || std::filesystem::equivalent(options_.into, other, none))
        return Refuse(fmt::format("into: {} is in use by this run; choose another file", other));
    return CheckRoom(0, static_cast<std::int64_t>(target_.file->file_bytes() * 5 / 4),
                     options_.into);
  }

  void MakeParameters(std::uint64_t seed) {
    parameters_ = InitHead(head_, target_.config, target_.parameters, seed);
    target_head_ = full_head_;
    if (options_.draft_vocabulary > 0) {
      ids_ = MostFrequent(*corpus_, target_.config.vocabulary, options_.draft_vocabulary);
      const Tensor rows = torch::tensor(ids_).to(BestDevice());
      target_head_ = full_head_.index_select(0, rows);
      parameters_.Add("output.weight", ParameterKind::kTable, target_head_.to(torch::kFloat));
    }
    for (Parameter& p : parameters_.all()) p.value = p.value.to(BestDevice());
  }

  HeadInput Read(const Tensor& rows) const {
    return RunTarget(head_, target_.config, *frozen_, rows.to(BestDevice()));
  }
  const Tensor& OutputHead(const Leaves& leaves) const {
    return ids_.empty() ? target_head_ : leaves["output.weight"];
  }

  void Measure(const Leaves& leaves, const Tensor& rows, HeadFigures& figures) const {
    const HeadInput input = Read(rows);
    const Tensor hidden = Unroll(head_, leaves, input, options_.unroll);
    const Tensor head = OutputHead(leaves).to(hidden.scalar_type());
    const Tensor ids = torch::tensor(ids_).to(BestDevice());
    const std::int64_t length = hidden.size(2),
                       n = length - head_.Shift() - options_.unroll + 1;  // rows of every step
    for (std::int64_t b = 0; b < hidden.size(1); ++b) {
      const Tensor logits = torch::mm(input.normed[b], full_head_.t()).to(torch::kFloat);
      const Tensor best = logits.argmax(-1),
                   law = torch::softmax(ids_.empty() ? logits : logits.index_select(1, ids), -1);
      Tensor joint = torch::ones({n}, torch::TensorOptions(BestDevice()).dtype(torch::kBool));
      for (int s = 0; s < options_.unroll; ++s) {
        const auto step = static_cast<std::size_t>(s);
        const std::int64_t first = head_.Shift() + s;
        const Tensor drafts = torch::mm(hidden[s][b].narrow(0, 0, n), head.t());
        Tensor tokens = drafts.argmax(-1);
        if (!ids_.empty()) tokens = ids.index_select(0, tokens);
        const Tensor agree = tokens == best.narrow(0, first, n);
        joint = joint.logical_and(agree);
        figures.divergence[step] +=
            Divergence(drafts, law.narrow(0, first, n)).item<double>() * static_cast<double>(n);
        figures.agree[step] += agree.sum().item<double>();
        figures.joint[step] += joint.sum().item<double>();
      }
      figures.rows += static_cast<double>(n);
    }
  }

  std::string Name(const char* what) const {
    if (!options_.name.empty()) return options_.name;
    const std::string* name = target_.file->metadata().String("general.name");
    return (name != nullptr ? *name : "foretoken") + what;
  }

  Status ExportEagle() {
    formats::GgufWriter writer;
    TensorStore store(options_.type);
    DescribeModel(head_.block, Name(" EAGLE-3 head"), options_.license, writer);
    writer.Set("general.file_type", store.file_type());
    writer.Set("eagle3.target_layers",
               std::vector<std::int64_t>(head_.layers.begin(), head_.layers.end()));
    writer.Set("eagle3.target_hidden_size", std::int64_t{target_.config.dim});
    writer.Set("eagle3.norm_before_residual", false);
    CopyVocabulary(target_.file->metadata(), writer);
    for (const Parameter& p : parameters_.all()) store.Add(writer, p);
    if (!ids_.empty()) store.AddInt64(writer, "d2t", ids_);
    return writer.Write(out_);
  }

  // A file of the target's architecture with one more block; it contains only that block, or also
  // the target's own tensors.
  Status ExportMtp(const std::string& path, bool whole) {
    const formats::Metadata& metadata = target_.file->metadata();
    const std::string& arch = target_.config.architecture;
    formats::GgufWriter writer;
    TensorStore store(options_.type);
    if (!whole) {
      NetworkConfig described = target_.config;
      ++described.n_layers;
      DescribeModel(described, Name(" MTP head"), options_.license, writer);
      writer.Set("general.file_type", store.file_type());
    }
    for (const auto& [key, value] : metadata.all()) {
      if (!whole && !key.starts_with(arch + ".")) continue;
      if (key == "general.alignment" || key.starts_with("split.")) continue;
      auto copied = value;
      // A list with an entry for each block.
      if (auto* list = std::get_if<std::vector<std::int64_t>>(&copied);
          list != nullptr && !list->empty() && key.starts_with(arch + ".") &&
          list->size() == static_cast<std::size_t>(target_.config.n_layers))
        list->push_back(list->back());
      writer.Set(key, copied);
    }
    writer.Set(arch + ".block_count", std::int64_t{target_.config.n_layers + 1});
    writer.Set(arch + ".nextn_predict_layers", std::int64_t{1});
    if (whole)
      for (const formats::TensorView& tensor : target_.file->tensors()) store.Copy(writer, tensor);
    else
      CopyVocabulary(metadata, writer);
    for (const Parameter& p : parameters_.all()) store.Add(writer, p);
    return writer.Write(path);
  }

  HeadOptions options_;
  std::string out_;
  Target target_;
  std::uint64_t hash_ = 0;
  std::optional<Leaves> frozen_;
  Tensor full_head_, target_head_;  // of the target; of the tokens that the head can draft
  HeadConfig head_;
  std::vector<std::int64_t> ids_;  // of the draft vocabulary; empty: the target's
  std::optional<Corpus> corpus_, held_out_;
  Parameters parameters_;
};

}  // namespace

std::vector<int> DefaultLayers(int n_layers) {
  if (n_layers >= 7) return {2, n_layers / 2, n_layers - 3};
  // The output of the last block is avoided if possible, because programs take it from different
  // places.
  if (n_layers >= 4) return {1, n_layers / 2, n_layers - 1};
  return n_layers == 3 ? std::vector{0, 1, 2} : std::vector{0, n_layers / 2, n_layers};
}

Result<std::unique_ptr<Task>> MakeHeadTask(const HeadOptions& options,
                                           const TrainingOptions& training) {
  auto task = std::make_unique<HeadTask>(options, training.out);
  FORETOKEN_CHECK_OK(task->Open(training));
  return task;
}

}  // namespace foretoken::train
