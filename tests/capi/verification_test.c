/* SPDX-License-Identifier: Apache-2.0 */
/* verification_test VECTORS: each round of verification.jsonl (docs/verification-vectors.md) through the C
 * interface, and inputs that are refused. Each member has a name of its own in a line, so it is found by it. */
#include <math.h>

#include "capi/capi_testing.h"

typedef struct Numbers {
  double values[4096];
  float floats[4096];
  int32_t tokens[4096];
  size_t count;
  int found;
} Numbers;

/* What stands behind "name":, or NULL. */
static const char* Member(const char* line, const char* name) {
  char quoted[64];
  const char* at;
  sprintf(quoted, "\"%s\": ", name);
  at = strstr(line, quoted);
  return at == NULL ? NULL : at + strlen(quoted);
}

/* A list of numbers, or of such lists, in one; null is minus infinity. */
static const Numbers* List(Numbers* list, const char* line, const char* name) {
  const char* at = Member(line, name);
  int depth = 0;
  memset(list, 0, sizeof(*list));
  list->found = at != NULL;
  while (at != NULL && *at != 0) {
    char* end = NULL;
    double value = -HUGE_VAL;
    depth += *at == '[';
    depth -= *at == ']';
    if (depth == 0) break;
    if (strncmp(at, "null", 4) == 0) {
      at += 4;
    } else {
      value = strtod(at, &end);
      if (end == at) {
        ++at;
        continue;
      }
      at = end;
    }
    list->values[list->count] = value;
    list->floats[list->count] = (float)value;
    list->tokens[list->count++] = isinf(value) ? -1 : (int32_t)value;
  }
  return list;
}

/* Sets an option from a member, if the line has it. */
static void SetFrom(foretoken_options* options, const char* line, const char* name,
                    const char* key) {
  const char* at = Member(line, name);
  size_t size, quote;
  if (at == NULL) return;
  quote = *at == '"';
  at += quote;
  size = strcspn(at, quote ? "\"" : ",}");
  OK(foretoken_options_set(options, key, at, size, &error));
}

static int32_t Whole(const char* line, const char* name) {
  const char* at = Member(line, name);
  CHECK(at != NULL);
  return at == NULL ? -1 : (int32_t)strtol(at, NULL, 10);
}

static foretoken_verification* Create(const char* line, size_t vocabulary) {
  static const char* const kKeys[] = {"acceptance_threshold",
                                      "skip_sample_adjustment",
                                      "relaxed_top_n",
                                      "temperature",
                                      "top_k",
                                      "top_p",
                                      "min_p",
                                      "presence_penalty"};
  foretoken_options* options = Options(FORETOKEN_VERIFICATION);
  foretoken_verification* verification = NULL;
  char number[32];
  size_t i;
  sprintf(number, "%u", (unsigned)vocabulary);
  Set(options, "vocabulary_size", number);
  SetFrom(options, line, "strategy", "strategy");
  for (i = 0; i < sizeof(kKeys) / sizeof(*kKeys); ++i) SetFrom(options, line, kKeys[i], kKeys[i]);
  OK(foretoken_verification_create(options, &verification, &error));
  foretoken_options_free(options);
  return verification;
}

static Numbers text, drafts, target_logits, probabilities, draft_logits, accept, recover, target;

