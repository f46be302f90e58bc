/* SPDX-License-Identifier: Apache-2.0 */
/* callbacks_test TARGET DRAFT: drafters and logits processors that are functions of the caller, in engines,
 * sessions and verifications. */
#include "capi/capi_testing.h"

enum { kTokens = 24 };

/* Drafts what a text is known to go on with. */
typedef struct Script {
  int32_t tokens[kTokens];
  size_t count, prompt;
  int begins, ends, releases;
  int64_t drafted, accepted;
  int fails; /* propose returns an error */
} Script;

static int32_t Begin(void* user, int32_t sequence, const int32_t* prompt, size_t count) {
  Script* script = user;
  CHECK(sequence == 0 && count > 0 && prompt != NULL);
  script->prompt = count;
  ++script->begins;
  return 0;
}

static int32_t Propose(void* user, int32_t sequence, foretoken_proposal* proposal) {
  Script* script = user;
  (void)sequence;
  if (script->fails) return -1;
  while (foretoken_proposal_left(proposal) > 0) {
    size_t count = 0;
    CHECK(foretoken_proposal_text(proposal, &count) != NULL);
    if (count - script->prompt >= script->count) break;
    if (!foretoken_proposal_push(proposal, script->tokens[count - script->prompt])) break;
  }
  return 0;
}

static int32_t Observe(void* user, int32_t sequence, const int32_t* committed, size_t count,
                       int32_t drafted, int32_t accepted) {
  Script* script = user;
  CHECK(sequence == 0 && count > 0 && committed != NULL);
  script->drafted += drafted;
  script->accepted += accepted;
  return 0;
}

static void End(void* user, int32_t sequence) {
  CHECK(sequence == 0);
  ++((Script*)user)->ends;
}

static void Release(void* user) {
  ++((Script*)user)->releases;
}

static foretoken_drafter Functions(Script* script) {
  foretoken_drafter drafter;
  memset(&drafter, 0, sizeof(drafter));
  drafter.struct_size = sizeof(drafter);
  drafter.name = "script";
  drafter.user = script;
  drafter.begin = Begin;
  drafter.propose = Propose;
  drafter.observe = Observe;
  drafter.end = End;
  drafter.release = Release;
  return drafter;
}

static foretoken_engine* Plain(const char* model) {
  foretoken_options* options = EngineOptions(model, NULL);
  Set(options, "speculative_method", "none");
  return Open(options);
}

static foretoken_result* Run(foretoken_engine* engine) {
  foretoken_options* request = Request("Once upon a time", "24");
  foretoken_result* result = NULL;
  OK(foretoken_engine_generate(engine, request, NULL, NULL, &result, &error));
  foretoken_options_free(request);
  return result;
}

/* The engine accepts each draft of a drafter that knows the text; one that fails changes no text. */
static void ADrafterIsFollowed(const char* model, Script* script) {
  foretoken_options* options = EngineOptions(model, NULL);
  const foretoken_drafter drafter = Functions(script);
  foretoken_engine* engine;
  foretoken_result* result;
  Set(options, "lookahead", "fixed");
  Set(options, "num_speculative_tokens", "5");
  OK(foretoken_options_set_drafter(options, &drafter, &error));
  engine = Open(options);
  result = Run(engine);
  CHECK(memcmp(foretoken_result_get(result)->tokens, script->tokens, sizeof(script->tokens)) == 0);
  if (script->fails) {
    CHECK(Stat(result, "drafted") == 0);
  } else {
    CHECK(Stat(result, "accepted") == (double)script->accepted && script->accepted >= 15);
    CHECK(Stat(result, "drafted") == (double)script->drafted);
    CHECK(Stat(result, "acceptance_rate") == 1);
  }
  CHECK(script->begins == 1 && script->releases == 0);
  foretoken_result_free(result);
  foretoken_engine_close(engine);
  CHECK(script->ends == 1 && script->releases == 1);
}

