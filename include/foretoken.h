/* SPDX-License-Identifier: Apache-2.0 */
/* foretoken.h: the C interface of foretoken, in the shared library libforetoken.so.1.
 *
 * Contract, for all functions:
 *
 * Errors. A function that can fail returns a status: FORETOKEN_OK, or the reason. Its last argument
 * is `error`: NULL, or the address of a pointer that gets the code, the field and a text. The caller
 * frees it with foretoken_error_free. After success it is set to NULL, so a value need not be set
 * before a call, and an error that is still wanted must be moved elsewhere. No C++ exception
 * reaches the caller. An object that a failing function was to make is NULL. NULL where an object is
 * required gives FORETOKEN_INVALID_ARGUMENT; functions without a status give NULL or 0 then. Each
 * function named _free or _close accepts NULL.
 *
 * Texts are UTF-8: bytes and their number, which need not end with a NUL. Names and keys that go in are
 * C strings. Texts that come out end with a NUL, which their size does not count.
 *
 * Results of unknown size go to a buffer of the caller: at most `capacity` elements are written,
 * *count becomes the number that there are, and count > capacity means that the rest was cut. A
 * capacity of 0, with a NULL buffer, asks for the number. A text gets a NUL where capacity > *count.
 *
 * Views (const pointers, and pointers in structures) belong to the object that gave them. Unless a
 * function says otherwise, they are valid until the next call with that object.
 *
 * Threads. An object is used by one thread at a time, unless a function says "any thread". Different
 * objects are independent. Engines have a thread of their own, which calls the callbacks of drafters
 * and processors. A callback returns: it must not throw, jump out of the call, or call functions of the
 * engine that calls it, except foretoken_proposal_ ones. A thread must not be cancelled
 * (pthread_cancel) inside of a function.
 *
 * Structures that the caller fills begin with struct_size = sizeof(the structure), and the rest is
 * zero where nothing is said: a later library reads no more of them than a program knew. Structures
 * that the library fills for a view may get members at their ends.
 *
 * Token ids are int32_t in [0, vocabulary). Log-probabilities are natural logarithms. Times are
 * milliseconds. docs/c.md has an introduction, and examples/c/generate.c is a program. */
#ifndef FORETOKEN_H
#define FORETOKEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(FORETOKEN_MAKES_DLL)
#define FORETOKEN_API __declspec(dllexport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define FORETOKEN_API __attribute__((visibility("default")))
#else
#define FORETOKEN_API
#endif

/* The version of this header. It grows when functions, members or kinds are added; what there is stays
 * as it is as long as the library is named libforetoken.so.1. */
#define FORETOKEN_ABI_VERSION 1

typedef struct foretoken_error foretoken_error;
typedef struct foretoken_options foretoken_options;
typedef struct foretoken_engine foretoken_engine;
typedef struct foretoken_stream foretoken_stream;
typedef struct foretoken_result foretoken_result;
typedef struct foretoken_chat foretoken_chat;
typedef struct foretoken_session foretoken_session;
typedef struct foretoken_verification foretoken_verification;
typedef struct foretoken_scorer foretoken_scorer;
typedef struct foretoken_proposal foretoken_proposal;

/* The version of the library, "0.1.0"; valid for ever. Any thread. */
FORETOKEN_API const char* foretoken_version(void);
/* FORETOKEN_ABI_VERSION of the library; a program needs at least that of its header. Any thread. */
FORETOKEN_API int32_t foretoken_abi_version(void);

/* Model files are mapped into memory. When one is cut off while it is mapped, the system sends SIGBUS; the
 * library's handler, set when the first file is mapped, turns that into an error (FORETOKEN_IO) and gives
 * all other SIGBUS to the handler before it. 0: files that are mapped from now on have no such handler. Any
 * thread. */
FORETOKEN_API void foretoken_catch_bus_errors(int32_t on);

/* ---- Errors ---------------------------------------------------------------------------------- */

