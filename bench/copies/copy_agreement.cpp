// SPDX-License-Identifier: Apache-2.0
// How well copies of a model in fewer bits say what the model says, in texts of its own making, for the types
// of --self-draft.
//
//   copy_agreement MODEL.gguf [--positions 1000] [--text-tokens 100] [--temperature 0.8] [--seed 1]
//                  [--threads 1] TYPES...
//
// The model draws its texts from seeds. At each position each copy computes the row as for its first draft, in
// the model's cache. "agree": positions at which both have the same most probable token; "overlap": the share of
// a draft at temperature 1 that the model accepts, the sum of the smaller of both probabilities; "gain": how far
// the overlap lies above that of the first types, with the standard error of its mean over the positions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/machine/thread_pool.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "kv/block_tables.h"
#include "kv/transaction.h"
#include "loader/drafts/own_copy.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"
#include "text/tokenizer/tokenizer.h"

namespace {

using namespace foretoken;

[[noreturn]] void Quit(const std::string& message) {
  std::fprintf(stderr, "copy_agreement: %s\n", message.c_str());
  std::exit(2);
}

template <typename T>
T Need(Result<T> result) {
  if (!result) Quit(result.error().message);
  return std::move(*result);
}

struct Settings {
  std::string model;
  int positions = 1000, text_tokens = 100, threads = 1;
  unsigned seed = 1;
  double temperature = 0.8;
  std::vector<std::string> types;
};

Settings Parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] {
      if (++i == argc) Quit(word + ": a value is missing");
      return std::strtod(argv[i], nullptr);
    };
    if (word == "--positions")
      s.positions = static_cast<int>(value());
    else if (word == "--text-tokens")
      s.text_tokens = static_cast<int>(value());
    else if (word == "--threads")
      s.threads = static_cast<int>(value());
    else if (word == "--seed")
      s.seed = static_cast<unsigned>(value());
    else if (word == "--temperature")
      s.temperature = value();
    else if (word.starts_with("--"))
      Quit(word + ": not known; see the head of copy_agreement.cpp");
    else if (s.model.empty())
      s.model = word;
    else
      s.types.push_back(word);
  }
  if (s.types.empty() || s.positions < 1 || s.text_tokens < 1 || s.threads < 1)
    Quit("a model, types, and numbers of at least 1 are needed");
  return s;
}

// The distribution of a row of logits.
std::vector<double> Softmax(const float* logits, int n, double temperature) {
  const double greatest = *std::max_element(logits, logits + n);
  std::vector<double> p(static_cast<std::size_t>(n));
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += p[static_cast<std::size_t>(i)] = std::exp((logits[i] - greatest) / temperature);
  for (double& x : p) x /= sum;
  return p;
}

struct Mean {
  double sum = 0, squares = 0;
  int n = 0;

  void Add(double x) { sum += x, squares += x * x, ++n; }
  double mean() const { return sum / n; }
  double error() const { return std::sqrt(std::max(0.0, squares / n - mean() * mean()) / n); }
};

struct CopyResult {
  std::string types;
  std::unique_ptr<model::LocalRunner> runner;
  model::CopySize size;
  Mean agree, overlap, gain, divergence;
};

class Comparison {
 public:
  explicit Comparison(const Settings& settings)
      : settings_(settings), pool_(settings.threads), random_(settings.seed) {
    file_ = Need(formats::OpenCheckpoint(settings.model));
    tokenizer_ = Need(text::Tokenizer::Load(file_->metadata()));
    config_ = Need(model::ConfigFromMetadata(file_->metadata()));
    config_.vocabulary = Need(model::VocabularyRows(*file_));
    bool recurrent = false;
    for (const model::LayerConfig& layer : config_.layers) recurrent |= layer.recurrent();
    shape_ = {.n_sequences = 1,
              .max_positions = std::min(config_.context_length, settings.text_tokens + 64),
              .pass_rows = 1,
              .state_rows = recurrent ? kv::TablesShape::kRollback : 0};
    options_ = {.max_rows = 1,
                .max_logit_rows = 1,
                .max_positions = shape_.max_positions,
                .cache = {.n_blocks = shape_.n_blocks()},
                .state = {.n_sequences = 1, .rows = shape_.state_rows}};
    target_ = Need(model::LocalRunner::Load(*file_, config_, options_, kernels_, pool_, {}));
    for (const std::string& types : settings.types) AddCopy(types);
  }

