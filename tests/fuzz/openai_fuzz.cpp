// SPDX-License-Identifier: Apache-2.0
// Feeds bytes to the reader of the server's requests. It gives a call whose values are in their
// ranges, or a short error of one line that names what is wrong; it never crashes. Needs no corpus.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/api/openai_schema.h"

namespace {

using namespace foretoken::server;

// The first byte says whose body it is.
constexpr std::string_view kSeeds[] = {
    "0{\"model\":\"m\",\"prompt\":[\"a\",[1,2]],\"max_tokens\":5,\"temperature\":0.5,\"n\":2,"
    "\"stop\":[\"x\"],\"seed\":-1,\"logit_bias\":{\"3\":-100},\"stream\":true,\"logprobs\":2,"
    "\"stream_options\":{\"include_usage\":true},\"speculative\":{\"type\":[\"ngram\"],"
    "\"num_speculative_tokens\":3,\"n_min\":2,\"strategy\":\"block\",\"trace\":true},"
    "\"speculative.p_min\":0.5,\"echo\":true}",
    "1{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}],"
    "\"max_completion_tokens\":4,\"logprobs\":true,\"top_logprobs\":2,\"tools\":[],"
    "\"prediction\":{\"type\":\"content\",\"content\":\"b\"},\"response_format\":{\"type\":"
    "\"text\"}}",
    "0{\"prompt\":\"a\",\"response_format\" : "
    "{\"type\":\"json_schema\",\"json_schema\":{\"strict\":true,"
    "\"sch\\u0065ma\" : {\"type\":\"object\",\"properties\":{\"b\":{},\"a\":{\"enum\":[1]}}}}}}",
    "1{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"structured_outputs\":{\"json\":\"{}"
    "\","
    "\"regex\":null},\"guided_choice\":null,\"regex\":\"\",\"json_schema\":null}",
    "2{\"content\":\"a\",\"add_special\":true,\"with_pieces\":false}",
    "3{\"tokens\":[1,2,3],\"special\":true}",
    "4{\"prompt\":\"a\",\"seed\":1,\"generated\":[4,5],\"drafts\":[1,2,3]}"};

const ModelLimits& Limits() {
  static const ModelLimits limits = {
      .name = "m", .vocabulary_size = 100, .method = "standalone", .max_choices = 8};
  return limits;
}

void CheckError(const ApiError& error) {
  FORETOKEN_CHECK(error.status == 400 && !error.message.empty());
  FORETOKEN_CHECK(error.message.find('\n') == std::string::npos && error.message.size() < 4000);
  FORETOKEN_CHECK(error.message.find(':') != std::string::npos);
}

void CheckCall(const GenerationCall& call) {
  const foretoken::Request& r = call.request;
  FORETOKEN_CHECK(call.chat ? !call.messages.empty() : !call.prompts.empty());
  FORETOKEN_CHECK(call.n >= 1 && call.n <= 8);
  FORETOKEN_CHECK(r.stop.size() <= 4 && r.logprobs >= -1 && r.logprobs <= 20);
  FORETOKEN_CHECK(r.sampling.temperature >= 0 && r.sampling.temperature <= 2);
  FORETOKEN_CHECK(r.sampling.top_p >= 0 && r.sampling.top_p <= 1);
  FORETOKEN_CHECK(r.speculative.num_speculative_tokens.value_or(0) <= 64);
  FORETOKEN_CHECK(r.speculative.min_speculative_tokens.value_or(0) <= 64);
  FORETOKEN_CHECK(r.prompt_logprobs == -1 || r.prompt_logprobs == r.logprobs);
  for (const auto& [id, bias] : r.sampling.logit_bias)
    FORETOKEN_CHECK(id >= 0 && id < 100 && bias >= -100 && bias <= 100);
  for (const Prompt& prompt : call.prompts)
    if (const auto* const tokens = std::get_if<std::vector<std::int32_t>>(&prompt))
      for (const std::int32_t id : *tokens) FORETOKEN_CHECK(id >= 0 && id < 100);
}

template <typename Outcome>
bool Good(const Outcome& outcome) {
  if (!outcome) CheckError(outcome.error());
  return outcome.has_value();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  const std::string_view text = kSeeds[seed % std::size(kSeeds)];
  if (size >= 16 || max_size < text.size()) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      if (const auto call = ParseCompletionCall(body, Limits()); Good(call)) CheckCall(*call);
      break;
    case 1:
      if (const auto call = ParseChatCall(body, Limits()); Good(call)) CheckCall(*call);
      break;
    case 2:
      Good(ParseTokenizeCall(body, Limits()));
      break;
    case 4:
      if (const auto call = ParseVerifyCall(body, Limits()); Good(call)) {
        CheckCall(*call);
        FORETOKEN_CHECK(call->drafts && call->n == 1 && !call->stream && !call->echo);
        for (const std::int32_t id : call->request.generated) FORETOKEN_CHECK(id >= 0 && id < 100);
      }
      break;
    default:
      if (const auto call = ParseDetokenizeCall(body, Limits()); Good(call))
        for (const std::int32_t id : call->tokens) FORETOKEN_CHECK(id >= 0 && id < 100);
  }
  return 0;
}
