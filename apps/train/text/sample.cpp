// SPDX-License-Identifier: Apache-2.0
#include "train/text/sample.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "base/files/text_file.h"
#include "base/rng.h"
#include "foretoken/engine.h"
#include "foretoken/option_keys.h"
#include "model/arch/registry.h"
#include "train/run/machine.h"
#include "train/run/progress_line.h"
#include "train/text/corpus.h"
#include "train/text/documents.h"

namespace foretoken::train {
namespace {

constexpr std::string_view kEnd = "<|endoftext|>";
constexpr int kSequences = 16;               // written together by the engine
constexpr int kNewTokens = 240;              // of a sample, by default
constexpr int kMostAtOnce = 256;             // samples between two writes to the disk at most
constexpr double kSecondsAtOnce = 15;        // and the time that they aim at
constexpr std::size_t kBytesPerToken = 24;   // of text that surely holds a prompt's tokens
constexpr std::size_t kLongDocument = 2000;  // bytes; beyond these, prompts begin at a line

struct Fnv {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a
  void Add(std::uint64_t word) { hash = (hash ^ word) * 1099511628211ULL; }
  void Add(std::string_view text) {
    for (const char c : text) Add(static_cast<unsigned char>(c));
  }
};

// The texts that prompts are cut from.
class Prompts {
 public:
  static Result<Prompts> Load(const std::vector<std::string>& texts) {
    if (texts.empty())
      return Fail(ErrorCode::kInvalidArgument, "text: none is given; give a file with --text");
    Prompts prompts;
    for (const std::string& text : texts) {
      FORETOKEN_TRY(const TextSource given, ParseTextSource(text));
      Source source;
      FORETOKEN_TRY(source.documents, ReadDocuments(given.path));
      source.share = given.share, prompts.share_ += given.share;
      for (const std::string& document : source.documents)
        source.end.push_back((source.end.empty() ? 0 : source.end.back()) + document.size());
      prompts.sources_.push_back(std::move(source));
    }
    return prompts;
  }

  // Text that begins like prompt i.
  std::string At(std::uint64_t seed, std::int64_t i, std::size_t n_bytes) const {
    const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    const auto n = static_cast<std::uint64_t>(i);
    const auto noise =
        Philox({low(n), low(n >> 32), 0x70726f6d, 0x70747321}, {low(seed), low(seed >> 32)});
    double place = noise[0] / 4294967296.0 * share_;
    std::size_t s = 0;
    while (s + 1 < sources_.size() && place >= sources_[s].share) place -= sources_[s++].share;
    const Source& source = sources_[s];
    const std::size_t at =
        static_cast<std::size_t>((std::uint64_t{noise[1]} << 32 | noise[2]) % source.end.back());
    const auto document = static_cast<std::size_t>(
        std::upper_bound(source.end.begin(), source.end.end(), at) - source.end.begin());
    const std::string& text = source.documents[document];
    return Cut(text, LineBefore(text, at - (source.end[document] - text.size())), n_bytes);
  }

  std::uint64_t Hash() const {
    Fnv fnv;
    for (const Source& source : sources_) {
      fnv.Add(fmt::format("{} {}", source.share, source.documents.size()));
      for (const std::string& document : source.documents) fnv.Add(document), fnv.Add(kEnd);
    }
    return fnv.hash;
  }

 private:
  struct Source {
    double share = 1;
    std::vector<std::string> documents;
    std::vector<std::size_t> end;  // of each document, all laid end to end
  };

  static std::size_t LineBefore(const std::string& text, std::size_t at) {
    if (at < kLongDocument) return 0;
    const std::size_t line = text.rfind('\n', at);
    return line == std::string::npos ? 0 : text.find_first_not_of(" \t\r\n\f", line);
  }
  static std::string Cut(const std::string& text, std::size_t begin, std::size_t n_bytes) {
    std::size_t end = std::min(text.size(), begin + n_bytes);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return text.substr(begin, end - begin);
  }