  void Run() {
    while (copies_.front().agree.n < settings_.positions) WriteText();
    std::printf(
        "| Types | MiB | Bytes of a pass | agree | overlap | gain | divergence |\n"
        "|---|---|---|---|---|---|---|\n");
    for (const CopyResult& copy : copies_)
      std::printf("| %s | %.2f | %.3f | %.1f ± %.1f | %.1f ± %.1f | %+.2f ± %.2f | %.4f |\n",
                  copy.types.c_str(), static_cast<double>(copy.size.own) / (1 << 20),
                  copy.size.share(), 100 * copy.agree.mean(), 100 * copy.agree.error(),
                  100 * copy.overlap.mean(), 100 * copy.overlap.error(), 100 * copy.gain.mean(),
                  100 * copy.gain.error(), copy.divergence.mean());
  }

 private:
  void AddCopy(const std::string& names) {
    const model::CopyTypes types = Need(loader::CopyTypesFor(names));
    CopyResult& copy = copies_.emplace_back();
    copy.types = model::NameOf(types);
    copy.size = Need(model::Weights::SizeOfCopy(*file_, config_, types, {}, {}));
    copy.runner = Need(model::LocalRunner::LoadCopy(*file_, options_, types, kernels_,
                                                    {pool_, pool_}, *target_, {}));
  }

  void WriteText() {
    kv::BlockTables tables(shape_);
    std::vector<Token> text = tokenizer_->Encode("", {.add_special = true});
    if (text.empty()) text = tokenizer_->Encode("The", {.add_special = true});
    const int begin = static_cast<int>(text.size()) - 1,
              end = std::min(begin + settings_.text_tokens, shape_.max_positions);
    for (int at = 0; at < end; ++at) {
      const Token token = text[static_cast<std::size_t>(at)];
      std::vector<std::vector<double>> drafts;
      if (at >= begin)
        for (CopyResult& copy : copies_)
          drafts.push_back(RowOf(*copy.runner, tables, token, at, 0));
      const std::vector<double> wanted = RowOf(*target_, tables, token, at, 1);
      if (at < begin) continue;
      Compare(wanted, drafts);
      text.push_back(Draw());
      if (tokenizer_->IsEndOfGeneration(text.back())) return;
    }
  }

  // The distribution behind this token at temperature 1; kept: 1: the position stays in the cache.
  std::vector<double> RowOf(model::Runner& runner, kv::BlockTables& tables, Token token, int at,
                            int kept) {
    constexpr int kRow[] = {0};
    kv::Segment segment{.n_rows = 1, .first_position = at, .n_certain = kept};
    kv::Transaction transaction(tables, {&segment, 1});
    const model::PassResult& result =
        runner.Run({.tokens = {&token, 1}, .segments = {&segment, 1}, .logit_rows = kRow});
    if (kept != 0) {
      transaction.Commit({&kept, 1});
      next_ = Softmax(result.Logits(0), config_.vocabulary, settings_.temperature);
    }
    return Softmax(result.Logits(0), config_.vocabulary, 1);
  }

  void Compare(const std::vector<double>& wanted, const std::vector<std::vector<double>>& drafts) {
    const auto best = [](const std::vector<double>& p) {
      return std::max_element(p.begin(), p.end()) - p.begin();
    };
    double first = 0;
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      const std::vector<double>& q = drafts[c];
      double overlap = 0, divergence = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        overlap += std::min(wanted[i], q[i]);
        if (wanted[i] > 0 && q[i] > 0) divergence += wanted[i] * std::log(wanted[i] / q[i]);
      }
      if (c == 0) first = overlap;
      CopyResult& copy = copies_[c];
      copy.agree.Add(best(wanted) == best(q) ? 1 : 0);
      copy.overlap.Add(overlap);
      copy.gain.Add(overlap - first);
      copy.divergence.Add(divergence);
    }
  }

  Token Draw() {
    std::discrete_distribution<Token> draw(next_.begin(), next_.end());
    return draw(random_);
  }

  const Settings& settings_;
  const kernels::Kernels& kernels_ = *Need(kernels::KernelsFromEnvironment());
  ThreadPool pool_;
  std::mt19937_64 random_;
  std::unique_ptr<formats::Checkpoint> file_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  model::ModelConfig config_;
  kv::TablesShape shape_;
  model::RunnerOptions options_;
  std::unique_ptr<model::LocalRunner> target_;
  std::vector<CopyResult> copies_;
  std::vector<double> next_;  // that the next token of the text is drawn from
};

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = Parse(argc, argv);
  Comparison(settings).Run();
}
