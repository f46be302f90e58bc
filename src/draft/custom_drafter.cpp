// SPDX-License-Identifier: Apache-2.0
#include "draft/custom_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "base/aligned_buffer.h"
#include "sampling/sampler.h"

namespace foretoken::draft {
namespace {

constexpr double kSumTolerance = 1e-3;
// How far rounding to float moves the sum of a normalised distribution from 1 (by less than 3e-7
// for each of the engine's own). A sum this close is not normalised again, so that a distribution
// that the program computed as the target does stays equal to the target's bit for bit.
constexpr double kRounding = 1e-6;

}  // namespace

// A sequence's text, and the proposal that is being made for it.
class CustomDrafter::Sequence final : public DraftProposal {
 public:
  explicit Sequence(CustomDrafter& owner)
      : owner_(owner), max_draft_(static_cast<std::size_t>(owner.settings_.max_draft)) {
    drafts_.reserve(max_draft_);
    drawn_.reserve(max_draft_);
    // Pages that no distribution is written to take no memory.
    if (owner.reports_distributions_)
      distributions_ =
          AlignedBuffer<float>(max_draft_ * static_cast<std::size_t>(owner.settings_.vocabulary));
  }

  void Start(const SequenceStart& start) {
    greedy_ = start.sampling.greedy();
    end_tokens_.assign(start.end_tokens.begin(), start.end_tokens.end());
    noise_ = start.noise;
    stream_ = start.stream;
    draft_p_min_ = start.draft_p_min;
    text_.reserve(start.prompt.size() + static_cast<std::size_t>(start.max_new_tokens) +
                  max_draft_ + 1);
    text_.assign(start.prompt.begin(), start.prompt.end());
    drafts_.clear(), drawn_.clear();
    left_ = 0;
  }
  void Commit(std::span<const Token> tokens) {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
  }

  void BeginProposal(const Ask& ask) noexcept {
    drafts_.clear(), drawn_.clear();
    wants_logits_ = ask.with_logits;
    shown_ = false;
    begin_ = text_.size();
    left_ = std::clamp(ask.max_tokens, 0, static_cast<int>(max_draft_));
  }
  round::Proposal Finish() noexcept {
    left_ = 0;
    text_.resize(begin_);
    const bool distributions = std::find(drawn_.begin(), drawn_.end(), true) != drawn_.end();
    for (std::size_t i = 0; distributions && i < drafts_.size(); ++i)
      if (!drawn_[i]) {
        std::fill_n(Distribution(i), vocabulary(), 0.0f);
        Distribution(i)[drafts_[i]] = 1;
      }
    return {.tokens = drafts_,
            .q = distributions ? distributions_.data() : nullptr,
            .q_stride = owner_.settings_.vocabulary,
            .logits = shown_ ? logits_.data() : nullptr};
  }

  std::span<const std::int32_t> text() const override { return text_; }
  int left() const override { return left_; }

  bool Push(std::int32_t token) override {
    if (left_ == 0) return false;
    if (token < 0 || token >= owner_.settings_.vocabulary) {
      left_ = 0;
      owner_.Report(Fault::kToken,
                    fmt::format("token {} is not in the vocabulary, so its drafts end before it; "
                                "use 0 to {}",
                                token, owner_.settings_.vocabulary - 1));
      return false;
    }
    Add(token, false);
    return true;
  }

  std::int32_t Draw(std::span<const float> distribution) override {
    double sum = 0;
    if (left_ == 0 || !Check(distribution, sum)) return kNoToken;
    if (draft_p_min_ > 0 && kernels().max(distribution.data(), n()) < draft_p_min_) {
      left_ = 0;
      return kNoToken;
    }
    if (greedy_) return Add(kernels().argmax(distribution.data(), n()), false);
    float* const q = Distribution(drafts_.size());
    std::copy(distribution.begin(), distribution.end(), q);
    if (std::abs(sum - 1) > kRounding) kernels().scale(q, n(), static_cast<float>(1 / sum));
    return Add(Drawn(q), true);
  }

