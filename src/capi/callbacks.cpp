// SPDX-License-Identifier: Apache-2.0
#include "capi/callbacks.h"

#include <limits>
#include <stdexcept>
#include <utility>

#include "capi/lists.h"

struct foretoken_proposal {
  foretoken::DraftProposal& proposal;
};

namespace foretoken::capi {

std::vector<LogitsProcessor> ProcessorsOf(const std::vector<CallerProcessor>& processors,
                                          const ProcessorFault& fault) {
  std::vector<LogitsProcessor> functions;
  for (const CallerProcessor& processor : processors) {
    functions.emplace_back(
        [processor, fault](std::span<const std::int32_t> text, std::span<float> logits) {
          if (!fault->load() && processor.call(processor.user, text.data(), text.size(),
                                               logits.data(), logits.size()) == 0)
            return;
          fault->store(true);
          if (!logits.empty()) logits[0] = std::numeric_limits<float>::quiet_NaN();
        });
  }
  return functions;
}

namespace {

class DrafterOfCaller final : public Drafter {
 public:
  explicit DrafterOfCaller(CallerDrafter caller) : caller_(std::move(caller)) {}

  std::string_view name() const override { return caller_.name; }
  bool ReportsDistributions() const override { return functions().reports_distributions != 0; }
  DrafterLimits limits() const override { return {.vocabulary_size = functions().vocabulary_size}; }

  void Begin(const DrafterText& text) override {
    if (functions().begin == nullptr) return;
    Check("begin", functions().begin(functions().user, text.sequence, text.prompt.data(),
                                     text.prompt.size()));
  }
  void Propose(int sequence, DraftProposal& proposal) override {
    if (failed_) throw std::runtime_error(failed_);
    foretoken_proposal view{proposal};
    Check("propose", functions().propose(functions().user, sequence, &view));
    if (failed_) throw std::runtime_error(failed_);
  }
  void Observe(const DrafterRound& round) override {
    if (functions().observe == nullptr) return;
    Check("observe", functions().observe(functions().user, round.sequence, round.committed.data(),
                                         round.committed.size(), round.drafted, round.accepted));
  }
  void End(int sequence) override {
    if (functions().end != nullptr) functions().end(functions().user, sequence);
  }

 private:
  const foretoken_drafter& functions() const { return caller_.functions; }
  // Proposals alone may throw: the engine makes a notice of that, and drafts no more.
  void Check(const char* function, std::int32_t result) {
    if (result == 0) return;
    failed_ = std::string_view(function) == "begin"     ? "its function begin returned an error"
              : std::string_view(function) == "propose" ? "its function propose returned an error"
                                                        : "its function observe returned an error";
  }

  CallerDrafter caller_;
  const char* failed_ = nullptr;  // it drafts no more
};

}  // namespace

std::shared_ptr<Drafter> DrafterOf(const CallerDrafter& drafter) {
  if (drafter.functions.propose == nullptr) return nullptr;
  return std::make_shared<DrafterOfCaller>(drafter);
}

}  // namespace foretoken::capi

extern "C" {

const int32_t* foretoken_proposal_text(const foretoken_proposal* proposal, size_t* count) {
  if (count != nullptr) *count = proposal == nullptr ? 0 : proposal->proposal.text().size();
  return proposal == nullptr ? nullptr : proposal->proposal.text().data();
}

int32_t foretoken_proposal_left(const foretoken_proposal* proposal) {
  return proposal == nullptr ? 0 : proposal->proposal.left();
}

int32_t foretoken_proposal_push(foretoken_proposal* proposal, int32_t token) {
  int32_t pushed = 0;
  foretoken::capi::Guarded(nullptr, [&]() -> foretoken::Status {
    pushed = proposal != nullptr && proposal->proposal.Push(token) ? 1 : 0;
    return {};
  });
  return pushed;
}

int32_t foretoken_proposal_draw(foretoken_proposal* proposal, const float* probabilities,
                                size_t vocabulary) {
  int32_t token = -1;
  foretoken::capi::Guarded(nullptr, [&]() -> foretoken::Status {
    if (proposal != nullptr && probabilities != nullptr)
      token = proposal->proposal.Draw({probabilities, vocabulary});
    return {};
  });
  return token;
}

}  // extern "C"
