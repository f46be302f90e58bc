// SPDX-License-Identifier: Apache-2.0
#include "train/run/trainer.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "base/failure_testing.h"
#include "base/files/whole_file_testing.h"
#include "fixtures/tiny_model.h"
#include "train/run/machine.h"

namespace foretoken::train {
namespace {

using torch::Tensor;

struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("stopped") {}
};

// Learns a linear map and an offset from rows that are drawn by their numbers.
class LineTask : public Task {
 public:
  explicit LineTask(std::string out) : out_(std::move(out)) {
    parameters_.Add("blk.0.map", ParameterKind::kMatrix, Draw(1, 6, 4) * 0.1);
    parameters_.Add("table", ParameterKind::kTable, torch::zeros({3, 4}));
  }

  Parameters& parameters() override { return parameters_; }
  Tensor Loss(const Leaves& leaves, std::int64_t first_row, int n_rows) override {
    if (calls_++ == stop_at_) throw Stopped();
    rows_.push_back(first_row);
    if (calls_ > broken_from_) return torch::sqrt(leaves["table"].sum() - 1e9F);
    Tensor loss = torch::zeros({});
    for (std::int64_t row = first_row; row < first_row + n_rows; ++row)
      loss = loss + Error(leaves, row);
    return loss / n_rows;
  }
  std::string Evaluate(const Leaves& leaves) override {
    return std::to_string(Error(leaves, 1 << 20).item<float>());
  }
  std::string Fingerprint() const override { return fingerprint_; }
  Status Export() override {
    std::ofstream file(out_, std::ios::binary);
    for (const Parameter& p : parameters_.all())
      file.write(static_cast<const char*>(p.value.contiguous().data_ptr()),
                 static_cast<std::streamsize>(p.value.nbytes()));
    return {};
  }

  std::int64_t calls_ = 0;
  std::vector<std::int64_t> rows_;  // that steps began with
  std::int64_t stop_at_ = -1;
  std::int64_t broken_from_ = std::numeric_limits<std::int64_t>::max();
  std::string fingerprint_ = "line";

 private:
  static Tensor Draw(std::int64_t seed, std::int64_t rows, std::int64_t columns) {
    auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed));
    return torch::empty({rows, columns}).normal_(0, 1, generator);
  }
  static Tensor Error(const Leaves& leaves, std::int64_t row) {
    const Tensor x = Draw(1000 + row, 8, 4), wanted = torch::mm(x, Draw(2, 6, 4).t()) + 1;
    return (torch::mm(x, leaves["blk.0.map"].to(torch::kFloat).t()) + leaves["table"].sum() -
            wanted)
        .square()
        .mean();
  }

  std::string out_;
  Parameters parameters_;
};

TrainingOptions Options(const std::string& name) {
  static const std::string folder = fixtures::TemporaryFolder();
  TrainingOptions o;
  o.out = folder + "/" + name;
  o.steps = 40, o.batch = 2, o.window = 8, o.checkpoint_seconds = 0;
  o.optimizer.rate = 0.3, o.optimizer.table_rate = 0.05;
  return o;
}

// Trains until the loss is asked for for the nth time.
void TrainAndStop(const TrainingOptions& options, std::int64_t calls) {
  LineTask task(options.out);
  task.stop_at_ = calls;
  EXPECT_THROW(static_cast<void>(Train(task, options)), Stopped);
}

Status TrainAnew(const TrainingOptions& options) {
  LineTask task(options.out);
  return Train(task, options);
}

TEST(Train, LowersTheLoss) {
  const TrainingOptions options = Options("lower");
  LineTask task(options.out);
  const auto loss = [&] {
    return std::stod(task.Evaluate(Leaves(task.parameters(), torch::kFloat, false)));
  };
  const double before = loss();
  ASSERT_TRUE(Train(task, options));
  EXPECT_LT(loss(), 0.2 * before);
  EXPECT_EQ(task.calls_, 40);
  for (std::size_t step = 0; step < task.rows_.size(); ++step)
    EXPECT_EQ(task.rows_[step], static_cast<std::int64_t>(2 * step)) << "each row is read once";
}

