/* SPDX-License-Identifier: Apache-2.0 */
/* generate_test TARGET DRAFT EXPECTED: requests through the C interface give the tokens and
 * log-probabilities of the C++ engine. Each line of EXPECTED, which expected.cpp prints, is a request:
 * "plain|drafted TEMPERATURE SEED N", then N times "token logprob". */
#include "capi/gate_testing.h"

typedef struct Seen {
  char text[4096];
  size_t size;
  int32_t tokens[256];
  size_t token_count;
  size_t drafted, accepted, rejected;
  Gate* gate;     /* opened with the first tokens; or NULL */
  int32_t answer; /* what the callback returns after the first tokens */
} Seen;

static int32_t See(void* user, const foretoken_event* event) {
  Seen* seen = user;
  size_t i;
  CHECK(event->kind == FORETOKEN_EVENT_ROUND);
  CHECK(seen->size + event->text_size < sizeof(seen->text));
  memcpy(seen->text + seen->size, event->text, event->text_size);
  seen->size += event->text_size;
  for (i = 0; i < event->token_count; ++i) {
    seen->tokens[seen->token_count++] = event->tokens[i];
    seen->accepted += event->origins[i] == FORETOKEN_ACCEPTED;
  }
  seen->drafted += (size_t)event->drafted;
  seen->rejected += event->rejected_count;
  if (seen->gate != NULL && event->token_count > 0) OpenGate(seen->gate);
  return event->token_count > 0 ? seen->answer : 0;
}

/* One line of EXPECTED. */
static void CompareLine(foretoken_engine* engine, FILE* file, const char* kind, int drafts) {
  char temperature[32], seed[32];
  int n, i;
  foretoken_options* request = NULL;
  foretoken_result* result = NULL;
  const foretoken_result_view* view;
  Seen seen;
  memset(&seen, 0, sizeof(seen));
  CHECK(fscanf(file, "%31s %31s %d", temperature, seed, &n) == 3);
  request = Request("Once upon a time", "40");
  Set(request, "temperature", temperature);
  Set(request, "seed", seed);
  Set(request, "logprobs", "2");
  OK(foretoken_engine_generate(engine, request, See, &seen, &result, &error));
  foretoken_options_free(request);
  view = foretoken_result_get(result);
  CHECK(n == 40 && view->token_count == 40 && view->logprobs != NULL);
  for (i = 0; i < n; ++i) {
    int token = -1;
    float logprob = 1;
    CHECK(fscanf(file, "%d %f", &token, &logprob) == 2);
    CHECK(view->tokens[i] == token && seen.tokens[i] == token);
    CHECK(view->logprobs[i] == logprob);
    CHECK(view->top_offsets[i + 1] - view->top_offsets[i] == 2);
    CHECK(view->top_logprobs[view->top_offsets[i]] >= view->top_logprobs[view->top_offsets[i] + 1]);
  }
  CHECK(seen.token_count == view->token_count);
  CHECK(seen.size == view->text_size && memcmp(seen.text, view->text, seen.size) == 0);
  CHECK(strcmp(view->finish_reason, "length") == 0 && view->lossless == 1);
  CHECK(Stat(result, "accepted") == (double)seen.accepted);
  CHECK((Stat(result, "accepted") > 0) == drafts);
  CHECK(strcmp(kind, drafts ? "drafted" : "plain") == 0);
  foretoken_result_free(result);
}

static void TextsAreThoseOfTheEngine(foretoken_engine* plain, foretoken_engine* drafting,
                                     const char* expected) {
  char kind[16];
  int lines = 0;
  FILE* file = fopen(expected, "r");
  CHECK(file != NULL);
  while (file != NULL && fscanf(file, "%15s", kind) == 1) {
    const int drafts = strcmp(kind, "drafted") == 0;
    CompareLine(drafts ? drafting : plain, file, kind, drafts);
    ++lines;
  }
  CHECK(lines == 4);
  if (file != NULL) fclose(file);
}

