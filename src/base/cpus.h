// SPDX-License-Identifier: Apache-2.0
// base/cpus.h: the CPUs that this process may use, and how many cores they are.
//
// A CPU is what Linux schedules on; a core has one CPU or, with hyperthreads, several, which share
// its multipliers and its path to memory. Everything is read anew on each call: a few small files
// per CPU. `root` stands in front of /sys and /proc, for tests.
#pragma once

#include <string>
#include <vector>

namespace foretoken {

// The CPUs that the calling thread may run on (threads that it starts inherit them), one of each
// core first, then the second ones of the cores, and so on. Never empty: {0} where Linux does not
// tell.
std::vector<int> UsableCpus(const std::string& root = "");

// How many cores the CPUs of UsableCpus() are, but no more than the CPU time that the process's
// cgroup and its parents may use, rounded up. At least 1.
int UsableCores(const std::string& root = "");

// Both for a given set of CPUs; those whose core is not known count as cores of their own.
std::vector<int> OrderByCore(std::vector<int> cpus, const std::string& root);
int CoresAmong(const std::vector<int>& cpus, const std::string& root);

// The calling thread runs on this CPU alone from now on. False: it may not, and nothing changed.
bool PinThisThread(int cpu) noexcept;

}  // namespace foretoken
