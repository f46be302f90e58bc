// SPDX-License-Identifier: Apache-2.0
// server/api/field_texts.cpp: what each field of a body is, in a line, and the forms of those that may
// be of several kinds. /openapi.json and the tables of docs/server.md are made of it; the readers
// decide, and tests/server/openapi_test.py compares the two. A name in angle brackets is a limit of
// body_limits.h.
#include <algorithm>
#include <iterator>
#include <vector>

#include "foretoken/option_keys.h"
#include "server/api/body_schema.h"

namespace foretoken::server {
namespace {

constexpr const char* kFormOfToken = R"({"$ref":"#/components/schemas/Token"})";
constexpr const char* kFormOfTokens = R"({"$ref":"#/components/schemas/Tokens"})";
constexpr const char* kFormOfTexts = R"({"type":"array","items":{"type":"string"}})";
constexpr const char* kFormOfContent = R"({"$ref":"#/components/schemas/Content"})";
constexpr const char* kFormOfSchema = R"({"$ref":"#/components/schemas/JsonSchema"})";
constexpr const char* kFormOfTools =
    R"({"type":"array","items":{"$ref":"#/components/schemas/Tool"},"maxItems":<tools>})";
constexpr const char* kFormOfSeed =
    R"({"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551615})";
constexpr const char* kFormOfDrafter =
    R"({"anyOf":[{"$ref":"#/components/schemas/Method"},{"type":"array","minItems":1,"items":)"
    R"({"$ref":"#/components/schemas/Method"}}]})";
constexpr const char* kFormOfStrategy = R"({"$ref":"#/components/schemas/VerifyStrategy"})";
constexpr const char* kFormOfGrammar = R"({"type":"string","examples":["root ::= \"a\""]})";
constexpr const char* kFormOfRegex = R"({"type":"string","examples":["[a-z]+"]})";
constexpr const char* kFormOfChoices =
    R"({"type":"array","minItems":1,"items":{"type":"string","minLength":1}})";
constexpr const char* kFormOfNothing = R"({"enum":["",[]]})";
constexpr const char* kFormOfDocuments =
    R"({"type":"array","minItems":1,"maxItems":<documents>,"items":{"anyOf":[{"type":"string"},)"
    R"({"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}]}})";
constexpr const char* kFormOfCount = R"({"type":"number"})";
constexpr const char* kFormOfInputs =
    R"({"anyOf":[{"type":"string"},{"$ref":"#/components/schemas/SomeTokens"},)"
    R"({"type":"array","minItems":1,"maxItems":<inputs>,"items":{"anyOf":[{"type":"string"},)"
    R"({"$ref":"#/components/schemas/SomeTokens"}]}}]})";

constexpr std::string_view kEmbeddingPaths = "/v1/embeddings /embedding /api/embed";
constexpr std::string_view kLlamaPaths = "/completion /infill";

