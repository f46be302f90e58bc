/* SPDX-License-Identifier: Apache-2.0 */
/* threads_test TARGET: two engines in two threads, and engines that are stopped and closed while requests
 * run. */
#include "capi/gate_testing.h"

typedef struct Job {
  const char* model;
  int32_t tokens[30];
  size_t count;
} Job;

static void* OpenAndRun(void* user) {
  Job* job = user;
  foretoken_options* options = EngineOptions(job->model, NULL);
  foretoken_options* request = Request("Once upon a time", "30");
  foretoken_result* result = NULL;
  foretoken_engine* engine;
  Set(options, "speculative_method", "ngram");
  engine = Open(options);
  OK(foretoken_engine_generate(engine, request, NULL, NULL, &result, &error));
  job->count = foretoken_result_get(result)->token_count;
  CHECK(job->count == 30);
  memcpy(job->tokens, foretoken_result_get(result)->tokens, sizeof(job->tokens));
  foretoken_result_free(result);
  foretoken_options_free(request);
  foretoken_engine_close(engine);
  return NULL;
}

static void TwoEnginesInTwoThreads(const char* model) {
  Job jobs[2];
  pthread_t threads[2];
  int i;
  for (i = 0; i < 2; ++i) {
    memset(&jobs[i], 0, sizeof(jobs[i]));
    jobs[i].model = model;
    CHECK(pthread_create(&threads[i], NULL, OpenAndRun, &jobs[i]) == 0);
  }
  for (i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  CHECK(memcmp(jobs[0].tokens, jobs[1].tokens, sizeof(jobs[0].tokens)) == 0);
}

typedef struct Client {
  foretoken_engine* engine;
  foretoken_status status;
} Client;

static void* RunWithoutEnd(void* user) {
  Client* client = user;
  foretoken_options* request = Request("Once upon a time", "240");
  foretoken_result* result = NULL;
  Set(request, "ignore_eos", "true");
  do {
    client->status = foretoken_engine_generate(client->engine, request, NULL, NULL, &result, NULL);
    foretoken_result_free(result);
  } while (client->status == FORETOKEN_OK);
  foretoken_options_free(request);
  return NULL;
}

/* A thread runs requests until the engine is stopped, and a stream outlives its engine. */
static void ClosedWhileRequestsRun(const char* model) {
  foretoken_options* options = EngineOptions(model, NULL);
  foretoken_options* request = Request("Once upon a time", "240");
  foretoken_stream *stream = NULL, *late = NULL;
  const foretoken_event* event = NULL;
  foretoken_status status = FORETOKEN_OK;
  Client client;
  pthread_t thread;
  Gate gate;
  MakeGate(&gate);
  Hold(request, &gate);
  Set(options, "speculative_method", "none");
  Set(options, "max_sequences", "2");
  client.engine = Open(options);
  client.status = FORETOKEN_OK;
  CHECK(pthread_create(&thread, NULL, RunWithoutEnd, &client) == 0);
  OK(foretoken_engine_submit(client.engine, request, &stream, &error));
  OK(foretoken_stream_next(stream, -1, &event, &error));
  CHECK(event != NULL && event->kind == FORETOKEN_EVENT_BEGUN);
  FAILS(foretoken_engine_wait_idle(client.engine, 0, &error), FORETOKEN_DEADLINE, "timeout_ms",
        "still run");
  OK(foretoken_engine_stop(client.engine, &error));
  OpenGate(&gate);
  pthread_join(thread, NULL);
  CHECK(client.status == FORETOKEN_STOPPED);
  FAILS(foretoken_engine_submit(client.engine, request, &late, &error), FORETOKEN_STOPPED, "", ":");
  CHECK(late == NULL);
  foretoken_engine_close(client.engine);
  while (status == FORETOKEN_OK && !foretoken_stream_ended(stream))
    status = foretoken_stream_next(stream, -1, &event, NULL);
  CHECK(status == FORETOKEN_STOPPED && foretoken_stream_ended(stream) == 1);
  foretoken_stream_free(stream);
  foretoken_options_free(request);
}

/* A full queue refuses, and a drained engine ends what it has accepted. */
static void DrainLetsRequestsEnd(const char* model) {
  foretoken_options* options = EngineOptions(model, NULL);
  foretoken_options* request = Request("Once upon a time", "20");
  foretoken_stream *stream = NULL, *late = NULL;
  foretoken_result* result = NULL;
  const foretoken_event* event = NULL;
  foretoken_engine* engine;
  Gate gate;
  MakeGate(&gate);
  Hold(request, &gate);
  Set(options, "speculative_method", "none");
  Set(options, "max_waiting", "0");
  engine = Open(options);
  OK(foretoken_engine_submit(engine, request, &stream, &error));
  FAILS(foretoken_engine_submit(engine, request, &late, &error), FORETOKEN_BUSY, "", ":");
  OK(foretoken_engine_drain(engine, &error));
  FAILS(foretoken_engine_submit(engine, request, &late, &error), FORETOKEN_STOPPED, "", ":");
  OpenGate(&gate);
  OK(foretoken_engine_wait_idle(engine, -1, &error));
  while (!foretoken_stream_ended(stream)) OK(foretoken_stream_next(stream, 1000, &event, &error));
  OK(foretoken_stream_result(stream, &result, &error));
  CHECK(foretoken_result_get(result)->token_count == 20);
  foretoken_result_free(result);
  foretoken_stream_free(stream);
  foretoken_options_free(request);
  foretoken_engine_close(engine);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  TwoEnginesInTwoThreads(argv[1]);
  ClosedWhileRequestsRun(argv[1]);
  DrainLetsRequestsEnd(argv[1]);
  return failures != 0;
}
