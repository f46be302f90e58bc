// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "train/networks/model_task.h"
#include "train/run_flags.h"
#include "train/verbs.h"

namespace foretoken::train {

using settings::FlagSet;
using settings::StoreInteger;
using settings::StoreText;
using settings::StoreTrue;

int ModelVerb(const Arguments& arguments) {
  TrainingOptions training;
  ModelOptions o;
  FlagSet flags("-train model --vocabulary FILE --text FILE --out FILE --steps N [flags]",
                "Trains a llama model from text.");
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
  flags.Add(
      {"Model",
       {{{"--layers"}, "N", fmt::format("blocks ({})", s.layers), StoreInteger(s.layers, 1, 1000)},
        {{"--width"},
         "N",
         fmt::format("of the residual stream ({})", s.dim),
         StoreInteger(s.dim, 8, 65536)},
        {{"--heads"},
         "N",
         fmt::format("query heads ({})", s.heads),
         StoreInteger(s.heads, 1, 1024)},
        {{"--kv-heads"},
         "N",
         fmt::format("key and value heads ({})", s.kv_heads),
         StoreInteger(s.kv_heads, 1, 1024)},
        {{"--ff"},
         "N",
         fmt::format("width of the feed-forward layer ({})", s.ff),
         StoreInteger(s.ff, 8, 1 << 20)},
        {{"--context"},
         "N",
         fmt::format("context length that the file states ({})", s.context),
         StoreInteger(s.context, 8, 1 << 20)},
        {{"--untied"}, "", "an output head of its own", StoreTrue(untied)},
        {{"--name"}, "TEXT", "general.name", StoreText(o.name)},
        {{"--license"}, "TEXT", "general.license", StoreText(o.license)},
        TypeFlag(o.type)}});
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