  bool wants_logits() const override { return wants_logits_; }
  void ShowLogits(const TokenRows& logits) override {
    if (!wants_logits_ || logits.rows != std::ssize(drafts_) || logits.vocabulary_size != n())
      return;
    if (logits_.size() == 0) logits_ = AlignedBuffer<float>(max_draft_ * vocabulary());
    for (int i = 0; i < logits.rows; ++i)
      std::copy_n(logits.Row(i).data(), n(), logits_.data() + std::int64_t{i} * n());
    shown_ = true;
  }

 private:
  std::size_t vocabulary() const { return static_cast<std::size_t>(owner_.settings_.vocabulary); }
  int n() const { return owner_.settings_.vocabulary; }
  const kernels::Kernels& kernels() const { return *owner_.settings_.kernels; }
  float* Distribution(std::size_t i) noexcept { return distributions_.data() + i * vocabulary(); }

  Token Add(Token token, bool drawn) {
    drafts_.push_back(token);
    drawn_.push_back(drawn);
    text_.push_back(token);
    const bool end = std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
    left_ = end ? 0 : left_ - 1;
    return token;
  }

  // A draft ends before it would draw from an invalid distribution, so no drawn token is dropped.
  bool Check(std::span<const float> distribution, double& sum) {
    sum = distribution.size() == vocabulary() ? SumOf(distribution) : 0;
    if (!owner_.reports_distributions_) {
      owner_.Report(
          Fault::kNoDistributions,
          "it draws and does not report distributions, so its drafts end before the first draw; "
          "let ReportsDistributions return true");
    } else if (distribution.size() != vocabulary()) {
      owner_.Report(Fault::kDistribution,
                    fmt::format("a distribution has {} probabilities, so its drafts end before "
                                "it; give one for each of the {} tokens",
                                distribution.size(), vocabulary()));
    } else if (!(std::abs(sum - 1) <= kSumTolerance)) {
      owner_.Report(
          Fault::kDistribution,
          fmt::format("a distribution sums to {:.6g} or has values that are not probabilities, so "
                      "its drafts end before it; normalise it",
                      sum));
    } else {
      return true;
    }
    left_ = 0;
    return false;
  }

  // The sum of the values, or NaN if one of them is not a probability.
  double SumOf(std::span<const float> distribution) const {
    const bool good = kernels().collect_at_least(distribution.data(), n(), 0.0f, nullptr, 0) == n();
    return good ? kernels().sum(distribution.data(), n()) : NAN;
  }

  Token Drawn(const float* q) const noexcept {
    const auto position = static_cast<Pos>(text_.size());
    if (stream_ == Stream::kTarget)
      return sampling::DrawByRace(q, n(), noise_, position, kernels());
    const auto index = static_cast<std::uint32_t>(begin_);
    return sampling::DrawByUniform(q, n(), noise_.Uniform(stream_, position, index), kernels());
  }