typedef int32_t foretoken_status;
enum {
  FORETOKEN_OK = 0,
  FORETOKEN_INVALID_ARGUMENT = 1, /* an argument or option out of its range */
  FORETOKEN_NOT_FOUND = 2,        /* no such file, tensor, metadata key, option */
  FORETOKEN_INVALID_FILE = 3,     /* a file that is damaged or of another kind */
  FORETOKEN_UNSUPPORTED = 4,      /* well formed, but not something this build runs */
  FORETOKEN_MISMATCH = 5,         /* two parts that do not belong together */
  FORETOKEN_TOO_LARGE = 6,        /* a prompt longer than the context, a limit exceeded */
  FORETOKEN_IO = 7,               /* the operating system refused */
  FORETOKEN_NO_MEMORY = 8,        /* no more memory, or no more threads */
  FORETOKEN_BUSY = 9,             /* a queue is full; the same call may succeed later */
  FORETOKEN_STOPPED = 10,         /* the engine was stopped, or accepts nothing more */
  FORETOKEN_DEADLINE = 11,        /* it did not end in the time that it was given */
  FORETOKEN_RANK_LOST = 12,       /* a process that computes with this one is gone */
  FORETOKEN_CALLBACK = 13,        /* a callback of the caller returned an error */
  FORETOKEN_INTERNAL = 14         /* a fault in the library; please report it */
};

/* The code, FORETOKEN_OK for NULL. Any thread. */
FORETOKEN_API foretoken_status foretoken_error_code(const foretoken_error* error);
/* The option or argument that is wrong ("top_k"), or ""; valid until the error is freed. */
FORETOKEN_API const char* foretoken_error_field(const foretoken_error* error);
/* One line for a person, "<what>: <why>; <what to do>"; valid until the error is freed. */
FORETOKEN_API const char* foretoken_error_message(const foretoken_error* error);
FORETOKEN_API void foretoken_error_free(foretoken_error* error);

/* ---- Options --------------------------------------------------------------------------------- */

/* Options are set by key and text, as in settings files, so a new option needs no new function. The
 * keys are those of docs/configuration.md and docs/c.md; foretoken_options_key lists them. */
typedef int32_t foretoken_kind;
enum {
  FORETOKEN_ENGINE = 0,       /* for engines and scorers; also all settings of speculation */
  FORETOKEN_REQUEST = 1,      /* what one request asks for */
  FORETOKEN_CHAT = 2,         /* how a conversation is written */
  FORETOKEN_VERIFICATION = 3, /* vocabulary, strategy, sampling, seed */
  FORETOKEN_SESSION = 4       /* drafter, and the text that a session drafts for */
};

/* Makes options of a kind, with the library's defaults. Errors: INVALID_ARGUMENT (no such kind). */
FORETOKEN_API foretoken_status foretoken_options_create(foretoken_kind kind,
                                                        foretoken_options** options,
                                                        foretoken_error** error);
/* A copy, callbacks included. */
FORETOKEN_API foretoken_status foretoken_options_copy(const foretoken_options* options,
                                                      foretoken_options** copy,
                                                      foretoken_error** error);
/* Sets one option. value: its text, [size] bytes: numbers in decimal, switches "true" or "false" (also
 * on, off, 1, 0), lists with commas. "stop" adds a text with each call; all others replace. Hyphens in
 * a key count as underscores. Errors: INVALID_ARGUMENT (a value that cannot be read, with the key as
 * field), NOT_FOUND (no such key). Some ranges depend on the model, and are checked at its use. */
FORETOKEN_API foretoken_status foretoken_options_set(foretoken_options* options, const char* key,
                                                     const char* value, size_t size,
                                                     foretoken_error** error);
/* Sets an option that is a list of tokens, [count]; they are copied. Request: prompt_tokens, drafts,
 * generated, stop_token_ids. Engine: end_tokens. Session: end_tokens. Errors: INVALID_ARGUMENT,
 * NOT_FOUND. */
FORETOKEN_API foretoken_status foretoken_options_set_tokens(foretoken_options* options,
                                                            const char* key, const int32_t* tokens,
                                                            size_t count, foretoken_error** error);
/* The keys of a kind that foretoken_options_set accepts: number `index`, or NULL behind the last one;
 * valid for ever. Any thread. */
FORETOKEN_API const char* foretoken_options_key(foretoken_kind kind, size_t index);
FORETOKEN_API void foretoken_options_free(foretoken_options* options);