static void ARoundIsAsWritten(const char* line) {
  foretoken_verification_input input;
  foretoken_verified verified;
  foretoken_verification* verification;
  const char* kind = Member(line, "kind");
  static const char* const kKinds[] = {"\"plain\"", "", "\"recovered\"", "\"bonus\""};
  memset(&input, 0, sizeof(input));
  memset(&verified, 0, sizeof(verified));
  input.struct_size = sizeof(input);
  verified.struct_size = sizeof(verified);
  input.text = List(&text, line, "text")->tokens;
  input.text_count = text.count;
  input.generated = (size_t)Whole(line, "generated");
  input.position = -1;
  input.drafts = List(&drafts, line, "drafts")->tokens;
  input.draft_count = drafts.count;
  input.target_logits = List(&target_logits, line, "target_logits")->floats;
  input.vocabulary = target_logits.count / (drafts.count + 1);
  if (List(&probabilities, line, "draft_probabilities")->found)
    input.draft_probabilities = probabilities.floats;
  if (List(&draft_logits, line, "draft_logits")->found) input.draft_logits = draft_logits.floats;
  input.accept = List(&accept, line, "accept")->values;
  input.recover = List(&recover, line, "recover")->values;
  input.target = List(&target, line, "target")->values;
  verification = Create(line, input.vocabulary);
  OK(foretoken_verification_run(verification, &input, &verified, &error));
  foretoken_verification_free(verification);
  CHECK(verified.accepted == Whole(line, "accepted"));
  CHECK(verified.next == Whole(line, "next"));
  CHECK(kind != NULL && verified.origin >= 0 && verified.origin < 4 &&
        strncmp(kind, kKinds[verified.origin], strlen(kKinds[verified.origin])) == 0);
}

static int32_t Fail(void* user, const int32_t* tokens, size_t count, float* logits,
                    size_t vocabulary) {
  (void)user, (void)tokens, (void)count, (void)logits, (void)vocabulary;
  return 7;
}

static void WrongInputIsRefused(void) {
  const float logits[8] = {0, 1, 2, 3, 0, 1, 2, 3};
  const int32_t draft[1] = {3}, unknown[1] = {4};
  foretoken_options* options = Options(FORETOKEN_VERIFICATION);
  foretoken_verification* verification = NULL;
  foretoken_verification_input input;
  foretoken_verified verified = {0, 0, 0, 0, 0};
  memset(&input, 0, sizeof(input));
  FAILS(foretoken_verification_create(options, &verification, &error), FORETOKEN_INVALID_ARGUMENT,
        "", "vocabulary size: 0");
  Set(options, "vocabulary_size", "4");
  OK(foretoken_verification_create(options, &verification, &error));
#define REFUSED(field, part)                                                 \
  FAILS(foretoken_verification_run(verification, &input, &verified, &error), \
        FORETOKEN_INVALID_ARGUMENT, field, part)
  REFUSED("struct_size", "sizeof");
  verified.struct_size = sizeof(verified);
  REFUSED("struct_size", "sizeof");
  input.struct_size = sizeof(input);
  REFUSED("target_logits", "NULL");
  input.target_logits = logits;
  input.vocabulary = 3;
  REFUSED("vocabulary", "3 is not in");
  input.vocabulary = 4;
  input.draft_count = 1;
  REFUSED("drafts", "NULL");
  input.drafts = unknown;
  REFUSED("drafts", "4");
  input.drafts = draft;
  input.draft_count = 65;
  REFUSED("draft_count", "65 is more than 64");
  input.draft_count = 1;
  input.generated = 1;
  REFUSED("generated", "text_count");
  input.generated = 0;
  input.position = -1;
  OK(foretoken_verification_run(verification, &input, &verified, &error));
  CHECK(verified.accepted >= 0 && verified.next >= 0);
#undef REFUSED
  foretoken_verification_free(verification);
  OK(foretoken_options_add_processor(options, Fail, NULL, NULL, &error));
  OK(foretoken_verification_create(options, &verification, &error));
  FAILS(foretoken_verification_run(verification, &input, &verified, &error), FORETOKEN_CALLBACK, "",
        "processor");
  foretoken_verification_free(verification);
  foretoken_options_free(options);
}

int main(int argc, char** argv) {
  static char line[1 << 16];
  int rounds = 0;
  FILE* file;
  if (argc != 2) return 2;
  file = fopen(argv[1], "r");
  CHECK(file != NULL);
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    const int before = failures;
    ARoundIsAsWritten(line);
    if (failures != before) fprintf(stderr, "%.120s\n", line);
    ++rounds;
  }
  CHECK(rounds >= 100);
  WrongInputIsRefused();
  if (file != NULL) fclose(file);
  return failures != 0;
}
