// SPDX-License-Identifier: Apache-2.0
// Heads that do not fit, and files with false contents.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstring>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/engine.h"
#include "foretoken/tools/model_file.h"
#include "formats/checkpoint.h"
#include "formats/gguf_writer.h"

namespace foretoken {
namespace {

const std::string& Folder() {
  static const std::string folder = fixtures::TemporaryFolder();
  return folder;
}

const fixtures::TinyModelOptions kTarget{.seed = 61};

const std::string& HeadsTarget() {
  static const std::string path = fixtures::WriteTinyModel(Folder(), kTarget);
  return path;
}

std::string Head(bool eagle, fixtures::TinyModelOptions target = kTarget) {
  return fixtures::WriteTinyHead(Folder(), {.target = target, .eagle = eagle});
}

std::string OpenError(const std::string& draft, const std::string& method = "",
                      const std::string& target = HeadsTarget()) {
  auto engine = Engine::Open({.model = target,
                              .draft_model = draft,
                              .speculative = {.method = method, .controller = "fixed"},
                              .threads = 1});
  return engine ? "" : engine.error().message;
}

// A copy of a file with one thing changed.
struct Edit {
  std::string drop_tensor, add_tensor;
  std::uint32_t type = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> ids;
  std::string key;
  formats::MetadataValue value;
};
std::string Edited(const std::string& path, const Edit& edit) {
  static int count = 0;
  const auto file = *formats::OpenCheckpoint(path);
  formats::GgufWriter writer;
  for (const auto& [key, value] : file->metadata().all()) writer.Set(key, value);
  if (!edit.key.empty()) writer.Set(edit.key, edit.value);
  for (const auto& t : file->tensors())
    if (t.name != edit.drop_tensor)
      writer.AddTensor(t.name, t.ggml_type,
                       std::span(t.shape).first(static_cast<std::size_t>(t.n_dims)), t.data);
  std::vector<std::byte> bytes(edit.ids.size() * 8);
  if (!edit.ids.empty()) std::memcpy(bytes.data(), edit.ids.data(), bytes.size());
  if (!edit.add_tensor.empty()) writer.AddTensor(edit.add_tensor, edit.type, edit.shape, bytes);
  const std::string out = Folder() + "/edited" + std::to_string(count++) + ".gguf";
  EXPECT_TRUE(writer.Write(out));
  return out;
}

TEST(Heads, TheMethodIsWhatTheDraftsFileIs) {
  for (const bool eagle : {true, false}) {
    auto engine = Engine::Open({.model = HeadsTarget(), .draft_model = Head(eagle), .threads = 1});
    ASSERT_TRUE(engine) << engine.error().message;
    EXPECT_EQ((*engine)->summary().method, eagle ? "eagle" : "mtp");
  }
}

TEST(Heads, AFileOfAnotherKindThanTheMethodIsRefused) {
  EXPECT_NE(OpenError(Head(true), "mtp").find("this is an EAGLE-3 head, and 'mtp' was asked for"),
            std::string::npos);
  EXPECT_NE(OpenError(Head(false), "eagle").find("this is an MTP head"), std::string::npos);
  EXPECT_NE(OpenError(HeadsTarget(), "eagle").find("this is a whole model"), std::string::npos);
  EXPECT_NE(OpenError(Head(true), "standalone").find("this is an EAGLE-3 head"), std::string::npos);
  EXPECT_NE(OpenError("", "mtp").find("the model has no MTP head"), std::string::npos);
  EXPECT_NE(OpenError("", "eagle").find("needs a head"), std::string::npos);
}

TEST(Heads, AreNoModels) {
  for (const bool eagle : {true, false})
    EXPECT_NE(OpenError("", "none", Head(eagle)).find("head, no whole model; give it as the draft"),
              std::string::npos);
}

TEST(Heads, ADflashDrafterIsAHeadLikeOthers) {
  const std::string block = fixtures::WriteTinyHead(Folder(), {.target = kTarget, .block = true});
  auto engine = Engine::Open({.model = HeadsTarget(), .draft_model = block, .threads = 1});
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ((*engine)->summary().method, "dflash");
  EXPECT_NE(OpenError(block, "mtp").find("this is a DFlash drafter, and 'mtp' was asked for"),
            std::string::npos);
  EXPECT_NE(OpenError(Head(true), "dflash").find("this is an EAGLE-3 head"), std::string::npos);
  EXPECT_NE(OpenError("", "dflash").find("needs a head"), std::string::npos);
  EXPECT_NE(OpenError("", "none", block).find("this is a DFlash drafter, no whole model"),
            std::string::npos);
}

TEST(Heads, ADflashDrafterOfAnotherTargetIsRefused) {
  fixtures::TinyModelOptions wide = kTarget;
  wide.dim = 96, wide.n_heads = 6;
  const auto error = [](const fixtures::TinyHeadOptions& options) {
    return OpenError(fixtures::WriteTinyHead(Folder(), options));
  };
  EXPECT_NE(error({.target = wide, .block = true}).find("hidden states of 96 values"),
            std::string::npos);
  EXPECT_NE(error({.target = kTarget, .block = true, .layers = {0, 3}}).find("it reads layer 3"),
            std::string::npos);
  EXPECT_NE(error({.target = kTarget, .block = true, .mask = 5000}).find("mask token 5000"),
            std::string::npos);
}

TEST(Heads, ADamagedDflashDrafterIsRefusedByTheNameOfWhatIsWrong) {
  using Ints = std::vector<std::int64_t>;
  const std::string block = fixtures::WriteTinyHead(
      Folder(), {.target = kTarget, .block = true, .window = 20, .draft_vocabulary = 8});
  const auto file = *formats::OpenCheckpoint(block);
  for (const auto& t : file->tensors())
    EXPECT_NE(OpenError(Edited(block, {.drop_tensor = t.name})).find(t.name), std::string::npos)
        << t.name;
  const auto key = [&](const std::string& name, formats::MetadataValue value) {
    return OpenError(Edited(block, {.key = name, .value = std::move(value)}));
  };
  const std::string mask = "tokenizer.ggml.mask_token_id";
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{1} << 40, std::int64_t{320}})
    EXPECT_NE(key(mask, id).find(id == 320 ? "mask token 320" : mask), std::string::npos) << id;
  EXPECT_NE(key("dflash.target_layers", Ints{}).find("target_layers"), std::string::npos);
  EXPECT_NE(key("dflash.target_layers", Ints(100, 1)).find("target_layers"), std::string::npos);
  EXPECT_NE(key("dflash.target_layers", Ints{0, 1}).find("fc.weight"), std::string::npos);
  EXPECT_NE(key("dflash.block_size", std::int64_t{0}).find("block_size"), std::string::npos);
  EXPECT_NE(key("dflash.rope.dimension_sections", Ints{4, 4, 0, 0}).find("dimension_sections"),
            std::string::npos);
  EXPECT_NE(key("dflash.block_count", std::int64_t{3}).find("window_pattern"), std::string::npos);
}