constexpr FieldText kFieldTexts[] = {
    // Every API.
    {"/api/", "model", "the model's name, with or without `:latest`; absent: the one there is"},
    {"/api/", "name", "the model's name, too"},
    {"", "model", "one of the served model's names; absent: the one there is"},
    {kEmbeddingPaths, "user", "changes nothing"},
    {"/v1/rerank", "user", "changes nothing"},

    // Embeddings and rankings.
    {"/api/embed", "input", "a text, a list of token ids, or a list of such: what to embed",
     R"({"anyOf":[{"type":"string"},{"$ref":"#/components/schemas/Tokens"},)"
     R"({"type":"array","maxItems":<inputs>,"items":{"anyOf":[{"type":"string"},)"
     R"({"$ref":"#/components/schemas/SomeTokens"}]}}]})"},
    {kEmbeddingPaths, "input", "a text, a list of token ids, or a list of such: what to embed",
     kFormOfInputs},
    {kEmbeddingPaths, "content", "llama.cpp's name of `input`; the reply has its form, then",
     kFormOfInputs},
    {"/api/embeddings", "prompt", "the text to embed",
     R"({"anyOf":[{"type":"string"},{"const":[]}]})"},
    {kEmbeddingPaths, "encoding_format",
     "`base64`: little-endian floats of 32 bits in place of numbers"},
    {kEmbeddingPaths, "pooling",
     "which hidden states make the embedding: the mean of all, the first (`cls`) or the last; "
     "`none`: a row for each token, in llama.cpp's form only"},
    {kEmbeddingPaths, "dimensions", "as many of the first numbers"},
    {kEmbeddingPaths, "embd_normalize",
     "what of a row becomes 1: 2 the length, 1 the sum of absolute numbers, n the n-norm; 0: the "
     "largest number becomes 32760; -1: numbers stay as they are"},
    {kEmbeddingPaths, "add_special_tokens",
     "whether texts begin and end with the tokens that the model file says"},
    {kEmbeddingPaths, "truncate", "whether an input that is too long is cut"},
    {kEmbeddingPaths, "options", "changes nothing"},
    {kEmbeddingPaths, "keep_alive", "changes nothing: the model stays"},
    {"/v1/rerank", "query", "what the documents are compared with"},
    {"/v1/rerank", "documents", "the texts to rank, or objects with a `text`", kFormOfDocuments},
    {"/v1/rerank", "texts", "another name of `documents`; the reply has TEI's form, then",
     kFormOfDocuments},
    {"/v1/rerank", "top_n", "how many results there are at most"},
    {"/v1/rerank", "return_documents", "whether results have their documents"},
    {"/v1/rerank", "return_text", "another name of `return_documents`"},
    {"/v1/rerank", "pooling",
     "which hidden states are compared: the mean of all, the first (`cls`) or the last; `rank`: "
     "the model's head scores pairs, as it does by default where the file says so"},

    // Tokens and texts.
    {"/tokenize /apply-template", "content", "the text"},
    {"/tokenize /apply-template", "prompt", "the text, too"},
    {"/tokenize /apply-template", "tools", "tools that the template may write, a list",
     R"({"type":"array"})"},
    {"/tokenize", "add_special", "whether the model's first and last tokens are added"},
    {"/tokenize", "parse_special", "whether names of control tokens in the text are these tokens"},
    {"/tokenize", "with_pieces", "whether the reply has each token's text, too"},
    {"/apply-template", "add_special parse_special with_pieces", "changes nothing"},
    {"/detokenize", "tokens", "token ids", kFormOfTokens},
    {"/detokenize", "special", "whether control tokens are written, by their names"},

    // Ollama's.
    {"/api/show", "verbose system template options", "changes nothing"},
    {"/api/", "messages", "the conversation; absent or empty: the model is only loaded",
     R"({"type":"array","maxItems":<messages>,"items":{"$ref":"#/components/schemas/OllamaMessage"}})"},
    {"/api/", "prompt", "the text; absent or empty: the model is only loaded"},
    {"/api/", "system", "a system message before the prompt"},
    {"/api/", "raw", "whether the prompt is continued as it is, without the chat template"},
    {"/api/", "stream", "whether the reply comes in parts, a JSON object a line"},
    {"/api/", "format", "`json`, or a JSON Schema: the form of the answer",
     R"({"anyOf":[{"enum":["json",""]},{"type":"object","examples":[{"type":"object"}]}]})"},
    {"/api/", "think", "whether the model thinks first, or how much, where its template knows that",
     R"({"type":["boolean","string"]})"},
    {"/api/", "logprobs", "refused if it is true: replies of this API have none",
     R"({"const":false})"},
    {"/api/", "top_logprobs", "refused above 0: replies of this API have none", R"({"const":0})"},
    {"/api/", "keep_alive", "changes nothing: the model stays"},
    {"/api/", "truncate", "changes nothing: prompts are not cut"},
    {"/api/", "shift", "changes nothing: a text that fills the context ends"},
    {"/api/", "suffix", "refused unless it is empty: texts are only continued", kFormOfNothing},
    {"/api/", "template", "refused unless it is empty: the template is the model's",
     kFormOfNothing},
    {"/api/", "context", "refused unless it is empty: send the conversation to `/api/chat`",
     kFormOfNothing},
    {"/api/", "images", "refused unless it is empty: models here read text", kFormOfNothing},
    {"/api/", "options", "settings of the answer, and of running the model"},
    {"/api/", "options.num_predict", "the most tokens of the answer; 0 and less: as many as fit"},
    {"/api/", "options.num_ctx", "changes nothing: the context is that of the server's start"},

    // Anthropic's.
    {"/v1/messages", "messages", "the conversation",
     R"({"type":"array","minItems":1,"maxItems":<messages>,"items":)"
     R"({"$ref":"#/components/schemas/AnthropicMessage"}})"},
    {"/v1/messages", "system", "a system message before all others",
     R"({"anyOf":[{"type":"string"},{"type":"array","items":)"
     R"({"$ref":"#/components/schemas/TextBlock"}}]})"},
    {"/v1/messages", "max_tokens", "the most tokens of the answer"},
    {"/v1/messages", "stop_sequences", "texts that end the answer",
     R"({"type":"array","maxItems":<stops>,"items":{"type":["string","null"],"maxLength":<stop_bytes>}})"},
    {"/v1/messages", "tools",
     "functions that the model may call; those of Anthropic's own types are left out with a notice",
     R"({"type":"array","maxItems":<tools>,"items":{"$ref":"#/components/schemas/AnthropicTool"}})"},
    {"/v1/messages", "tool_choice", "whether the answer is a call, and of which tool",
     R"({"type":"object","properties":{"type":{"enum":["auto","any","tool","none"],)"
     R"("description":"`any`: the answer is a call; `tool`: a call of one tool"},)"
     R"("name":{"description":"the tool, with the type `tool`"},)"
     R"("disable_parallel_tool_use":{"type":["boolean","null"],)"
     R"("description":"whether an answer has one call at most"}},"required":["type"],)"
     R"("if":{"properties":{"type":{"const":"tool"}}},)"
     R"("then":{"properties":{"name":{"type":"string"}},"required":["name"]}})"},
    {"/v1/messages", "thinking", "whether the model thinks first, where its template knows that"},
    {"/v1/messages", "thinking.type", "`disabled`: the template is told of no thoughts"},
    {"/v1/messages", "thinking.budget_tokens", "the most tokens of the first thought"},
    {"/v1/messages", "output_config", "how the answer is made"},
    {"/v1/messages", "output_config.effort", "how much to think, where the template knows that"},
    {"/v1/messages", "output_config.format", "the form of the answer",
     R"({"type":"object","properties":{"type":{"const":"json_schema","description":"the kind"},)"
     R"("schema":{"$ref":"#/components/schemas/JsonSchema","description":"what it follows"}},"required":["type","schema"]})"},
    {"/v1/messages", "container mcp_servers",
     "refused unless it is empty: nothing runs beside the model", R"({"enum":[[],{}]})"},
    {"/v1/messages",
     "metadata service_tier betas context_management cache_control inference_geo speed diagnostics",
     "changes nothing"},

    // OpenAI's responses.
    {"/v1/responses", "input", "a text, or a list of items: messages, calls and their results",
     R"({"anyOf":[{"type":"string"},{"type":"array","minItems":1,"items":)"
     R"({"$ref":"#/components/schemas/ResponseItem"}}]})"},
    {"/v1/responses", "instructions", "a system message before all others"},
    {"/v1/responses", "max_output_tokens", "the most tokens of the answer"},
    {"/v1/responses", "text", "the form of the answer"},
    {"/v1/responses", "text.format", "a text, any JSON, or JSON that a schema describes"},
    {"/v1/responses", "text.format.type", "the kind of form",
     R"({"enum":["text","json_object","json_schema"]})"},
    {"/v1/responses", "text.verbosity top_logprobs context_management",
     "changes nothing, and a notice says so"},
    {"/v1/responses", "reasoning", "how much to think: `effort`, as `reasoning_effort` of chats"},
    {"/v1/responses", "background",
     "refused if it is true: nothing runs without a client that waits", R"({"const":false})"},
    {"/v1/responses", "truncation", "`auto` changes nothing, and a notice says so",
     R"({"enum":["auto","disabled"]})"},
    {"/v1/responses", "include", "what more the reply should have", R"({"type":"array"})"},
    {"/v1/responses", "metadata", "is repeated in the reply"},
    {"/v1/responses", "store", "whether the response is kept, to be continued by its id",
     R"({"type":["boolean","null"]})"},
    {"/v1/responses", "previous_response_id", "the stored response that this one continues",
     R"({"type":["string","null"]})"},
    {"/v1/responses", "conversation", "refused: use `previous_response_id`", R"({"type":"null"})"},
    {"/v1/responses", "prompt", "refused: no prompts are stored here", R"({"type":"null"})"},
    {"/v1/responses", "stream_options.include_usage", "changes nothing: the usage always comes"},
    {"/v1/responses", "messages", "refused: use `input`", R"({"type":"null"})"},
    {"/v1/responses", "max_tokens max_completion_tokens", "refused: use `max_output_tokens`",
     R"({"type":"null"})"},
    {"/v1/responses", "response_format", "refused: use `text.format`", R"({"type":"null"})"},
    {"/v1/responses", "reasoning_effort", "refused: use `reasoning.effort`", R"({"type":"null"})"},
    {"/v1/responses",
     "client_metadata prompt_cache_key prompt_cache_retention prompt_cache_options "
     "safety_identifier user service_tier max_tool_calls access_programs moderation",
     "changes nothing"},

    {"", "id_slot",
     "the slot that keeps the text for `/slots`; -1: that of the sequence which it ran in"},

    // llama.cpp's.
    {"/slots/*", "filename", "the file's name, without a folder; `save` and `restore` need it"},
    {"/infill", "prompt", "what is known of the beginning of the text in the gap"},
    {"/infill", "input_prefix", "the text before the gap"},
    {"/infill", "input_suffix", "the text behind the gap"},
    {"/infill", "input_extra",
     "texts of other files; the first ones are left out if they do not fit",
     R"({"type":"array","items":{"type":"object","properties":{"filename":)"
     R"({"type":["string","null"]},"text":{"type":["string","null"]}}}})"},
    {"/completion", "prompt",
     "a text, token ids, a list of both that is one prompt, or a list of texts and such lists that "
     "are several",
     R"({"anyOf":[{"$ref":"#/components/schemas/LlamaCppPrompt"},{"type":"array","minItems":1,)"
     R"("items":{"$ref":"#/components/schemas/LlamaCppPrompt"}}]})"},
    {kLlamaPaths, "temperature",
     "1 draws as the model says, less makes likely tokens likelier, 0 takes the likeliest; below 0 "
     "is 0",
     R"({"type":"number","maximum":2})"},
    {kLlamaPaths, "temp", "another name of `temperature`", R"({"type":"number","maximum":2})"},
    {kLlamaPaths, "return_tokens", "whether the reply has the tokens, too"},
    {kLlamaPaths, "response_fields",
     "the members that the reply has; a name with slashes is a member of a member",
     R"({"type":"array","maxItems":<response_fields>,"items":{"type":"string"}})"},
    {kLlamaPaths, "samplers", "the filters that count; those that the list lacks are off",
     R"({"type":"array","maxItems":<samplers>,"items":{"enum":["penalties","dry","top_n_sigma","top_k",)"
     R"("typ_p","typical_p","top_p","min_p","xtc","adaptive_p","temperature","infill"]}})"},
    {kLlamaPaths, "t_max_predict_ms t_max_prompt_ms n_indent",
     "changes nothing, and a notice says so", kFormOfCount},
    {kLlamaPaths, "sse_ping_interval", "changes nothing"},
    {kLlamaPaths, "echo", "changes nothing, and a notice says so: the reply has the prompt"},
    {kLlamaPaths, "logit_bias", "numbers that are added to logits of tokens, or of a text's tokens",
     R"({"anyOf":[{"type":"object","additionalProperties":{"$ref":"#/components/schemas/Bias"}},)"
     R"({"type":"array","items":{"type":"array","minItems":2,"maxItems":2,"prefixItems":)"
     R"([{"anyOf":[{"$ref":"#/components/schemas/Token"},{"type":"string"}]},)"
     R"({"$ref":"#/components/schemas/Bias"}]}}]})"},

    // Drafts of a client.
    {"/v1/verify", "prompt", "one text, or one list of token ids", kFormOfInputs},
    {"/v1/verify", "drafts",
     "at most <drafts> token ids, or a text; an empty list asks for one token",
     R"({"anyOf":[{"type":"string"},{"type":"array","maxItems":<drafts>,"items":)"
     R"({"$ref":"#/components/schemas/Token"}}]})"},
    {"/v1/verify", "generated", "the `tokens` of all calls before, one list behind the other",
     kFormOfTokens},
    {"/v1/verify#chat", "logprobs", "whether tokens come with their log-probabilities"},
    {"/v1/verify#chat", "add_special_tokens", "refused if it is true: the template writes them",
     R"({"const":false})"},

    // OpenAI's completions and chats, and what others have of them.
    {"", "prompt", "a text, a list of token ids, or a list of such, each of which gets an answer",
     R"({"anyOf":[{"type":"string"},{"$ref":"#/components/schemas/SomeTokens"},{"type":"array",)"
     R"("minItems":1,"items":{"anyOf":[{"type":"string"},)"
     R"({"$ref":"#/components/schemas/SomeTokens"}]}}]})"},
    {"/v1/chat", "add_special_tokens", "refused if it is true: the template writes such tokens",
     R"({"const":false})"},
    {"", "add_special_tokens", "whether a text begins with the tokens that the model file says"},
    {"", "messages", "the conversation",
     R"({"type":"array","minItems":1,"maxItems":<messages>,"items":)"
     R"({"$ref":"#/components/schemas/ChatMessage"}})"},
    {"", "add_generation_prompt", "whether the template's part that asks for an answer is written"},
    {"", "tools", "functions that the model may call", kFormOfTools},
    {"", "tool_choice",
     "`auto`: the model decides; `none`: it is not told of tools; `required` or `any`: the answer "
     "is a call; a function: a call of it",
     R"({"$ref":"#/components/schemas/ToolChoice"})"},
    {"", "parallel_tool_calls", "whether an answer may have several calls"},
    {"", "reasoning_format", "`none`: thoughts stay in the content"},
    {"", "reasoning_effort", "how much to think, where the template knows that"},
    {"", "thinking_budget_tokens", "the most tokens of the first thought; -1: no limit"},
    {"", "chat_template_kwargs", "variables of the chat template, such as `enable_thinking`"},
    {"", "max_tokens",
     "the most tokens of the answer; -1: as many as fit; absent: <completion_tokens> in "
     "completions, in chats as "
     "many as fit"},
    {"", "min_tokens", "the fewest tokens of the answer"},
    {"", "ignore_eos", "whether the answer goes on behind an end token"},
    {"", "skip_special_tokens", "false: control tokens are shown, by their names"},
    {"", "stop", "a text that ends the answer, or up to <stops> of them; `\"\"` stops nothing",
     R"({"anyOf":[{"type":"string","maxLength":<stop_bytes>},{"type":"array","maxItems":<stops>,)"
     R"("items":{"type":["string","null"],"maxLength":<stop_bytes>}}]})"},
    {"", "stop_token_ids", "tokens that end the answer", kFormOfTokens},
    {"", "dry_sequence_breakers", "texts of one token each, across which no repetition reaches",
     R"({"type":"array","maxItems":<breakers>,"items":{"type":"string","maxLength":<breaker_bytes>,"examples":["\n"]}})"},
    {"", "logit_bias",
     "numbers that are added to tokens' logits, by ids, or as a list of pairs; false bans a token",
     R"({"anyOf":[{"type":"object","propertyNames":{"pattern":"^[0-9]+$"},)"
     R"("additionalProperties":{"$ref":"#/components/schemas/Bias"},"examples":[{"5":1}]},)"
     R"({"type":"array","items":{"type":"array","minItems":2,"maxItems":2,"prefixItems":)"
     R"([{"$ref":"#/components/schemas/Token"},{"$ref":"#/components/schemas/Bias"}]}}]})"},
    {"", "seed",
     "what makes the same answer again; -1 or absent: a random one, stated in the reply",
     kFormOfSeed},
    {"", "sampling_seed", "another name of `seed`", kFormOfSeed},
    {"", "n", "how many answers each prompt gets"},
    {"", "stream", "whether the reply comes in parts, as events"},
    {"", "stream_options", "what a stream has"},
    {"", "stream_options.include_usage", "whether an event with `usage` comes at the end"},
    {"", "stream_options.include_obfuscation stream_options.continuous_usage_stats",
     "changes nothing, and a notice says so"},
    {"", "n_probs", "how many likeliest tokens come with each token; 0: none"},
    {"/v1/completions /v1/verify /completion /infill", "logprobs",
     "how many likeliest tokens come with the log-probability of each token",
     R"({"anyOf":[{"type":"integer","minimum":0,"maximum":<alternatives>},{"const":false}]})"},
    {"", "logprobs", "whether tokens come with their log-probabilities"},
    {"", "top_logprobs", "how many likeliest tokens come with each token"},
    {"", "echo", "whether the prompt comes before the answer"},
    {"", "cache_prompt",
     "false: the whole prompt is read, and nothing of the request is kept for others"},
    {"", "cache_salt", "a text: what is kept serves requests of the same client and salt only",
     R"({"type":"string","maxLength":<salt_bytes>})"},

    // The form of an answer.
    {"", "response_format", "the form of the answer: a text, JSON, or JSON that a schema describes",
     R"({"$ref":"#/components/schemas/ResponseFormat"})"},
    {"", "json_schema guided_json", "a JSON Schema that the answer follows", kFormOfSchema},
    {"", "grammar ebnf guided_grammar", "a grammar (GBNF) that the answer follows", kFormOfGrammar},
    {"", "regex guided_regex", "a regular expression that the whole answer matches", kFormOfRegex},
    {"", "guided_choice", "texts, of which the answer is one", kFormOfChoices},
    {"", "structured_outputs", "the form of the answer as vLLM has it, one of these",
     R"({"type":"object","properties":{)"
     R"("json":{"anyOf":[{"$ref":"#/components/schemas/JsonSchema"},{"type":"null"}],)"
     R"("description":"a JSON Schema that the answer follows"},)"
     R"("regex":{"type":["string","null"],"examples":["[a-z]+"],)"
     R"("description":"a regular expression that the whole answer matches"},)"
     R"("choice":{"type":["array","null"],"minItems":1,"items":{"type":"string","minLength":1},)"
     R"("description":"texts, of which the answer is one"},)"
     R"("grammar":{"type":["string","null"],"examples":["root ::= \"a\""],)"
     R"("description":"a grammar (GBNF) that the answer follows"},)"
     R"("json_object":{"type":["boolean","null"],"description":"whether the answer is any JSON object"})"
     R"(},"additionalProperties":{"type":"null"}})"},

    // Speculation.
    {"", "prediction", "a text that the answer may repeat: drafts come from it"},
    {"", "prediction.type", "the kind of prediction", R"({"const":"content"})"},
    {"", "prediction.content", "the text", kFormOfContent},
    {"", "speculative", "what drafts, and how; absent members have the values of the start"},
    {"", "speculative.type", "what drafts: a method, or a list of them", kFormOfDrafter},
    {"", "speculative.strategy", "the rule by which drafts are verified", kFormOfStrategy},
    {"", "speculative.num_speculative_tokens speculative.n_max", "the most tokens of a draft"},
    {"", "speculative.n_min", "drafts of fewer tokens are dropped"},
    {"", "speculative.p_min", "a draft ends before a token that is less likely to the drafter"},
    {"", "speculative.enabled", "false: nothing drafts for this request"},
    {"", "speculative.trace", "whether a stream shows its rounds"},
};

// Whether `is` holds for one of the words.
bool AnyWord(std::string_view words, const auto& is) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    if (is(word)) return true;
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  return false;
}

constexpr std::string_view kSharedForms = R"({
"Token": {"type":"integer","minimum":0,"description":"a token's id"},
"Tokens": {"type":"array","items":{"$ref":"#/components/schemas/Token"}},
"SomeTokens": {"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/Token"}},
"Bias": {"description":"a number that is added to a logit; false bans the token",
  "anyOf":[{"type":"number","minimum":-<bias>,"maximum":<bias>},{"const":false},{"type":"null"}]},
"Method": {"type":"string","minLength":1,"examples":["none"],
  "description":"the name of a drafter; GET /v1/speculation lists them"},
"VerifyStrategy": {"enum":[],"description":"a rule of docs/speculation.md"},
"Part": {"type":"object","description":"a part of a text; its other members are ignored","anyOf":[
  {"properties":{"type":{"enum":["text","input_text","output_text"]},"text":{"type":"string"}},
   "required":["type","text"]},
  {"properties":{"type":{"const":"refusal"},"refusal":{"type":"string"}},
   "required":["type","refusal"]}]},
"Content": {"description":"a text, whole or in parts","anyOf":[{"type":"string"},
  {"type":"array","items":{"$ref":"#/components/schemas/Part"}}]},
"ChatMessage": {"type":"object","properties":{
   "role":{"enum":["system","developer","user","assistant","tool"],"description":"who says it"},
   "content":{"anyOf":[{"$ref":"#/components/schemas/Content"},{"type":"null"}],
     "description":"what is said"},
   "refusal":{"type":["string","null"],"description":"the text of an answer without content"},
   "function_call":{"enum":[null,"",[],{}],"description":"refused unless it is empty"},
   "tool_calls":{"description":"calls, as replies have them; for the template"},
   "tool_call_id":{"description":"the call that this is the result of; for the template"},
   "name":{"description":"for the template"},
   "reasoning_content":{"description":"what the model thought; for the template"}},
  "required":["role"],
  "if":{"properties":{"role":{"const":"assistant"}}},
  "else":{"properties":{"content":{"$ref":"#/components/schemas/Content"}},"required":["content"]}},
"Function": {"type":"object","properties":{
   "name":{"type":"string","minLength":1,"maxLength":<tool_name_bytes>,"description":"one that no other tool has"},
   "description":{"description":"for the model"},
   "parameters":{"type":["object","null"],"examples":[{"type":"object"}],
     "description":"a JSON Schema of the arguments"}},
  "required":["name"]},
"Tool": {"type":"object","description":"a function; tools of other types are left out, with a notice",
  "anyOf":[
  {"properties":{"type":{"const":"function"},"function":{"$ref":"#/components/schemas/Function"}},
   "required":["type","function"]},
  {"properties":{"type":{"const":"function"},"function":false},"required":["type"],
   "allOf":[{"$ref":"#/components/schemas/Function"}]},
  {"properties":{"type":false,"function":{"$ref":"#/components/schemas/Function"}},
   "required":["function"]},
  {"properties":{"type":false,"function":false},
   "allOf":[{"$ref":"#/components/schemas/Function"}]},
  {"properties":{"type":{"not":{"const":"function"}}},"required":["type"]}]},
"NamedFunction": {"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},
"ToolChoice": {"anyOf":[{"enum":["none","auto","required","any"]},
  {"type":"object","properties":{"type":{"enum":["function","tool"]},
    "function":{"$ref":"#/components/schemas/NamedFunction"}},"required":["type","function"]},
  {"type":"object","properties":{"type":{"enum":["function","tool"]},"function":false},
    "required":["type"],"allOf":[{"$ref":"#/components/schemas/NamedFunction"}]},
  {"type":"object","properties":{"type":{"const":"allowed_tools"},
    "allowed_tools":{"$ref":"#/components/schemas/AllowedTools"}},"required":["type","allowed_tools"]},
  {"type":"object","properties":{"type":{"const":"allowed_tools"},"allowed_tools":false},
    "required":["type"],"allOf":[{"$ref":"#/components/schemas/AllowedTools"}]}]},
"AllowedTools": {"type":"object","properties":{"mode":{"enum":["auto","required"]},
   "tools":{"type":"array","items":{"type":"object","anyOf":[
     {"properties":{"function":{"$ref":"#/components/schemas/NamedFunction"}},
      "required":["function"]},
     {"properties":{"function":false},"allOf":[{"$ref":"#/components/schemas/NamedFunction"}]}]}}},
  "required":["tools"]},
"JsonSchema": {"description":"a JSON Schema, or the text of one","anyOf":[
  {"type":"object","examples":[{"type":"object","properties":{"a":{"type":"integer"}}}]},
  {"type":"string","examples":["{\"type\": \"boolean\"}"]},{"const":true}]},
"ResponseFormat": {"type":"object","properties":{"type":{"enum":["text","json_object","json_schema"]}},
  "required":["type"],"anyOf":[
  {"properties":{"type":{"const":"text"}},"additionalProperties":{"type":"null"}},
  {"properties":{"type":{"const":"json_object"},
    "schema":{"anyOf":[{"$ref":"#/components/schemas/JsonSchema"},{"type":"null"}]}},
   "additionalProperties":{"type":"null"}},
  {"properties":{"type":{"const":"json_schema"},
    "json_schema":{"type":"object","properties":{"name":{"type":["string","null"]},
      "description":{"type":["string","null"]},"strict":{"type":["boolean","null"]},
      "schema":{"$ref":"#/components/schemas/JsonSchema"}},
     "required":["schema"],"additionalProperties":false}},
   "required":["json_schema"],"additionalProperties":{"type":"null"}}]},
"LlamaCppPrompt": {"anyOf":[{"type":"string"},
  {"type":"array","minItems":1,"items":{"anyOf":[{"type":"string"},
    {"$ref":"#/components/schemas/Token"}]}},
  {"type":"object","properties":{"prompt_string":{"type":"string"},
    "multimodal_data":{"enum":[null,[],{}]}},"required":["prompt_string"]}]},
"TextBlock": {"type":"object","properties":{"type":{"const":"text"},"text":{"type":"string"}},
  "required":["type","text"]},
"Blocks": {"anyOf":[{"type":"string"},
  {"type":"array","items":{"$ref":"#/components/schemas/TextBlock"}}]},
"AnthropicMessage": {"type":"object","anyOf":[
  {"properties":{"role":{"const":"system"},"content":{"$ref":"#/components/schemas/Blocks"}},
   "required":["role","content"]},
  {"properties":{"role":{"const":"user"},"content":{"anyOf":[{"type":"string"},
    {"type":"array","items":{"anyOf":[{"$ref":"#/components/schemas/TextBlock"},
     {"type":"object","properties":{"type":{"const":"tool_result"},"tool_use_id":{"type":"string"},
       "content":{"anyOf":[{"$ref":"#/components/schemas/Blocks"},{"type":"null"}]}},
      "required":["type","tool_use_id"]}]}}]}},"required":["role","content"]},
  {"properties":{"role":{"const":"assistant"},"content":{"anyOf":[{"type":"string"},
    {"type":"array","items":{"anyOf":[{"$ref":"#/components/schemas/TextBlock"},
     {"type":"object","properties":{"type":{"enum":["thinking","redacted_thinking"]}},
      "required":["type"]},
     {"type":"object","properties":{"type":{"const":"tool_use"},"id":{"type":"string"},
       "name":{"type":"string"},"input":{"type":"object"}},
      "required":["type","id","name","input"]}]}}]}},"required":["role","content"]}]},
"AnthropicTool": {"type":"object","anyOf":[
  {"properties":{"type":{"enum":[null,"custom"]},
    "name":{"type":"string","minLength":1,"maxLength":<tool_name_bytes>},
    "description":{"description":"for the model"},
    "input_schema":{"type":["object","null"],"examples":[{"type":"object"}],
      "description":"a JSON Schema of the arguments"}},"required":["name"]},
  {"properties":{"type":{"not":{"enum":[null,"custom","function"]}}},"required":["type"]}]},
"OllamaMessage": {"type":"object","properties":{
   "role":{"enum":["system","developer","user","assistant","tool"],"description":"who says it"},
   "content":{"anyOf":[{"$ref":"#/components/schemas/Content"},{"type":"null"}],
     "description":"what is said"},
   "thinking":{"description":"left out"},
   "images":{"enum":[null,[]],"description":"refused unless it is empty"},
   "tool_name":{"type":["string","null"],"description":"the tool that this is the result of"},
   "name":{"type":["string","null"],"description":"another name of `tool_name`"},
   "tool_call_id":{"type":["string","null"],"description":"the call that this is the result of"},
   "tool_calls":{"type":["array","null"],"items":{"type":"object","properties":{
     "id":{"type":["string","null"]},"function":{"type":"object","properties":{
       "name":{"type":"string"},"arguments":{"type":["object","null"]}},"required":["name"]}},
     "required":["function"]}}},
  "required":["role"]},
"ResponseItem": {"type":"object","anyOf":[
  {"properties":{"type":{"enum":[null,"message"]},
    "role":{"enum":["user","assistant","system","developer"]},
    "content":{"$ref":"#/components/schemas/Content"}},"required":["role","content"]},
  {"properties":{"type":{"const":"function_call"},"call_id":{"type":"string"},
    "name":{"type":"string"},"arguments":{"type":"string"}},
   "required":["type","call_id","name","arguments"]},
  {"properties":{"type":{"const":"function_call_output"},"call_id":{"type":"string"},
    "output":{"$ref":"#/components/schemas/Content"}},"required":["type","call_id","output"]},
  {"properties":{"type":{"const":"reasoning"}},"required":["type"]},
  {"properties":{"type":{"enum":[null,"item_reference"]},"id":{"type":"string"}},
   "required":["id"]}]}
})";

// The numbers of sampling.
const std::vector<FieldText>& TextsOfNumbers() {
  static const auto texts = [] {
    std::vector<FieldText> rows;
    for (const SamplingKey& key : SamplingKeys())
      rows.push_back({"", key.field.name, key.field.about});
    return rows;
  }();
  return texts;
}

}  // namespace

const FieldText* FindFieldText(std::string_view path, std::string_view field) {
  const auto is_about = [&](const FieldText& text) {
    return AnyWord(text.fields, [&](std::string_view name) { return name == field; }) &&
           (text.where.empty() ||
            AnyWord(text.where, [&](std::string_view begin) { return path.starts_with(begin); }));
  };
  const auto* const row = std::find_if(std::begin(kFieldTexts), std::end(kFieldTexts), is_about);
  if (row != std::end(kFieldTexts)) return row;
  const std::vector<FieldText>& numbers = TextsOfNumbers();
  const auto number = std::find_if(numbers.begin(), numbers.end(), is_about);
  return number == numbers.end() ? nullptr : &*number;
}

std::string_view TextOfForms() {
  return kSharedForms;
}

}  // namespace foretoken::server
