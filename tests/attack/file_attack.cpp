// SPDX-License-Identifier: Apache-2.0
#include "attack/file_attack.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "fixtures/tiny_model.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" int __lsan_do_recoverable_leak_check();
#endif

namespace foretoken::attack {
namespace {

constexpr std::uint64_t kPlantedFile = 5;  // the first file's number + this
constexpr std::uint64_t kFilesOfAChild = 400, kKeptFaults = 40;
bool planted_wrong = false;

std::string OneLine(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

void WriteFile(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  FORETOKEN_CHECK(out.good());
}

// A file, or a folder in the place of what is there.
void WriteModel(const std::string& path, const Mutated& mutated) {
  std::filesystem::remove_all(path);
  if (!mutated.bytes.empty() || mutated.files.empty()) return WriteFile(path, mutated.bytes);
  std::filesystem::create_directories(path);
  for (const auto& [name, text] : mutated.files)
    WriteFile(path + "/" + name, std::as_bytes(std::span(text)));
}

std::string ReadText(const std::string& path, std::size_t most) {
  std::ifstream in(path, std::ios::binary);
  std::string text(most, '\0');
  in.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

std::int64_t PeakMib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// CPU time does not depend on how busy the machine is. The default action of its signal ends the
// child.
void LimitCpu(double seconds) {
  const itimerval limit{{0, 0}, {static_cast<time_t>(seconds), 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

// The planted defects.
Outcome Planted(const std::string& kind, std::int64_t memory_mib) {
  if (kind == "crash") raise(SIGSEGV);
  if (kind == "abort") std::abort();
  if (kind == "hang")
    for (volatile bool forever = true; forever;) {
    }
  if (kind == "memory") {
    const std::size_t size = static_cast<std::size_t>(memory_mib + 64) << 20;
    auto* const taken = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    FORETOKEN_CHECK(taken != MAP_FAILED);
    for (std::size_t i = 0; i < size; i += 4096) taken[i] = 1;
    munmap(taken, size);
  }
  if (kind == "message") return {"refused", WrongWithMessage("two\nlines")};
  return {"planted", {}};
}

class Attack {
 public:
  Attack(AttackOptions options,
         const std::function<FileReader(const GoodFiles&, const std::string&)>& make,
         FileMaker file)
      : o_(std::move(options)),
        file_(std::move(file)),
        folder_(fixtures::TemporaryFolder()),
        good_(MakeGoodFiles(folder_, o_.more)),
        reader_(make(good_, folder_)) {
    void* const page =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FORETOKEN_CHECK(page != MAP_FAILED);
    at_ = new (page) std::atomic<std::uint64_t>(o_.first);
  }

  int Run();
  void WriteAll() const;

 private:
  Mutated File(std::uint64_t number) const {
    return file_ ? file_(o_.seed, number) : Mutate(good_.files, o_.seed, number);
  }
  std::string Ending() const { return file_ ? "" : ".gguf"; }
  bool TimeIsOver() const;
  void Child(int pipe, std::uint64_t end);
  void ReadOne(std::uint64_t number, std::FILE* out);
  std::uint64_t RunChild(std::uint64_t begin);
  void Collect(int pipe, pid_t child);
  void Count(std::string_view line);
  void Fault(std::uint64_t number, const std::string& why);
  void Report() const;

  const AttackOptions o_;
  const FileMaker file_;
  const std::string folder_;
  const GoodFiles good_;
  const FileReader reader_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t>* at_ = nullptr;  // the file that the child is at; shared with it
  std::map<std::string, std::uint64_t> counts_;
  std::uint64_t read_ = 0, faults_ = 0;
  std::int64_t peak_mib_ = 0;
};

bool Attack::TimeIsOver() const {
  return o_.seconds > 0 &&
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count() >
             o_.seconds;
}

// ---- The child ----------------------------------------------------------------------------------

void Attack::ReadOne(std::uint64_t number, std::FILE* out) {
  const Mutated mutated = File(number);
  const std::string path = folder_ + "/attacked.gguf";
  WriteModel(path, mutated);
  const bool planted = !o_.plant.empty() && number == o_.first + kPlantedFile;
  planted_wrong = planted && o_.plant == "wrong";
  LimitCpu(o_.cpu_seconds);
  Random random = RandomOf(o_.seed + 1, number);
  Outcome outcome = planted && !planted_wrong ? Planted(o_.plant, o_.memory_mib)
                    : planted && !file_       ? reader_(good_.target, good_.files.front(), random)
                                              : reader_(path, good_.files[mutated.good], random);
  LimitCpu(0);
  const std::int64_t peak = PeakMib();
  if (outcome.fault.empty() && peak > o_.memory_mib)
    outcome.fault = fmt::format("took {} MiB of memory; {} are allowed", peak, o_.memory_mib);
  fmt::print(out, "{}\t{}\t{}\t{}\n", number, peak, OneLine(outcome.label), OneLine(outcome.fault));
  std::fflush(out);
  if (!outcome.fault.empty()) _exit(3);
}

void Attack::Child(int pipe, std::uint64_t end) {
  const std::string log = folder_ + "/log";
  if (std::freopen(log.c_str(), "w", stderr) == nullptr) _exit(4);
  setvbuf(stderr, nullptr, _IONBF, 0);
  std::FILE* const out = fdopen(pipe, "w");
  for (std::uint64_t number = at_->load(); number < end && !TimeIsOver(); ++number) {
    at_->store(number);
    ReadOne(number, out);
  }
  at_->store(end);
#if defined(__SANITIZE_ADDRESS__)
  if (__lsan_do_recoverable_leak_check() != 0) _exit(5);
#endif
  _exit(0);
}

// ---- The parent ---------------------------------------------------------------------------------

void Attack::Count(std::string_view line) {
  std::array<std::string, 4> fields;
  for (std::string& field : fields) {
    const std::size_t end = std::min(line.find('\t'), line.size());
    field = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  ++read_;
  ++counts_[fields[2]];
  peak_mib_ = std::max(peak_mib_, static_cast<std::int64_t>(std::stoll(fields[1])));
  if (!fields[3].empty()) Fault(std::stoull(fields[0]), fields[3]);
}

// A child that waits for ever uses no CPU time, so it is ended if nothing came for long.
void Attack::Collect(int pipe, pid_t child) {
  std::string data;
  std::array<char, 65536> part;
  for (;;) {
    pollfd ready{pipe, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(o_.cpu_seconds * 10'000)) == 0) {
      kill(child, SIGALRM);
      return;
    }
    const ssize_t n = read(pipe, part.data(), part.size());
    if (n <= 0) return;
    data.append(part.data(), static_cast<std::size_t>(n));
    for (std::size_t end; (end = data.find('\n')) != std::string::npos; data.erase(0, end + 1))
      Count(std::string_view(data).substr(0, end));
  }
}

// Returns the number of the next file.
std::uint64_t Attack::RunChild(std::uint64_t begin) {
  const std::uint64_t end = std::min(begin + kFilesOfAChild, o_.first + o_.files);
  at_->store(begin);
  std::array<int, 2> ends{};
  FORETOKEN_CHECK(pipe(ends.data()) == 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  FORETOKEN_CHECK(child >= 0);
  if (child == 0) {
    close(ends[0]);
    Child(ends[1], end);
  }
  close(ends[1]);
  Collect(ends[0], child);
  close(ends[0]);
  int status = 0;
  FORETOKEN_CHECK(waitpid(child, &status, 0) == child);
  const std::uint64_t at = at_->load();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return end;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) return at + 1;  // counted already
  if (WIFEXITED(status) && WEXITSTATUS(status) == 5) {
    Fault(end - 1, "memory was leaked by one of the files up to this one");
    return end;
  }
  ++read_;
  ++counts_["died"];
  Fault(at, WIFSIGNALED(status)
                ? WTERMSIG(status) == SIGPROF
                      ? fmt::format("took more than {} s of CPU time", o_.cpu_seconds)
                      : fmt::format("signal {}", strsignal(WTERMSIG(status)))
                : fmt::format("exit code {}", WEXITSTATUS(status)));
  return at + 1;
}

// Only the first faults of many are kept.
void Attack::Fault(std::uint64_t number, const std::string& why) {
  if (++faults_ > kKeptFaults) return;
  const Mutated mutated = File(number);
  std::filesystem::create_directories(o_.keep);
  const std::string path = fmt::format("{}/{}-{}", o_.keep, o_.seed, number);
  WriteModel(path + Ending(), mutated);
  const std::string log = ReadText(folder_ + "/log", 20'000);
  std::ofstream(path + ".txt") << why << "\n" << mutated.what << "\n" << log;
  fmt::print("FAULT of file {} ({}{}): {}\n  {}\n{}\n", number, path, Ending(), why, mutated.what,
             log.substr(0, 3000));
  std::fflush(stdout);
}

void Attack::Report() const {
  fmt::print("{} files, seed {}, numbers from {}; at most {} MiB of memory\n", read_, o_.seed,
             o_.first, peak_mib_);
  for (const auto& [label, count] : counts_) fmt::print("{:>8}  {}\n", count, label);
  fmt::print("{} faults\n", faults_);
}

int Attack::Run() {
  for (std::uint64_t next = o_.first; next < o_.first + o_.files && !TimeIsOver();)
    next = RunChild(next);
  Report();
  return faults_ == 0 ? 0 : 1;
}

void Attack::WriteAll() const {
  std::filesystem::create_directories(o_.write);
  for (std::uint64_t number = o_.first; number < o_.first + o_.files; ++number) {
    const Mutated mutated = File(number);
    const bool head = good_.files[mutated.good].role == Role::kHead;
    const std::string path = fmt::format("{}/{}{}", o_.write, number, head ? "-head" : "");
    WriteModel(path + Ending(), mutated);
    std::ofstream(path + ".txt") << mutated.what << "\n";
  }
  std::filesystem::copy_file(good_.target, o_.write + "/good-target.gguf",
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(good_.draft, o_.write + "/good-draft.gguf",
                             std::filesystem::copy_options::overwrite_existing);
}

// ---- The command line ---------------------------------------------------------------------------

template <typename T>
bool Store(std::string_view text, T& value) {
  return std::from_chars(text.data(), text.data() + text.size(), value).ptr ==
         text.data() + text.size();
}

bool Read(std::span<char* const> arguments, AttackOptions& o) {
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
    const std::string_view name = arguments[i], value = arguments[i + 1];
    if (name == "--good") {
      o.more.emplace_back(value);
    } else if (name == "--keep" || name == "--plant" || name == "--write") {
      (name == "--keep" ? o.keep : name == "--plant" ? o.plant : o.write) = value;
    } else if (!(name == "--seed"      ? Store(value, o.seed)
                 : name == "--first"   ? Store(value, o.first)
                 : name == "--files"   ? Store(value, o.files)
                 : name == "--seconds" ? Store(value, o.seconds)
                 : name == "--cpu"     ? Store(value, o.cpu_seconds)
                                       : name == "--memory" && Store(value, o.memory_mib))) {
      return false;
    }
  }
  return arguments.size() % 2 == 1;
}

}  // namespace

bool PlantedWrong() {
  return planted_wrong;
}

std::string WrongWithMessage(const std::string& message) {
  if (message.empty()) return "an empty error message";
  if (message.size() > 2400)
    return fmt::format("an error message of {} bytes: {}", message.size(), message.substr(0, 600));
  for (std::string_view rest = message; !rest.empty();) {
    const Utf8Character c = ReadUtf8(rest);
    if (!c.valid()) return "an error message that is not UTF-8: " + message;
    if (c.code < 0x20 || (c.code >= 0x7F && c.code < 0xA0))
      return "an error message with a control character: " + message;
    rest.remove_prefix(c.size);
  }
  return {};
}

int AttackFiles(std::span<char* const> arguments,
                const std::function<FileReader(const GoodFiles&, const std::string& folder)>& make,
                FileMaker file) {
  AttackOptions options;
  if (!Read(arguments, options)) {
    fmt::print(
        stderr,
        "usage: {} [--seed N] [--first N] [--files N] [--seconds S] [--cpu SECONDS] "
        "[--memory MIB] [--good FILE]... [--keep FOLDER] [--write FOLDER] [--plant DEFECT]\n",
        arguments[0]);
    return 2;
  }
  Attack attack(options, make, std::move(file));
  if (options.write.empty()) return attack.Run();
  attack.WriteAll();
  return 0;
}

}  // namespace foretoken::attack
