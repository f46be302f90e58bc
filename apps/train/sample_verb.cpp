// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "foretoken/option_keys.h"
#include "settings/help_text.h"
#include "train/run_flags.h"
#include "train/text/sample.h"
#include "train/verbs.h"

namespace foretoken::train {

using settings::FlagSet;
using settings::StoreInteger;
using settings::StoreText;

int SampleVerb(const Arguments& arguments) {
  SampleOptions o;
  constexpr NumberRange temperature = FlagRange("temperature");
  FlagSet flags("-train sample --model FILE --text FILE --out FILE --tokens N [flags]",
                "Writes text as a target writes it, to distil drafts and train heads from.");
  flags.Add({"Target and text",
             {{{"-m", "--model"}, "FILE", "the GGUF model that writes", StoreText(o.model)},
              {{"--text"},
               "FILE[:SHARE]",
               "UTF-8 text whose beginnings are the prompts, and its share of them",
               Append(o.text),
               true},
              {{"--out"},
               "FILE",
               "documents parted by <|endoftext|>; FILE.settings keeps what they were made of",
               StoreText(o.out)}}});
  flags.Add({"Samples",
             {{{"--tokens"},
               "N",
               "to write in all, in whole samples",
               StoreInteger(o.tokens, 1, 2'000'000'000)},
              {{"--temp"},
               "T",
               fmt::format("temperature ({})", o.temperature),
               StoreDouble(o.temperature, temperature.least, temperature.most)},
              {{"--prompt-tokens"},
               "N",
               fmt::format("of a prompt ({})", o.prompt_tokens),
               StoreInteger(o.prompt_tokens, 1, 65536)},
              {{"--new-tokens"},
               "N",
               "of a sample at most (240, or what the context has room for)",
               StoreInteger(o.new_tokens, 1, 1 << 20)},
              {{"--seed"},
               "N",
               fmt::format("of prompts and noise ({})", o.seed),
               [&o](const std::string& text) -> Status {
                 FORETOKEN_TRY(o.seed, settings::ParseSeed(text));
                 return {};
               }},
              {{"-t", "--threads"}, "N", "threads (the cores)", StoreInteger(o.threads, 1, 512)}}});
  const auto parsed = flags.Parse(arguments);
  if (!parsed) return Report(parsed.error());
  if (parsed->outcome != settings::ParseOutcome::kRun)
    return std::fputs(settings::HelpText(flags, {}).c_str(), stdout) < 0;
  if (auto status = WriteSamples(o); !status) return Report(status.error());
  return 0;
}

}  // namespace foretoken::train
