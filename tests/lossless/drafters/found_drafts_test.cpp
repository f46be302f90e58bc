// SPDX-License-Identifier: Apache-2.0
// Engines that find their drafts beside the model: they draft, and the text does not change.
#include <gtest/gtest.h>

#include <fstream>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"

namespace foretoken {
namespace {

std::unique_ptr<Engine> Open(const std::string& model, const std::string& methods = "") {
  return OpenEngine(
      {.model = model, .speculative = {.method = methods, .controller = "fixed"}, .threads = 1});
}

struct FoundFiles {
  std::string folder = fixtures::TemporaryFolder();
  std::string target = fixtures::WriteTinyModel(folder, {.n_layers = 1, .file_name = "tales.gguf"});
  std::string head =
      fixtures::WriteTinyHead(folder, {.target = {.n_layers = 1}, .file_name = "mtp-tales.gguf"});
};

Completion Text(Engine& engine, bool speculates) {
  Request request;
  request.prompt_tokens = {1, 262, 305, 319, 265, 310, 301};
  request.max_new_tokens = 40;
  request.ignore_eos = true;
  request.logprobs = 2;
  request.sampling.temperature = 0;
  request.speculative.enabled = speculates;
  return Generated(engine, request);
}

TEST(FoundDrafters, TheyDraftAndTheTextStays) {
  const FoundFiles files;
  const auto engine = Open(files.target);
  EXPECT_EQ(engine->summary().method, "mtp");
  const auto& notices = engine->summary().notices;
  EXPECT_NE(std::find(notices.begin(), notices.end(),
                      "drafts: mtp by mtp-tales.gguf (found beside the model; "
                      "SpeculativeOptions::method none turns it off)"),
            notices.end());
  const Completion with = Text(*engine, true), plain = Text(*engine, false);
  EXPECT_GT(with.speculation.accepted, 5);
  ExpectSame(with, plain);
  EXPECT_EQ(Open(files.target, "none")->summary().method, "none");
}

// A head does not keep a second turn from the cache, and drafts behind what came from there.
TEST(FoundDrafters, ASecondTurnReadsOnlyWhatIsNew) {
  const FoundFiles files;
  const auto engine = Open(files.target);
  Request request;
  for (int i = 0; i < 70; ++i) request.prompt_tokens.push_back(262 + (i * 7) % 50);
  request.max_new_tokens = 40;
  request.ignore_eos = true;
  request.sampling.temperature = 0;
  request.prompt_tokens = WholeText(Generated(*engine, request));
  request.prompt_tokens.insert(request.prompt_tokens.end(), {270, 281, 265});
  const Completion second = Generated(*engine, request);
  EXPECT_EQ(second.timings.cached_prompt_tokens, 109);
  EXPECT_GT(second.speculation.accepted, 5);
  EXPECT_EQ(second.token_ids, Generated(*Open(files.target, "none"), request).token_ids);

  // Where other drafts would give another text, the head reads the whole prompt.
  request.sampling.temperature = 0.8F;
  request.speculative.strategy = VerifyStrategy::kResidual;
  EXPECT_EQ(Generated(*engine, request).timings.cached_prompt_tokens, 0);
}

// A head whose tensors are not what its metadata promises is noticed when it is loaded.
TEST(FoundDrafters, OneThatCannotBeLoadedIsPassedOver) {
  const auto [folder, target, head] = FoundFiles();
  fixtures::WriteTinyModel(
      folder, {.n_layers = 1, .dim = 32, .ff = 32, .n_heads = 2, .file_name = "tales-draft.gguf"});
  std::string bytes;
  {
    std::ifstream in(head, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const std::size_t at = bytes.find("nextn.eh_proj");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 6] = 'x';
  std::ofstream(head, std::ios::binary) << bytes;
  const auto engine = Open(target);
  EXPECT_EQ(engine->summary().method, "standalone");
  ASSERT_EQ(engine->summary().drafters.size(), 1U);
  bool noticed = false;
  for (const std::string& notice : engine->summary().notices)
    noticed |= notice.starts_with("drafts: passed over " + head);
  EXPECT_TRUE(noticed);
  EXPECT_FALSE(Engine::Open({.model = target, .speculative = {.method = "mtp"}, .threads = 1}));
}

}  // namespace
}  // namespace foretoken
