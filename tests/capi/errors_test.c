/* SPDX-License-Identifier: Apache-2.0 */
/* errors_test TARGET PAGE PAGE: wrong arguments give errors with code, field and text, and never end the
 * program; one of the pages names each key of options. */
#include "capi/capi_testing.h"

static void EveryFunctionTakesNull(void) {
  size_t count = 0, stride = 0;
  const float* logits = NULL;
  double value = 0;
  const foretoken_event* event = NULL;
  const foretoken_drafts* drafts = NULL;
#define INVALID(call) CHECK((call) == FORETOKEN_INVALID_ARGUMENT)
  INVALID(foretoken_options_create(FORETOKEN_ENGINE, NULL, NULL));
  INVALID(foretoken_options_copy(NULL, NULL, NULL));
  INVALID(foretoken_options_set(NULL, "model", "x", 1, NULL));
  INVALID(foretoken_options_set_tokens(NULL, "drafts", NULL, 0, NULL));
  INVALID(foretoken_options_set_drafter(NULL, NULL, NULL));
  INVALID(foretoken_options_add_processor(NULL, NULL, NULL, NULL, NULL));
  INVALID(foretoken_engine_open(NULL, NULL, NULL));
  INVALID(foretoken_engine_drain(NULL, NULL));
  INVALID(foretoken_engine_stop(NULL, NULL));
  INVALID(foretoken_engine_wait_idle(NULL, 0, NULL));
  INVALID(foretoken_engine_info(NULL, "model", NULL, 0, &count, NULL));
  INVALID(foretoken_engine_tokenize(NULL, "x", 1, 0, 0, NULL, 0, &count, NULL));
  INVALID(foretoken_engine_detokenize(NULL, NULL, 0, 0, NULL, 0, &count, NULL));
  INVALID(foretoken_engine_submit(NULL, NULL, NULL, NULL));
  INVALID(foretoken_engine_generate(NULL, NULL, NULL, NULL, NULL, NULL));
  INVALID(foretoken_stream_next(NULL, 0, &event, NULL));
  INVALID(foretoken_stream_result(NULL, NULL, NULL));
  INVALID(foretoken_result_stat(NULL, "rounds", &value, NULL));
  INVALID(foretoken_chat_create(NULL, NULL));
  INVALID(foretoken_chat_add(NULL, "user", "", 0, NULL, NULL));
  INVALID(foretoken_chat_tokens(NULL, NULL, NULL, NULL, 0, &count, NULL));
  INVALID(foretoken_chat_text(NULL, NULL, NULL, NULL, 0, &count, NULL));
  INVALID(foretoken_session_open(NULL, NULL, NULL));
  INVALID(foretoken_session_begin(NULL, NULL, 0, NULL));
  INVALID(foretoken_session_propose(NULL, 1, 0, &drafts, NULL));
  INVALID(foretoken_session_observe(NULL, NULL, 0, NULL));
  INVALID(foretoken_verification_create(NULL, NULL, NULL));
  INVALID(foretoken_verification_run(NULL, NULL, NULL, NULL));
  INVALID(foretoken_scorer_open(NULL, NULL, NULL));
  INVALID(foretoken_scorer_score(NULL, 0, NULL, 0, &logits, &count, &stride, NULL));
  INVALID(foretoken_scorer_truncate(NULL, 0, 0, NULL));
#undef INVALID
  CHECK(foretoken_error_code(NULL) == FORETOKEN_OK);
  CHECK(foretoken_error_field(NULL)[0] == 0 && foretoken_error_message(NULL)[0] == 0);
  CHECK(foretoken_proposal_text(NULL, &count) == NULL && count == 0);
  CHECK(foretoken_proposal_left(NULL) == 0 && foretoken_proposal_push(NULL, 1) == 0);
  CHECK(foretoken_proposal_draw(NULL, NULL, 0) == -1);
  CHECK(foretoken_stream_ended(NULL) == 0 && foretoken_scorer_length(NULL, 0) == 0);
  CHECK(foretoken_result_get(NULL) == NULL);
  foretoken_stream_cancel(NULL);
  foretoken_error_free(NULL);
  foretoken_options_free(NULL);
  foretoken_stream_free(NULL);
  foretoken_result_free(NULL);
  foretoken_chat_free(NULL);
  foretoken_session_close(NULL);
  foretoken_verification_free(NULL);
  foretoken_scorer_close(NULL);
  foretoken_engine_close(NULL);
}