TEST(Heads, ADamagedDflash2DrafterIsRefusedByTheNameOfWhatIsWrong) {
  const std::string block = fixtures::WriteTinyHead(
      Folder(), {.target = kTarget, .block = true, .taps = 2, .n_candidates = 8});
  ASSERT_EQ(OpenError(block), "");
  const auto file = *formats::OpenCheckpoint(block);
  for (const auto& t : file->tensors())
    EXPECT_NE(OpenError(Edited(block, {.drop_tensor = t.name})).find(t.name), std::string::npos)
        << t.name;
  const auto key = [&](const char* name, std::int64_t value) {
    return OpenError(Edited(
        block, {.key = std::string("dflash.") + name, .value = formats::MetadataValue(value)}));
  };
  EXPECT_NE(key("conv_kernel_size", 3).find("blk.0.attn_conv_base"), std::string::npos);
  EXPECT_NE(key("conv_kernel_size", 65).find("conv_kernel_size"), std::string::npos);
  EXPECT_NE(key("conv_group_size", 5).find("5 does not divide the width 64"), std::string::npos);
  EXPECT_NE(key("conv_group_size", 16).find("blk.0.attn_conv_proj.weight"), std::string::npos);
  EXPECT_NE(key("selector_rank", 16).find("selector_predecessor.weight"), std::string::npos);
  EXPECT_NE(key("selector_top_k", 65).find("selector_top_k"), std::string::npos);
  EXPECT_NE(
      OpenError(Edited(block, {.key = "dflash.hidden_activation", .value = std::string("relu")}))
          .find("'relu' is not supported; known are silu"),
      std::string::npos);
  fixtures::TinyHeadOptions both{.target = kTarget, .block = true};
  both.transition_rank = 16, both.n_candidates = 8;
  EXPECT_NE(OpenError(fixtures::WriteTinyHead(Folder(), both)).find("both a DSpark head"),
            std::string::npos);
  EXPECT_NE(
      OpenError(
          Edited(block, {.add_tensor = "lilicorr.token_proj.weight", .shape = {2}, .ids = {0}}))
          .find("this is a LiLiCorr drafter, which is not supported"),
      std::string::npos);
}

