// SPDX-License-Identifier: Apache-2.0
#include "train/run/trainer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/files/output_file.h"
#include "train/run/machine.h"
#include "train/run/progress_line.h"

namespace foretoken::train {
namespace {

using torch::Tensor;
using Clock = std::chrono::steady_clock;

struct State {
  std::int64_t step = 0;
  double seconds = 0;
};

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string Settings(const Task& task, const TrainingOptions& o) {
  const OptimizerOptions& p = o.optimizer;
  return fmt::format(
      "{} | steps {} minutes {} batch {} window {} seed {} warm-up {} cool-down {} rates {} {} "
      "decay {} "
      "momentum {} betas {} {} clip {}",
      task.Fingerprint(), o.steps, o.minutes, o.batch, o.window, o.seed, o.warm_up, o.cool_down,
      p.rate, p.table_rate, p.decay, p.momentum, p.beta1, p.beta2, p.clip);
}

Status Save(const std::string& path, const std::string& settings, const State& state,
            const Parameters& parameters, Optimizer& optimizer) {
  FORETOKEN_TRY(OutputFile file, OutputFile::Create(path, {}));
  Status written;
  try {
    torch::serialize::OutputArchive archive;
    archive.write("settings", c10::IValue(settings));
    archive.write("step", c10::IValue(state.step));
    archive.write("seconds", c10::IValue(state.seconds));
    for (std::size_t i = 0; i < parameters.all().size(); ++i) {
      const std::string n = std::to_string(i);
      archive.write("value" + n, parameters.all()[i].value, true);
      archive.write("first" + n, optimizer.first()[i], true);
      archive.write("second" + n, optimizer.second()[i], true);
    }
    // After a failed write the rest is dropped: if libtorch learned of it, it would throw from a
    // destructor and end the program.
    archive.save_to([&](const void* bytes, std::size_t size) {
      if (written) written = file.Append({static_cast<const std::byte*>(bytes), size});
      return size;
    });
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kIo,
                fmt::format("{}: the checkpoint cannot be made: {}", path, Shown(e.what())));
  }
  FORETOKEN_CHECK_OK(written);
  return file.Publish();
}

Status Restore(const std::string& path, const std::string& settings, State& state,
               Parameters& parameters, Optimizer& optimizer) {
  torch::serialize::InputArchive archive;
  try {
    archive.load_from(path, BestDevice());
    c10::IValue value;
    archive.read("settings", value);
    if (value.toStringRef() != settings)
      return Fail(ErrorCode::kMismatch,
                  fmt::format("{}: a checkpoint of other settings or other text lies here; give "
                              "those again, another "
                              "--out, or --restart to begin anew (there: {}; now: {})",
                              path, Shown(value.toStringRef(), 600), settings));
    archive.read("step", value), state.step = value.toInt();
    archive.read("seconds", value), state.seconds = value.toDouble();
    for (std::size_t i = 0; i < parameters.all().size(); ++i) {
      const std::string n = std::to_string(i);
      archive.read("value" + n, parameters.all()[i].value, true);
      archive.read("first" + n, optimizer.first()[i], true);
      archive.read("second" + n, optimizer.second()[i], true);
    }
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: the checkpoint is damaged; begin anew with --restart", path));
  }
  optimizer.steps() = state.step;
  return {};
}

// How much of the run is done, 0 to 1.
double Fraction(const TrainingOptions& o, const State& state) {
  return o.steps > 0 ? static_cast<double>(state.step) / static_cast<double>(o.steps)
                     : state.seconds / (60 * o.minutes);
}

double Schedule(const TrainingOptions& o, double done) {
  return std::max(0.0, std::min({1.0, done / o.warm_up + 0.02, (1 - done) / o.cool_down}));
}

std::string TimeText(double seconds) {
  const auto s = static_cast<long>(seconds);
  return s >= 3600 ? fmt::format("{}h{:02}m", s / 3600, s / 60 % 60)
                   : fmt::format("{}m{:02}s", s / 60, s % 60);
}

class Run {
 public:
  Run(Task& task, const TrainingOptions& options)
      : task_(task),
        options_(options),
        checkpoint_(options.out + ".checkpoint"),
        settings_(Settings(task, options)),
        optimizer_(task.parameters(), options.optimizer) {}

