/* SPDX-License-Identifier: Apache-2.0 */
/* gate_testing.h: a logits processor that holds a request until its gate is opened, so that no test depends on
 * how fast a machine decodes. Include it before all others. */
#ifndef FORETOKEN_TESTS_CAPI_GATE_H
#define FORETOKEN_TESTS_CAPI_GATE_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <poll.h>
#include <pthread.h>

#include "capi/capi_testing.h"

typedef struct Gate {
  pthread_mutex_t mutex;
  pthread_cond_t opened;
  int open;
  int free_calls; /* calls that pass the gate while it is closed */
  int slow_ms;    /* each call takes this long once it is open */
} Gate;

static void MakeGate(Gate* gate) {
  memset(gate, 0, sizeof(*gate));
  pthread_mutex_init(&gate->mutex, NULL);
  pthread_cond_init(&gate->opened, NULL);
}

static void OpenGate(Gate* gate) {
  pthread_mutex_lock(&gate->mutex);
  gate->open = 1;
  pthread_cond_broadcast(&gate->opened);
  pthread_mutex_unlock(&gate->mutex);
}

static int32_t PassGate(void* user, const int32_t* text, size_t count, float* logits,
                        size_t vocabulary) {
  Gate* gate = user;
  int slow = 0;
  (void)text, (void)count, (void)logits, (void)vocabulary;
  pthread_mutex_lock(&gate->mutex);
  if (gate->free_calls > 0) {
    --gate->free_calls;
  } else {
    while (!gate->open) pthread_cond_wait(&gate->opened, &gate->mutex);
    slow = gate->slow_ms;
  }
  pthread_mutex_unlock(&gate->mutex);
  if (slow > 0) poll(NULL, 0, slow);
  return 0;
}

static void Hold(foretoken_options* request, Gate* gate) {
  OK(foretoken_options_add_processor(request, PassGate, gate, NULL, &error));
}

#endif
