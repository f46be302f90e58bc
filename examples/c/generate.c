/* SPDX-License-Identifier: Apache-2.0 */
/* generate: one request in C, with its text as it comes.
 *
 *   cc generate.c $(pkg-config --cflags --libs foretoken-c) -o generate
 *   ./generate target.gguf draft.gguf "Once upon a time"
 */
#include <foretoken.h>
#include <stdio.h>
#include <string.h>

static int32_t Print(void* user, const foretoken_event* event) {
  (void)user;
  fwrite(event->text, 1, event->text_size, stdout);
  fflush(stdout);
  return 0; /* positive: no more of this text; negative: an error */
}

static foretoken_status Set(foretoken_options* options, const char* key, const char* value,
                            foretoken_error** error) {
  return foretoken_options_set(options, key, value, strlen(value), error);
}

static foretoken_status Run(char** argv, foretoken_options* model, foretoken_options* request,
                            foretoken_error** error) {
  foretoken_engine* engine = NULL;
  foretoken_result* result = NULL;
  double drafted = 0, accepted = 0;
  foretoken_status status = Set(model, "model", argv[1], error);
  if (!status) status = Set(model, "draft_model", argv[2], error);
  if (!status) status = Set(request, "prompt", argv[3], error);
  if (!status) status = Set(request, "max_new_tokens", "64", error);
  if (!status) status = Set(request, "temperature", "0", error);
  if (!status) status = foretoken_engine_open(model, &engine, error);
  if (!status) status = foretoken_engine_generate(engine, request, Print, NULL, &result, error);
  if (!status) status = foretoken_result_stat(result, "drafted", &drafted, error);
  if (!status) status = foretoken_result_stat(result, "accepted", &accepted, error);
  if (!status) printf("\n[%.0f of %.0f drafts accepted]\n", accepted, drafted);
  foretoken_result_free(result);
  foretoken_engine_close(engine);
  return status;
}

int main(int argc, char** argv) {
  foretoken_error* error = NULL;
  foretoken_options *model = NULL, *request = NULL;
  foretoken_status status;
  if (argc != 4) return fprintf(stderr, "usage: generate TARGET DRAFT PROMPT\n"), 2;
  status = foretoken_options_create(FORETOKEN_ENGINE, &model, &error);
  if (!status) status = foretoken_options_create(FORETOKEN_REQUEST, &request, &error);
  if (!status) status = Run(argv, model, request, &error);
  if (status) fprintf(stderr, "%s\n", foretoken_error_message(error));
  foretoken_error_free(error);
  foretoken_options_free(model);
  foretoken_options_free(request);
  return status != FORETOKEN_OK;
}
