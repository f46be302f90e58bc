// SPDX-License-Identifier: Apache-2.0
// The library's errors name what its caller wrote: options, not flags of a program that the caller may
// not have.
#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "fixtures/engines_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/adaptive_lookahead.h"
#include "foretoken/built_in_drafters.h"
#include "foretoken/draft_session.h"
#include "foretoken/scorer.h"
#include "foretoken/speculative_config.h"
#include "foretoken/speculative_decoder.h"
#include "foretoken/speculative_pipeline.h"
#include "foretoken/tools/model_file.h"
#include "foretoken/tools/replay.h"
#include "foretoken/verification.h"

namespace foretoken {
namespace {

// "--threads" or "-md", as a word.
bool NamesAFlag(const std::string& text) {
  static const std::regex flag(R"((^|[^\w.])--?[a-z][a-z-]*\b)");
  return std::regex_search(text, flag);
}

class OptionErrors : public testing::Test {
 protected:
  // Takes the message of what failed; what succeeded fails the test.
  template <typename T>
  void Take(const std::string& what, const Result<T>& result) {
    EXPECT_FALSE(result) << what;
    if (!result) Take(what, result.error().message);
  }
  void Take(const std::string& what, const std::string& message) {
    EXPECT_FALSE(message.empty()) << what;
    EXPECT_FALSE(NamesAFlag(message)) << what << ": " << message;
    ++n_messages_;
    all_ += message + "\n";
  }
  void ExpectNamed(const std::string& option) const {
    EXPECT_NE(all_.find(option), std::string::npos) << option << "\n" << all_;
  }

  EngineOptions Options() const { return {.model = target_, .find_drafters = false, .threads = 1}; }
  void Refused(const std::string& what, const std::function<void(EngineOptions&)>& change) {
    EngineOptions options = Options();
    change(options);
    Take(what, Engine::Open(options));
  }