/* ---- Callbacks ------------------------------------------------------------------------------- */

/* A drafter of the caller: it proposes tokens, and changes the speed but never the text. The engine's
 * thread calls it (or the thread that calls the session), one call at a time. `user` is passed on.
 * Functions that return int32_t return 0, or anything else for a failure: then it drafts no more, and the
 * text goes on without it. Members except struct_size, name and propose may be NULL or 0. */
typedef struct foretoken_drafter {
  size_t struct_size;
  const char* name; /* becomes a method: letters, digits, '-' and '_'; copied */
  /* Not 0: it calls foretoken_proposal_draw, so its drafts have distributions. */
  int32_t reports_distributions;
  int32_t vocabulary_size; /* of its distributions; 0: it has none */
  void* user;
  /* A text begins in a sequence, [0, max_sequences). prompt: [count] tokens, for this call. */
  int32_t (*begin)(void* user, int32_t sequence, const int32_t* prompt, size_t count);
  /* Adds drafts with foretoken_proposal_push or _draw. The proposal is valid for this call. */
  int32_t (*propose)(void* user, int32_t sequence, foretoken_proposal* proposal);
  /* A round committed [count] tokens: the accepted drafts and one of the target. drafted, accepted: of
   * this drafter's last proposal; 0 if another's was verified. */
  int32_t (*observe)(void* user, int32_t sequence, const int32_t* committed, size_t count,
                     int32_t drafted, int32_t accepted);
  void (*end)(void* user, int32_t sequence);
  /* Called once, when no options and no engine or session have this drafter any more; by the thread
   * that lets the last one go. */
  void (*release)(void* user);
} foretoken_drafter;

/* The text so far, drafts included: at least one token. Only inside propose, and valid until a token is
 * added. */
FORETOKEN_API const int32_t* foretoken_proposal_text(const foretoken_proposal* proposal,
                                                     size_t* count);
/* How many drafts may still be added. */
FORETOKEN_API int32_t foretoken_proposal_left(const foretoken_proposal* proposal);
/* Adds a certain draft: 1, or 0 if it cannot be added. A token that is none of the vocabulary ends the
 * draft. */
FORETOKEN_API int32_t foretoken_proposal_push(foretoken_proposal* proposal, int32_t token);
/* Draws the next draft from probabilities, [vocabulary], that sum to 1. The token, or -1. */
FORETOKEN_API int32_t foretoken_proposal_draw(foretoken_proposal* proposal,
                                              const float* probabilities, size_t vocabulary);

/* Gives engine or session options a drafter of the caller. Engine: its name is a method, and the
 * default one. `drafter` is copied; release is also called where this function fails, except for a struct_size that is too small. Each set of
 * options with the drafter may serve one open engine or session at a time. Errors: INVALID_ARGUMENT. */
FORETOKEN_API foretoken_status foretoken_options_set_drafter(foretoken_options* options,
                                                             const foretoken_drafter* drafter,
                                                             foretoken_error** error);

/* Edits the logits of the next token in place, [vocabulary] floats: finite, or -infinity, which bans a
 * token. text: prompt, generated tokens and drafts that are being verified, [count]. A pure function of
 * its arguments: it is called for drafts that are rejected later, in any order. It runs on the engine's
 * thread. Returns 0; anything else ends the request with FORETOKEN_CALLBACK. */
typedef int32_t (*foretoken_processor)(void* user, const int32_t* text, size_t count, float* logits,
                                       size_t vocabulary);
/* Adds a processor to request, session or verification options; they run in the order of addition.
 * release(user), or NULL: called once when nothing has the processor any more, on any thread, also
 * where this function fails. Errors: INVALID_ARGUMENT. */
FORETOKEN_API foretoken_status foretoken_options_add_processor(foretoken_options* options,
                                                               foretoken_processor processor,
                                                               void* user,
                                                               void (*release)(void* user),
                                                               foretoken_error** error);

/* ---- Engine ---------------------------------------------------------------------------------- */

/* Opens the models of engine options and starts the engine's thread. The options may be changed or
 * freed afterwards. Errors: those of the files and options, with their names. */
FORETOKEN_API foretoken_status foretoken_engine_open(const foretoken_options* options,
                                                     foretoken_engine** engine,
                                                     foretoken_error** error);
