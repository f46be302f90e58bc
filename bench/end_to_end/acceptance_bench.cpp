// SPDX-License-Identifier: Apache-2.0
// Measures each way of drafting on a text: acceptance by K, and the speed-up over plain decoding in
// the same process.
//
//   acceptance_bench --model TARGET.gguf --text FILE [METHOD=DRAFT.gguf ... ngram]
//                    [--prompts 16] [--prompt-tokens 48] [--tokens 128] [--k 1,2,3,4,5,6,7,8]
//                    [--temps 0,0.8] [--repeats 3] [--threads N] [--json]
//
// Prompts are cut from the text at even distances, at the beginning of a line. In each repeat every
// engine runs all prompts in turn, plain decoding first, so that a slow moment of the machine
// affects all alike. Speeds are of decoding alone, without prefill: medians over the repeats of the
// ratio to plain decoding.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "foretoken/engine.h"
#include "foretoken/tools/model_file.h"

namespace {

using namespace foretoken;

struct Settings {
  std::string model, text;
  std::vector<std::pair<std::string, std::string>> methods;  // name, draft file
  int prompts = 16, prompt_tokens = 48, tokens = 128, repeats = 3, threads = 0;
  std::vector<double> k = {1, 2, 3, 4, 5, 6, 7, 8}, temperatures = {0, 0.8};
  bool json = false;
};

[[noreturn]] void Quit(const std::string& message) {
  std::fprintf(stderr, "acceptance_bench: %s\n", message.c_str());
  std::exit(2);
}

std::vector<double> Numbers(const std::string& text) {
  std::vector<double> numbers;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) numbers.push_back(std::stod(part));
  return numbers;
}

Settings Parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&] {
      if (++i == argc) Quit(flag + ": a value is missing");
      return std::string(argv[i]);
    };
    const std::size_t equals = flag.find('=');
    if (flag == "--model")
      s.model = value();
    else if (flag == "--text")
      s.text = value();
    else if (flag == "--prompts")
      s.prompts = std::stoi(value());
    else if (flag == "--prompt-tokens")
      s.prompt_tokens = std::stoi(value());
    else if (flag == "--tokens")
      s.tokens = std::stoi(value());
    else if (flag == "--repeats")
      s.repeats = std::stoi(value());
    else if (flag == "--threads")
      s.threads = std::stoi(value());
    else if (flag == "--k")
      s.k = Numbers(value());
    else if (flag == "--temps")
      s.temperatures = Numbers(value());
    else if (flag == "--json")
      s.json = true;
    else if (flag == "ngram")
      s.methods.emplace_back("ngram", "");
    else if (equals != std::string::npos && flag[0] != '-')
      s.methods.emplace_back(flag.substr(0, equals), flag.substr(equals + 1));
    else
      Quit(flag + ": not known; see the head of acceptance_bench.cpp");
  }
  if (s.model.empty() || s.text.empty()) Quit("--model and --text are needed");
  return s;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Quit(path + ": cannot be read");
  std::stringstream buffer;
  buffer << file.rdbuf();
  return buffer.str();
}

// Beginnings of paragraphs, each cut to prompt_tokens.
std::vector<Request> Prompts(const Settings& s) {
  const std::string text = ReadText(s.text);
  auto file = ModelFile::Open(s.model);
  if (!file) Quit(file.error().message);
  std::vector<Request> requests;
  for (int i = 0; i < s.prompts; ++i) {
    std::size_t at =
        text.size() * static_cast<std::size_t>(i) / static_cast<std::size_t>(s.prompts);
    at = i == 0 ? 0 : text.find("\n\n", at);
    if (at == std::string::npos) break;
    const std::string part = text.substr(i == 0 ? 0 : at + 2, 4000);
    auto tokens = (*file)->Tokenize(part.substr(0, part.find("<|endoftext|>")), true, false);
    if (!tokens) Quit(tokens.error().message);
    if (static_cast<int>(tokens->size()) < s.prompt_tokens) continue;
    tokens->resize(static_cast<std::size_t>(s.prompt_tokens));
    Request& r = requests.emplace_back();
    r.prompt_tokens = *tokens;
    r.max_new_tokens = s.tokens;
    r.ignore_eos = true;
    r.seed = 1, r.id = static_cast<std::uint64_t>(i);
  }
  if (requests.empty()) Quit(s.text + ": too short for one prompt");
  return requests;
}

struct Measure {
  SpeculationStats stats;
  double tokens_per_second = 0;
  std::vector<std::vector<std::int32_t>> texts;
};