// An output head of fewer rows than candidates has them all.
TEST(Heads, ADflash2DrafterMayHaveFewTokens) {
  const std::string block = fixtures::WriteTinyHead(
      Folder(),
      {.target = kTarget, .block = true, .taps = 2, .n_candidates = 8, .draft_vocabulary = 3});
  EXPECT_EQ(OpenError(block), "");
}

TEST(Heads, AHeadIsNoTarget) {
  EXPECT_NE(OpenError("", "none", Head(true)).find("this is an EAGLE-3 head, no whole model"),
            std::string::npos);
  EXPECT_NE(OpenError("", "none", Head(false)).find("this is an MTP head, no whole model"),
            std::string::npos);
}

TEST(Heads, AHeadOfAnotherTargetIsRefused) {
  fixtures::TinyModelOptions wide = kTarget, deep = kTarget, other = kTarget;
  wide.dim = 96, wide.n_heads = 6, deep.n_layers = 4;
  for (int id = 0; id < 40; ++id) other.respelled[id] = fmt::format("<|{}|>", id);
  EXPECT_NE(OpenError(Head(true, wide)).find("hidden states of 96 values, the target has 64"),
            std::string::npos);
  EXPECT_NE(OpenError(Head(false, wide)).find("hidden states of 96 values"), std::string::npos);
  EXPECT_NE(OpenError(Head(false, deep)).find("behind 4 blocks, the target has 2"),
            std::string::npos);
  for (const bool eagle : {true, false})
    EXPECT_NE(OpenError(Head(eagle, other)).find("vocabulary is not the target's"),
              std::string::npos);
  const std::string deep_features =
      fixtures::WriteTinyHead(Folder(), {.target = kTarget, .eagle = true, .layers = {0, 1, 3}});
  EXPECT_NE(OpenError(deep_features).find("it reads layer 3, the target has 2"), std::string::npos);
}

