// SPDX-License-Identifier: Apache-2.0
#include "train/targets/distill_task.h"

#include <fmt/format.h>

#include <optional>

#include "train/run/machine.h"
#include "train/targets/target_reader.h"
#include "train/text/corpus.h"
#include "train/text/sample.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

// What a draft does on held-out text: sums over positions.
struct DraftFigures {
  double positions = 0, divergence = 0, loss = 0, agree = 0, overlap = 0;

  std::string Text() const {
    return fmt::format(
        "held-out KL {:.4f} nats per token, loss {:.4f}; agrees with the target's best token "
        "{:.3f}; mean overlap of the distributions {:.3f}",
        divergence / positions, loss / positions, agree / positions, overlap / positions);
  }
};

class DistillTask : public Task {
 public:
  DistillTask(DistillOptions options, std::string out)
      : options_(std::move(options)), out_(std::move(out)) {}

  Status Open(const TrainingOptions& training) {
    FORETOKEN_TRY(target_, TargetReader::Open(options_.target, training));
    ModelShape& shape = options_.shape;
    if (shape.context == 0) shape.context = target_->config().context_length;
    FORETOKEN_TRY(config_, ConfigOf(shape, target_->config().vocabulary));
    FORETOKEN_TRY(corpus_, LoadCorpus(options_.text, target_->tokenizer(), training));
    if (!options_.held_out.empty()) {
      FORETOKEN_TRY(held_out_, LoadCorpus(options_.held_out, target_->tokenizer(), training));
    }
    if (options_.samples > 0) FORETOKEN_CHECK_OK(AddSamples(training));
    parameters_ = InitModel(config_, true, training.seed);
    head_ = target_->OutputRows({}, FastType(parameters_.all()[0].value));
    for (Parameter& p : parameters_.all()) p.value = p.value.to(BestDevice());
    return {};
  }

  Parameters& parameters() override { return parameters_; }

  Tensor Loss(const Leaves& leaves, std::int64_t first_row, int n_rows) override {
    const Tensor rows = corpus_->Rows(first_row, n_rows).to(BestDevice());
    const std::int64_t length = rows.size(1) - 1;
    const Tensor tokens = rows.narrow(1, 0, length), wanted = rows.narrow(1, 1, length);
    const Tensor normed = target_->Read(tokens).normed, own = RunModel(config_, leaves, tokens);
    // One row at a time, so that the distributions of the whole batch never exist at once. Each row
    // converts the head to the compute type again, so that the head's gradients are summed in the
    // master type.
    Tensor loss = torch::zeros({}, torch::TensorOptions(BestDevice()).dtype(torch::kDouble));
    for (std::int64_t r = 0; r < rows.size(0); ++r) {
      const Tensor logits = Logits(leaves, own[r]);
      if (options_.mix > 0)
        loss = loss + options_.mix * Divergence(logits, Distributions(normed[r]));
      if (options_.mix < 1) loss = loss + (1 - options_.mix) * CrossEntropy(logits, wanted[r]);
    }
    return loss / static_cast<double>(rows.size(0));
  }

  std::string Evaluate(const Leaves& leaves) override {
    if (!held_out_) return "no held-out text";
    DraftFigures figures;
    const Tensor all = held_out_->EvenRows(32);
    for (std::int64_t r = 0; r < all.size(0); ++r)
      Measure(leaves, all.narrow(0, r, 1).to(BestDevice()), figures);
    return figures.Text();
  }

  std::string Fingerprint() const override {
    return fmt::format("distill of {:016x} {} mix {} samples {} {}", target_->hash(),
                       options_.shape.Text(), options_.mix, options_.samples,
                       corpus_->Fingerprint());
  }

  Status Export() override {
    const std::string* name = target_->file().metadata().String("general.name");
    return WriteModel(
        out_, config_, parameters_, target_->file().metadata(), options_.type,
        !options_.name.empty() ? options_.name : (name != nullptr ? *name : "foretoken") + " draft",
        options_.license);
  }

 private:
  Status AddSamples(const TrainingOptions& training) {
    SampleOptions o;
    o.model = options_.target, o.text = options_.text, o.out = out_ + ".samples.txt";
    o.tokens = options_.samples, o.temperature = options_.samples_temperature;
    o.seed = training.seed, o.threads = training.threads;
    FORETOKEN_CHECK_OK(WriteSamples(o));
    double share = 0;
    for (const std::string& text : options_.text) {
      FORETOKEN_TRY(const TextSource source, ParseTextSource(text));
      share += source.share;
    }
    std::vector<std::string> texts = options_.text;
    texts.push_back(fmt::format("{}:{}", o.out, share));
    FORETOKEN_TRY(corpus_, LoadCorpus(texts, target_->tokenizer(), training));
    return {};
  }

  // The target's distributions. normed: [length, dim]; gives [length, vocabulary], F32.
  Tensor Distributions(const Tensor& normed) const {
    torch::NoGradGuard no_gradients;
    const Tensor products = Linear(normed.to(head_.scalar_type()), head_).to(torch::kFloat);
    return torch::softmax(Shaped(products, target_->logit_shape()), -1);
  }

  void Measure(const Leaves& leaves, const Tensor& row, DraftFigures& figures) const {
    const std::int64_t length = row.size(1) - 1;
    const Tensor tokens = row.narrow(1, 0, length);
    const Tensor wanted = Distributions(target_->Read(tokens).normed[0]);
    const Tensor logits = Logits(leaves, RunModel(config_, leaves, tokens)[0]);
    const auto n = static_cast<double>(length);
    figures.positions += n;
    figures.divergence += n * Divergence(logits, wanted).item<double>();
    figures.loss += n * CrossEntropy(logits, row[0].narrow(0, 1, length)).item<double>();
    figures.agree += (logits.argmax(-1) == wanted.argmax(-1)).sum().item<double>();
    figures.overlap +=
        torch::minimum(torch::softmax(logits.to(torch::kFloat), -1), wanted).sum().item<double>();
  }

  DistillOptions options_;
  std::string out_;
  std::unique_ptr<TargetReader> target_;
  Tensor head_;  // the target's output head
  NetworkConfig config_;
  std::optional<Corpus> corpus_, held_out_;
  Parameters parameters_;
};

}  // namespace

Result<std::unique_ptr<Task>> MakeDistillTask(const DistillOptions& options,
                                              const TrainingOptions& training) {
  auto task = std::make_unique<DistillTask>(options, training.out);
  FORETOKEN_CHECK_OK(task->Open(training));
  return task;
}

}  // namespace foretoken::train