Measure Generate(Engine& engine, std::vector<Request> requests, double temperature, int k) {
  Measure m;
  double ms = 0, tokens = 0;
  for (Request& r : requests) {
    r.sampling.temperature = static_cast<float>(temperature);
    r.speculative.num_speculative_tokens = k;
    auto completion = engine.Generate(r);
    if (!completion) Quit(completion.error().message);
    m.stats.Add(completion->speculation);
    ms += completion->timings.decode_ms;
    tokens += completion->timings.decoded_tokens;
    m.texts.push_back(completion->token_ids);
  }
  m.tokens_per_second = tokens / ms * 1000;
  return m;
}

double Median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

// A method at one K and temperature, over all repeats.
struct Cell {
  Measure last;
  std::vector<double> ratios, speeds;
  bool identical = true;  // greedy: the same tokens as plain decoding
};

void PrintCell(const Settings& s, const std::string& method, double temperature, int k,
               const Cell& cell) {
  const SpeculationStats& stats = cell.last.stats;
  const double low = *std::min_element(cell.ratios.begin(), cell.ratios.end()),
               high = *std::max_element(cell.ratios.begin(), cell.ratios.end());
  if (s.json) {
    std::printf(
        "{\"method\":\"%s\",\"temperature\":%g,\"k\":%d,\"acceptance_rate\":%.4f,"
        "\"mean_acceptance_length\":%.4f,\"speedup\":%.4f,\"speedup_min\":%.4f,"
        "\"speedup_max\":%.4f,\"tokens_per_second\":%.1f,\"identical\":%s}\n",
        method.c_str(), temperature, k, stats.acceptance_rate().value_or(0),
        stats.mean_acceptance_length().value_or(1), Median(cell.ratios), low, high,
        Median(cell.speeds), cell.identical ? "true" : "false");
    return;
  }
  std::printf("| %s | %g | %d | %.0f %% | %.2f | %.2f (%.2f-%.2f) | %s |\n", method.c_str(),
              temperature, k, 100 * stats.acceptance_rate().value_or(0),
              stats.mean_acceptance_length().value_or(1), Median(cell.ratios), low, high,
              temperature == 0 ? (cell.identical ? "yes" : "NO") : "");
}

std::unique_ptr<Engine> Open(const Settings& s, const std::string& method,
                             const std::string& draft) {
  auto engine = Engine::Open({.model = s.model,
                              .draft_model = draft,
                              .speculative = {.method = method, .controller = "fixed"},
                              .threads = s.threads});
  if (!engine) Quit(engine.error().message);
  return std::move(*engine);
}

}  // namespace

int main(int argc, char** argv) {
  const Settings s = Parse(argc, argv);
  const auto requests = Prompts(s);
  const auto plain = Open(s, "none", "");
  std::vector<std::unique_ptr<Engine>> engines;
  for (const auto& [method, draft] : s.methods) engines.push_back(Open(s, method, draft));
  if (!s.json)
    std::printf(
        "%zu prompts of %d tokens, %d new tokens each; %s, %d thread(s), %d repeat(s)\n\n"
        "| drafter | T | K | accepted | mean length | speed over plain | same tokens |\n"
        "|---|---|---|---|---|---|---|\n",
        requests.size(), s.prompt_tokens, s.tokens, plain->summary().isa.c_str(),
        plain->summary().threads, s.repeats);
  for (const double temperature : s.temperatures) {
    std::vector<std::vector<Cell>> cells(engines.size(), std::vector<Cell>(s.k.size()));
    std::vector<double> plain_speeds;
    for (int repeat = 0; repeat < s.repeats; ++repeat)
      for (std::size_t e = 0; e < engines.size(); ++e)
        for (std::size_t i = 0; i < s.k.size(); ++i) {
          // Plain runs before and after each run with drafts.
          const Measure before = Generate(*plain, requests, temperature, 0);
          Cell& cell = cells[e][i];
          cell.last = Generate(*engines[e], requests, temperature, static_cast<int>(s.k[i]));
          const Measure after = Generate(*plain, requests, temperature, 0);
          const double speed = (before.tokens_per_second + after.tokens_per_second) / 2;
          plain_speeds.push_back(speed);
          cell.ratios.push_back(cell.last.tokens_per_second / speed);
          cell.speeds.push_back(cell.last.tokens_per_second);
          cell.identical &= before.texts == cell.last.texts;
        }
    for (std::size_t e = 0; e < engines.size(); ++e)
      for (std::size_t i = 0; i < s.k.size(); ++i)
        PrintCell(s, s.methods[e].first, temperature, static_cast<int>(s.k[i]), cells[e][i]);
    if (!s.json && !plain_speeds.empty())
      std::printf("| plain | %g | 0 | | 1 | 1 (%.0f tokens/s) | |\n", temperature,
                  Median(plain_speeds));
    std::fflush(stdout);
  }
}