TEST(Heads, DamagedFilesAreRefusedByTheNameOfWhatIsWrong) {
  using Ints = std::vector<std::int64_t>;
  const std::string eagle = Head(true), mtp = Head(false);
  for (const std::string& path : {eagle, mtp}) {
    const auto file = *formats::OpenCheckpoint(path);
    for (const auto& t : file->tensors())
      EXPECT_NE(OpenError(Edited(path, {.drop_tensor = t.name})).find(t.name), std::string::npos)
          << t.name;
  }
  const auto key = [&](const std::string& file, const std::string& name,
                       formats::MetadataValue value) {
    return OpenError(Edited(file, {.key = name, .value = std::move(value)}));
  };
  EXPECT_NE(key(eagle, "eagle3.target_layers", Ints{1, 2}).find("fc.weight"), std::string::npos);
  EXPECT_NE(key(eagle, "eagle3.target_layers", Ints{}).find("1 to 64 layers"), std::string::npos);
  EXPECT_NE(key(eagle, "eagle3.target_layers", Ints(65, 1)).find("1 to 64 layers"),
            std::string::npos);
  EXPECT_NE(key(eagle, "eagle3.target_layers", Ints{0, 1, -1}).find("-1"), std::string::npos);
  EXPECT_NE(key(eagle, "eagle3.target_hidden_size", std::int64_t{0}).find("target_hidden_size"),
            std::string::npos);
  EXPECT_NE(key(eagle, "eagle3.block_count", std::int64_t{2}).find("blk.1."), std::string::npos);
  EXPECT_NE(key(mtp, "llama.nextn_predict_layers", std::int64_t{3}).find("nextn_predict_layers"),
            std::string::npos);
  EXPECT_NE(key(mtp, "llama.nextn_predict_layers", std::int64_t{2}).find("behind 1 blocks"),
            std::string::npos);
}

TEST(Heads, AnAssistantThatDoesNotFitIsRefused) {
  const fixtures::TinyModelOptions gemma = {
      .arch = "gemma4", .seed = 62, .n_layers = 3, .window = 12};
  const std::string target = fixtures::WriteTinyModel(Folder(), gemma),
                    head = fixtures::WriteTinyHead(
                        Folder(), {.target = gemma, .assistant = true, .n_blocks = 2, .dim = 32});
  EXPECT_EQ(OpenError(head, "", target), "");
  EXPECT_EQ(OpenError(head, "draft-mtp", target), "");
  const auto file = *formats::OpenCheckpoint(head);
  for (const auto& t : file->tensors())
    EXPECT_NE(OpenError(Edited(head, {.drop_tensor = t.name}), "", target).find(t.name),
              std::string::npos)
        << t.name;
  const auto key = [&](const char* name, std::int64_t value) {
    return OpenError(Edited(head, {.key = std::string("gemma4-assistant.") + name, .value = value}),
                     "", target);
  };
  EXPECT_NE(key("embedding_length_out", 96).find("hidden states of 96 values, the target has 64"),
            std::string::npos);
  EXPECT_NE(key("attention.head_count_kv", 1).find("block 0: its heads are not those"),
            std::string::npos);
  EXPECT_NE(key("attention.sliding_window", 13).find("more positions than the target keeps"),
            std::string::npos);
  EXPECT_NE(key("attention.sliding_window", 1).find("a window of 1 position"), std::string::npos);
  EXPECT_NE(key("attention.sliding_window", 0).find("blk.0.attn_q"), std::string::npos);
  EXPECT_NE(key("block_count", 3).find("sliding_window_pattern"), std::string::npos);
  EXPECT_NE(OpenError(head, "eagle", target).find("this is an assistant"), std::string::npos);
  EXPECT_NE(OpenError(head).find("has no layer of its kind"), std::string::npos);
  EXPECT_NE(OpenError("", "none", head).find("this is a head, no whole model"), std::string::npos);
}