  CustomDrafter& owner_;
  const std::size_t max_draft_;
  bool greedy_ = false;
  std::vector<Token> end_tokens_, text_, drafts_;
  std::vector<bool> drawn_;             // [drafts]: from a distribution
  AlignedBuffer<float> distributions_;  // [max_draft, vocabulary]
  AlignedBuffer<float> logits_;         // [max_draft, vocabulary], as the drafter showed them
  bool wants_logits_ = false, shown_ = false;
  Noise noise_;
  Stream stream_ = Stream::kDraft;
  float draft_p_min_ = 0;
  std::size_t begin_ = 0;  // the text's length without drafts
  int left_ = 0;
};

CustomDrafter::CustomDrafter(std::shared_ptr<foretoken::Drafter> drafter,
                             const CustomSettings& settings)
    : drafter_(std::move(drafter)),
      name_(drafter_->name()),
      reports_distributions_(drafter_->ReportsDistributions()),
      settings_(settings),
      sequences_(static_cast<std::size_t>(settings.max_sequences)) {
  for (auto& sequence : sequences_) sequence = std::make_unique<Sequence>(*this);
  tasks_.reserve(sequences_.size());
}

CustomDrafter::~CustomDrafter() = default;

void CustomDrafter::Report(Fault fault, const std::string& what) {
  ++faults_;
  if (std::exchange(reported_[static_cast<std::size_t>(fault)], true)) return;
  if (settings_.on_fault) settings_.on_fault(fmt::format("drafter '{}': {}", name_, what));
}

template <typename Call>
bool CustomDrafter::Guarded(const char* where, Call&& call) noexcept {
  try {
    call();
    return true;
  } catch (const std::exception& e) {
    ReportThrown(where, e.what());
  } catch (...) {
    ReportThrown(where, "an exception that is not a std::exception");
  }
  return false;
}

void CustomDrafter::ReportThrown(const char* where, const char* what) noexcept {
  try {
    Report(Fault::kException, fmt::format("{} threw: {}; catch it there", where, what));
  } catch (const std::exception&) {  // no memory for the notice; the fault is counted anyway
  }
}

void CustomDrafter::Begin(const SequenceStart& start) {
  sequences_[static_cast<std::size_t>(start.seq)]->Start(start);
  Guarded("Begin", [&] {
    drafter_->Begin({.sequence = NumberOf(start.seq),
                     .prompt = start.prompt,
                     .max_new_tokens = start.max_new_tokens,
                     .vocabulary_size = settings_.vocabulary,
                     .sampling = start.sampling,
                     .end_tokens = start.end_tokens,
                     .min_new_tokens = start.min_new_tokens,
                     .draft_p_min = start.draft_p_min,
                     .salt = start.salt,
                     .teaches = start.teaches});
  });
}

DrafterTask CustomDrafter::Start(const Ask& ask) noexcept {
  Sequence& sequence = *sequences_[static_cast<std::size_t>(ask.seq)];
  sequence.BeginProposal(ask);
  return {NumberOf(ask.seq), &sequence};
}

// Drafts that were added before an exception stay, because the exception says nothing against them.
void CustomDrafter::Propose(std::span<const Ask> asks,
                            std::span<round::Proposal> proposals) noexcept {
  tasks_.clear();
  for (const Ask& ask : asks) tasks_.push_back(Start(ask));
  Guarded("Propose", [&] { drafter_->ProposeAll(tasks_); });
  for (std::size_t i = 0; i < asks.size(); ++i)
    proposals[i] = sequences_[static_cast<std::size_t>(asks[i].seq)]->Finish();
}

void CustomDrafter::ProposeTogether(std::span<CustomDrafter* const> drafters,
                                    std::span<const Ask> asks,
                                    std::span<round::Proposal> proposals) {
  std::vector<DrafterTask> tasks;
  for (std::size_t i = 0; i < asks.size(); ++i) tasks.push_back(drafters[i]->Start(asks[i]));
  CustomDrafter& first = *drafters.front();
  first.Guarded("Propose", [&] { first.drafter_->ProposeAll(tasks); });
  for (std::size_t i = 0; i < asks.size(); ++i)
    proposals[i] = drafters[i]->sequences_[static_cast<std::size_t>(asks[i].seq)]->Finish();
}

void CustomDrafter::Observe(std::span<const Observation> observations) noexcept {
  for (const Observation& o : observations) {
    sequences_[static_cast<std::size_t>(o.seq)]->Commit(o.committed);
    Guarded("Observe", [&] {
      drafter_->Observe({.sequence = NumberOf(o.seq),
                         .committed = o.committed,
                         .drafted = o.drafted,
                         .accepted = o.accepted});
    });
  }
}

void CustomDrafter::End(SeqId seq) noexcept {
  Guarded("End", [&] { drafter_->End(NumberOf(seq)); });
}

void CustomDrafter::Forget() {
  Guarded("Forget", [&] { drafter_->Forget(); });
}

int CustomDrafter::Missing(SeqId seq) const noexcept {
  try {
    return std::max(0, drafter_->Unread(NumberOf(seq)));
  } catch (...) {
    return 0;  // Propose reports the fault
  }
}

Drafter::Work CustomDrafter::TakeWork() noexcept {
  DrafterWork work;
  Guarded("TakeWork", [&] { work = drafter_->TakeWork(); });
  return {.forwards = work.forwards,
          .catch_up_ms = work.read_ms,
          .catch_up_rows = std::max(0, work.read_tokens)};
}

}  // namespace foretoken::draft

namespace foretoken {

// A drafter that throws for one sequence still drafts for the others.
void Drafter::ProposeAll(std::span<const DrafterTask> tasks) {
  std::exception_ptr first;
  for (const DrafterTask& task : tasks) {
    try {
      Propose(task.sequence, *task.proposal);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace foretoken
