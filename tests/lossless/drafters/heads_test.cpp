// SPDX-License-Identifier: Apache-2.0
// Heads that do not fit, and files with false contents.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstring>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
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

std::string Written(const fixtures::TinyHeadOptions& head) {
  return fixtures::WriteTinyHead(Folder(), head);
}
std::string Head(bool eagle, fixtures::TinyModelOptions target = kTarget) {
  return Written({.target = target, .eagle = eagle});
}

std::string OpenError(const std::string& draft, const std::string& method = "",
                      const std::string& target = HeadsTarget()) {
  return MessageOf(Engine::Open({.model = target,
                                 .draft_model = draft,
                                 .speculative = {.method = method, .controller = "fixed"},
                                 .threads = 1}));
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

// Without one of its tensors a file is refused by the tensor's name.
void ExpectEachTensorIsNeeded(const std::string& path, const std::string& target = HeadsTarget()) {
  const auto file = *formats::OpenCheckpoint(path);
  for (const auto& t : file->tensors())
    EXPECT_TRUE(Says(OpenError(Edited(path, {.drop_tensor = t.name}), "", target), t.name));
}

std::string MethodWith(const std::string& draft) {
  return OpenEngine({.model = HeadsTarget(), .draft_model = draft, .threads = 1})->summary().method;
}

TEST(Heads, TheMethodIsWhatTheDraftsFileIs) {
  EXPECT_EQ(MethodWith(Head(true)), "eagle");
  EXPECT_EQ(MethodWith(Head(false)), "mtp");
}

TEST(Heads, AFileOfAnotherKindThanTheMethodIsRefused) {
  EXPECT_TRUE(
      Says(OpenError(Head(true), "mtp"), "this is an EAGLE-3 head, and 'mtp' was asked for"));
  EXPECT_TRUE(Says(OpenError(Head(false), "eagle"), "this is an MTP head"));
  EXPECT_TRUE(Says(OpenError(HeadsTarget(), "eagle"), "this is a whole model"));
  EXPECT_TRUE(Says(OpenError(Head(true), "standalone"), "this is an EAGLE-3 head"));
  EXPECT_TRUE(Says(OpenError("", "mtp"), "the model has no MTP head"));
  EXPECT_TRUE(Says(OpenError("", "eagle"), "needs a head"));
}

TEST(Heads, AreNoModels) {
  for (const bool eagle : {true, false})
    EXPECT_TRUE(
        Says(OpenError("", "none", Head(eagle)), "head, no whole model; give it as the draft"));
}

TEST(Heads, ADflashDrafterIsAHeadLikeOthers) {
  const std::string block = Written({.target = kTarget, .block = true});
  EXPECT_EQ(MethodWith(block), "dflash");
  EXPECT_TRUE(Says(OpenError(block, "mtp"), "this is a DFlash drafter, and 'mtp' was asked for"));
  EXPECT_TRUE(Says(OpenError(Head(true), "dflash"), "this is an EAGLE-3 head"));
  EXPECT_TRUE(Says(OpenError("", "dflash"), "needs a head"));
  EXPECT_TRUE(Says(OpenError("", "none", block), "this is a DFlash drafter, no whole model"));
}

TEST(Heads, ADflashDrafterOfAnotherTargetIsRefused) {
  fixtures::TinyModelOptions wide = kTarget;
  wide.dim = 96, wide.n_heads = 6;
  const auto error = [](const fixtures::TinyHeadOptions& options) {
    return OpenError(Written(options));
  };
  EXPECT_TRUE(Says(error({.target = wide, .block = true}), "hidden states of 96 values"));
  EXPECT_TRUE(
      Says(error({.target = kTarget, .block = true, .layers = {0, 3}}), "it reads layer 3"));
  EXPECT_TRUE(Says(error({.target = kTarget, .block = true, .mask = 5000}), "mask token 5000"));
}

TEST(Heads, ADamagedDflashDrafterIsRefusedByTheNameOfWhatIsWrong) {
  using Ints = std::vector<std::int64_t>;
  const std::string block =
      Written({.target = kTarget, .block = true, .window = 20, .draft_vocabulary = 8});
  ExpectEachTensorIsNeeded(block);
  const auto key = [&](const std::string& name, formats::MetadataValue value) {
    return OpenError(Edited(block, {.key = name, .value = std::move(value)}));
  };
  const std::string mask = "tokenizer.ggml.mask_token_id";
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{1} << 40, std::int64_t{320}})
    EXPECT_TRUE(Says(key(mask, id), id == 320 ? "mask token 320" : mask)) << id;
  EXPECT_TRUE(Says(key("dflash.target_layers", Ints{}), "target_layers"));
  EXPECT_TRUE(Says(key("dflash.target_layers", Ints(100, 1)), "target_layers"));
  EXPECT_TRUE(Says(key("dflash.target_layers", Ints{0, 1}), "fc.weight"));
  EXPECT_TRUE(Says(key("dflash.block_size", std::int64_t{0}), "block_size"));
  EXPECT_TRUE(Says(key("dflash.rope.dimension_sections", Ints{4, 4, 0, 0}), "dimension_sections"));
  EXPECT_TRUE(Says(key("dflash.block_count", std::int64_t{3}), "window_pattern"));
}