static void OptionsSayWhatIsWrong(void) {
  foretoken_options* request = Options(FORETOKEN_REQUEST);
  foretoken_options* engine = Options(FORETOKEN_ENGINE);
  foretoken_options* copy = NULL;
  const int32_t tokens[2] = {1, 2};
#define SET(options, key, value) foretoken_options_set(options, key, value, strlen(value), &error)
  FAILS(SET(request, "top_k", "many"), FORETOKEN_INVALID_ARGUMENT, "top_k", "'many' is not");
  FAILS(SET(request, "top_k", "99999999999"), FORETOKEN_INVALID_ARGUMENT, "top_k", "range");
  FAILS(SET(request, "temperature", "nan"), FORETOKEN_INVALID_ARGUMENT, "temperature", "finite");
  FAILS(SET(request, "ignore_eos", "perhaps"), FORETOKEN_INVALID_ARGUMENT, "ignore_eos", "switch");
  FAILS(SET(request, "colour", "red"), FORETOKEN_NOT_FOUND, "colour", "no such key");
  FAILS(SET(request, "model", "x.gguf"), FORETOKEN_NOT_FOUND, "model", "no such key");
  FAILS(SET(engine, "prompt", "x"), FORETOKEN_NOT_FOUND, "prompt", "no such key");
  FAILS(SET(engine, "num_speculative_tokens", "65"), FORETOKEN_INVALID_ARGUMENT,
        "num_speculative_tokens", "65 is not in [0, 64]");
  FAILS(SET(request, "num_speculative_tokens", "65"), FORETOKEN_INVALID_ARGUMENT,
        "num_speculative_tokens", "65 is not in [0, 64]");
  FAILS(SET(request, "logit_bias", "5"), FORETOKEN_INVALID_ARGUMENT, "logit_bias", "bias");
  FAILS(SET(request, "json_schema", "{"), FORETOKEN_INVALID_ARGUMENT, "json_schema", ":");
  FAILS(foretoken_options_set(request, "prompt", NULL, 3, &error), FORETOKEN_INVALID_ARGUMENT,
        "value", "NULL");
  FAILS(foretoken_options_set_tokens(request, "prompt", tokens, 2, &error),
        FORETOKEN_INVALID_ARGUMENT, "prompt", "no list of tokens");
  FAILS(foretoken_options_set_tokens(engine, "drafts", tokens, 2, &error), FORETOKEN_NOT_FOUND,
        "drafts", "no such key");
  FAILS(foretoken_options_create(99, &copy, &error), FORETOKEN_INVALID_ARGUMENT, "kind", "kind");
  CHECK(copy == NULL);
#undef SET
  OK(foretoken_options_set_tokens(request, "prompt_tokens", tokens, 2, &error));
  OK(foretoken_options_copy(request, &copy, &error));
  foretoken_options_free(copy);
  foretoken_options_free(request);
  foretoken_options_free(engine);
}

/* Whether a page has the key as code. */
static int Names(const char* path, const char* key) {
  static char page[1 << 20];
  char code[128];
  size_t size;
  FILE* file = fopen(path, "rb");
  if (file == NULL) return 0;
  size = fread(page, 1, sizeof(page) - 1, file);
  fclose(file);
  page[size] = 0;
  sprintf(code, "`%.100s`", key);
  return strstr(page, code) != NULL;
}

/* Every key that is listed exists: it is set, or refused by its value. A page describes it. */
static void KeysAreListed(const char* page, const char* other_page) {
  int32_t kind;
  for (kind = FORETOKEN_ENGINE; kind <= FORETOKEN_SESSION; ++kind) {
    foretoken_options* options = Options(kind);
    size_t i = 0;
    const char* key;
    for (; (key = foretoken_options_key(kind, i)) != NULL; ++i) {
      const foretoken_status status = foretoken_options_set(options, key, "1", 1, NULL);
      CHECK(status == FORETOKEN_OK || status == FORETOKEN_INVALID_ARGUMENT);
      if (Names(page, key) || Names(other_page, key)) continue;
      fprintf(stderr, "no page describes %s\n", key);
      ++failures;
    }
    CHECK(i >= 6 && foretoken_options_key(kind, i + 1000) == NULL);
    foretoken_options_free(options);
  }
  CHECK(foretoken_options_key(99, 0) == NULL);
}