static void WrongDraftersAreRefused(void) {
  foretoken_options* options = Options(FORETOKEN_ENGINE);
  foretoken_options* request = Options(FORETOKEN_REQUEST);
  Script script;
  foretoken_drafter drafter;
  memset(&script, 0, sizeof(script));
  drafter = Functions(&script);
  FAILS(foretoken_options_set_drafter(request, &drafter, &error), FORETOKEN_INVALID_ARGUMENT,
        "options", "nothing drafts");
  drafter.propose = NULL;
  FAILS(foretoken_options_set_drafter(options, &drafter, &error), FORETOKEN_INVALID_ARGUMENT,
        "propose", "NULL");
  CHECK(script.releases == 2);
  drafter.struct_size = 8;
  FAILS(foretoken_options_set_drafter(options, &drafter, &error), FORETOKEN_INVALID_ARGUMENT,
        "struct_size", "sizeof");
  foretoken_options_free(options);
  foretoken_options_free(request);
}

typedef struct Ban {
  int32_t token;
  int calls, fails, releases;
} Ban;

static int32_t Forbid(void* user, const int32_t* text, size_t count, float* logits,
                      size_t vocabulary) {
  Ban* ban = user;
  ++ban->calls;
  CHECK(text != NULL && count > 0 && (size_t)ban->token < vocabulary);
  logits[ban->token] = -1e30f;
  return ban->fails;
}

static void ReleaseBan(void* user) {
  ++((Ban*)user)->releases;
}

static void AProcessorDecides(foretoken_engine* engine, int32_t first) {
  foretoken_options* request = Request("Once upon a time", "8");
  foretoken_result* result = NULL;
  foretoken_stream* stream = NULL;
  const foretoken_event* event = NULL;
  Ban ban = {0, 0, 0, 0};
  size_t i;
  ban.token = first;
  OK(foretoken_options_add_processor(request, Forbid, &ban, ReleaseBan, &error));
  OK(foretoken_engine_generate(engine, request, NULL, NULL, &result, &error));
  CHECK(ban.calls >= 8 && foretoken_result_get(result)->token_count == 8);
  for (i = 0; i < 8; ++i) CHECK(foretoken_result_get(result)->tokens[i] != first);
  foretoken_result_free(result);

  ban.fails = 1;
  FAILS(foretoken_engine_generate(engine, request, NULL, NULL, &result, &error), FORETOKEN_CALLBACK,
        "", "processor");
  CHECK(result == NULL);
  OK(foretoken_engine_submit(engine, request, &stream, &error));
  OK(foretoken_stream_next(stream, -1, &event, &error));
  FAILS(foretoken_stream_next(stream, -1, &event, &error), FORETOKEN_CALLBACK, "", "processor");
  CHECK(event == NULL && foretoken_stream_ended(stream) == 1);
  OK(foretoken_stream_result(stream, &result, &error));
  CHECK(strcmp(foretoken_result_get(result)->finish_reason, "error") == 0);
  foretoken_result_free(result);
  foretoken_stream_free(stream);
  foretoken_options_free(request);
  OK(foretoken_engine_wait_idle(engine, -1, &error));
  FAILS(foretoken_options_add_processor(NULL, Forbid, &ban, ReleaseBan, &error),
        FORETOKEN_INVALID_ARGUMENT, "options", "NULL");
}

static void SessionsDraft(const Script* known) {
  foretoken_options* options = Options(FORETOKEN_SESSION);
  foretoken_session* session = NULL;
  const foretoken_drafts* drafts = NULL;
  const int32_t text[6] = {5, 6, 7, 5, 6, 7}, more[1] = {9};
  Script script = *known;
  foretoken_drafter drafter;
  FAILS(foretoken_session_open(options, &session, &error), FORETOKEN_INVALID_ARGUMENT, "drafter",
        "choose");
  Set(options, "drafter", "ngram");
  Set(options, "vocabulary_size", "16");
  OK(foretoken_session_open(options, &session, &error));
  FAILS(foretoken_session_propose(session, 3, 0, &drafts, &error), FORETOKEN_INVALID_ARGUMENT, "",
        "text");
  OK(foretoken_session_begin(session, text, 6, &error));
  OK(foretoken_session_propose(session, 3, 0, &drafts, &error));
  CHECK(drafts->count == 3 && memcmp(drafts->tokens, text, sizeof(*text) * 3) == 0);
  CHECK(drafts->probabilities == NULL && drafts->distributions == NULL);
  OK(foretoken_session_observe(session, more, 1, &error));
  OK(foretoken_session_propose(session, 3, 0, &drafts, &error));
  CHECK(drafts->count == 0);
  foretoken_session_close(session);

  script.begins = script.ends = script.releases = script.fails = 0;
  drafter = Functions(&script);
  Set(options, "vocabulary_size", "0");
  OK(foretoken_options_set_drafter(options, &drafter, &error));
  OK(foretoken_session_open(options, &session, &error));
  OK(foretoken_session_begin(session, text, 6, &error));
  OK(foretoken_session_propose(session, 4, 0, &drafts, &error));
  CHECK(drafts->count == 4 && memcmp(drafts->tokens, script.tokens, sizeof(int32_t) * 4) == 0);
  foretoken_session_close(session);
  foretoken_options_free(options);
  CHECK(script.begins == 1 && script.releases == 1);
}