TEST(Heads, ADamagedDflash2DrafterIsRefusedByTheNameOfWhatIsWrong) {
  const std::string block =
      Written({.target = kTarget, .block = true, .taps = 2, .n_candidates = 8});
  ASSERT_EQ(OpenError(block), "");
  ExpectEachTensorIsNeeded(block);
  const auto key = [&](const char* name, std::int64_t value) {
    return OpenError(Edited(
        block, {.key = std::string("dflash.") + name, .value = formats::MetadataValue(value)}));
  };
  EXPECT_TRUE(Says(key("conv_kernel_size", 3), "blk.0.attn_conv_base"));
  EXPECT_TRUE(Says(key("conv_kernel_size", 65), "conv_kernel_size"));
  EXPECT_TRUE(Says(key("conv_group_size", 5), "5 does not divide the width 64"));
  EXPECT_TRUE(Says(key("conv_group_size", 16), "blk.0.attn_conv_proj.weight"));
  EXPECT_TRUE(Says(key("selector_rank", 16), "selector_predecessor.weight"));
  EXPECT_TRUE(Says(key("selector_top_k", 65), "selector_top_k"));
  EXPECT_TRUE(Says(
      OpenError(Edited(block, {.key = "dflash.hidden_activation", .value = std::string("relu")})),
      "'relu' is not supported; known are silu"));
  fixtures::TinyHeadOptions both{.target = kTarget, .block = true};
  both.transition_rank = 16, both.n_candidates = 8;
  EXPECT_TRUE(Says(OpenError(Written(both)), "both a DSpark head"));
  EXPECT_TRUE(
      Says(OpenError(Edited(
               block, {.add_tensor = "lilicorr.token_proj.weight", .shape = {2}, .ids = {0}})),
           "this is a LiLiCorr drafter, which is not supported"));
}

// An output head of fewer rows than candidates has them all.
TEST(Heads, ADflash2DrafterMayHaveFewTokens) {
  const std::string block = Written(
      {.target = kTarget, .block = true, .taps = 2, .n_candidates = 8, .draft_vocabulary = 3});
  EXPECT_EQ(OpenError(block), "");
}

TEST(Heads, AHeadIsNoTarget) {
  EXPECT_TRUE(Says(OpenError("", "none", Head(true)), "this is an EAGLE-3 head, no whole model"));
  EXPECT_TRUE(Says(OpenError("", "none", Head(false)), "this is an MTP head, no whole model"));
}

TEST(Heads, AHeadOfAnotherTargetIsRefused) {
  fixtures::TinyModelOptions wide = kTarget, deep = kTarget, other = kTarget;
  wide.dim = 96, wide.n_heads = 6, deep.n_layers = 4;
  for (int id = 0; id < 40; ++id) other.respelled[id] = fmt::format("<|{}|>", id);
  EXPECT_TRUE(Says(OpenError(Head(true, wide)), "hidden states of 96 values, the target has 64"));
  EXPECT_TRUE(Says(OpenError(Head(false, wide)), "hidden states of 96 values"));
  EXPECT_TRUE(Says(OpenError(Head(false, deep)), "behind 4 blocks, the target has 2"));
  for (const bool eagle : {true, false})
    EXPECT_TRUE(Says(OpenError(Head(eagle, other)), "vocabulary is not the target's"));
  const std::string deep_features =
      Written({.target = kTarget, .eagle = true, .layers = {0, 1, 3}});
  EXPECT_TRUE(Says(OpenError(deep_features), "it reads layer 3, the target has 2"));
}

