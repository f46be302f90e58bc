// SPDX-License-Identifier: Apache-2.0
#include "settings/llama_flags.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken::settings {
namespace {

using Takes = ForeignFlag::Takes;

std::vector<std::string> Names(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    names.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

// Flags about how llama.cpp computes, prints and logs, which do not change the text.
std::vector<ForeignFlag> WithoutEffect() {
  return {
      {Names("-cb --cont-batching -nocb --no-cont-batching --jinja --metrics --slots "
             "--no-slots --props --mmap --no-mmap --mlock --warmup --no-warmup --perf "
             "--no-perf --no-escape --no-context-shift --no-display-prompt --verbose-prompt "
             "--log-disable --log-prefix --log-timestamps --offline --simple-io -co --color "
             "-kvo --kv-offload -nkvo --no-kv-offload --repack -nr --no-repack --no-host "
             "--op-offload --no-op-offload --check-tensors --swa-full -kvu --kv-unified "
             "-cmoe --cpu-moe --cache-prompt --no-cache-prompt -dio --direct-io -ndio "
             "--no-direct-io --embedding --embeddings --rerank --reranking"),
       Takes::kNothing, ""},
      {{"-fa", "--flash-attn", "--log-colors", "-fit", "--fit"}, Takes::kSwitchValue, ""},
      {Names("-b --batch-size -ub --ubatch-size -tb --threads-batch -td --threads-draft "
             "-tbd --threads-batch-draft -C --cpu-mask -Cr --cpu-range --cpu-strict -Cb "
             "--cpu-mask-batch -Crb --cpu-range-batch --cpu-strict-batch --prio "
             "--prio-batch --poll --poll-batch --numa -dt --defrag-thold --threads-http "
             "--cache-reuse -sps --slot-prompt-similarity --slot-save-path -cram "
             "--cache-ram --ctx-checkpoints --keep -ctkd "
             "--cache-type-k-draft -ctvd --cache-type-v-draft -cd --ctx-size-draft "
             "--log-file -lv --verbosity --log-verbosity -sm --split-mode -ts "
             "--tensor-split -mg --main-gpu -ot --override-tensor -ncmoe --n-cpu-moe "
             "-fitt --fit-target -fitc --fit-ctx -ctxcp --swa-checkpoints --sse-ping-interval"),
       Takes::kValue, ""},
      {Names("-ngl --gpu-layers --n-gpu-layers -ngld --gpu-layers-draft "
             "--n-gpu-layers-draft"),
       Takes::kValue, "foretoken computes on the CPU; give 0 or leave it out", "0"},
      {{"-dev", "--device", "-devd", "--device-draft"},
       Takes::kValue,
       "foretoken computes on the CPU; give none or leave it out",
       "none"},
  };
}

// Flags with another name here.
std::vector<ForeignFlag> Renamed() {
  return {
      {{"-e", "--escape"},
       Takes::kNothing,
       "texts are taken as they are; write line breaks in the shell, as in $'one\\ntwo', or give "
       "the text as a file with -f"},
      {{"-l"}, Takes::kValue, "use --logit-bias ID=V"},
      {{"-r", "--reverse-prompt"},
       Takes::kValue,
       "use --stop TEXT, which ends the text before TEXT"},
      {{"-v", "--verbose", "--log-verbose"},
       Takes::kNothing,
       "use --trace, which shows each round of generate; --json has every figure"},
      {{"-bf", "--binary-file"}, Takes::kValue, "use -f FILE, which takes any bytes"},
      {{"-sysf", "--system-prompt-file"}, Takes::kValue, "use --system \"$(cat FILE)\""},
      {{"-to", "--timeout"}, Takes::kValue, "use --request-timeout-s S of foretoken serve"},
      {{"-sp"},
       Takes::kNothing,
       "special tokens are not part of the text; generate --json lists all token ids"},
      {Names("-cnv --conversation -i --interactive -if --interactive-first"), Takes::kNothing,
       "use foretoken chat, which holds a conversation"},
      {{"-no-cnv", "--no-conversation", "-st", "--single-turn"},
       Takes::kNothing,
       "use foretoken generate, which answers one prompt"},
      {{"--in-prefix", "--in-suffix", "--in-prefix-bos"},
       Takes::kValue,
       "write it into the prompt, or use --chat and --chat-template"},
      {Names("-lcs --lookup-cache-static -lcd --lookup-cache-dynamic"), Takes::kValue,
       "use --ngram-corpus PATH, a text, and --ngram-keep on"},
      {{"--spec-ngram-size-m"},
       Takes::kValue,
       "give the draft's length as --num-speculative-tokens"},
      {{"--spec-ngram-min-hits"}, Takes::kValue, "a context counts once it was seen; leave it out"},
  };
}

// Flags for what foretoken does not do.
std::vector<ForeignFlag> Missing() {
  return {
      {Names("-hf -hfr --hf-repo -hff --hf-file -hfd -hfrd --hf-repo-draft -hft --hf-token "
             "-mu --model-url -dr --docker-repo"),
       Takes::kValue,
       "foretoken downloads nothing; download the GGUF file and name it with -m PATH"},
      {{"--lora", "--lora-scaled", "--lora-base", "--control-vector", "--control-vector-scaled"},
       Takes::kValue,
       "adapters are not read; merge the adapter into the model's file first"},
      {{"--mmproj"}, Takes::kValue, "images and sounds are not read; give text only"},
      {{"--samplers", "--sampler-seq", "--sampling-seq"},
       Takes::kValue,
       "the order of sampling steps is fixed; leave it out and set each step by its flag"},
      {Names("--mirostat --mirostat-lr --mirostat-ent --xtc-probability --xtc-threshold "
             "--dynatemp-range --dynatemp-exp --top-nsigma --top-n-sigma"),
       Takes::kValue,
       "this sampling step is not here; leave it out, or see Sampling in --help-all"},
      {Names("--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale "
             "--yarn-orig-ctx --yarn-ext-factor --yarn-attn-factor --yarn-beta-slow "
             "--yarn-beta-fast -gan --grp-attn-n -gaw --grp-attn-w"),
       Takes::kValue, "positions are scaled as the model's file says; leave it out"},
      {{"--override-kv"}, Takes::kValue, "the file's metadata is taken as it is; edit the file"},
      {{"--context-shift"},
       Takes::kNothing,
       "a text ends where its context ends; raise -c for longer ones"},
      {{"--reasoning-format", "--reasoning-budget"},
       Takes::kValue,
       "replies have thoughts apart, and a request bounds them with thinking_budget_tokens; "
       "leave it out"},
      {{"--rpc"}, Takes::kValue, "foretoken computes in one process; leave it out"},
      {{"--ssl-key-file", "--ssl-cert-file"},
       Takes::kValue,
       "foretoken serves plain HTTP; put a proxy with TLS in front of it"},
      {{"--no-webui"}, Takes::kNothing, "the page is part of the server; hide / by a proxy"},
  };
}

}  // namespace

void AddLlamaFlags(FlagSet& flags) {
  flags.AddForeign(WithoutEffect());
  flags.AddForeign(Renamed());
  flags.AddForeign(Missing());
}

}  // namespace foretoken::settings
