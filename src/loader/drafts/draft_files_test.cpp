// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/draft_files.h"

#include <gtest/gtest.h>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken::loader {
namespace {

using fixtures::TinyModelOptions;

class DraftFilesTest : public testing::Test {
 protected:
  static EngineOptions Options(std::string methods, std::vector<std::string> files = {}) {
    EngineOptions options;
    options.speculative.method = std::move(methods);
    options.speculative.draft_models = std::move(files);
    options.context_size = 256;
    return options;
  }

  // As OpenDraftFiles, for a target of 320 tokens.
  Result<DraftFiles> Open(const EngineOptions& options) const {
    return OpenDraftFiles(options, {*checkpoint_, *tokenizer_, part_});
  }
  std::string ErrorOf(const EngineOptions& options) const { return MessageOf(Open(options)); }

  std::string Model(const std::string& name, TinyModelOptions options = {}) const {
    options.file_name = name;
    return fixtures::WriteTinyModel(folder_, options);
  }
  std::string Head(bool eagle) const {
    return fixtures::WriteTinyHead(folder_, {.target = {}, .eagle = eagle});
  }

  void SetUp() override {
    target_ = Model("target.gguf");
    checkpoint_ = Got(formats::OpenCheckpoint(target_));
    tokenizer_ = Got(text::Tokenizer::Load(checkpoint_->metadata()));
    part_ = Got(DescribeModel(*checkpoint_, *tokenizer_));
  }

  const std::string folder_ = fixtures::TemporaryFolder();
  std::string target_;
  std::unique_ptr<formats::Checkpoint> checkpoint_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  ModelPart part_;
};

TEST_F(DraftFilesTest, WithoutFilesAndMethodsThereIsLookup) {
  const auto files = Got(Open(Options("")));
  EXPECT_EQ(files.methods, "ngram");
  EXPECT_TRUE(files.drafts.empty());
}

// Types that are named are a wish for a copy of any model; without them it must pay.
TEST_F(DraftFilesTest, WithoutFilesAndMethodsTheModelMayDraftForItself) {
  EngineOptions options = Options("");
  options.speculative.self_draft = "Q4_0";
  const auto files = Got(Open(options));
  EXPECT_EQ(files.methods, "self,ngram");
  ASSERT_EQ(files.drafts.size(), 1U);
  EXPECT_TRUE(files.drafts[0].part.late);
  EXPECT_GT(files.drafts[0].part.copy_size.own, 0);
  EXPECT_NE(files.drafts[0].notice.find("self_draft off"), std::string::npos);

  const auto methods_of = [this](const EngineOptions& o) {
    const auto opened = Open(o);
    return opened ? opened->methods : opened.error().message;
  };
  EngineOptions other = options;
  other.speculative.self_draft = "off";
  EXPECT_EQ(methods_of(other), "ngram");
  other = options, other.find_drafters = false;
  EXPECT_EQ(methods_of(other), "ngram");
  other = options, other.kv_cache = false;
  EXPECT_EQ(methods_of(other), "ngram");
  other = options, other.speculative.draft_models = {Model("small.gguf")};
  EXPECT_EQ(methods_of(other), "standalone");
  other = options, other.speculative.strategy = VerifyStrategy::kSampleMatch;
  EXPECT_EQ(methods_of(other), "self,ngram");
  // The text would depend on when the copy is ready.
  for (const VerifyStrategy strategy :
       {VerifyStrategy::kResidual, VerifyStrategy::kTypicalAcceptance}) {
    other.speculative.strategy = strategy;
    EXPECT_EQ(methods_of(other), "ngram");
  }
}

// The model's own weights are no copy, and a draft with them pays with a window alone.
TEST_F(DraftFilesTest, TheModelMayDraftWithItsOwnWeights) {
  EngineOptions options = Options("");
  options.speculative.self_draft = "own", options.speculative.draft_window = 64;
  const auto files = Got(Open(options));
  EXPECT_EQ(files.methods, "self,ngram");
  ASSERT_EQ(files.drafts.size(), 1U);
  EXPECT_EQ(files.drafts[0].part.copy_size.own, 0);
  EXPECT_EQ(
      files.drafts[0].notice,
      "drafts: self, with the model's own weights (SpeculativeOptions::self_draft off turns it "
      "off)");
  options.speculative.draft_window = 0;
  const std::string message = MessageOf(CheckDraftOptions(options));
  EXPECT_TRUE(message.starts_with("self_draft: own: ")) << message;
}

TEST_F(DraftFilesTest, ACopyThatIsAskedForIsMadeAtOnce) {
  const auto files = Got(Open(Options("self")));
  ASSERT_EQ(files.drafts.size(), 1U);
  EXPECT_FALSE(files.drafts[0].part.late);
}

TEST_F(DraftFilesTest, FilesChooseTheirUsualMethods) {
  const auto files = Got(Open(Options("", {Model("small.gguf"), Head(false), Head(true)})));
  EXPECT_EQ(files.methods, "standalone,mtp,eagle");
  ASSERT_EQ(files.drafts.size(), 3U);
  EXPECT_EQ(files.drafts[0].name, "standalone");
  EXPECT_EQ(files.drafts[0].full_name, "standalone:small");
  EXPECT_FALSE(files.drafts[0].part.config.head.has_value());
  EXPECT_TRUE(files.drafts[1].part.config.head.has_value());
}

TEST_F(DraftFilesTest, MethodNoneOpensNothing) {
  const auto files = Got(Open(Options("none", {folder_ + "/not-there.gguf"})));
  EXPECT_TRUE(files.drafts.empty());
  EXPECT_TRUE(files.checkpoints.empty());
}

TEST_F(DraftFilesTest, NamesTellSeveralModelsApart) {
  const std::string other = fixtures::TemporaryFolder();
  TinyModelOptions same{.file_name = "far.gguf"};
  const auto files = Got(Open(Options(
      "", {Model("near,by.gguf"), Model("far.gguf"), fixtures::WriteTinyModel(other, same)})));
  std::vector<std::string> names;
  for (const DraftPart& draft : files.drafts) names.push_back(draft.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"standalone:near_by", "standalone:far", "standalone:far-2"}));
}