/* Stops the engine: requests that run fail with FORETOKEN_STOPPED, and their streams stay readable.
 * Waits for the pass that runs. No thread may use the engine any more, and this function may not be
 * called from a callback of it. */
FORETOKEN_API void foretoken_engine_close(foretoken_engine* engine);
/* Any thread: no request is accepted any more; those that were accepted run to their ends. */
FORETOKEN_API foretoken_status foretoken_engine_drain(foretoken_engine* engine,
                                                      foretoken_error** error);
/* Any thread: every request that has not ended fails with FORETOKEN_STOPPED, and none is accepted any
 * more. Does not wait for the pass that runs. A program whose threads still use the engine stops it, joins
 * them, and closes it then. */
FORETOKEN_API foretoken_status foretoken_engine_stop(foretoken_engine* engine,
                                                     foretoken_error** error);
/* Any thread: waits until no request runs or waits, at most so long; < 0: without limit.
 * Errors: DEADLINE. */
FORETOKEN_API foretoken_status foretoken_engine_wait_idle(foretoken_engine* engine,
                                                          int64_t timeout_ms,
                                                          foretoken_error** error);
/* Any thread: what an engine is, as text: model, architecture, vocabulary_size, context_size,
 * embedding_size, end_tokens, methods, method, strategies, strategy, controller,
 * num_speculative_tokens, max_sequences, lossless, threads, isa, memory_bytes, running, waiting.
 * Numbers in decimal, lists with commas. Errors: NOT_FOUND. */
FORETOKEN_API foretoken_status foretoken_engine_info(const foretoken_engine* engine,
                                                     const char* key, char* text, size_t capacity,
                                                     size_t* count, foretoken_error** error);
/* Any thread: text [size] to tokens. add_special: begin and end tokens as the model wants them.
 * parse_special: names of control tokens in the text are these tokens. */
FORETOKEN_API foretoken_status foretoken_engine_tokenize(const foretoken_engine* engine,
                                                         const char* text, size_t size,
                                                         int32_t add_special, int32_t parse_special,
                                                         int32_t* tokens, size_t capacity,
                                                         size_t* count, foretoken_error** error);
/* Any thread: tokens [n] to text. special: control tokens by their names. The text may end within a
 * character. Errors: INVALID_ARGUMENT (an unknown token). */
FORETOKEN_API foretoken_status foretoken_engine_detokenize(const foretoken_engine* engine,
                                                           const int32_t* tokens, size_t n,
                                                           int32_t special, char* text,
                                                           size_t capacity, size_t* count,
                                                           foretoken_error** error);

/* ---- Requests and streams -------------------------------------------------------------------- */

typedef int32_t foretoken_event_kind;
enum {
  FORETOKEN_EVENT_BEGUN = 0, /* the request runs */
  FORETOKEN_EVENT_ROUND = 1, /* it has tokens */
  FORETOKEN_EVENT_END = 2    /* it has ended: foretoken_stream_result */
};

/* Where a token came from. */
enum {
  FORETOKEN_PLAIN = 0,     /* the target's, in a round without drafts */
  FORETOKEN_ACCEPTED = 1,  /* an accepted draft */
  FORETOKEN_RECOVERED = 2, /* the target's, in place of a rejected draft */
  FORETOKEN_BONUS = 3      /* the target's, behind drafts that were all accepted */
};

/* One round of one request. Lists have the sizes beside them; where a size is 0 the list may be NULL. */
typedef struct foretoken_event {
  foretoken_event_kind kind;
  int32_t drafted;        /* tokens that were drafted for the round */
  const char* text;       /* whole characters; may be empty while some are held back */
  size_t text_size;       /* bytes */
  const int32_t* tokens;  /* committed, [token_count] */
  const uint8_t* origins; /* [token_count], FORETOKEN_PLAIN ... */
  /* [token_count], or NULL if the request did not ask for log-probabilities */
  const float* logprobs;
  size_t token_count;
  const int32_t* rejected; /* drafts that were not kept, [rejected_count] */
  size_t rejected_count;
  const char* drafter; /* "ngram"; "" if nothing was drafted */
} foretoken_event;