  Status Start() {
    if (options_.restart) std::filesystem::remove(checkpoint_);
    if (!std::filesystem::exists(checkpoint_)) {
      if (options_.export_only)
        return Fail(ErrorCode::kNotFound,
                    fmt::format("{}: no checkpoint to export; train first", checkpoint_));
      return {};
    }
    FORETOKEN_CHECK_OK(Restore(checkpoint_, settings_, state_, task_.parameters(), optimizer_));
    std::fprintf(stderr, "resumed at step %ld\n", static_cast<long>(state_.step));
    return {};
  }

  Status Steps() {
    if (!options_.log.empty() && (log_ = std::fopen(options_.log.c_str(), "a")) == nullptr)
      return Fail(ErrorCode::kIo, fmt::format("{}: the log cannot be written", options_.log));
    ProgressLine progress;
    auto saved = Clock::now(), evaluated = saved;
    while (Fraction(options_, state_) < 1) {
      const auto begin = Clock::now();
      const double scale = Schedule(options_, Fraction(options_, state_)), loss = OneStep(scale);
      if (!std::isfinite(loss))
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("step {}: the loss is not a number; lower --rate", state_.step));
      const double took = Since(begin), rate = options_.batch * options_.window / took;
      state_.seconds += took;
      mean_ = mean_ == 0 ? loss : 0.95 * mean_ + 0.05 * loss;
      speed_ = speed_ == 0 ? rate : 0.9 * speed_ + 0.1 * rate;
      const double done = Fraction(options_, state_);
      progress.Draw(fmt::format("step {}  loss {:.3f}  {:.0f} tokens/s  {:.0f} %  {} left",
                                state_.step, mean_, speed_, 100 * done,
                                TimeText(done > 0 ? state_.seconds / done * (1 - done) : 0)));
      if (log_ != nullptr && (state_.step % 10 == 0 || done >= 1)) {
        std::fprintf(log_, "%ld,%.1f,%.4f,%.4f,%.0f\n", static_cast<long>(state_.step),
                     state_.seconds, mean_, scale, speed_);
        std::fflush(log_);
      }
      if (done >= 1 || Since(saved) > options_.checkpoint_seconds) {
        FORETOKEN_CHECK_OK(Save(checkpoint_, settings_, state_, task_.parameters(), optimizer_));
        saved = Clock::now();
      }
      if (log_ != nullptr && Since(evaluated) > 300) {
        std::fprintf(log_, "# step %ld: %s\n", static_cast<long>(state_.step), Report().c_str());
        evaluated = Clock::now();
      }
    }
    if (log_ != nullptr) std::fclose(log_);
    return {};
  }

  std::string Report() {
    torch::NoGradGuard no_gradients;
    return task_.Evaluate(
        Leaves(task_.parameters(), FastType(task_.parameters().all()[0].value), false));
  }
  const State& state() const { return state_; }

 private:
  double OneStep(double scale) {
    const Leaves leaves(task_.parameters(), FastType(task_.parameters().all()[0].value), true);
    const Tensor loss = task_.Loss(leaves, state_.step * options_.batch, options_.batch);
    loss.backward();
    optimizer_.Step(task_.parameters(), leaves.Gradients(task_.parameters()), scale);
    ++state_.step;
    return loss.item<double>();
  }

  Task& task_;
  const TrainingOptions& options_;
  std::string checkpoint_, settings_;
  Optimizer optimizer_;
  State state_;
  double mean_ = 0, speed_ = 0;
  std::FILE* log_ = nullptr;
};

}  // namespace

Status Train(Task& task, const TrainingOptions& options) {
  const std::int64_t values = task.parameters().n_values();
  FORETOKEN_CHECK_OK(CheckRoom(40 * values + std::int64_t{options.batch} * options.window * 60'000,
                               20 * values, options.out));
  Run run(task, options);
  FORETOKEN_CHECK_OK(run.Start());
  if (!options.export_only) FORETOKEN_CHECK_OK(run.Steps());
  std::fprintf(stderr, "%ld steps, %s: %s\n", static_cast<long>(run.state().step),
               TimeText(run.state().seconds).c_str(), run.Report().c_str());
  return task.Export();
}

}  // namespace foretoken::train