/* The first token passes; the others wait for the callback, and then take their time. */
static void ACallbackEndsARequest(foretoken_engine* engine) {
  int32_t answer;
  for (answer = 1; answer >= -1; answer -= 2) {
    foretoken_options* request = Request("Once upon a time", "200");
    foretoken_result* result = NULL;
    Seen seen;
    Gate gate;
    MakeGate(&gate);
    gate.free_calls = 1;
    gate.slow_ms = 20;
    memset(&seen, 0, sizeof(seen));
    seen.gate = &gate;
    seen.answer = answer;
    Hold(request, &gate);
    if (answer > 0) {
      OK(foretoken_engine_generate(engine, request, See, &seen, &result, &error));
      CHECK(strcmp(foretoken_result_get(result)->finish_reason, "cancelled") == 0);
      CHECK(foretoken_result_get(result)->token_count < 200);
    } else {
      FAILS(foretoken_engine_generate(engine, request, See, &seen, &result, &error),
            FORETOKEN_CALLBACK, "", "on_event");
      CHECK(result == NULL);
    }
    foretoken_result_free(result);
    foretoken_options_free(request);
  }
}

static void AStreamIsReadAndCancelled(foretoken_engine* engine) {
  foretoken_options* request = Request("Once upon a time", "200");
  foretoken_stream* stream = NULL;
  foretoken_result* result = NULL;
  const foretoken_event* event = NULL;
  size_t tokens = 0;
  Gate gate;
  MakeGate(&gate);
  Hold(request, &gate);
  OK(foretoken_engine_submit(engine, request, &stream, &error));
  FAILS(foretoken_stream_result(stream, &result, &error), FORETOKEN_INVALID_ARGUMENT, "stream",
        "to its end");
  OK(foretoken_stream_next(stream, -1, &event, &error));
  CHECK(event != NULL && event->kind == FORETOKEN_EVENT_BEGUN);
  CHECK(foretoken_stream_ended(stream) == 0);
  OK(foretoken_stream_next(stream, 0, &event, &error));
  CHECK(event == NULL || event->token_count == 0);
  foretoken_stream_cancel(stream);
  OpenGate(&gate);
  do {
    OK(foretoken_stream_next(stream, -1, &event, &error));
    if (event != NULL) tokens += event->token_count;
  } while (event != NULL && event->kind != FORETOKEN_EVENT_END);
  CHECK(foretoken_stream_ended(stream) == 1 && tokens < 200);
  OK(foretoken_stream_result(stream, &result, &error));
  CHECK(strcmp(foretoken_result_get(result)->finish_reason, "cancelled") == 0);
  OK(foretoken_stream_next(stream, -1, &event, &error));
  CHECK(event == NULL);
  foretoken_result_free(result);
  foretoken_stream_free(stream);
  foretoken_options_free(request);
}

/* Runs a request with one more option; the caller frees the result. */
static foretoken_result* With(foretoken_engine* engine, const char* key, const char* value) {
  foretoken_options* request = Request("Once upon a time", "40");
  foretoken_result* result = NULL;
  Set(request, key, value);
  OK(foretoken_engine_generate(engine, request, NULL, NULL, &result, &error));
  foretoken_options_free(request);
  return result;
}

static void OptionsAreFollowed(foretoken_engine* engine) {
  foretoken_options* request = Request("Once upon a time", "0");
  const foretoken_result_view* view;
  const int32_t prompt[3] = {1, 647, 540};
  char size[16];
  size_t count = 0;
  foretoken_result* result = With(engine, "stop", "Lily");
  view = foretoken_result_get(result);
  CHECK(strcmp(view->finish_reason, "stop") == 0 && strstr(view->text, "Lily") == NULL);
  foretoken_result_free(result);
  result = With(engine, "json_schema", "{\"enum\": [\"red\", \"blue\"]}");
  view = foretoken_result_get(result);
  CHECK(strcmp(view->text, "\"red\"") == 0 || strcmp(view->text, "\"blue\"") == 0);
  foretoken_result_free(result);

  Set(request, "embedding", "mean");
  OK(foretoken_options_set_tokens(request, "prompt_tokens", prompt, 3, &error));
  OK(foretoken_engine_generate(engine, request, NULL, NULL, &result, &error));
  OK(foretoken_engine_info(engine, "embedding_size", size, sizeof(size), &count, &error));
  view = foretoken_result_get(result);
  CHECK(view->embedding_count == (size_t)atoi(size) && view->embedding_count > 0);
  CHECK(view->prompt_token_count == 3 && memcmp(view->prompt_tokens, prompt, sizeof(prompt)) == 0);
  foretoken_result_free(result);
  Set(request, "deadline_ms", "0");
  FAILS(foretoken_engine_generate(engine, request, NULL, NULL, &result, &error), FORETOKEN_DEADLINE,
        "", ":");
  foretoken_options_free(request);
}

