// SPDX-License-Identifier: Apache-2.0
// chat_attack: hostile chat templates with hostile variables, tools and messages.
//
// Each template is a file, which writes a few conversations. Each is written, or refused with an
// error of one line, within the steps and the memory that it may have. See attack/file_attack.h.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attack/chat_maker.h"
#include "attack/file_attack.h"
#include "base/files/text_file.h"
#include "foretoken/cancellation.h"
#include "foretoken/engine.h"

namespace foretoken::attack {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{16} << 20;
// A template may take 20 million steps, and a conversation with texts as arguments is written
// twice; the rest is for reading the JSON and for the tokens of what was written.
constexpr std::size_t kMostQuestions = 2 * 20'000'000 / CancellationScope::kWorkPerQuestion + 2000;

class Reader {
 public:
  explicit Reader(const GoodFiles& good) {
    EngineOptions options;
    options.model = good.target;
    options.threads = 1;
    options.repack_cache = "off";
    engine_ = std::move(Engine::Open(options)).value();
  }

  Outcome Read(const std::string& path, Random& random) const {
    auto text = ReadTextFile(path, {.most_bytes = 1 << 22});
    if (!text) return Refused(text.error());
    Outcome outcome{"nothing written"};
    for (auto n = 1 + random.Below(3); n > 0 && outcome.fault.empty(); --n)
      outcome = Write(*text, random);
    return outcome;
  }

 private:
  static Outcome Refused(const Error& error) {
    return {fmt::format("refused: error {}", static_cast<int>(error.code)),
            WrongWithMessage(error.message)};
  }

  Outcome Write(const std::string& text, Random& random) const {
    ChatOptions options;
    options.template_text = text;
    options.max_memory_bytes = kMemoryBytes;
    options.template_kwargs_json = random.OneIn(2) ? HostileObject(random) : "";
    options.tools_json = random.OneIn(2) ? "[" + HostileObject(random) + "]" : "";
    std::vector<ChatMessage> messages;
    for (auto n = 1 + random.Below(random.OneIn(8) ? 2000 : 5); n > 0; --n)
      messages.push_back({random.OneIn(2) ? "user" : HostileText(random, 12),
                          HostileText(random, random.OneIn(8) ? 100'000 : 100),
                          random.OneIn(3) ? HostileObject(random) : ""});
    std::size_t n_asked = PlantedWrong() ? kMostQuestions : 0;
    const std::size_t last = random.OneIn(16) ? 1 + random.Below(20) : kMostQuestions;
    const CancellationScope scope([&] { return ++n_asked >= last; });
    const auto tokens = engine_->FormatChat(messages, options);
    if (n_asked >= kMostQuestions)
      return {"endless", fmt::format("{} questions were asked", kMostQuestions)};
    if (tokens && scope.cancelled()) return {"written", "it was written after it was cancelled"};
    if (!tokens) return Refused(tokens.error());
    return {"written"};
  }

  std::unique_ptr<Engine> engine_;
};

Mutated MakeTemplate(std::uint64_t seed, std::uint64_t number) {
  Random random = RandomOf(seed, number);
  const std::string text = HostileTemplate(random);
  const auto bytes = std::as_bytes(std::span(text));
  return {.bytes = {bytes.begin(), bytes.end()}, .what = "a template"};
}

}  // namespace
}  // namespace foretoken::attack

int main(int argc, char** argv) {
  using namespace foretoken::attack;
  return AttackFiles(
      {argv, static_cast<std::size_t>(argc)},
      [](const GoodFiles& good, const std::string&) -> FileReader {
        auto reader = std::make_shared<Reader>(good);
        return [reader](const std::string& path, const GoodFile&, Random& random) {
          return reader->Read(path, random);
        };
      },
      MakeTemplate);
}
