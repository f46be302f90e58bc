/* SPDX-License-Identifier: Apache-2.0 */
/* capi_testing.h: what the tests of the C interface share. A check that fails is printed with its line, and
 * the program's exit code is then 1. */
#ifndef FORETOKEN_TESTS_CAPI_TESTING_H
#define FORETOKEN_TESTS_CAPI_TESTING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foretoken.h"

static int failures;

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                             \
    }                                                                         \
  } while (0)

/* A call that must succeed; the program ends if it does not. */
#define OK(call)                                                                          \
  do {                                                                                    \
    foretoken_error* error = NULL;                                                        \
    if ((call) != FORETOKEN_OK) {                                                         \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, foretoken_error_message(error)); \
      exit(1);                                                                            \
    }                                                                                     \
  } while (0)

/* A call that must fail with this code and field, and with a text that has `part`. */
#define FAILS(call, wanted_code, wanted_field, part)                                         \
  do {                                                                                       \
    foretoken_error* error = NULL;                                                           \
    const foretoken_status status = (call);                                                  \
    if (status != (wanted_code) || foretoken_error_code(error) != status ||                  \
        strcmp(foretoken_error_field(error), wanted_field) != 0 ||                           \
        strstr(foretoken_error_message(error), part) == NULL) {                              \
      fprintf(stderr, "%s:%d: code %d, field '%s', '%s'\n", __FILE__, __LINE__, (int)status, \
              foretoken_error_field(error), foretoken_error_message(error));                 \
      ++failures;                                                                            \
    }                                                                                        \
    foretoken_error_free(error);                                                             \
  } while (0)

static void Set(foretoken_options* options, const char* key, const char* value) {
  OK(foretoken_options_set(options, key, value, strlen(value), &error));
}

static foretoken_options* Options(foretoken_kind kind) {
  foretoken_options* options = NULL;
  OK(foretoken_options_create(kind, &options, &error));
  return options;
}

/* Engine options for a bundled model, on one thread. draft: a second model, or NULL. */
static foretoken_options* EngineOptions(const char* model, const char* draft) {
  foretoken_options* options = Options(FORETOKEN_ENGINE);
  Set(options, "model", model);
  if (draft != NULL) Set(options, "draft_model", draft);
  Set(options, "threads", "1");
  Set(options, "context_size", "256");
  Set(options, "repack_cache", "off");
  Set(options, "find_drafters", "false");
  return options;
}

static foretoken_engine* Open(foretoken_options* options) {
  foretoken_engine* engine = NULL;
  OK(foretoken_engine_open(options, &engine, &error));
  foretoken_options_free(options);
  return engine;
}

/* A greedy request. */
static foretoken_options* Request(const char* prompt, const char* max_new_tokens) {
  foretoken_options* options = Options(FORETOKEN_REQUEST);
  Set(options, "prompt", prompt);
  Set(options, "max_new_tokens", max_new_tokens);
  Set(options, "temperature", "0");
  return options;
}

static double Stat(const foretoken_result* result, const char* key) {
  double value = -1;
  OK(foretoken_result_stat(result, key, &value, &error));
  return value;
}

#endif