  std::vector<Source> sources_;
  double share_ = 0;
};

// Without a character at the end that was cut in the middle.
std::string WholeCharacters(std::string text) {
  std::size_t tail = 0;  // continuation bytes
  while (tail < text.size() && tail < 4 &&
         (static_cast<unsigned char>(text[text.size() - 1 - tail]) & 0xC0) == 0x80)
    ++tail;
  if (tail == text.size()) return {};
  const auto lead = static_cast<unsigned char>(text[text.size() - 1 - tail]);
  const std::size_t wanted = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  if (tail < wanted) text.resize(text.size() - 1 - tail);
  return text;
}

// Text that ReadDocuments reads as one document.
std::string Cleaned(std::string text) {
  for (char& c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) c = ' ';
  for (std::size_t at = 0; (at = text.find(kEnd, at)) != std::string::npos;)
    text.replace(at, kEnd.size(), " ");
  return text;
}

Status CannotWrite(const std::string& path) {
  return Fail(ErrorCode::kIo, fmt::format("{}: cannot be written; make room on the disk or choose "
                                          "another place",
                                          path));
}

// The file is complete and on the disk when it returns.
Status Append(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) return CannotWrite(path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                       std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  return std::fclose(file) == 0 && written ? Status{} : CannotWrite(path);
}

// Empty if there is no such file.
std::string ReadAll(const std::string& path) {
  return ReadTextFile(path, {.most_bytes = std::size_t{1} << 40}).value_or("");
}

struct Sample {
  std::string text;
  std::int64_t tokens = 0;  // that the target wrote
};

// The finished samples on the disk: a line of settings, then each sample and a line with the
// separator and its number of tokens. What a kill left incomplete is cut off.
class PartFile {
 public:
  PartFile(std::string path, std::string settings)
      : path_(std::move(path)), settings_(std::move(settings)) {}

  Result<std::vector<Sample>> Open() {
    std::vector<Sample> samples;
    const std::string all = ReadAll(path_), mark = fmt::format("\n{} ", kEnd);
    std::size_t at = settings_.size() + 1;
    if (!all.starts_with(settings_ + "\n")) {
      FORETOKEN_CHECK_OK(WriteTextFile(path_, settings_ + "\n"));
      return samples;
    }
    while (true) {
      const std::size_t end = all.find(mark, at), line = all.find('\n', end + 1);
      if (end == std::string::npos || line == std::string::npos) break;
      Sample sample{all.substr(at, end - at), 0};
      std::from_chars(all.data() + end + mark.size(), all.data() + line, sample.tokens);
      samples.push_back(std::move(sample));
      at = line + 1;
    }
    std::error_code failed;
    std::filesystem::resize_file(path_, at, failed);
    if (failed) return Fail(CannotWrite(path_).error());
    return samples;
  }

  Status Add(const std::vector<Sample>& samples) const {
    std::string text;
    for (const Sample& sample : samples)
      text += fmt::format("{}\n{} {}\n", sample.text, kEnd, sample.tokens);
    return Append(path_, text);
  }

  void Remove() const {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

 private:
  std::string path_, settings_;
};

class Sampler {
 public:
  Sampler(const SampleOptions& options, Prompts prompts)
      : options_(options), prompts_(std::move(prompts)) {}

  Status Open() {
    EngineOptions engine;
    engine.model = options_.model;
    engine.speculative.method = "none";
    engine.speculative.num_speculative_tokens = 0;
    engine.context_size = options_.prompt_tokens + 1 + options_.new_tokens;
    engine.max_sequences = kSequences;
    engine.threads = options_.threads;
    FORETOKEN_TRY(engine_, Engine::Open(std::move(engine)));
    return {};
  }

  // Runs until options.tokens are written.
  Status Run(const PartFile& part, std::vector<Sample>& samples) {
    using Steady = std::chrono::steady_clock;
    for (const Sample& sample : samples) written_ += sample.tokens;
    const auto begin = Steady::now();
    const std::int64_t before = written_;
    int n = kSequences;
    while (written_ < options_.tokens) {
      const auto from = Steady::now();
      const auto seconds = [&](Steady::time_point since) {
        return std::chrono::duration<double>(Steady::now() - since).count();
      };
      FORETOKEN_TRY(std::vector<Sample> more, Next(static_cast<std::int64_t>(samples.size()), n));
      if (seconds(from) < kSecondsAtOnce / 2) n = std::min(2 * n, kMostAtOnce);
      // Whole batches, but no more samples than needed: the result must not depend on the batch
      // size.
      std::size_t kept = 0;
      while (kept < more.size() && written_ < options_.tokens) written_ += more[kept++].tokens;
      more.resize(kept);
      FORETOKEN_CHECK_OK(part.Add(more));
      std::move(more.begin(), more.end(), std::back_inserter(samples));
      Show(static_cast<double>(written_ - before) / seconds(begin));
    }
    return {};
  }

 private:
  Result<std::vector<Sample>> Next(std::int64_t first, int n) {
    std::vector<Request> requests;
    for (std::int64_t i = first; i < first + n; ++i) {
      Request request;
      request.prompt = Prompt(i);
      request.max_new_tokens = options_.new_tokens;
      request.sampling.temperature = static_cast<float>(options_.temperature);
      request.seed = options_.seed;
      request.id = static_cast<std::uint64_t>(i);
      requests.push_back(std::move(request));
    }
    FORETOKEN_TRY(const auto completions, engine_->GenerateBatch(requests));
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < requests.size(); ++i)
      samples.push_back(
          {Cleaned(requests[i].prompt + completions[i].text),
           std::max<std::int64_t>(1, static_cast<std::int64_t>(completions[i].token_ids.size()))});
    return samples;
  }