static void TextsBecomeTokensAndBack(foretoken_engine* engine) {
  int32_t tokens[16];
  char text[64];
  size_t count = 0, all = 0;
  OK(foretoken_engine_tokenize(engine, "Once upon a time", 16, 1, 0, NULL, 0, &all, &error));
  OK(foretoken_engine_tokenize(engine, "Once upon a time", 16, 1, 0, tokens, 16, &count, &error));
  CHECK(count == all && count > 1);
  OK(foretoken_engine_detokenize(engine, tokens, count, 0, text, sizeof(text), &count, &error));
  CHECK(strstr(text, "Once upon a time") != NULL && strlen(text) == count);
  tokens[0] = 1 << 30;
  FAILS(foretoken_engine_detokenize(engine, tokens, 1, 0, text, sizeof(text), &count, &error),
        FORETOKEN_INVALID_ARGUMENT, "tokens", "not in [0, ");
  OK(foretoken_engine_info(engine, "method", text, sizeof(text), &count, &error));
  CHECK(strcmp(text, "none") == 0);
  text[1] = 'x';
  OK(foretoken_engine_info(engine, "method", text, 1, &count, &error));
  CHECK(text[0] == 'n' && text[1] == 'x' && count == 4);
  FAILS(foretoken_engine_info(engine, "colour", text, sizeof(text), &count, &error),
        FORETOKEN_NOT_FOUND, "colour", "no such key");
}

static void ConversationsAreWritten(foretoken_engine* engine) {
  foretoken_chat* chat = NULL;
  foretoken_options* format = Options(FORETOKEN_CHAT);
  int32_t tokens[128];
  char text[512];
  size_t count = 0, again = 0;
  Set(format, "chat_template", "chatml");
  OK(foretoken_chat_create(&chat, &error));
  OK(foretoken_chat_add(chat, "user", "Who are you?", 12, NULL, &error));
  OK(foretoken_chat_text(chat, engine, format, text, sizeof(text), &count, &error));
  CHECK(strstr(text, "<|im_start|>user\nWho are you?") == text);
  OK(foretoken_chat_tokens(chat, engine, format, tokens, 128, &count, &error));
  OK(foretoken_chat_tokens(chat, engine, format, NULL, 0, &again, &error));
  CHECK(count > 5 && count == again);
  Set(format, "chat_template", "unheard-of");
  FAILS(foretoken_chat_text(chat, engine, format, text, sizeof(text), &count, &error),
        FORETOKEN_INVALID_ARGUMENT, "", "unheard-of");
  foretoken_options_free(format);
  foretoken_chat_free(chat);
}

int main(int argc, char** argv) {
  foretoken_options* options;
  foretoken_engine *plain, *drafting;
  if (argc != 4) return 2;
  options = EngineOptions(argv[1], NULL);
  Set(options, "speculative_method", "none");
  plain = Open(options);
  options = EngineOptions(argv[1], argv[2]);
  Set(options, "lookahead", "fixed");
  Set(options, "num-speculative-tokens", "4");
  drafting = Open(options);
  TextsAreThoseOfTheEngine(plain, drafting, argv[3]);
  ACallbackEndsARequest(plain);
  AStreamIsReadAndCancelled(plain);
  OptionsAreFollowed(plain);
  TextsBecomeTokensAndBack(plain);
  ConversationsAreWritten(plain);
  foretoken_engine_close(plain);
  foretoken_engine_close(drafting);
  return failures != 0;
}
