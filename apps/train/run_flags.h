// SPDX-License-Identifier: Apache-2.0
// train/run_flags.h: what all training verbs share: the run's flags, and the run itself.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "settings/flag_set.h"
#include "settings/setters.h"
#include "train/networks/gguf.h"
#include "train/networks/model_task.h"
#include "train/run/trainer.h"
#include "train/verbs.h"

namespace foretoken::train {

settings::Setter StoreDouble(double& target, double low, double high);
settings::Setter Append(std::vector<std::string>& list);
settings::Setter StoreNumbers(std::vector<int>& list);  // "1,3,5", none negative
settings::FlagGroup RunFlags(TrainingOptions& options);
// The sizes of a model. A context of 0 stands for the target's.
std::vector<settings::Flag> ShapeFlags(ModelShape& shape);
settings::Flag TypeFlag(FileType& type);

// Parses, makes the task, trains it. Returns the exit code.
int RunTask(const settings::FlagSet& flags, const Arguments& arguments, TrainingOptions& training,
            const std::function<Result<std::unique_ptr<Task>>()>& make);

}  // namespace foretoken::train
