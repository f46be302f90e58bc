// SPDX-License-Identifier: Apache-2.0
#include "train/heads/head_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>

#include "model/arch/registry.h"
#include "train/heads/block_network.h"
#include "train/heads/head_files.h"
#include "train/networks/model_task.h"
#include "train/run/machine.h"
#include "train/text/corpus.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

auto Refuse(std::string what) {
  return Fail(ErrorCode::kInvalidArgument, std::move(what));
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
  if (layers.size() > model::kMostFeatureLayers)
    return Refuse(fmt::format("layers: {} are too many; name at most {}", layers.size(),
                              model::kMostFeatureLayers));
  for (const int layer : layers)
    if (layer < 0 || layer > n_layers)
      return Refuse(
          fmt::format("layers: {} is none of the target's; use 0 to {} ({} is the output of the "
                      "last block)",
                      layer, n_layers, n_layers));
  if (std::set<int>(layers.begin(), layers.end()).size() != layers.size())
    return Refuse(fmt::format("layers: '{}' names one twice; name each once", Shown(text)));
  return {};
}

// The blocks of an EAGLE-3 head or a block drafter.
Result<NetworkConfig> OwnBlocks(const HeadOptions& o, const model::ModelConfig& target) {
  const bool eagle = o.kind == TrainedHead::kEagle;
  NetworkConfig c = BlockLike(target, eagle);
  c.architecture = eagle ? "eagle3" : "dflash";
  c.qk_norm = !eagle;
  c.n_layers = eagle ? 1 : o.blocks;
  if (o.ff > 0) c.ff = o.ff;
  if (o.kv_heads > 0) c.n_kv_heads = o.kv_heads;
  if (o.heads > 0 && o.heads != c.n_heads) {
    if (c.dim % o.heads != 0 || c.dim / o.heads % 8 != 0)
      return Refuse(fmt::format(
          "heads: a width of {} does not give {} heads of a multiple of 8; use another number",
          c.dim, o.heads));
    c.n_heads = o.heads;
    c.head_dim = c.rope.n_rot = c.dim / o.heads;
  }
  if (c.n_heads % c.n_kv_heads != 0)
    return Refuse(fmt::format("heads: {} heads cannot share {} key heads; use a divisor", c.n_heads,
                              c.n_kv_heads));
  return c;
}

