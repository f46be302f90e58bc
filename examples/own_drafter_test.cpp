// SPDX-License-Identifier: Apache-2.0
// own_drafter_test: tests a drafter, and a loop around it, with a target that needs no model. Its
// arguments are not used.
#include <algorithm>
#include <iostream>
#include <map>

#include "foretoken/fakes.h"
#include "foretoken/verification.h"

namespace {

namespace fakes = foretoken::fakes;
using Tokens = std::vector<std::int32_t>;
constexpr int kVocabulary = 16;

// The drafter under test: what followed each token the last time.
class LastTime final : public foretoken::Drafter {
 public:
  std::string_view name() const override { return "last-time"; }
  void Propose(int, foretoken::DraftProposal& proposal) override {
    while (proposal.left() > 0) {
      const auto known = after_.find(proposal.text().back());
      if (known == after_.end() || !proposal.Push(known->second)) return;
    }
  }
  void Observe(const foretoken::DrafterRound& round) override {
    for (std::size_t i = 0; i + 1 < round.committed.size(); ++i)
      after_[round.committed[i]] = round.committed[i + 1];
    if (last_ >= 0) after_[last_] = round.committed.front();
    last_ = round.committed.back();
  }

 private:
  std::map<std::int32_t, std::int32_t> after_;
  std::int32_t last_ = -1;
};

struct Generated {
  Tokens text;
  std::int64_t drafted = 0, accepted = 0, passes = 0;
};

// A target whose texts repeat: each token follows from the one before it.
fakes::Target Repeating() {
  return fakes::Target({.vocabulary_size = kVocabulary,
                        .logits = [](std::span<const std::int32_t> text, std::span<float> logits) {
                          std::fill(logits.begin(), logits.end(), 0.0f);
                          logits[static_cast<std::size_t>((text.back() * 5 + 3) % kVocabulary)] = 9;
                        }});
}

// The loop under test. Without a drafter it decodes plainly.
foretoken::Result<Generated> Generate(foretoken::Drafter* drafter, fakes::Target target, int n) {
  foretoken::VerificationOptions options{.vocabulary_size = kVocabulary};
  options.sampling.temperature = 0;
  Generated made{.text = {1}};
  if (drafter != nullptr)
    drafter->Begin({.prompt = made.text, .max_new_tokens = n, .vocabulary_size = kVocabulary});
  while (std::ssize(made.text) < n) {
    const foretoken::Drafts drafted =
        drafter == nullptr
            ? foretoken::Drafts()
            : fakes::Draft(*drafter, {.text = made.text, .n = 4, .vocabulary_size = kVocabulary});
    const int n_drafts = static_cast<int>(drafted.tokens.size());
    Tokens query(made.text.begin() + target.length(), made.text.end());
    query.insert(query.end(), drafted.tokens.begin(), drafted.tokens.end());
    FORETOKEN_TRY(const auto logits, target.Score(query));
    FORETOKEN_TRY(const auto verified,
                  foretoken::Verify(options, {.text = made.text,
                                              .drafts = drafted.tokens,
                                              .target_logits = logits.Last(n_drafts + 1)}));
    FORETOKEN_CHECK_OK(target.Truncate(0, static_cast<int>(made.text.size()) + verified.accepted));
    Tokens committed(drafted.tokens.begin(), drafted.tokens.begin() + verified.accepted);
    committed.push_back(verified.next);
    made.text.insert(made.text.end(), committed.begin(), committed.end());
    made.drafted += n_drafts, made.accepted += verified.accepted;
    if (drafter != nullptr)
      drafter->Observe(
          {.committed = committed, .drafted = n_drafts, .accepted = verified.accepted});
  }
  made.text.resize(static_cast<std::size_t>(n));
  made.passes = target.n_passes();
  return made;
}

int Fail(const std::string& message) {
  std::cerr << "own_drafter_test: " << message << '\n';
  return 1;
}

}  // namespace

int main() {
  const auto plain = Generate(nullptr, Repeating(), 60);
  LastTime drafter;
  const auto drafted = Generate(&drafter, Repeating(), 60);
  if (!plain || !drafted) return Fail((plain ? drafted : plain).error().message);
  std::cout << "last-time: " << drafted->accepted << " of " << drafted->drafted << " drafts, "
            << drafted->passes << " passes for " << plain->passes << '\n';
  if (drafted->text != plain->text) return Fail("the drafter changes the text");
  if (drafted->accepted != drafted->drafted) return Fail("the drafter forgets what it saw");
  if (2 * drafted->passes > plain->passes) return Fail("the drafter drafts too little");

  // A text that never repeats: it drafts in vain, and the text is still the target's.
  const auto other = Generate(nullptr, fakes::Target(), 40);
  LastTime again;
  const auto vain = Generate(&again, fakes::Target(), 40);
  if (!other || !vain || vain->text != other->text) return Fail("the drafter changes other texts");
  std::cout << "where nothing repeats: " << vain->accepted << " of " << vain->drafted
            << " drafts\n";
  if (vain->accepted == vain->drafted) return Fail("no draft was wrong, so none was tested");
}
