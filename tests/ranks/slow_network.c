// SPDX-License-Identifier: Apache-2.0
// tests/ranks/slow_network.c: makes a network out of one machine. A library for LD_PRELOAD that uses
// MPI's profiling interface: each collective takes at least a set latency, plus its bytes over a set
// bandwidth.
//
//   DELAY_US    latency of a collective in microseconds
//   DELAY_GBIT  bandwidth in Gbit/s; 0 or absent: it costs nothing
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { kMost = 64 };  // collectives in flight

static struct {
  MPI_Request request;
  double due;
} flights[kMost];

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double Setting(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? 0 : atof(text);
}

static void Depart(MPI_Request request, double bytes) {
  const double gbit = Setting("DELAY_GBIT");
  for (int i = 0; i < kMost; ++i) {
    if (flights[i].due != 0) continue;
    flights[i].request = request;
    flights[i].due = Now() + Setting("DELAY_US") + (gbit > 0 ? bytes * 8 / (gbit * 1e3) : 0);
    return;
  }
  abort();  // nobody has so many in flight
}

int MPI_Iallgatherv(const void* from, int n, MPI_Datatype type, void* to, const int* counts,
                    const int* begins, MPI_Datatype to_type, MPI_Comm ranks, MPI_Request* request) {
  const int error =
      PMPI_Iallgatherv(from, n, type, to, counts, begins, to_type, ranks, request);
  int size = 0, rank = 0;
  PMPI_Comm_size(ranks, &size);
  PMPI_Comm_rank(ranks, &rank);
  double bytes = 0;  // that arrive at this rank
  for (int r = 0; r < size; ++r)
    if (r != rank) bytes += counts[r];
  if (error == MPI_SUCCESS) Depart(*request, bytes);
  return error;
}

// Rank 0 waits for what the others send, and each of them until its own part is on its way.
int MPI_Igatherv(const void* from, int n, MPI_Datatype type, void* to, const int* counts,
                 const int* begins, MPI_Datatype to_type, int root, MPI_Comm ranks,
                 MPI_Request* request) {
  const int error =
      PMPI_Igatherv(from, n, type, to, counts, begins, to_type, root, ranks, request);
  int size = 0, rank = 0;
  PMPI_Comm_size(ranks, &size);
  PMPI_Comm_rank(ranks, &rank);
  double bytes = rank == root ? 0 : n;
  for (int r = 0; rank == root && r < size; ++r)
    if (r != root) bytes += counts[r];
  if (error == MPI_SUCCESS) Depart(*request, bytes);
  return error;
}

int MPI_Ibcast(void* buffer, int n, MPI_Datatype type, int root, MPI_Comm ranks,
               MPI_Request* request) {
  const int error = PMPI_Ibcast(buffer, n, type, root, ranks, request);
  int rank = 0;
  PMPI_Comm_rank(ranks, &rank);
  if (error == MPI_SUCCESS && rank != root) Depart(*request, n);
  return error;
}

// A collective that is done before its time is not done yet.
int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  for (int i = 0; i < kMost; ++i) {
    if (flights[i].due == 0 || flights[i].request != *request) continue;
    if (Now() < flights[i].due) {
      *done = 0;
      return MPI_SUCCESS;
    }
    const int error = PMPI_Test(request, done, status);
    if (*done) flights[i].due = 0;
    return error;
  }
  return PMPI_Test(request, done, status);
}