TEST(Heads, DamagedFilesAreRefusedByTheNameOfWhatIsWrong) {
  using Ints = std::vector<std::int64_t>;
  const std::string eagle = Head(true), mtp = Head(false);
  for (const std::string& path : {eagle, mtp}) ExpectEachTensorIsNeeded(path);
  const auto key = [&](const std::string& file, const std::string& name,
                       formats::MetadataValue value) {
    return OpenError(Edited(file, {.key = name, .value = std::move(value)}));
  };
  EXPECT_TRUE(Says(key(eagle, "eagle3.target_layers", Ints{1, 2}), "fc.weight"));
  EXPECT_TRUE(Says(key(eagle, "eagle3.target_layers", Ints{}), "1 to 64 layers"));
  EXPECT_TRUE(Says(key(eagle, "eagle3.target_layers", Ints(65, 1)), "1 to 64 layers"));
  EXPECT_TRUE(Says(key(eagle, "eagle3.target_layers", Ints{0, 1, -1}), "-1"));
  EXPECT_TRUE(Says(key(eagle, "eagle3.target_hidden_size", std::int64_t{0}), "target_hidden_size"));
  EXPECT_TRUE(Says(key(eagle, "eagle3.block_count", std::int64_t{2}), "blk.1."));
  EXPECT_TRUE(
      Says(key(mtp, "llama.nextn_predict_layers", std::int64_t{3}), "nextn_predict_layers"));
  EXPECT_TRUE(Says(key(mtp, "llama.nextn_predict_layers", std::int64_t{2}), "behind 1 blocks"));
}

TEST(Heads, AnAssistantThatDoesNotFitIsRefused) {
  const fixtures::TinyModelOptions gemma = {
      .arch = "gemma4", .seed = 62, .n_layers = 3, .window = 12};
  const std::string target = fixtures::WriteTinyModel(Folder(), gemma),
                    head = Written({.target = gemma, .assistant = true, .n_blocks = 2, .dim = 32});
  EXPECT_EQ(OpenError(head, "", target), "");
  EXPECT_EQ(OpenError(head, "draft-mtp", target), "");
  ExpectEachTensorIsNeeded(head, target);
  const auto key = [&](const char* name, std::int64_t value) {
    return OpenError(Edited(head, {.key = std::string("gemma4-assistant.") + name, .value = value}),
                     "", target);
  };
  EXPECT_TRUE(
      Says(key("embedding_length_out", 96), "hidden states of 96 values, the target has 64"));
  EXPECT_TRUE(Says(key("attention.head_count_kv", 1), "block 0: its heads are not those"));
  EXPECT_TRUE(Says(key("attention.sliding_window", 13), "more positions than the target keeps"));
  EXPECT_TRUE(Says(key("attention.sliding_window", 1), "a window of 1 position"));
  EXPECT_TRUE(Says(key("attention.sliding_window", 0), "blk.0.attn_q"));
  EXPECT_TRUE(Says(key("block_count", 3), "sliding_window_pattern"));
  EXPECT_TRUE(Says(OpenError(head, "eagle", target), "this is an assistant"));
  EXPECT_TRUE(Says(OpenError(head), "has no layer of its kind"));
  EXPECT_TRUE(Says(OpenError("", "none", head), "this is an assistant head, no whole model"));
}

TEST(Heads, AWrongMapOfTokensIsRefused) {
  const std::string eagle = Written({.target = kTarget, .eagle = true, .draft_vocabulary = 8});
  const auto with = [&](std::vector<std::int64_t> ids, std::uint32_t type = 27) {
    const auto n = static_cast<std::int64_t>(ids.size());
    return OpenError(Edited(eagle, {.drop_tensor = "d2t",
                                    .add_tensor = "d2t",
                                    .type = type,
                                    .shape = {n},
                                    .ids = std::move(ids)}));
  };
  EXPECT_EQ(with({1, 2, 3, 4, 5, 6, 7, 8}), "");
  EXPECT_TRUE(Says(with({1, 2, 3, 4, 5, 6, 7, 320}), "320 is not a token"));
  EXPECT_TRUE(Says(with({1, 2, 3, 4, 5, 6, 7, -1}), "-1 is not a token"));
  EXPECT_TRUE(Says(with({1, 2, 3, 4, 5, 6, 7, 7}), "token 7 comes twice"));
  EXPECT_TRUE(Says(with({1, 2, 3}), "d2t"));
  EXPECT_TRUE(Says(OpenError(Edited(eagle, {.drop_tensor = "d2t"})), "no tensor d2t"));
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
  const std::string assistant = Written({.target = {.arch = "gemma4", .n_layers = 3, .window = 12},
                                         .assistant = true,
                                         .n_blocks = 2});
  EXPECT_EQ(file(assistant)->drafts_as(), "mtp");
  EXPECT_FALSE(file(assistant)->is_whole_model());
  EXPECT_EQ(file(assistant)->obstacle(), "");
}

}  // namespace
}  // namespace foretoken
