// SPDX-License-Identifier: Apache-2.0
// model_attack: mutated model files against everything in the library that reads them.
//
// Each file is inspected (metadata, tensors, tokenizer) and opened as a target, as a draft or as a
// head. If it opens, it generates a few tokens without and with speculation, and both texts must be
// the same. Some files are quantised as well. See attack/file_attack.h.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attack/file_attack.h"
#include "foretoken/engine.h"
#include "foretoken/tools/model_file.h"

namespace foretoken::attack {
namespace {

constexpr const char* kText = "the end of it <|im_end|>\n";

// In the order of ErrorCode.
constexpr const char* kCodes[] = {
    "invalid argument", "not found", "invalid file", "unsupported", "mismatch", "too large", "i/o",
    "no memory",        "busy",      "stopped",      "deadline",    "rank lost"};
const char* NameOf(ErrorCode code) {
  return kCodes[static_cast<std::size_t>(code)];
}

class Reader {
 public:
  Reader(const GoodFiles& good, std::string folder) : good_(good), folder_(std::move(folder)) {}

  Outcome Read(const std::string& path, const GoodFile& file, Random& random) {
    fault_.clear();
    LookInto(path);
    if (random.OneIn(8)) Quantise(path, random);
    std::string label = Generate(path, file, random);
    return {std::move(label), std::move(fault_)};
  }

 private:
  void Wrong(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }
  // "refused: invalid file"
  std::string Refused(const Error& error) {
    const std::string wrong = WrongWithMessage(error.message);
    if (!wrong.empty()) Wrong(wrong);
    return fmt::format("refused: {}", NameOf(error.code));
  }
  template <typename T>
  void Take(const Result<T>& result) {
    if (!result) Refused(result.error());
  }

  void LookInto(const std::string& path);
  void Quantise(const std::string& path, Random& random);
  std::string Generate(const std::string& path, const GoodFile& file, Random& random);
  EngineOptions OptionsFor(const std::string& path, const GoodFile& file, Random& random) const;

  const GoodFiles& good_;
  const std::string folder_;
  std::string fault_;
};

void Reader::LookInto(const std::string& path) {
  const auto file = ModelFile::Open(path);
  if (!file) return void(Refused(file.error()));
  for (const auto& [key, value] : (*file)->metadata())
    if (value.size() > 100'000) Wrong("a description of " + key + " without an end");
  for (const TensorSummary& tensor : (*file)->tensors())
    if (tensor.bytes <= 0) Wrong("tensor " + tensor.name + " without bytes");
  (*file)->obstacle(), (*file)->parameters(), (*file)->is_whole_model(), (*file)->drafts_as();
  Take((*file)->DescribeTokenizer());
  const auto tokens = (*file)->Tokenize(kText, true, true);
  if (!tokens) return void(Refused(tokens.error()));
  Take((*file)->Detokenize(*tokens, true));
  Take((*file)->Pieces(*tokens));
  const auto draft = ModelFile::Open(good_.draft);
  if (draft) Take((*file)->CompareVocabulary(**draft));
}

void Reader::Quantise(const std::string& path, Random& random) {
  const std::vector<std::string> types = QuantizeTypes();
  const std::string output = folder_ + "/quantised.gguf";
  QuantizeOptions options;
  options.input = path, options.output = output, options.type = random.Pick(types);
  options.threads = 1, options.allow_requantize = true;
  const auto report = QuantizeFile(options);
  if (!report) {
    Refused(report.error());
    if (std::filesystem::exists(output)) Wrong("quantize failed and left an output");
    return;
  }
  // What the project wrote, it must be able to read.
  const auto written = ModelFile::Open(output);
  if (!written) Wrong("quantize wrote a file that does not open: " + written.error().message);
  std::filesystem::remove(output);
}

EngineOptions Reader::OptionsFor(const std::string& path, const GoodFile& file,
                                 Random& random) const {
  EngineOptions options;
  const bool drafts = file.role == Role::kHead || random.OneIn(3);
  options.model = drafts ? (file.target.empty() ? good_.target : file.target) : path;
  if (drafts) options.draft_model = path;
  if (!drafts && random.OneIn(2)) options.draft_model = good_.draft;
  options.speculative.controller = "fixed";
  options.speculative.num_speculative_tokens = 3;
  options.context_size = random.OneIn(2) ? 48 : 0;
  options.threads = 1;
  options.repack_cache = random.OneIn(16) ? folder_ + "/tiles" : "off";
  return options;
}

std::string Reader::Generate(const std::string& path, const GoodFile& file, Random& random) {
  auto engine = Engine::Open(OptionsFor(path, file, random));
  if (!engine) return Refused(engine.error());
  Request request;
  request.prompt = kText;
  request.max_new_tokens = 8, request.seed = random.Next();
  request.ignore_eos = random.OneIn(2);
  request.sampling.temperature = random.OneIn(2) ? 0.0f : 1.0f;
  request.speculative.strategy = VerifyStrategy::kSampleMatch;
  if (request.sampling.temperature == 0) request.speculative.strategy = VerifyStrategy::kAuto;
  request.speculative.method = "none";
  const auto plain = (*engine)->Generate(request);
  request.speculative.method.reset();
  auto drafted = (*engine)->Generate(request);
  if (!plain) Refused(plain.error());
  if (!drafted) Refused(drafted.error());
  if (plain.has_value() != drafted.has_value()) {
    Wrong("plain decoding and speculation do not agree: " +
          (plain ? drafted : plain).error().message);
    return "opened";
  }
  if (!plain) return fmt::format("opened, a request refused: {}", NameOf(plain.error().code));
  if (PlantedWrong()) drafted->token_ids.push_back(1);
  if (plain->token_ids != drafted->token_ids || plain->text != drafted->text)
    Wrong(fmt::format("plain decoding gave '{}', speculation '{}'", plain->text, drafted->text));
  return plain->token_ids.empty() ? "opened, nothing generated" : "opened, generated, both agree";
}

}  // namespace
}  // namespace foretoken::attack

int main(int argc, char** argv) {
  using namespace foretoken::attack;
  return AttackFiles({argv, static_cast<std::size_t>(argc)},
                     [](const GoodFiles& good, const std::string& folder) -> FileReader {
                       auto reader = std::make_shared<Reader>(good, folder);
                       return [reader](const std::string& path, const GoodFile& file,
                                       Random& random) { return reader->Read(path, file, random); };
                     });
}
