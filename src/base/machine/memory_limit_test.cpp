// SPDX-License-Identifier: Apache-2.0
#include "base/machine/memory_limit.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "base/files/folder_testing.h"

namespace foretoken {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// A folder with the files of /sys and /proc of some machine.
class FakeGroups : public FolderTest {
 protected:
  void Write(const std::string& path, const std::string& text) { Written(path, text + '\n'); }
  std::int64_t Tightest() const { return TightestMemoryLimit(folder_).bytes; }
};

TEST_F(FakeGroups, TheMachineLimitsWhereNoGroupDoes) {
  const std::int64_t machine = Tightest();
  EXPECT_EQ(machine, std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE));
  Write("/proc/self/cgroup", "0::/a/b");
  Write("/sys/fs/cgroup/a/b/memory.max", "max");
  EXPECT_EQ(Tightest(), machine);
  Write("/proc/self/cgroup", "4:memory:/a");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(Tightest(), machine);
}

TEST_F(FakeGroups, TheTightestOfNestedGroupsOfVersion2Holds) {
  Write("/proc/self/cgroup", "0::/a/b/c");
  Write("/sys/fs/cgroup/a/memory.max", std::to_string(100 * kMiB));
  Write("/sys/fs/cgroup/a/b/memory.max", std::to_string(60 * kMiB));
  Write("/sys/fs/cgroup/a/b/c/memory.max", std::to_string(80 * kMiB));
  EXPECT_EQ(Tightest(), 60 * kMiB);
  Write("/sys/fs/cgroup/a/b/c/memory.high", std::to_string(40 * kMiB));
  EXPECT_EQ(Tightest(), 40 * kMiB);
  EXPECT_STREQ(TightestMemoryLimit(folder_).who, "its control group allows");
}

TEST_F(FakeGroups, TheTightestOfNestedGroupsOfVersion1Holds) {
  Write("/proc/self/cgroup", "7:cpu,cpuacct:/x\n4:memory:/a/b\n0::/");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", std::to_string(50 * kMiB));
  Write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", std::to_string(70 * kMiB));
  EXPECT_EQ(Tightest(), 50 * kMiB);
}

TEST_F(FakeGroups, AContainersOwnGroupIsItsLastParent) {
  Write("/proc/self/cgroup", "0::/the/path/of/the/host");
  Write("/sys/fs/cgroup/memory.max", std::to_string(30 * kMiB));
  EXPECT_EQ(Tightest(), 30 * kMiB);
}

TEST_F(FakeGroups, WhatIsAvailableIsTheLeastThatMachineAndGroupsLeave) {
  EXPECT_GT(AvailableMemory(), 0);
  EXPECT_LE(AvailableMemory(), TightestMemoryLimit().bytes);
  Write("/proc/meminfo", "MemTotal: 8192 kB\nMemAvailable:    4096 kB\nBuffers: 5 kB");
  EXPECT_EQ(AvailableMemory(folder_), 4 * kMiB);
  Write("/proc/self/cgroup", "0::/a/b");
  const std::string a = "/sys/fs/cgroup/a/memory.", b = "/sys/fs/cgroup/a/b/memory.";
  Write(b + "max", "max");
  Write(a + "max", std::to_string(3 * kMiB));
  Write(a + "current", std::to_string(2 * kMiB + kMiB / 2));
  Write(a + "stat", "anon 7\nactive_file 524288\ninactive_file 524288\n");
  EXPECT_EQ(AvailableMemory(folder_), kMiB + kMiB / 2) << "pages of files can be dropped";
  Write(a + "current", std::to_string(5 * kMiB));
  EXPECT_EQ(AvailableMemory(folder_), 0);
}

TEST_F(FakeGroups, WhatAGroupOfVersion1LeavesCountsItsFiles) {
  Write("/proc/meminfo", "MemAvailable: 40960 kB");
  Write("/proc/self/cgroup", "4:memory:/a");
  const std::string a = "/sys/fs/cgroup/memory/a/memory.";
  Write(a + "limit_in_bytes", "9223372036854771712");
  Write(a + "usage_in_bytes", std::to_string(3 * kMiB));
  Write(a + "stat", "inactive_file 5\ntotal_inactive_file 1048576\ntotal_active_file 1048576\n");
  EXPECT_EQ(AvailableMemory(folder_), 40 * kMiB);
  Write(a + "limit_in_bytes", std::to_string(8 * kMiB));
  EXPECT_EQ(AvailableMemory(folder_), 7 * kMiB);
}

// Runs in a process of its own, because a limit cannot be raised again.
template <typename F>
bool HoldsInChild(F check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

TEST(ResourceLimits, WhatTheyLeaveCounts) {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA})
    EXPECT_TRUE(HoldsInChild([resource] {
      const ProcessMemory now = ReadProcessMemory();
      const std::int64_t used = resource == RLIMIT_AS ? now.virtual_bytes : now.data_bytes;
      const rlim_t wanted = static_cast<rlim_t>(used + 64 * kMiB);
      const rlimit limit = {.rlim_cur = wanted, .rlim_max = wanted};
      if (used <= 0 || setrlimit(resource, &limit) != 0) return false;
      rlimit set = {};
      if (getrlimit(resource, &set) != 0) return false;
      if (set.rlim_cur != wanted) return true;  // a CPU emulator sets none
      const MemoryLimit tightest = TightestMemoryLimit();
      return tightest.bytes == static_cast<std::int64_t>(wanted) && tightest.left() <= 65 * kMiB &&
             tightest.left() >= 63 * kMiB;
    }));
}

TEST(ProcessMemory, GrowsWithWhatIsTouched) {
  const std::int64_t before = ReadProcessMemory().resident_bytes;
  EXPECT_GT(before, 0);
  std::vector<char> bytes(32 * kMiB, 'x');
  const std::int64_t after = ReadProcessMemory().resident_bytes;
  EXPECT_GE(after - before, 31 * kMiB);
  EXPECT_LE(after - before, 40 * kMiB) << bytes[5];
}

}  // namespace
}  // namespace foretoken