// The block of an MTP head, with the factors of the target's rotation.
Result<NetworkConfig> MtpBlock(const TargetReader& target) {
  FORETOKEN_TRY(const model::ModelConfig next,
                model::MtpConfigFromMetadata(MetadataWithNextBlock(target)));
  FORETOKEN_TRY(NetworkConfig c, NextBlock(next));
  c.vocabulary = target.config().vocabulary;
  if (const auto factors = target.Values(std::string(c.rope.factors) + ".weight"))
    for (std::int64_t i = 0; i < factors->numel(); ++i)
      c.rope_factors.push_back((*factors)[i].item<float>());
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
    FORETOKEN_TRY(target_, TargetReader::Open(options_.target, training));
    FORETOKEN_CHECK_OK(CheckPlaces());
    if (training.window <= 2 * Steps())
      return Refuse(fmt::format("window: {} tokens are too few for {} steps; use a larger --window",
                                training.window, Steps()));
    head_.kind = options_.kind;
    FORETOKEN_CHECK_OK(options_.kind == TrainedHead::kMtp ? DescribeMtp(training) : DescribeOwn());
    target_->Keep(head_.layers);
    const int vocabulary = target_->config().vocabulary;
    if (options_.draft_vocabulary < 0 || options_.draft_vocabulary > vocabulary)
      return Refuse(
          fmt::format("draft vocabulary: {} is out of range; use 1 to the target's {}, "
                      "or 0 for the target's own output head",
                      options_.draft_vocabulary, vocabulary));
    FORETOKEN_TRY(corpus_, LoadCorpus(options_.text, target_->tokenizer(), training));
    if (!options_.held_out.empty()) {
      FORETOKEN_TRY(held_out_, LoadCorpus(options_.held_out, target_->tokenizer(), training));
    }
    MakeParameters(training.seed);
    return {};
  }

  Parameters& parameters() override { return parameters_; }

  Tensor Loss(const Leaves& leaves, std::int64_t first_row, int n_rows) override {
    const Tensor rows = corpus_->Rows(first_row, n_rows);
    const LogitShape wanted = target_->logit_shape();
    if (head_.kind == TrainedHead::kBlock) {
      const Drafts drafts =
          RunBlocks(head_, leaves, *target_, rows, first_row / n_rows % head_.block_size);
      return BlockLoss(drafts, target_head_, target_head_, options_.decay, wanted);
    }
    const HeadInput input = ReadTarget(head_, *target_, rows);
    return UnrolledLoss(Unroll(head_, leaves, input, Steps()), OutputHead(leaves), input.normed,
                        target_head_, head_.Shift(), options_.decay, Shape(), wanted);
  }

  std::string Evaluate(const Leaves& leaves) override {
    if (!held_out_) return "no held-out text";
    constexpr std::int64_t kTogether = 4;
    HeadFigures figures(Steps());
    const Tensor rows = held_out_->EvenRows(32);
    for (std::int64_t r = 0; r < rows.size(0); r += kTogether)
      Measure(leaves, rows.narrow(0, r, std::min(kTogether, rows.size(0) - r)), figures);
    return figures.Text();
  }

  std::string Fingerprint() const override {
    const NetworkConfig& c = head_.block;
    constexpr std::array kNames = {"eagle", "mtp", "block drafter"};
    return fmt::format(
        "{} of target {:016x} layers {} blocks {} heads {}/{} size {} ff {} draft vocabulary {} "
        "steps {} mask {} decay {} {}",
        kNames[static_cast<std::size_t>(head_.kind)], target_->hash(), fmt::join(head_.layers, ","),
        c.n_layers, c.n_heads, c.n_kv_heads, c.head_dim, c.ff, options_.draft_vocabulary, Steps(),
        head_.mask, options_.decay, corpus_->Fingerprint());
  }

  Status Export() override {
    constexpr std::array kNames = {" EAGLE-3 head", " MTP head", " block drafter"};
    const HeadFile file = {.head = head_,
                           .target = *target_,
                           .parameters = parameters_,
                           .draft_vocabulary = ids_,
                           .type = options_.type,
                           .name = Name(kNames[static_cast<std::size_t>(head_.kind)]),
                           .license = options_.license};
    if (head_.kind == TrainedHead::kEagle) return WriteEagle(out_, file);
    if (head_.kind == TrainedHead::kBlock) return WriteBlockDrafter(out_, file);
    FORETOKEN_CHECK_OK(WriteMtp(out_, file, false));
    return options_.into.empty() ? Status{} : WriteMtp(options_.into, file, true);
  }

 private:
  // Drafts of a row.
  int Steps() const {
    return options_.kind == TrainedHead::kBlock ? options_.block_size - 1 : options_.unroll;
  }

  // The sizes of an EAGLE-3 head or a block drafter.
  Status DescribeOwn() {
    const int n_layers = target_->config().n_layers(), vocabulary = target_->config().vocabulary;
    FORETOKEN_TRY(head_.block, OwnBlocks(options_, target_->config()));
    head_.layers = options_.layers.empty() ? DefaultLayers(n_layers) : options_.layers;
    FORETOKEN_CHECK_OK(CheckLayers(head_.layers, n_layers));
    if (head_.kind == TrainedHead::kEagle) return {};
    head_.block_size = options_.block_size;
    head_.mask = options_.mask < 0 ? DefaultMask(target_->file().metadata()) : options_.mask;
    if (head_.mask >= vocabulary)
      return Refuse(fmt::format("mask: {} is none of the target's {} tokens; name another",
                                head_.mask, vocabulary));
    return {};
  }

  Status DescribeMtp(const TrainingOptions& training) {
    FORETOKEN_CHECK_OK(CheckNoHead());
    if (!options_.into.empty() && NextBlockReplacesExperts(*target_))
      return Refuse(
          "into: the head of a mixture of experts has a dense block, and a file that holds both "
          "cannot say so; leave --into out, and give the head's own file as the draft");
    FORETOKEN_TRY(head_.block, MtpBlock(*target_));
    head_.prefix = fmt::format("blk.{}.", target_->config().n_layers());
    if (head_.block.window != 0 && head_.block.window < training.window)
      return Refuse(fmt::format("window: a head of this target sees {} tokens; use --window {}",
                                head_.block.window, head_.block.window));
    return {};
  }

  // The head is the block behind the target's last; its place must be free.
  Status CheckNoHead() const {
    if (target_->config().n_next_layers > 0)
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format("{}: it holds an MTP head already; use the file without", options_.target));
    const std::string block = fmt::format("blk.{}.", target_->config().n_layers());
    for (const formats::TensorView& tensor : target_->file().tensors())
      if (tensor.name.starts_with(block))
        return Fail(ErrorCode::kInvalidFile,
                    fmt::format("{}: tensor {}: the metadata tell of {} blocks only; the file is "
                                "damaged, fetch it again",
                                options_.target, Shown(tensor.name), target_->config().n_layers()));
    return {};
  }

  Status CheckPlaces() const {
    if (options_.into.empty()) return {};
    std::error_code none;
    for (const std::string& other : {options_.target, out_})
      if (options_.into == other || std::filesystem::equivalent(options_.into, other, none))
        return Refuse(fmt::format("into: {} is in use by this run; choose another file", other));
    return CheckRoom(0, static_cast<std::int64_t>(target_->file().file_bytes() * 5 / 4),
                     options_.into);
  }

  void MakeParameters(std::uint64_t seed) {
    parameters_ = head_.kind == TrainedHead::kBlock ? InitBlocks(head_, *target_, seed)
                                                    : InitHead(head_, *target_, seed);
    const torch::Dtype compute = FastType(parameters_.all()[0].value);
    full_head_ = target_head_ = target_->OutputRows({}, compute);
    if (options_.draft_vocabulary > 0) {
      ids_ = MostFrequent(*corpus_, target_->config().vocabulary, options_.draft_vocabulary);
      target_head_ = target_->OutputRows(ids_, compute);
      parameters_.Add("output.weight", ParameterKind::kTable,
                      target_->OutputRows(ids_, torch::kFloat));
    }
    for (Parameter& p : parameters_.all()) p.value = p.value.to(BestDevice());
  }

  const Tensor& OutputHead(const Leaves& leaves) const {
    return ids_.empty() ? target_head_ : leaves["output.weight"];
  }
  // The shape of the head's logits: an MTP head is a block of the target's network.
  LogitShape Shape() const {
    return options_.kind == TrainedHead::kMtp ? target_->logit_shape() : LogitShape{};
  }

  void Measure(const Leaves& leaves, const Tensor& rows, HeadFigures& figures) const {
    const Drafts drafts =
        head_.kind == TrainedHead::kBlock
            ? RunBlocks(head_, leaves, *target_, rows, 0)
            : UnrolledDrafts(head_, leaves, ReadTarget(head_, *target_, rows), Steps());
    const Tensor head = OutputHead(leaves).to(drafts.hidden.scalar_type());
    const Tensor ids = torch::tensor(ids_).to(BestDevice());
    const std::int64_t n = drafts.hidden.size(2);
    for (std::int64_t b = 0; b < drafts.hidden.size(1); ++b) {
      Tensor joint = torch::ones({n}, torch::TensorOptions(BestDevice()).dtype(torch::kBool));
      for (int s = 0; s < Steps(); ++s) {
        const auto step = static_cast<std::size_t>(s);
        const Tensor normed = drafts.normed[s][b].to(full_head_.scalar_type());
        const Tensor logits =
            Shaped(torch::mm(normed, full_head_.t()).to(torch::kFloat), target_->logit_shape());
        const Tensor own = Shaped(torch::mm(drafts.hidden[s][b], head.t()), Shape());
        Tensor tokens = own.argmax(-1);
        if (!ids_.empty()) tokens = ids.index_select(0, tokens);
        const Tensor agree = tokens == logits.argmax(-1);
        joint = joint.logical_and(agree);
        const Tensor wanted =
            torch::softmax(ids_.empty() ? logits : logits.index_select(1, ids), -1);
        figures.divergence[step] += Divergence(own, wanted).item<double>() * static_cast<double>(n);
        figures.agree[step] += agree.sum().item<double>();
        figures.joint[step] += joint.sum().item<double>();
      }
      figures.rows += static_cast<double>(n);
    }
  }

  std::string Name(const char* what) const {
    if (!options_.name.empty()) return options_.name;
    const std::string* name = target_->file().metadata().String("general.name");
    return fmt::format("{}{}", name != nullptr ? *name : "foretoken", what);
  }

  HeadOptions options_;
  std::string out_;
  std::unique_ptr<TargetReader> target_;
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

Token DefaultMask(const formats::Metadata& metadata) {
  for (const char* key : {"mask", "padding", "unknown"})
    if (const auto id = metadata.Int(fmt::format("tokenizer.ggml.{}_token_id", key));
        id && *id >= 0 && *id < 1 << 24)
      return static_cast<Token>(*id);
  return 0;
}

Result<std::unique_ptr<Task>> MakeHeadTask(const HeadOptions& options,
                                           const TrainingOptions& training) {
  auto task = std::make_unique<HeadTask>(options, training.out);
  FORETOKEN_CHECK_OK(task->Open(training));
  return task;
}

}  // namespace foretoken::train