/* A draft model's distributions are rows that sum to 1 and have the drafts' own probabilities. */
static void AModelDrafts(const char* model, const foretoken_result* result) {
  foretoken_options* options = Options(FORETOKEN_SESSION);
  foretoken_session* session = NULL;
  const foretoken_drafts* drafts = NULL;
  const foretoken_result_view* view = foretoken_result_get(result);
  size_t i, j;
  Set(options, "drafter", "model");
  Set(options, "model", model);
  Set(options, "threads", "1");
  Set(options, "repack_cache", "off");
  Set(options, "seed", "3");
  OK(foretoken_session_open(options, &session, &error));
  OK(foretoken_session_begin(session, view->prompt_tokens, view->prompt_token_count, &error));
  OK(foretoken_session_propose(session, 5, 1, &drafts, &error));
  CHECK(drafts->count == 5 && drafts->distributions != NULL && drafts->probabilities != NULL);
  for (i = 0; i < drafts->count; ++i) {
    const float* row = drafts->distributions + i * drafts->vocabulary;
    double sum = 0;
    for (j = 0; j < drafts->vocabulary; ++j) sum += row[j];
    CHECK(sum > 0.999 && sum < 1.001);
    CHECK(row[drafts->tokens[i]] == drafts->probabilities[i]);
  }
  foretoken_session_close(session);
  foretoken_options_free(options);
}

/* The scorer's best token behind the prompt is the greedy text's first one, and again after a removal. */
static void ScorersScore(const char* model, const foretoken_result* result) {
  const foretoken_result_view* view = foretoken_result_get(result);
  foretoken_options* options = EngineOptions(model, NULL);
  foretoken_scorer* scorer = NULL;
  const size_t n = view->prompt_token_count;
  int round;
  OK(foretoken_scorer_open(options, &scorer, &error));
  for (round = 0; round < 2; ++round) {
    const float* logits = NULL;
    size_t vocabulary = 0, stride = 0, best = 0, i;
    OK(foretoken_scorer_score(scorer, 0, view->prompt_tokens + round * (n - 1), round == 0 ? n : 1,
                              &logits, &vocabulary, &stride, &error));
    if (round == 0) logits += (n - 1) * stride;
    for (i = 1; i < vocabulary; ++i)
      if (logits[i] > logits[best]) best = i;
    CHECK((int32_t)best == view->tokens[0]);
    CHECK(foretoken_scorer_length(scorer, 0) == n);
    OK(foretoken_scorer_truncate(scorer, 0, n - 1, &error));
  }
  FAILS(foretoken_scorer_truncate(scorer, 0, n + 9, &error), FORETOKEN_INVALID_ARGUMENT, "length",
        "beyond");
  CHECK(foretoken_scorer_length(scorer, 77) == 0);
  foretoken_options_free(options);
  foretoken_scorer_close(scorer);
}

int main(int argc, char** argv) {
  Script script;
  foretoken_engine* engine;
  foretoken_result* result;
  if (argc != 3) return 2;
  memset(&script, 0, sizeof(script));
  engine = Plain(argv[1]);
  result = Run(engine);
  CHECK(foretoken_result_get(result)->token_count == kTokens);
  memcpy(script.tokens, foretoken_result_get(result)->tokens, sizeof(script.tokens));
  script.count = kTokens;
  AProcessorDecides(engine, script.tokens[0]);
  foretoken_engine_close(engine);
  ADrafterIsFollowed(argv[1], &script);
  SessionsDraft(&script);
  AModelDrafts(argv[2], result);
  script.fails = 1;
  script.begins = script.ends = script.releases = 0;
  ADrafterIsFollowed(argv[1], &script);
  WrongDraftersAreRefused();
  ScorersScore(argv[1], result);
  foretoken_result_free(result);
  return failures != 0;
}
