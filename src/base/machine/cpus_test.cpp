// SPDX-License-Identifier: Apache-2.0
#include "base/machine/cpus.h"

#include <sched.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/files/folder_testing.h"

namespace foretoken {
namespace {

using Cpus = std::vector<int>;

// A folder with the files of /sys and /proc of some machine.
class FakeMachine : public FolderTest {
 protected:
  void Write(const std::string& path, const std::string& text) { Written(path, text + '\n'); }
  void PutCpu(int cpu, int package, int core) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    Write(folder + "physical_package_id", std::to_string(package));
    Write(folder + "core_id", std::to_string(core));
  }
  static Cpus FirstCpus(int n) {
    Cpus cpus(static_cast<std::size_t>(n));
    std::iota(cpus.begin(), cpus.end(), 0);
    return cpus;
  }
};

TEST_F(FakeMachine, CoresFirstWhereSiblingsAreNeighbours) {
  for (int cpu = 0; cpu < 8; ++cpu) PutCpu(cpu, 0, cpu / 2);
  EXPECT_EQ(OrderByCore(FirstCpus(8), folder_), (Cpus{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(CoresAmong(FirstCpus(8), folder_), 4);
}

TEST_F(FakeMachine, CoresFirstWhereSiblingsAreHalfTheMachineApart) {
  for (int cpu = 0; cpu < 8; ++cpu) PutCpu(cpu, 0, cpu % 4);
  EXPECT_EQ(OrderByCore(FirstCpus(8), folder_), FirstCpus(8));
  EXPECT_EQ(OrderByCore({7, 3, 2, 6, 1}, folder_), (Cpus{1, 2, 3, 6, 7}));
  EXPECT_EQ(CoresAmong({7, 3, 2, 6, 1}, folder_), 3);
}

TEST_F(FakeMachine, EqualCoreNumbersOfTwoPackagesAreTwoCores) {
  for (int cpu = 0; cpu < 4; ++cpu) PutCpu(cpu, cpu / 2, cpu % 2);
  EXPECT_EQ(CoresAmong(FirstCpus(4), folder_), 4);
}

TEST_F(FakeMachine, UnknownCoresCountOneByOne) {
  PutCpu(0, 0, 0);
  PutCpu(1, 0, 0);
  EXPECT_EQ(OrderByCore(FirstCpus(4), folder_), (Cpus{0, 2, 3, 1}));
  EXPECT_EQ(CoresAmong(FirstCpus(4), folder_), 3);
}

TEST_F(FakeMachine, QuotaOfVersion2IsTheLeastOfGroupAndParents) {
  Write("/proc/self/cgroup", "0::/slice/job");
  EXPECT_EQ(CoresAmong(FirstCpus(8), folder_), 8) << "no file, no limit";
  Write("/sys/fs/cgroup/slice/job/cpu.max", "max 100000");
  EXPECT_EQ(CoresAmong(FirstCpus(8), folder_), 8);
  Write("/sys/fs/cgroup/slice/cpu.max", "250000 100000");
  EXPECT_EQ(CoresAmong(FirstCpus(8), folder_), 3);
  Write("/sys/fs/cgroup/slice/job/cpu.max", "50000 100000");
  EXPECT_EQ(CoresAmong(FirstCpus(8), folder_), 1);
  Write("/sys/fs/cgroup/slice/job/cpu.max", "400000 50000");
  EXPECT_EQ(CoresAmong(FirstCpus(8), folder_), 3);
  EXPECT_EQ(CoresAmong(FirstCpus(2), folder_), 2) << "a quota adds no cores";
}

TEST_F(FakeMachine, QuotaOfAContainerThatSeesTheHostsPath) {
  Write("/proc/self/cgroup", "0::/system.slice/docker-1234.scope");
  Write("/sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(CoresAmong(FirstCpus(8), folder_), 2);
}

TEST_F(FakeMachine, QuotaOfVersion1) {
  Write("/proc/self/cgroup", "5:memory:/job\n4:cpuset:/job\n3:cpu,cpuacct:/job\n0::/");
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1");
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(CoresAmong(FirstCpus(8), folder_), 8);
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "410000");
  EXPECT_EQ(CoresAmong(FirstCpus(8), folder_), 5);
}

TEST_F(FakeMachine, BrokenFilesLimitNothing) {
  Write("/proc/self/cgroup", "nonsense\n0::no/slash\n");
  Write("/sys/fs/cgroup/cpu.max", "many few");
  Write("/sys/devices/system/cpu/cpu0/topology/core_id", "first");
  EXPECT_EQ(CoresAmong(FirstCpus(8), folder_), 8);
}

TEST(Cpus, ThisMachineHasSome) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0) << "more than 1024 CPUs";
  Cpus cpus = UsableCpus();
  const int n_cpus = static_cast<int>(cpus.size());
  EXPECT_EQ(n_cpus, CPU_COUNT(&set));
  for (const int cpu : cpus) EXPECT_TRUE(CPU_ISSET(cpu, &set)) << cpu;
  EXPECT_GE(UsableCores(), 1);
  EXPECT_LE(UsableCores(), n_cpus);
  std::sort(cpus.begin(), cpus.end());
  EXPECT_EQ(std::adjacent_find(cpus.begin(), cpus.end()), cpus.end());
}

TEST(Cpus, APinnedThreadStaysAndCountsItsOwnCpuAlone) {
  for (const Cpus all = UsableCpus(); const int cpu : all)
    std::thread([cpu] {
      ASSERT_TRUE(PinThisThread(cpu));
      EXPECT_EQ(sched_getcpu(), cpu);
      EXPECT_EQ(UsableCpus(), Cpus{cpu});
      EXPECT_EQ(UsableCores(), 1);
    }).join();
}

TEST(Cpus, NoPinningToCpusThatAreNotThere) {
  const Cpus before = UsableCpus();
  EXPECT_FALSE(PinThisThread(-1));
  EXPECT_FALSE(PinThisThread(8000));
  EXPECT_FALSE(PinThisThread(1 << 20));
  EXPECT_EQ(UsableCpus(), before);
}

TEST(Cpus, AThreadMovesAwayFromCpusAndMayUseAllOfThemAfterwards) {
  const std::vector<int> all = UsableCpus();
  std::vector<std::atomic<int>> taken(all.size() + 1);
  for (auto& cpu : taken) cpu = -1;
  EXPECT_TRUE(MoveAwayFrom(taken));
  if (all.size() > 1) {
    bool moved = false;  // the system may move it back at once
    for (int i = 0; i < 100 && !moved; ++i) {
      taken[0] = ThisCpu();
      EXPECT_TRUE(MoveAwayFrom(taken));
      moved = ThisCpu() != taken[0];
    }
    EXPECT_TRUE(moved);
  }
  EXPECT_EQ(UsableCpus(), all);
  for (std::size_t i = 0; i < all.size(); ++i) taken[i] = all[i];
  EXPECT_FALSE(MoveAwayFrom(taken));
  EXPECT_EQ(UsableCpus(), all);
}

}  // namespace
}  // namespace foretoken