/* Each key that is listed is a statistic of any result. */
static void StatisticsAreListed(foretoken_engine* engine) {
  foretoken_options* request = Request("Once", "2");
  foretoken_result* result = NULL;
  const char* key;
  size_t i = 0;
  OK(foretoken_engine_generate(engine, request, NULL, NULL, &result, &error));
  for (; (key = foretoken_result_key(i)) != NULL; ++i) {
    double value = -1;
    const foretoken_status status = foretoken_result_stat(result, key, &value, NULL);
    const int is_rate = strcmp(key, "acceptance_rate") == 0 || strcmp(key, "mean_acceptance_length") == 0;
    CHECK(status == (is_rate ? FORETOKEN_NOT_FOUND : FORETOKEN_OK) && value >= 0);
  }
  CHECK(i > 20 && foretoken_result_key(i + 1000) == NULL);
  CHECK(foretoken_result_stat(result, "no_such_key", NULL, NULL) == FORETOKEN_INVALID_ARGUMENT);
  foretoken_result_free(result);
  foretoken_options_free(request);
}

static void FilesThatAreNotThere(const char* model) {
  foretoken_options* options = EngineOptions("/nowhere/at-all.gguf", NULL);
  foretoken_engine* engine = NULL;
  foretoken_scorer* scorer = NULL;
  FAILS(foretoken_engine_open(options, &engine, &error), FORETOKEN_NOT_FOUND, "",
        "/nowhere/at-all.gguf");
  FAILS(foretoken_scorer_open(options, &scorer, &error), FORETOKEN_NOT_FOUND, "",
        "/nowhere/at-all.gguf");
  CHECK(engine == NULL && scorer == NULL);
  Set(options, "model", model);
  Set(options, "max_sequences", "-3");
  FAILS(foretoken_engine_open(options, &engine, &error), FORETOKEN_INVALID_ARGUMENT, "sequences",
        "-3 is out of range");
  foretoken_options_free(options);
}

static void RequestsOutOfRange(foretoken_engine* engine) {
  foretoken_options* request = Request("Once", "4");
  foretoken_options* chat = Options(FORETOKEN_CHAT);
  foretoken_stream* stream = NULL;
  char* text = calloc(1, 20000);
  Set(request, "temperature", "9");
  FAILS(foretoken_engine_submit(engine, request, &stream, &error), FORETOKEN_INVALID_ARGUMENT,
        "temperature", "9");
  Set(request, "temperature", "0");
  Set(request, "deadline_ms", "-1");
  FAILS(foretoken_engine_submit(engine, request, &stream, &error), FORETOKEN_INVALID_ARGUMENT,
        "deadline_ms", "negative");
  FAILS(foretoken_engine_submit(engine, chat, &stream, &error), FORETOKEN_INVALID_ARGUMENT,
        "options", "another kind");
  memset(text, 'x', 19999);
  Set(request, "prompt", text);
  Set(request, "deadline_ms", "100000");
  FAILS(foretoken_engine_submit(engine, request, &stream, &error), FORETOKEN_TOO_LARGE, "prompt",
        "context");
  CHECK(stream == NULL);
  free(text);
  foretoken_options_free(request);
  foretoken_options_free(chat);
}

int main(int argc, char** argv) {
  foretoken_options* options;
  foretoken_engine* engine;
  if (argc != 4) return 2;
  CHECK(strcmp(foretoken_version(), "0.1.0") == 0);
  CHECK(foretoken_abi_version() == FORETOKEN_ABI_VERSION);
  EveryFunctionTakesNull();
  OptionsSayWhatIsWrong();
  KeysAreListed(argv[2], argv[3]);
  FilesThatAreNotThere(argv[1]);
  options = EngineOptions(argv[1], NULL);
  Set(options, "speculative_method", "none");
  engine = Open(options);
  RequestsOutOfRange(engine);
  StatisticsAreListed(engine);
  foretoken_engine_close(engine);
  return failures != 0;
}
