// SPDX-License-Identifier: Apache-2.0
#include "train/run/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace foretoken::train {
namespace {

bool ProcessorHas(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags")) return (line + ' ').find(' ' + flag + ' ') != std::string::npos;
  return false;
}

std::int64_t AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("MemAvailable:")) return std::atoll(line.c_str() + 13) * 1024;
  return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
}

}  // namespace

torch::Device BestDevice() {
  static const torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  return device;
}

bool HasFastBf16() {
  static const bool fast =
      torch::cuda::is_available() || ProcessorHas("avx512_bf16") || ProcessorHas("amx_bf16");
  return fast;
}

torch::Dtype FastType(const torch::Tensor& like) {
  return like.scalar_type() == torch::kFloat && HasFastBf16() ? torch::kBFloat16
                                                              : like.scalar_type();
}

void UseThreads(int threads) {
  at::set_num_threads(threads);
}

std::string DescribeMachine() {
  return fmt::format("libtorch {}, {}, {} thread(s), {}", TORCH_VERSION,
                     BestDevice().is_cuda() ? "CUDA" : "CPU", at::get_num_threads(),
                     HasFastBf16() ? "BF16" : "F32");
}

Status CheckRoom(std::int64_t memory_bytes, std::int64_t disk_bytes, const std::string& path) {
  constexpr double kMiB = 1 << 20;
  if (const std::int64_t memory = AvailableMemory(); memory < memory_bytes)
    return Fail(ErrorCode::kTooLarge, fmt::format("memory: this run needs about {:.0f} MiB, and "
                                                  "{:.0f} MiB are free; lower --batch or --window",
                                                  static_cast<double>(memory_bytes) / kMiB,
                                                  static_cast<double>(memory) / kMiB));
  std::error_code failed;
  std::filesystem::path folder = std::filesystem::absolute(path, failed).parent_path();
  const auto space = std::filesystem::space(folder, failed);
  if (failed)
    return Fail(ErrorCode::kIo, fmt::format("{}: {}; give --out a place in a folder that exists",
                                            path, failed.message()));
  if (access(folder.c_str(), W_OK) != 0)
    return Fail(ErrorCode::kIo,
                fmt::format("{}: the folder cannot be written to; choose another place", path));
  if (static_cast<std::int64_t>(space.available) < disk_bytes)
    return Fail(ErrorCode::kIo, fmt::format("{}: the file and its checkpoint need {:.0f} MiB, and "
                                            "{:.0f} MiB are free there; make room",
                                            path, static_cast<double>(disk_bytes) / kMiB,
                                            static_cast<double>(space.available) / kMiB));
  return {};
}

}  // namespace foretoken::train