TEST_F(DraftFilesTest, AContextStopsWhereTheDraftsEnds) {
  const auto files = Got(Open(Options("", {Model("short.gguf", {.context_length = 64})})));
  EXPECT_EQ(files.drafts[0].part.tables.max_positions, 64);
}

TEST_F(DraftFilesTest, AReducedHeadKeepsTokensOfTheTarget) {
  EngineOptions options = Options("", {Model("small.gguf")});
  options.speculative.draft_vocabulary = 40;
  const auto files = Got(Open(options));
  const std::vector<Token>& tokens = files.drafts[0].tokens;
  EXPECT_EQ(tokens.size(), 40U);
  EXPECT_EQ(files.drafts[0].part.options.output_tokens.size(), 40U);
  for (const Token token : tokens) EXPECT_LT(token, 320);
}

TEST_F(DraftFilesTest, VocabulariesThatDifferALittleGiveANotice) {
  const auto files = Got(Open(Options("", {Model("longer.gguf", {.vocab = 352})})));
  EXPECT_TRUE(files.drafts[0].shared.Has(7));
  EXPECT_FALSE(files.drafts[0].shared.Has(330));
}

TEST_F(DraftFilesTest, AFileOfAnotherKindIsAnErrorThatNamesIt) {
  const std::string head = Head(true);
  EXPECT_EQ(ErrorOf(Options("standalone", {head})),
            head +
                ": this is an EAGLE-3 head, and 'standalone' was asked for; give another file, "
                "or leave SpeculativeOptions::method out");
}

TEST_F(DraftFilesTest, AMethodWithoutItsFileIsAnError) {
  EXPECT_EQ(
      ErrorOf(Options("standalone")),
      "speculative_method: 'standalone' needs a draft model, and none that fits is beside the "
      "model; name one with EngineOptions::draft_model, or use ngram");
}

// A layer with a window chooses no blocks, so ranks may divide its key-value heads.
TEST_F(DraftFilesTest, RanksDivideNoHeadWhoseQueriesChooseBlocks) {
  EngineOptions options = Options("self");
  options.speculative.self_draft = "own";
  part_.options.cache.key_bounds = true;
  part_.options.division = model::Division(0, {1, 1, 1, 1});
  EXPECT_EQ(
      ErrorOf(options),
      target_ +
          ": draft_best_blocks: the 4 ranks divide the queries of one of the 2 key-value heads; "
          "use fewer ranks, or leave it out");
  for (model::LayerConfig& layer : part_.config.layers)
    std::get<model::AttentionConfig>(layer.mixer).window = 64;
  EXPECT_EQ(ErrorOf(options), "");
}

TEST_F(DraftFilesTest, ATargetWithoutAHeadIsAnError) {
  EXPECT_EQ(ErrorOf(Options("mtp")),
            target_ +
                ": the model has no MTP head, and none that fits is beside the model; give one "
                "with EngineOptions::draft_model, or use ngram");
}

TEST_F(DraftFilesTest, OptionsAreCheckedBeforeFilesAreOpened) {
  const auto why = [](const EngineOptions& options) {
    return MessageOf(CheckDraftOptions(options));
  };
  EXPECT_EQ(why(Options("ngram")), "");
  EXPECT_EQ(why(Options("", {"a.gguf", "b.gguf"})), "");
  EXPECT_EQ(why(Options("ngram", {"a.gguf"})),
            "speculative_method: 'ngram' does not use the draft model that is given; drop one of "
            "them");
  EXPECT_EQ(why(Options("", {"a.gguf", "b.gguf", "a.gguf"})),
            "draft models: a.gguf is given twice; leave one out");
}

}  // namespace
}  // namespace foretoken::loader