/* Any thread: checks a request and queues it. Options may be changed or freed afterwards. Errors:
 * INVALID_ARGUMENT (an option, or its range), TOO_LARGE (the prompt does not fit), BUSY (the queue is
 * full), STOPPED, IO (a model file was changed), NO_MEMORY. */
FORETOKEN_API foretoken_status foretoken_engine_submit(foretoken_engine* engine,
                                                       const foretoken_options* request,
                                                       foretoken_stream** stream,
                                                       foretoken_error** error);
/* The next event, which is valid until the next call with this stream. Waits for it at most timeout_ms;
 * 0: does not wait; < 0: without limit. *event is NULL with FORETOKEN_OK when none came in time, or the
 * stream has ended (foretoken_stream_ended). Errors: what ended the request: STOPPED, DEADLINE,
 * CALLBACK, NO_MEMORY, INVALID_FILE; the stream has ended then, and a result may be there. */
FORETOKEN_API foretoken_status foretoken_stream_next(foretoken_stream* stream, int64_t timeout_ms,
                                                     const foretoken_event** event,
                                                     foretoken_error** error);
/* 1: its end, or its failure, was read. 0: not yet. */
FORETOKEN_API int32_t foretoken_stream_ended(const foretoken_stream* stream);
/* Any thread, also while another waits in foretoken_stream_next: the request ends at its next step
 * with the finish reason "cancelled". */
FORETOKEN_API void foretoken_stream_cancel(foretoken_stream* stream);
/* Takes the result of a stream that has ended; the caller frees it. Errors: INVALID_ARGUMENT (it has
 * not ended, there is none, or it was taken before). */
FORETOKEN_API foretoken_status foretoken_stream_result(foretoken_stream* stream,
                                                       foretoken_result** result,
                                                       foretoken_error** error);
/* A request that has not ended is cancelled. A stream may be freed after its engine. */
FORETOKEN_API void foretoken_stream_free(foretoken_stream* stream);

/* Sees each round, on the thread that called foretoken_engine_generate. Returns 0 to go on; a positive
 * number cancels the request (it ends with the finish reason "cancelled", without an error); a negative
 * number ends it with FORETOKEN_CALLBACK. The event is valid for this call. */
typedef int32_t (*foretoken_on_event)(void* user, const foretoken_event* event);
/* Any thread: runs one request to its end, beside others. on_event may be NULL. Errors: those of
 * foretoken_engine_submit and foretoken_stream_next. */
FORETOKEN_API foretoken_status foretoken_engine_generate(foretoken_engine* engine,
                                                         const foretoken_options* request,
                                                         foretoken_on_event on_event, void* user,
                                                         foretoken_result** result,
                                                         foretoken_error** error);

/* What a request gave. All lists live as long as the result, and may be NULL where they are empty. */
typedef struct foretoken_result_view {
  const char* text; /* valid UTF-8, without the stop string */
  size_t text_size; /* bytes */
  const int32_t* tokens;
  size_t token_count;
  const int32_t* prompt_tokens;
  size_t prompt_token_count;
  /* If asked for (logprobs): [token_count]; else NULL. */
  const float* logprobs;
  /* The best tokens of position i are those from top_offsets[i] to top_offsets[i + 1] - 1 of top_tokens
   * and top_logprobs, best first. [token_count + 1]; NULL without log-probabilities. */
  const size_t* top_offsets;
  const int32_t* top_tokens;
  const float* top_logprobs;
  const float* embedding; /* if asked for; not normalised */
  size_t embedding_count;
  const char* finish_reason; /* "stop", "length", "cancelled", "error", "verified" */
  const char* strategy;      /* that verified: "sample-match"; "greedy" at temperature 0 */
  const char* controller;    /* of draft lengths; "" if nothing could be drafted */
  uint64_t seed;
  int32_t lossless; /* 1: the text has the distribution of plain decoding */
} foretoken_result_view;

/* Valid until the result is freed. Any thread. NULL for NULL. */
FORETOKEN_API const foretoken_result_view* foretoken_result_get(const foretoken_result* result);
/* A statistic: rounds, drafted, accepted, acceptance_rate, verify_ms, first_token_ms and so on;
 * foretoken_result_key lists them all. Any thread. Errors: NOT_FOUND (no such key, or a rate without a
 * denominator). */