  const std::string folder_ = fixtures::TemporaryFolder();
  const std::string target_ = fixtures::WriteTinyModel(folder_, {.context_length = 256});
  const std::string head_ = fixtures::WriteTinyHead(folder_, {});
  int n_messages_ = 0;
  std::string all_;
};

TEST_F(OptionErrors, AFlagIsSeen) {
  EXPECT_TRUE(NamesAFlag("raise --ctx-size"));
  EXPECT_TRUE(NamesAFlag("(--model-draft)"));
  EXPECT_TRUE(NamesAFlag("name it with -md, or"));
  EXPECT_FALSE(NamesAFlag("sample-match of top-k is -1; /a/b-draft.gguf"));
}

TEST_F(OptionErrors, OfEnginesNameOptions) {
  Refused("no model", [](auto& o) { o.model.clear(); });
  Refused("an absent model", [](auto& o) { o.model += ".absent"; });
  Refused("a head as the model", [this](auto& o) { o.model = head_; });
  Refused("a context below 0", [](auto& o) { o.context_size = -1; });
  Refused("no sequences", [](auto& o) { o.max_sequences = 0; });
  Refused("a cache below 0", [](auto& o) { o.cache_tokens = -1; });
  Refused("checkpoints below 0", [](auto& o) { o.state_checkpoint_tokens = -1; });
  Refused("threads below 0", [](auto& o) { o.threads = -1; });
  Refused("too many threads", [](auto& o) { o.threads = 1 << 20; });
  Refused("rows", [](auto& o) { o.prefill_rows = 0; });
  Refused("an instruction set", [](auto& o) { o.isa = "mmx"; });
  Refused("a limit of kept weights", [](auto& o) { o.repack_cache_gb = -1; });
  Refused("an end token", [](auto& o) { o.end_tokens = {1 << 20}; });
  Refused("a trace without a cache",
          [this](auto& o) { o.kv_cache = false, o.record = folder_ + "/trace.jsonl"; });
  Refused("keys in blocks that do not fit", [](auto& o) { o.cache_type_k = CacheType::kQ8_0; });
  Refused("a head of another kind",
          [this](auto& o) { o.draft_model = head_, o.speculative.method = "standalone"; });
  Refused("no draft model", [](auto& o) { o.speculative.method = "standalone"; });
  Refused("no head in the file", [](auto& o) { o.speculative.method = "mtp"; });
  Refused("no head", [](auto& o) { o.speculative.method = "eagle"; });
  Refused("a profile", [this](auto& o) { o.speculative.profile = folder_ + "/absent.json"; });
  EngineOptions several = Options();
  several.max_sequences = 2;
  Take("a decoder of two", SpeculativeDecoder::Create(several));
  Take("a pipeline without a draft", StandaloneSpeculativeDecodingPipeline::Create(Options()));
  EngineOptions found = Options();
  found.find_drafters = true, found.speculative.method = "standalone";
  Take("nothing is found", FindDrafters(found));
  ExpectNamed("EngineOptions::model");
  ExpectNamed("EngineOptions::draft_model");
  ExpectNamed("EngineOptions::cache_type_k");
  ExpectNamed("SpeculativeOptions::method");
  EXPECT_GE(n_messages_, 20);
}

TEST_F(OptionErrors, OfRequestsNameOptions) {
  EngineOptions options = Options();
  options.max_sequences = 2, options.cache_tokens = 128;
  const auto engine = OpenEngine(options);
  const auto refused = [&](const std::string& what, const std::function<void(Request&)>& change) {
    Request request;
    request.prompt_tokens = {1, 60};
    request.max_new_tokens = 8;
    change(request);
    Take(what, engine->Prepare(request));
  };
  refused("a prompt beyond the context", [](auto& r) { r.prompt_tokens.assign(300, 60); });
  refused("more than the cache holds", [](auto& r) { r.max_new_tokens = 200; });
  refused("an unknown token", [](auto& r) { r.prompt_tokens = {1 << 20}; });
  refused("tokens", [](auto& r) { r.max_new_tokens = -1; });
  refused("least tokens", [](auto& r) { r.min_new_tokens = 9; });
  refused("an empty stop", [](auto& r) { r.stop = {""}; });
  refused("logprobs", [](auto& r) { r.logprobs = 65; });
  refused("a salt", [](auto& r) { r.cache_salt.assign(2000, 'a'); });
  refused("temperature", [](auto& r) { r.sampling.temperature = -1; });
  refused("top_k", [](auto& r) { r.sampling.top_k = -2; });
  refused("top_p", [](auto& r) { r.sampling.top_p = 2; });
  refused("min_p", [](auto& r) { r.sampling.min_p = -1; });
  refused("typical_p", [](auto& r) { r.sampling.typical_p = 2; });
  refused("eta", [](auto& r) { r.sampling.eta = 1; });
  refused("repetition_penalty", [](auto& r) { r.sampling.repetition_penalty = 0; });
  refused("a bias", [](auto& r) { r.sampling.logit_bias = {{1 << 20, 1.0f}}; });
  refused("dry", [](auto& r) { r.sampling.dry.base = 0; });
  refused("a grammar", [](auto& r) { r.sampling.grammar = "root ::= ("; });
  refused("a method", [](auto& r) { r.speculative.method = "standalone"; });
  refused("a strategy", [](auto& r) { r.speculative.strategy = VerifyStrategy::kGreedy; });
  refused("K", [](auto& r) { r.speculative.num_speculative_tokens = 65; });
  refused("draft_p_min", [](auto& r) { r.speculative.draft_p_min = 2; });
  Take("a context of measurements", engine->Measure({.rows = {1}, .contexts = {1000}}));
  Take("rows of measurements", engine->Measure({.rows = {0}}));
  Take("a chat without a template",
       engine->FormatChat(std::vector<ChatMessage>{{"user", "a"}}, {}));
  Take("a template",
       engine->FormatChat(std::vector<ChatMessage>{{"user", "a"}}, {.chat_template = "absent"}));
  const auto scorer = Got(Scorer::Create(options));
  Take("scores beyond the context", scorer->Score(std::vector<std::int32_t>(300, 60)));
  Take("scores beyond the cache", scorer->Score(std::vector<std::int32_t>(200, 60)));
  Take("no such sequence", scorer->Score(std::vector<std::int32_t>{60}, 2));
  ExpectNamed("EngineOptions::context_size");
  ExpectNamed("EngineOptions::cache_tokens");
  ExpectNamed("ChatOptions::template_text");
  ExpectNamed("top_k");
  EXPECT_GE(n_messages_, 25);
}

TEST_F(OptionErrors, OfSettingsNameSettings) {
  for (const SpeculativeKey& key : SpeculativeKeys()) {
    SpeculativeOptions options;
    for (const char* const value : {"-1", "1e9", "nan", "no such name", ""})
      if (const Status set = SetSpeculativeOption(options, key.name, value); !set)
        Take(std::string(key.name) + " " + value, set.error().message);
  }
  const std::vector<std::string> files = {
      "{\"model\": \"x\"}", "{\"gama\": 3}", "{\"lookahead\": \"batch-size\"}",
      "{\"dialect\": \"max\", \"draft_proposal\": \"greedy\"}",
      "{\"dialect\": \"max\", \"use_greedy_acceptance\": true}"};
  for (const std::string& file : files) {
    SpeculativeOptions options;
    auto read = ReadSpeculativeFile(file, kSpeculativeSection, options);
    if (read)
      Take(file, SpeculativeConfig::Create(options));
    else
      Take(file, read.error().message);
  }
  ExpectNamed("EngineOptions::draft_model");
  EXPECT_GE(n_messages_, 40);
}

TEST_F(OptionErrors, OfToolsAndPartsNameOptions) {
  const std::string small = folder_ + "/small.gguf", smaller = folder_ + "/smaller.gguf";
  ASSERT_TRUE(QuantizeFile({.input = target_, .output = small, .type = "Q8_0", .threads = 1}));
  Take("quantised again", QuantizeFile({.input = small, .output = smaller, .type = "Q4_0"}));
  Take("a type", QuantizeFile({.input = target_, .output = smaller, .type = "Q9"}));
  Take("threads",
       QuantizeFile({.input = target_, .output = smaller, .type = "Q8_0", .threads = -1}));
  Take("a trace", ParseTrace("{}", "run.jsonl"));
  Take("a head alone", OpenDrafter(head_));
  Take("lookup", MakeNgramDrafter({.ngram_max = 99}));
  Take("texts", MakeSuffixDrafter({.max_tokens = -1}));
  Take("the mean's weight", AdaptiveLookahead::Create({.alpha = 2}));
  Take("no vocabulary", DraftVerification::Create({}));
  const auto session = Got(DraftSession::Create(Got(MakeNgramDrafter()), 320));
  Take("no text", session->Propose(4));
  Take("no prompt", session->Begin({}));
  ExpectNamed("QuantizeOptions::allow_requantize");
  ExpectNamed("EngineOptions::record");
  EXPECT_GE(n_messages_, 10);
}

}  // namespace
}  // namespace foretoken
