// SPDX-License-Identifier: Apache-2.0
// base/machine/cpus.h: the CPUs that this process may use, and the number of their cores.
//
// A CPU is what Linux schedules on. A core has one CPU or, with hyperthreads, several, which share
// its multipliers and its path to memory. Each call reads a few small files per CPU again. `root`
// is put before /sys and /proc, for tests.
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <vector>

namespace foretoken {

// The processor, as the system names it; "" where it does not.
std::string CpuName();

// The CPUs that the calling thread, and threads that it starts, may run on: first one CPU of each
// core, then the second ones, and so on. Never empty: {0} if Linux does not tell.
std::vector<int> UsableCpus(const std::string& root = "");

// The number of cores of UsableCpus(), but at most the CPU time that the process's cgroup and its
// parents allow, rounded up. At least 1.
int UsableCores(const std::string& root = "");

// Both for a given set of CPUs. A CPU whose core is unknown counts as a core of its own.
std::vector<int> OrderByCore(std::vector<int> cpus, const std::string& root);
int CoresAmong(const std::vector<int>& cpus, const std::string& root);

// The calling thread runs only on this CPU from now on. Returns false, and changes nothing, if it
// may not.
bool PinThisThread(int cpu) noexcept;

// The CPU on which the calling thread runs; -1: Linux does not tell.
int ThisCpu() noexcept;

// Moves the calling thread to a CPU that it may use and that is none of these (-1 is no CPU). It may run
// on as many CPUs afterwards as before. Returns false, and changes nothing, where there is none.
bool MoveAwayFrom(std::span<const std::atomic<int>> cpus) noexcept;

}  // namespace foretoken