FORETOKEN_API foretoken_status foretoken_result_stat(const foretoken_result* result,
                                                     const char* key, double* value,
                                                     foretoken_error** error);
/* The key of this number, from 0; NULL behind the last one. Names that end with _ms, _rate or _length are
 * of numbers with fractions. Any thread. */
FORETOKEN_API const char* foretoken_result_key(size_t index);
FORETOKEN_API void foretoken_result_free(foretoken_result* result);

/* ---- Chat ------------------------------------------------------------------------------------ */

/* A conversation, empty at first. */
FORETOKEN_API foretoken_status foretoken_chat_create(foretoken_chat** chat,
                                                     foretoken_error** error);
/* Adds a message. role: "system", "user", "assistant", "tool". members_json: other members for the
 * template as a JSON object (tool_calls, name); NULL: none. */
FORETOKEN_API foretoken_status foretoken_chat_add(foretoken_chat* chat, const char* role,
                                                  const char* content, size_t size,
                                                  const char* members_json,
                                                  foretoken_error** error);
/* Any thread, if none changes the conversation: the prompt tokens of a conversation by the model's
 * template, for the option prompt_tokens. options: of FORETOKEN_CHAT, or NULL. Errors: NOT_FOUND (the
 * model has no template), UNSUPPORTED, INVALID_ARGUMENT, TOO_LARGE. */
FORETOKEN_API foretoken_status foretoken_chat_tokens(const foretoken_chat* chat,
                                                     const foretoken_engine* engine,
                                                     const foretoken_options* options,
                                                     int32_t* tokens, size_t capacity,
                                                     size_t* count, foretoken_error** error);
/* Any thread, likewise: the prompt as text, for people; text that looks like a control token cannot be told from one. */
FORETOKEN_API foretoken_status foretoken_chat_text(const foretoken_chat* chat,
                                                   const foretoken_engine* engine,
                                                   const foretoken_options* options, char* text,
                                                   size_t capacity, size_t* count,
                                                   foretoken_error** error);
FORETOKEN_API void foretoken_chat_free(foretoken_chat* chat);

/* ---- Sessions that draft --------------------------------------------------------------------- */

/* Drafts of a round; rows are row after row without gaps. */
typedef struct foretoken_drafts {
  const int32_t* tokens; /* [count] */
  size_t count;
  const float* probabilities; /* [count], of each in its distribution; NULL: all were certain */
  const float* distributions; /* [count][vocabulary]; NULL: all were certain, or not asked for */
  size_t vocabulary;          /* numbers of a row */
} foretoken_drafts;

/* Runs a drafter on texts of the caller, without an engine. options, of FORETOKEN_SESSION: "drafter" is
 * ngram, suffix, or model with "model" a path and, for long texts, "draft_window"; or
 * foretoken_options_set_drafter; "vocabulary_size"; "max_new_tokens", "seed" and sampling as in a
 * request. Errors: as foretoken_engine_open. */
FORETOKEN_API foretoken_status foretoken_session_open(const foretoken_options* options,
                                                      foretoken_session** session,
                                                      foretoken_error** error);
/* Starts a text, in place of one that has begun: [count] tokens, at least one. */
FORETOKEN_API foretoken_status foretoken_session_begin(foretoken_session* session,
                                                       const int32_t* prompt, size_t count,
                                                       foretoken_error** error);
/* Up to k drafts, [0, 64], that continue the text. distributions: not 0 asks for them too. The drafts
 * are a view that is valid until the next call with this session. */
FORETOKEN_API foretoken_status foretoken_session_propose(foretoken_session* session, int32_t k,
                                                         int32_t distributions,
                                                         const foretoken_drafts** drafts,
                                                         foretoken_error** error);
/* The text goes on with these tokens, whatever was drafted. */
FORETOKEN_API foretoken_status foretoken_session_observe(foretoken_session* session,
                                                         const int32_t* tokens, size_t count,
                                                         foretoken_error** error);
FORETOKEN_API void foretoken_session_close(foretoken_session* session);

/* ---- Verification on the caller's own logits ------------------------------------------------- */

