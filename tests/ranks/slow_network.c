// SPDX-License-Identifier: Apache-2.0
// tests/ranks/slow_network.c: makes a network out of one machine. A library for LD_PRELOAD that uses
// MPI's profiling interface: each collective ends a set latency after its bytes have arrived, plus their
// time over a set bandwidth.
//
//   DELAY_US    latency of a collective in microseconds
//   DELAY_GBIT  bandwidth in Gbit/s; 0 or absent: it costs nothing
//   LOOK_US     how long an MPI_Test takes that finds a request not done, as where the MPI library yields
//               the processor to busy programs
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { kMost = 64 };  // collectives in flight
static const double kAwakeUs =
    60;  // before a collective ends, because a sleep may take longer than it should

// A collective in flight, by the variable that holds its request. due: when it ends; 0: its bytes have
// not arrived yet.
static struct {
  MPI_Request* request;
  double delay, due;
} flights[kMost];

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

// Others may compute meanwhile: there can be more ranks than processors.
static void Rest(double us) {
  const struct timespec time = {.tv_sec = (time_t)(us / 1e6),
                                .tv_nsec = (long)(us * 1e3) % 1000000000};
  if (us > 0) nanosleep(&time, NULL);
}

static double Setting(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? 0 : atof(text);
}

static void Depart(MPI_Request* request, double bytes) {
  const double gbit = Setting("DELAY_GBIT");
  for (int i = 0; i < kMost; ++i) {
    if (flights[i].request != NULL) continue;
    flights[i].request = request;
    flights[i].delay = Setting("DELAY_US") + (gbit > 0 ? bytes * 8 / (gbit * 1e3) : 0);
    flights[i].due = 0;
    return;
  }
  abort();  // nobody has so many in flight
}

int MPI_Iallgatherv(const void* from, int n, MPI_Datatype type, void* to, const int* counts,
                    const int* begins, MPI_Datatype to_type, MPI_Comm ranks, MPI_Request* request) {
  const int error = PMPI_Iallgatherv(from, n, type, to, counts, begins, to_type, ranks, request);
  int size = 0, rank = 0;
  PMPI_Comm_size(ranks, &size);
  PMPI_Comm_rank(ranks, &rank);
  double bytes = 0;  // that arrive at this rank
  for (int r = 0; r < size; ++r)
    if (r != rank) bytes += counts[r];
  if (error == MPI_SUCCESS) Depart(request, bytes);
  return error;
}

// Rank 0 waits for what the others send, and each of them until its own part is on its way.
int MPI_Igatherv(const void* from, int n, MPI_Datatype type, void* to, const int* counts,
                 const int* begins, MPI_Datatype to_type, int root, MPI_Comm ranks,
                 MPI_Request* request) {
  const int error = PMPI_Igatherv(from, n, type, to, counts, begins, to_type, root, ranks, request);
  int size = 0, rank = 0;
  PMPI_Comm_size(ranks, &size);
  PMPI_Comm_rank(ranks, &rank);
  double bytes = rank == root ? 0 : n;
  for (int r = 0; rank == root && r < size; ++r)
    if (r != root) bytes += counts[r];
  if (error == MPI_SUCCESS) Depart(request, bytes);
  return error;
}

int MPI_Ibcast(void* buffer, int n, MPI_Datatype type, int root, MPI_Comm ranks,
               MPI_Request* request) {
  const int error = PMPI_Ibcast(buffer, n, type, root, ranks, request);
  int rank = 0;
  PMPI_Comm_rank(ranks, &rank);
  if (error == MPI_SUCCESS && rank != root) Depart(request, n);
  return error;
}

// What has arrived here at once takes the time of the network first. The last rank that begins so keeps
// the others waiting for as long as behind a real one.
static int Look(MPI_Request* request, int* done, MPI_Status* status) {
  int i = 0;
  while (i < kMost && flights[i].request != request) ++i;
  if (i == kMost) return PMPI_Test(request, done, status);
  if (flights[i].due == 0) {
    const int error = PMPI_Test(request, done, status);
    if (error != MPI_SUCCESS || !*done) return error;
    flights[i].due = Now() + flights[i].delay;
  }
  Rest(flights[i].due - Now() - kAwakeUs);
  *done = Now() >= flights[i].due;
  if (*done) flights[i].request = NULL;
  return MPI_SUCCESS;
}

int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  const int error = Look(request, done, status);
  if (error == MPI_SUCCESS && !*done) Rest(Setting("LOOK_US"));
  return error;
}
