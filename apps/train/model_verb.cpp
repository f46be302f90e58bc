// SPDX-License-Identifier: Apache-2.0
#include "train/networks/model_task.h"
#include "train/run_flags.h"
#include "train/verbs.h"

namespace foretoken::train {

using settings::Flag;
using settings::FlagSet;
using settings::StoreText;
using settings::StoreTrue;

int ModelVerb(const Arguments& arguments) {
  TrainingOptions training;
  ModelOptions o;
  FlagSet flags("-train model --vocabulary FILE --text FILE --out FILE --steps N [flags]",
                "Trains a model from text.");
  ModelShape& s = o.shape;
  bool untied = false;
  flags.Add(
      {"Text",
       {{{"--text"}, "FILE[:SHARE]", "UTF-8 text, and its share of the rows", Append(o.text), true},
        {{"--held-out"}, "FILE", "text that is only measured on", Append(o.held_out), true},
        {{"--vocabulary"},
         "FILE",
         "a GGUF file whose vocabulary is used",
         StoreText(o.vocabulary)}}});
  std::vector<Flag> model = ShapeFlags(s);
  model.push_back({{"--untied"}, "", "an output head of its own", StoreTrue(untied)});
  model.push_back({{"--name"}, "TEXT", "general.name", StoreText(o.name)});
  model.push_back({{"--license"}, "TEXT", "general.license", StoreText(o.license)});
  model.push_back(TypeFlag(o.type));
  flags.Add({"Model", std::move(model)});
  flags.Add(RunFlags(training));
  return RunTask(flags, arguments, training, [&]() -> Result<std::unique_ptr<Task>> {
    s.tied = !untied;
    if (o.vocabulary.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  "vocabulary: none is given; make one with foretoken-train tokenizer");
    return MakeModelTask(o, training);
  });
}

}  // namespace foretoken::train
