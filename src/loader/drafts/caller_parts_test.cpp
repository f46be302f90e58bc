// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/caller_parts.h"

#include <gtest/gtest.h>

#include "foretoken/drafter.h"
#include "foretoken/verifier.h"
#include "text/fake_tokenizer_testing.h"

namespace foretoken::loader {
namespace {

class NamedDrafter final : public Drafter {
 public:
  explicit NamedDrafter(std::string name, DrafterLimits limits = {})
      : name_(std::move(name)), limits_(limits) {}
  std::string_view name() const override { return name_; }
  DrafterLimits limits() const override { return limits_; }
  void Propose(int, DraftProposal&) override {}

 private:
  const std::string name_;
  const DrafterLimits limits_;
};

class NamedVerifier final : public Verifier {
 public:
  explicit NamedVerifier(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  bool lossless() const override { return true; }
  Verdict Verify(DraftsToVerify& draft) override { return {0, draft.Sample(0)}; }

 private:
  const std::string name_;
};

EngineOptions With(std::string name, DrafterLimits limits = {}) {
  EngineOptions options;
  options.drafter = std::make_shared<NamedDrafter>(std::move(name), limits);
  return options;
}

struct Taken {
  bool own = false;
  std::string methods, error;
  bool operator==(const Taken&) const = default;
};
Taken Take(const EngineOptions& options, std::string methods) {
  const auto own = TakeOwnMethod(options, methods);
  return own ? Taken{*own, methods, ""} : Taken{false, "", own.error().message};
}

TEST(TakeOwnMethod, TheProgramsDrafterIsTakenOutOfTheList) {
  EXPECT_EQ(Take(With("echo"), "ngram,echo,suffix"), (Taken{true, "ngram,suffix", ""}));
  EXPECT_EQ(Take(With("echo"), "echo"), (Taken{true, "", ""}));
  EXPECT_EQ(Take(With("echo"), ""), (Taken{true, "", ""}));
}

TEST(TakeOwnMethod, AListWithoutItStays) {
  EXPECT_EQ(Take(With("echo"), "ngram"), (Taken{false, "ngram", ""}));
  EXPECT_EQ(Take(EngineOptions(), "echo"), (Taken{false, "echo", ""}));
}

TEST(TakeOwnMethod, ItsNameMustBeFree) {
  for (const char* name : {"ngram", "standalone", "none", "portfolio", "auto", "caller", "null"})
    EXPECT_EQ(
        Take(With(name), "").error,
        "drafter: '" + std::string(name) + "' is the name of a method of foretoken's; use another");
  for (const char* name : {"", "a,b", "a b", "a:b", "\xc3\xa9"})
    EXPECT_NE(Take(With(name), "").error.find("is not a name; use letters, digits, '-' and '_'"),
              std::string::npos)
        << name;
}

TEST(CheckOwnVerifier, ItTakesThePlaceOfAStrategy) {
  EngineOptions options;
  EXPECT_TRUE(CheckOwnVerifier(options));
  options.verifier = std::make_shared<NamedVerifier>("match");
  EXPECT_TRUE(CheckOwnVerifier(options));
  options.speculative.strategy = VerifyStrategy::kResidual;
  EXPECT_EQ(CheckOwnVerifier(options).error().message,
            "verifier: 'match' is given, and the strategy 'residual' too; drop one of them");
  options.verifier = std::make_shared<NamedVerifier>("no name");
  EXPECT_EQ(CheckOwnVerifier(options).error().message,
            "verifier: 'no name' is not a name; use letters, digits, '-' and '_'");
}

TEST(CheckOwnDrafter, ItsLimitsMustFitTheEngine) {
  const text::FakeTokenizer target(26);
  EngineOptions options = With("echo", {.max_sequences = 2, .vocabulary_size = 26});
  options.max_sequences = 2;
  EXPECT_TRUE(CheckOwnDrafter(options, target));
  EXPECT_TRUE(CheckOwnDrafter(EngineOptions(), target));
  options.max_sequences = 3;
  EXPECT_EQ(CheckOwnDrafter(options, target).error().message,
            "drafter 'echo': it drafts for 2 text(s) at a time, and the engine runs 3; make it for "
            "as many");
  const text::FakeTokenizer larger(30);
  options.max_sequences = 1;
  EXPECT_EQ(CheckOwnDrafter(options, larger).error().message,
            "drafter 'echo': it drafts from 26 tokens, and the target has 30; use one for this "
            "vocabulary");
}

}  // namespace
}  // namespace foretoken::loader