/* One sequence's drafts, read during the call only. All rows have `vocabulary` floats and follow each
 * other without gaps. */
typedef struct foretoken_verification_input {
  size_t struct_size;
  const int32_t* text; /* before the drafts, or its end; [text_count]; penalties look at it */
  size_t text_count;
  size_t generated;      /* how many of its last tokens are output */
  int64_t position;      /* of the first draft in the text; < 0: text_count */
  const int32_t* drafts; /* [draft_count], at most 64 */
  size_t draft_count;
  const float* draft_probabilities; /* [draft_count][vocabulary]; NULL: drafts are certain */
  const float* draft_logits;        /* [draft_count][vocabulary], or NULL */
  const float* target_logits;       /* [draft_count + 1][vocabulary]; required */
  size_t vocabulary;                /* floats of a row, at least the option vocabulary_size */
  /* Numbers in [0, 1) in place of the noise that seed and position give; NULL: the noise. */
  const double* accept;  /* [draft_count] */
  const double* recover; /* [draft_count] */
  const double* target;  /* [draft_count + 1] */
} foretoken_verification_input;

typedef struct foretoken_verified {
  size_t struct_size; /* set by the caller */
  int32_t accepted;   /* drafts that are kept, from the first on */
  int32_t next;       /* one more token */
  int32_t origin;     /* of that token: FORETOKEN_PLAIN, FORETOKEN_RECOVERED or FORETOKEN_BONUS */
  int32_t lossless;   /* 1: kept tokens have the distribution of plain decoding */
} foretoken_verified;

/* A verifier by options of FORETOKEN_VERIFICATION: "vocabulary_size" (required), "strategy" and the
 * other settings of speculation, sampling, "seed", "request_id". Errors: INVALID_ARGUMENT. */
FORETOKEN_API foretoken_status foretoken_verification_create(const foretoken_options* options,
                                                             foretoken_verification** verification,
                                                             foretoken_error** error);
/* Verifies drafts as an engine does. Errors: INVALID_ARGUMENT (tokens, rows or numbers that cannot be,
 * or what the strategy needs is missing), CALLBACK. */
FORETOKEN_API foretoken_status foretoken_verification_run(foretoken_verification* verification,
                                                          const foretoken_verification_input* input,
                                                          foretoken_verified* verified,
                                                          foretoken_error** error);
FORETOKEN_API void foretoken_verification_free(foretoken_verification* verification);

/* ---- Scorer ---------------------------------------------------------------------------------- */

/* A model's logits for given tokens, with a cache that the caller controls. options: of
 * FORETOKEN_ENGINE; nothing is drafted. Errors: as foretoken_engine_open. */
FORETOKEN_API foretoken_status foretoken_scorer_open(const foretoken_options* options,
                                                     foretoken_scorer** scorer,
                                                     foretoken_error** error);
/* Continues sequence, [0, max_sequences), with [count] tokens. *logits: [count] rows of *vocabulary
 * floats, *stride floats from one to the next, that predict the token behind each; valid until the
 * next call with this scorer. Errors, with nothing computed: INVALID_ARGUMENT (a sequence or token that
 * does not exist), TOO_LARGE (beyond the context or the cache). */
FORETOKEN_API foretoken_status foretoken_scorer_score(foretoken_scorer* scorer, int32_t sequence,
                                                      const int32_t* tokens, size_t count,
                                                      const float** logits, size_t* vocabulary,
                                                      size_t* stride, foretoken_error** error);
/* Tokens of a sequence in the cache; 0 if there is no such sequence. */
FORETOKEN_API size_t foretoken_scorer_length(const foretoken_scorer* scorer, int32_t sequence);
/* Removes the tokens of a sequence from `length` on. Errors: INVALID_ARGUMENT, TOO_LARGE (a window or
 * a state has dropped what is needed; the sequence is empty then). */
FORETOKEN_API foretoken_status foretoken_scorer_truncate(foretoken_scorer* scorer, int32_t sequence,
                                                         size_t length, foretoken_error** error);
FORETOKEN_API void foretoken_scorer_close(foretoken_scorer* scorer);

#ifdef __cplusplus
}
#endif

#endif /* FORETOKEN_H */