  std::string Prompt(std::int64_t i) const {
    const auto wanted = static_cast<std::size_t>(options_.prompt_tokens);
    const std::string text = prompts_.At(options_.seed, i, wanted * kBytesPerToken);
    const auto tokens = engine_->Tokenize(text, false, false);
    // A text that was cut may need more tokens than it had.
    for (std::size_t n = std::min(tokens.size(), wanted); n > 0; --n) {
      std::string prompt = WholeCharacters(engine_->Detokenize(std::span(tokens).first(n)));
      if (engine_->Tokenize(prompt, true, false).size() <= wanted + 1) return prompt;
    }
    return {};
  }

  void Show(double speed) {
    const double done = static_cast<double>(written_) / static_cast<double>(options_.tokens);
    progress_.Draw(fmt::format("samples: {} of {} tokens  {:.0f} tokens/s  {:.0f} %", written_,
                               options_.tokens, speed, 100 * std::min(1.0, done)));
  }

  const SampleOptions& options_;
  Prompts prompts_;
  ProgressLine progress_;
  std::unique_ptr<Engine> engine_;
  std::int64_t written_ = 0;
};

// Sets options.new_tokens if it is 0. Errors: those of the file; samples that are longer than the
// target's context.
Status FitToContext(const formats::Checkpoint& file, SampleOptions& o) {
  auto config = model::ConfigFromMetadata(file.metadata());
  if (!config) return Fail(std::move(config).error().In(o.model));
  const int room = config->context_length - o.prompt_tokens - 1;  // BOS
  if (o.new_tokens == 0) o.new_tokens = std::min(kNewTokens, room);
  if (o.new_tokens < 1 || o.new_tokens > room)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("samples: {} tokens of prompt and {} new ones do not fit {}'s context "
                    "of {}; use fewer",
                    o.prompt_tokens, std::max(o.new_tokens, 1), o.model, config->context_length));
  return {};
}

Status CheckOptions(const SampleOptions& o) {
  const auto refuse = [](std::string what) {
    return Fail(ErrorCode::kInvalidArgument, std::move(what));
  };
  if (o.model.empty()) return refuse("model: none is given; name a GGUF model");
  if (o.out.empty()) return refuse("out: no file is named; give one with --out");
  if (o.tokens < 1 || o.prompt_tokens < 1 || o.new_tokens < 0)
    return refuse("samples: numbers of tokens must be positive; give some");
  const auto [least, most] = FlagRange("temperature");
  if (!(o.temperature >= least && o.temperature <= most))
    return refuse(fmt::format("temperature: {} is not in [{}, {}]; use one in that range",
                              o.temperature, least, most));
  return {};
}

}  // namespace

std::uint64_t HashOfWeights(const formats::Checkpoint& file) {
  Fnv fnv;
  for (const formats::TensorView& tensor : file.tensors()) {
    fnv.Add(tensor.name);
    for (const auto place : tensor.places()) {
      for (std::size_t i = 0; i < place.size(); i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, place.data() + i, std::min<std::size_t>(8, place.size() - i));
        fnv.Add(word);
      }
    }
  }
  return fnv.hash;
}

Status WriteSamples(SampleOptions options) {
  FORETOKEN_CHECK_OK(CheckOptions(options));
  FORETOKEN_TRY(const auto file, formats::OpenCheckpoint(options.model));
  FORETOKEN_CHECK_OK(FitToContext(*file, options));
  FORETOKEN_TRY(auto prompts, Prompts::Load(options.text));
  FORETOKEN_CHECK_OK(CheckRoom(0, 10 * options.tokens, options.out));
  const std::string made_of = fmt::format(
      "samples of {:016x} text {:016x} tokens {} temperature {} prompt {} new {} seed {}",
      HashOfWeights(*file), prompts.Hash(), options.tokens, options.temperature,
      options.prompt_tokens, options.new_tokens, options.seed);
  const std::string note = options.out + ".settings";
  std::error_code absent;
  const auto size = std::filesystem::file_size(options.out, absent);
  if (!absent && ReadAll(note) == fmt::format("{}\n{} bytes\n", made_of, size)) return {};

  Sampler sampler(options, std::move(prompts));
  FORETOKEN_CHECK_OK(sampler.Open());
  PartFile part(options.out + ".part", made_of);
  FORETOKEN_TRY(std::vector<Sample> samples, part.Open());
  FORETOKEN_CHECK_OK(sampler.Run(part, samples));
  std::string text;
  for (const Sample& sample : samples) text += fmt::format("{}\n{}\n", sample.text, kEnd);
  std::filesystem::remove(note, absent);
  FORETOKEN_CHECK_OK(WriteTextFile(options.out, text));
  FORETOKEN_CHECK_OK(WriteTextFile(note, fmt::format("{}\n{} bytes\n", made_of, text.size())));
  part.Remove();
  return {};
}

}  // namespace foretoken::train