TEST(Heads, AWrongMapOfTokensIsRefused) {
  const std::string eagle =
      fixtures::WriteTinyHead(Folder(), {.target = kTarget, .eagle = true, .draft_vocabulary = 8});
  const auto with = [&](std::vector<std::int64_t> ids, std::uint32_t type = 27) {
    const auto n = static_cast<std::int64_t>(ids.size());
    return OpenError(Edited(eagle, {.drop_tensor = "d2t",
                                    .add_tensor = "d2t",
                                    .type = type,
                                    .shape = {n},
                                    .ids = std::move(ids)}));
  };
  EXPECT_EQ(with({1, 2, 3, 4, 5, 6, 7, 8}), "");
  EXPECT_NE(with({1, 2, 3, 4, 5, 6, 7, 320}).find("320 is not a token"), std::string::npos);
  EXPECT_NE(with({1, 2, 3, 4, 5, 6, 7, -1}).find("-1 is not a token"), std::string::npos);
  EXPECT_NE(with({1, 2, 3, 4, 5, 6, 7, 7}).find("token 7 comes twice"), std::string::npos);
  EXPECT_NE(with({1, 2, 3}).find("d2t"), std::string::npos);
  EXPECT_NE(OpenError(Edited(eagle, {.drop_tensor = "d2t"})).find("no tensor d2t"),
            std::string::npos);
}

TEST(Heads, AnMtpHeadInTheTargetsOwnFileDraftsAsOneOfItsOwnDoes) {
  const auto target = *formats::OpenCheckpoint(HeadsTarget()),
             head = *formats::OpenCheckpoint(Head(false));
  formats::GgufWriter writer;
  for (const auto& [key, value] : target->metadata().all()) writer.Set(key, value);
  writer.Set("llama.block_count", std::int64_t{3});
  writer.Set("llama.nextn_predict_layers", std::int64_t{1});
  for (const auto* file : {target.get(), head.get()})
    for (const auto& t : file->tensors())
      writer.AddTensor(t.name, t.ggml_type,
                       std::span(t.shape).first(static_cast<std::size_t>(t.n_dims)), t.data);
  const std::string both = Folder() + "/both.gguf";
  ASSERT_TRUE(writer.Write(both));
  Request request;
  request.prompt = "once upon a time";
  request.max_new_tokens = 60;
  request.sampling.temperature = 0.8F;
  request.seed = 4;
  const auto run = [&](EngineOptions options) {
    options.speculative.controller = "fixed";  // the same drafts in both, whatever the time
    return Generated(*OpenEngine(std::move(options)), request);
  };
  const auto apart = run({.model = HeadsTarget(), .draft_model = head->path()});
  const auto together = run({.model = both, .speculative = {.method = "mtp"}});
  EXPECT_EQ(apart.token_ids, together.token_ids);
  EXPECT_EQ(apart.speculation.accepted, together.speculation.accepted);
  EXPECT_GT(apart.speculation.drafted, 0);
  // As a model the file is what it was without the head.
  const auto plain = run({.model = HeadsTarget(), .speculative = {.method = "none"}}),
             plain_both = run({.model = both, .speculative = {.method = "none"}});
  EXPECT_EQ(plain.token_ids, plain_both.token_ids);
}

TEST(Heads, AModelFileSaysWhatItDraftsAs) {
  const auto file = [](const std::string& path) { return *ModelFile::Open(path); };
  EXPECT_EQ(file(HeadsTarget())->drafts_as(), "standalone");
  EXPECT_TRUE(file(HeadsTarget())->is_whole_model());
  EXPECT_EQ(file(Head(true))->drafts_as(), "eagle");
  EXPECT_FALSE(file(Head(true))->is_whole_model());
  EXPECT_EQ(file(Head(true))->obstacle(), "");
  EXPECT_EQ(file(Head(false))->drafts_as(), "mtp");
  EXPECT_EQ(file(Head(false))->obstacle(), "");
  const std::string assistant =
      fixtures::WriteTinyHead(Folder(), {.target = {.arch = "gemma4", .n_layers = 3, .window = 12},
                                         .assistant = true,
                                         .n_blocks = 2});
  EXPECT_EQ(file(assistant)->drafts_as(), "mtp");
  EXPECT_FALSE(file(assistant)->is_whole_model());
  EXPECT_EQ(file(assistant)->obstacle(), "");
}

}  // namespace
}  // namespace foretoken