TEST(Train, EndsWithTheSameFileWhereverItWasStopped) {
  const TrainingOptions unbroken = Options("unbroken");
  ASSERT_TRUE(TrainAnew(unbroken));
  const std::string wanted = WholeFile(unbroken.out);
  ASSERT_EQ(wanted.size(), 4 * (24 + 12));
  for (const std::int64_t stop : {0, 1, 2, 17, 39}) {
    const TrainingOptions options = Options("stopped" + std::to_string(stop));
    TrainAndStop(options, stop);
    LineTask task(options.out);
    ASSERT_TRUE(Train(task, options));
    EXPECT_EQ(task.calls_, 40 - stop) << "no step is lost and none is taken twice";
    EXPECT_EQ(WholeFile(options.out), wanted) << "stopped at step " << stop;
  }
}

TEST(Train, OfADoneRunWritesTheFileAgain) {
  const TrainingOptions options = Options("again");
  ASSERT_TRUE(TrainAnew(options));
  const std::string wanted = WholeFile(options.out);
  std::filesystem::remove(options.out);
  LineTask task(options.out);
  ASSERT_TRUE(Train(task, options));
  EXPECT_EQ(task.calls_, 0);
  EXPECT_EQ(WholeFile(options.out), wanted);
}

TEST(Train, RefusesACheckpointOfOtherSettings) {
  const TrainingOptions options = Options("settings");
  TrainAndStop(options, 5);
  const std::string kept = WholeFile(options.out + ".checkpoint");
  TrainingOptions other = options;
  other.optimizer.rate = 0.2;
  const auto status = TrainAnew(other);
  EXPECT_TRUE(Fails(status, ErrorCode::kMismatch, options.out + ".checkpoint"));
  EXPECT_TRUE(Fails(status, "--restart"));
  LineTask task(options.out);
  task.fingerprint_ = "other text";
  EXPECT_FALSE(Train(task, options));
  EXPECT_EQ(WholeFile(options.out + ".checkpoint"), kept) << "what was refused is left alone";

  other.restart = true;
  ASSERT_TRUE(TrainAnew(other));
  TrainingOptions fresh = other;
  fresh.out += "2";
  ASSERT_TRUE(TrainAnew(fresh));
  EXPECT_EQ(WholeFile(other.out), WholeFile(fresh.out));
}

TEST(Train, RefusesADamagedCheckpointByName) {
  const TrainingOptions options = Options("damaged");
  TrainAndStop(options, 5);
  const std::string path = options.out + ".checkpoint", whole = WholeFile(path);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_TRUE(
        Fails(TrainAnew(options), ErrorCode::kInvalidFile, path + ": the checkpoint is damaged"))
        << size << " bytes of " << whole.size();
  }
}

TEST(Train, ExportsACheckpointAsItStands) {
  TrainingOptions options = Options("export");
  options.export_only = true;
  EXPECT_TRUE(Fails(TrainAnew(options), ErrorCode::kNotFound));
  options.export_only = false;
  TrainAndStop(options, 5);
  options.export_only = true;
  LineTask task(options.out);
  ASSERT_TRUE(Train(task, options));
  EXPECT_EQ(task.calls_, 0);
  EXPECT_EQ(WholeFile(options.out).size(), 4 * (24 + 12));
}

TEST(Train, StopsWhereTheLossIsNoNumberAndKeepsTheGoodCheckpoint) {
  const TrainingOptions options = Options("broken");
  LineTask task(options.out);
  task.broken_from_ = 7;
  EXPECT_TRUE(Fails(Train(task, options), "lower --rate"));
  EXPECT_FALSE(std::filesystem::exists(options.out));
  LineTask resumed(options.out);
  ASSERT_TRUE(Train(resumed, options));
  EXPECT_EQ(resumed.calls_, 40 - 7);
}

TEST(Train, RefusesAPlaceThatCannotBeWrittenBeforeItBegins) {
  TrainingOptions options = Options("place");
  std::ofstream(options.out) << "a file";
  for (const std::string& place :
       {options.out + "/below/a/file", options.out + "-none/model.gguf"}) {
    options.out = place;
    LineTask task(place);
    EXPECT_TRUE(Fails(Train(task, options), ErrorCode::kIo, place));
    EXPECT_EQ(task.calls_, 0);
  }
}

TEST(CheckRoom, RefusesWhatMemoryOrDiskDoNotHold) {
  const std::string here = fixtures::TemporaryFolder() + "/out";
  EXPECT_TRUE(CheckRoom(1 << 20, 1 << 20, here));
  EXPECT_EQ(CheckRoom(std::int64_t{1} << 60, 0, here).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(CheckRoom(0, std::int64_t{1} << 60, here).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace foretoken::train
