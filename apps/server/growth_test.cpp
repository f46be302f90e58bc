// SPDX-License-Identifier: Apache-2.0
// Requests come from clients: the work that reading one takes must grow no faster than its size.

#include "base/growth_testing.h"
#include "server/api/object_text.h"
#include "server/api/openai_schema.h"
#include "server/net/request_reader.h"

namespace foretoken::server {
namespace {

constexpr Sizes kBodies = {4 << 10, 32 << 10};
// So large that a copy of the body for each message would outweigh what a message takes anyway.
constexpr Sizes kManyMessages = {12 << 10, 96 << 10};

// Makes a text of about so many bytes.
using TextOf = std::function<std::string(std::size_t)>;

struct Case {
  const char* name;
  TextOf make;
  Sizes sizes = kBodies;
};

TextOf Within(std::string front, std::string part, std::string back) {
  return [=](std::size_t size) { return front + Repeated(part, size) + back; };
}

// [item,item,...] behind `front`.
TextOf ListOf(std::string front, std::string item, std::string back = "}") {
  return [=](std::size_t size) {
    return front + "[" + Repeated(item + ",", size) + item + "]" + back;
  };
}

// front item0,item1,... back; # stands for the number.
TextOf Numbered(std::string front, std::string item, std::string back) {
  return [=](std::size_t size) {
    std::string text = front;
    for (std::size_t i = 0; text.size() < size; ++i) {
      if (i > 0) text += ',';
      std::string next = item;
      next.replace(next.find('#'), 1, std::to_string(i));
      text += next;
    }
    return text + back;
  };
}

// Bodies that every endpoint reads, whatever it makes of them.
const std::vector<Case>& AnyBody() {
  static const std::vector<Case> cases = {
      {"objects", ListOf(R"({"x":)", "{}")},
      {"objects in objects", ListOf(R"({"x":)", R"({"a":{"b":{}}})")},
      {"lists", ListOf(R"({"x":)", "[]")},
      {"lists of lists", ListOf(R"({"x":)", "[[],[[]]]")},
      {"numbers", ListOf(R"({"x":)", "0")},
      {"members", Numbered("{", R"("k#":0)", "}")},
      {"members near to a field's name", Numbered("{", R"("temperatur#":0)", "}")},
      {"members with objects", Numbered("{", R"("k#":{})", "}")},
      {"one name again and again", Within("{", R"("a":0,)", R"("a":0})")},
      {"a long text", Within(R"({"x":")", "a", R"("})")},
      {"escapes", Within(R"({"x":")", R"(\u00e9)", R"("})")},
      {"surrogates", Within(R"({"x":")", R"(\ud83d\ude00)", R"("})")},
      {"a long name", Within("{\"", "a", "\":0}")},
      {"a long name with escapes", Within("{\"", "\\n", "\":0}")},
      {"a long number", Within(R"({"x":)", "1", "}")},
      {"a long fraction", Within(R"({"x":0.)", "1", "}")},
      {"deep lists", Within(R"({"x":)", "[", "")},
      {"deep objects", Within("", R"({"x":)", "")},
      {"white space", Within(R"({"x":)", " ", "0}")},
      {"text without an end", Within(R"({"x":")", "a", "")},
      {"bytes that are not UTF-8", Within(R"({"x":")", "\xff", R"("})")},
      {"not JSON", Within("", "x", "")}};
  return cases;
}

// One large field behind `rest`, the members that the endpoint needs.
TextOf Field(const std::string& rest, const std::string& name, const TextOf& value) {
  return [=](std::size_t size) { return "{" + rest + "\"" + name + "\":" + value(size) + "}"; };
}

// Fields of both endpoints that generate.
std::vector<Case> Sampling(const std::string& rest) {
  return {{"stop texts", Field(rest, "stop", ListOf("", R"("abc")", ""))},
          {"a long stop text", Field(rest, "stop", Within("\"", "a", "\""))},
          {"stop tokens", Field(rest, "stop_token_ids", ListOf("", "17", ""))},
          {"stop tokens that do not exist", Field(rest, "stop_token_ids", ListOf("", "-1", ""))},
          {"biases", Field(rest, "logit_bias", Numbered("{", R"("#":1)", "}"))},
          {"biases of no token", Field(rest, "logit_bias", Numbered("{", R"("x#":1)", "}"))},
          {"pairs of biases", Field(rest, "logit_bias", ListOf("", "[17,1]", ""))},
          {"breakers", Field("\"dry_multiplier\":1," + rest, "dry_sequence_breakers",
                             ListOf("", R"("a")", ""))},
          {"parts of a prediction",
           Field(rest, "prediction",
                 ListOf(R"({"type":"content","content":)", R"({"type":"text","text":"a"})"))},
          {"methods", Field(rest, "speculative.type", ListOf("", R"("ngram")", ""))},
          {"members of response_format",
           Field(rest, "response_format", Numbered(R"({"type":"text",)", R"("k#":0)", "}"))},
          {"members of structured_outputs",
           Field(rest, "structured_outputs", Numbered("{", R"("k#":0)", "}"))},
          {"members of stream_options",
           Field(rest, "stream_options", Numbered("{", R"("include_usag#":0)", "}"))},
          {"a long model", Field(rest, "model", Within("\"", "a", "\""))},
          {"values of a foreign field", Field(rest, "samplers", ListOf("", R"("top_k")", ""))}};
}

template <typename Parse>
void ExpectLinearBodies(std::vector<Case> cases, const Parse& parse) {
  cases.insert(cases.end(), AnyBody().begin(), AnyBody().end());
  const ModelLimits limits = {
      .name = "model", .vocabulary_size = 4096, .max_choices = 128, .rules = {.any_model = true}};
  for (const Case& c : cases)
    ExpectLinear(c.name, c.sizes, [&](std::size_t size) {
      return [&parse, &limits, body = c.make(size)] { (void)parse(body, limits); };
    });
}

TEST(RequestGrowth, Completions) {
  const std::string rest = R"("prompt":"Once","max_tokens":1,)";
  std::vector<Case> cases = Sampling(rest);
  cases.push_back({"prompts", Field("", "prompt", ListOf("", R"("a")", ""))});
  cases.push_back({"tokens", Field("", "prompt", ListOf("", "17", ""))});
  cases.push_back({"prompts of tokens", Field("", "prompt", ListOf("", "[17]", ""))});
  ExpectLinearBodies(cases, ParseCompletionCall);
}

TEST(RequestGrowth, Chats) {
  const std::string rest = R"("messages":[{"role":"user","content":"Hello"}],"max_tokens":1,)";
  std::vector<Case> cases = Sampling(rest);
  cases.push_back({"messages",
                   Field("", "messages", ListOf("", R"({"role":"user","content":"a"})", "")),
                   kManyMessages});
  cases.push_back({"parts of a message", Field("", "messages",
                                               ListOf(R"([{"role":"user","content":)",
                                                      R"({"type":"text","text":"a"})", "}]"))});
  cases.push_back({"other members of a message",
                   Field("", "messages",
                         Numbered(R"([{"role":"user","content":"a",)", R"("member#":1)", "}]"))});
  cases.push_back({"members near to those of a message",
                   Field("", "messages",
                         Numbered(R"([{"role":"user","content":"a",)", R"("refusa#":1)", "}]"))});
  cases.push_back(
      {"tools", Field(R"("tool_choice":"none",)" + rest, "tools", ListOf("", "{}", ""))});
  ExpectLinearBodies(cases, ParseChatCall);
}

TEST(RequestGrowth, Verify) {
  const std::string rest = R"("prompt":"Once","max_tokens":1,"temperature":0,)";
  ExpectLinearBodies(
      {{"drafts", Field(rest, "drafts", ListOf("", "17", ""))},
       {"a text of drafts", Field(rest, "drafts", Within("\"", "a b ", "\""))},
       {"tokens so far", Field(rest + R"("drafts":[],)", "generated", ListOf("", "17", ""))}},
      ParseVerifyCall);
}

TEST(RequestGrowth, Tokenize) {
  ExpectLinearBodies({{"a content", Field("", "content", Within("\"", "a b ", "\""))}},
                     ParseTokenizeCall);
}

TEST(RequestGrowth, Detokenize) {
  ExpectLinearBodies({{"tokens", Field("", "tokens", ListOf("", "17", ""))},
                      {"tokens that do not exist", Field("", "tokens", ListOf("", "-1", ""))}},
                     ParseDetokenizeCall);
}

TEST(RequestGrowth, VariablesOfATemplate) {
  const TextOf members = Numbered("{", R"("k#":0)", "}");
  for (const std::string& defaults : {std::string("{\"a\": 1}"), members(4 << 10)})
    ExpectLinear("members", kBodies, [&](std::size_t size) {
      return
          [defaults, own = members(size)] { EXPECT_FALSE(MergedObjects(defaults, own).empty()); };
    });
  ExpectLinear("members of both", kBodies, [&](std::size_t size) {
    return [own = members(size)] { EXPECT_FALSE(MergedObjects(own, own).empty()); };
  });
}

// Reads a request whose bytes arrive `step` at a time. What was not used is given again.
void ReadInPieces(std::string_view input, std::size_t step) {
  RequestReader reader({});
  std::size_t used = 0;
  for (std::size_t come = std::min(step, input.size());;
       come = std::min(come + step, input.size())) {
    while (reader.state() != RequestReader::State::kWhole &&
           reader.state() != RequestReader::State::kRefused) {
      const auto before = reader.state();
      const std::size_t n = reader.Read(input.substr(used, come - used));
      used += n;
      if (n == 0 && reader.state() == before) break;
    }
    if (come == input.size()) return;
  }
}

TEST(RequestGrowth, BytesThatArrive) {
  const std::string head =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  const auto expect = [](const char* name, Sizes sizes, std::size_t step, const TextOf& make) {
    ExpectLinear(name, sizes, [&](std::size_t size) {
      return [input = make(size), step] { ReadInPieces(input, step); };
    });
  };
  const TextOf body = [&](std::size_t size) {
    return head + "Content-Length: " + std::to_string(size) + "\r\n\r\n" + std::string(size, ' ');
  };
  const TextOf chunks = [&](std::size_t size) {
    return head + "Transfer-Encoding: chunked\r\n\r\n" + Repeated("1\r\n[\r\n", size) + "0\r\n\r\n";
  };
  const TextOf field = [&](std::size_t size) {
    return head + "X: " + std::string(size, 'a') + "\r\n\r\n";
  };
  expect("a body, byte by byte", kBodies, 1, body);
  expect("a body at once", kBodies, 1 << 20, body);
  expect("chunks, byte by byte", kBodies, 1, chunks);
  expect("chunks at once", kBodies, 1 << 20, chunks);
  expect("a long field, byte by byte", {1 << 10, 8 << 10}, 1, field);
  expect("a long field at once", kBodies, 1 << 20, field);
  expect("many fields", {1 << 10, 2 << 10}, 1 << 20, [&](std::size_t size) {
    std::string fields;
    for (std::size_t i = 0; fields.size() < size; ++i)
      fields += "X" + std::to_string(i) + ": a\r\n";
    return head + fields + "\r\n";
  });
}

}  // namespace
}  // namespace foretoken::server
