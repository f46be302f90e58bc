// SPDX-License-Identifier: Apache-2.0
#include "foretoken/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/work_count.h"
#include "calibrate/measurer.h"
#include "engine/impl.h"
#include "foretoken/result.h"
#include "foretoken/speculative_config.h"
#include "text/chat_template.h"

namespace foretoken {

std::string_view Name(CopyProgress::State state) noexcept {
  switch (state) {
    case CopyProgress::State::kRefused:
      return "refused";
    case CopyProgress::State::kWaiting:
      return "waiting";
    case CopyProgress::State::kMaking:
      return "making";
    case CopyProgress::State::kReady:
      return "ready";
    case CopyProgress::State::kNone:
      break;
  }
  return "none";
}

const char* Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
    case FinishReason::kVerified:
      return "verified";
  }
  return "";
}

const char* Name(Pooling pooling) {
  switch (pooling) {
    case Pooling::kNone:
      return "none";
    case Pooling::kMean:
      return "mean";
    case Pooling::kFirst:
      return "cls";
    case Pooling::kLast:
      return "last";
    case Pooling::kRank:
      return "rank";
  }
  return "";
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Open(EngineOptions options) {
  return CatchNoMemory("engine", [&]() -> Result<std::unique_ptr<Engine>> {
    FORETOKEN_TRY(auto impl, Impl::Open(std::move(options)));
    return std::unique_ptr<Engine>(new Engine(std::move(impl)));
  });
}

Result<Completion> Engine::Generate(const Request& request, const OnRound& on_round) {
  FORETOKEN_TRY(auto completions, GenerateBatch({&request, 1}, on_round));
  return std::move(completions.front());
}

Result<std::vector<Completion>> Engine::GenerateBatch(std::span<const Request> requests,
                                                      const OnRound& on_round) {
  return CatchNoMemory("request", [&] { return impl_->Generate(requests, on_round); });
}

Result<Ticket> Engine::Begin(Request request, OnRound on_round) {
  return CatchNoMemory("request",
                       [&] { return impl_->Begin(std::move(request), std::move(on_round)); });
}

bool Engine::Step() {
  return impl_->Step();
}

void Engine::Cancel(Ticket ticket) {
  impl_->Cancel(ticket);
}

void Engine::Forget() {
  impl_->Forget();
}

std::optional<Completion> Engine::Take(Ticket ticket) {
  return impl_->Take(ticket);
}

Result<std::vector<float>> Engine::Score(std::span<const std::int32_t> tokens) {
  return CatchNoMemory("score", [&] { return impl_->Score(tokens); });
}

Result<Measurements> Engine::Measure(const MeasureOptions& options) {
  return CatchNoMemory("measurements", [&] { return impl_->Measure(options); });
}

Result<PreparedRequest> Engine::Prepare(Request request) const {
  return CatchNoMemory("request", [&] { return impl_->Prepare(std::move(request)); });
}

Result<Ticket> Engine::Begin(PreparedRequest request, OnRound on_round) {
  return CatchNoMemory("request",
                       [&] { return impl_->Begin(std::move(request), std::move(on_round)); });
}

SpeculativeUse Engine::UseFor(const Request& request) const {
  return impl_->speculation().UseFor(request);
}

SpeculativeUse Engine::UseForAny() const {
  return impl_->speculation().UseForAny();
}

std::vector<std::int32_t> Engine::Tokenize(const std::string& text, bool add_special,
                                           bool parse_special) const {
  const text::EncodeOptions options{.add_special = add_special, .parse_special = parse_special};
  return EmptyIfCancelled([&] { return impl_->tokenizer().Encode(text, options); });
}

std::vector<std::int32_t> Engine::TokenizeMore(const std::string& text) const {
  const text::EncodeOptions options{.add_special = false, .continues = true};
  return EmptyIfCancelled([&] { return impl_->tokenizer().Encode(text, options); });
}

std::string Engine::Detokenize(std::span<const std::int32_t> tokens, bool special) const {
  return impl_->tokenizer().Decode(tokens, special);
}

Result<std::int32_t> Engine::TokenOf(const std::string& text, bool special) const {
  // Encoded after a letter, so that the tokenizer adds no space; the letter must stay a token.
  const auto letter = Tokenize("a", false, special);
  auto tokens = Tokenize("a" + text, false, special);
  const bool apart =
      tokens.size() > letter.size() && std::equal(letter.begin(), letter.end(), tokens.begin());
  if (apart)
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(letter.size()));
  if (!apart || tokens.size() != 1) tokens = Tokenize(text, false, special);
  if (tokens.size() == 1) return tokens.front();
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("'{}' is {} tokens of this model; give a text that is one", text, tokens.size()));
}

Result<std::vector<std::int32_t>> Engine::FormatChat(std::span<const ChatMessage> messages,
                                                     const ChatOptions& options) const {
  return CatchNoMemory("conversation", [&] { return impl_->FormatChat(messages, options); });
}

Result<std::string> Engine::WriteChat(std::span<const ChatMessage> messages,
                                      const ChatOptions& options) const {
  return CatchNoMemory("conversation", [&] { return impl_->WriteChat(messages, options); });
}

Result<std::string> Engine::Impl::WriteChat(std::span<const ChatMessage> messages,
                                            const ChatOptions& options) const {
  FORETOKEN_TRY(const auto chat_template,
                text::ChatTemplate::Choose(opened_.checkpoint->metadata(), options));
  return text::WriteChat(chat_template, *opened_.tokenizer, messages, options);
}

Result<std::vector<Token>> Engine::Impl::FormatChat(std::span<const ChatMessage> messages,
                                                    const ChatOptions& options) const {
  FORETOKEN_TRY(const auto chat_template,
                text::ChatTemplate::Choose(opened_.checkpoint->metadata(), options));
  return text::EncodeChat(chat_template, *opened_.tokenizer, messages, options);
}

Result<std::string> Engine::ChatTemplateText(const ChatOptions& options) const {
  return CatchNoMemory("chat template", [&] { return impl_->ChatTemplateText(options); });
}

Result<std::string> Engine::Impl::ChatTemplateText(const ChatOptions& options) const {
  FORETOKEN_TRY(const std::string_view program,
                text::ChatProgram(opened_.checkpoint->metadata(), options));
  return std::string(program);
}

std::vector<std::int32_t> Engine::ControlTokens() const {
  const text::Tokenizer& tokenizer = impl_->tokenizer();
  std::vector<std::int32_t> tokens;
  for (Token token = 0; token < tokenizer.vocabulary_size(); ++token)
    if (tokenizer.IsControl(token) && !tokenizer.IsEndOfGeneration(token)) tokens.push_back(token);
  return tokens;
}

Status Engine::FileStatus() const {
  return CatchNoMemory("model files", [&] { return impl_->WhyNot(); });
}

Status Engine::RecordStatus() const {
  return CatchNoMemory("trace", [&] { return impl_->record_status(); });
}

CopyProgress Engine::copy() const {
  return impl_->copy();
}

EngineLoad Engine::load() const {
  return impl_->load();
}

const EngineCounts& Engine::counts() const {
  return impl_->accounting().counts();
}

std::vector<RowCost> Engine::PassCosts() const {
  return impl_->accounting().PassCosts();
}

Status Engine::KeepCache() {
  return CatchNoMemory("cache file", [&] { return impl_->KeepCache(); });
}

Status Engine::CacheFileStatus() const {
  return CatchNoMemory("cache file", [&] { return impl_->CacheFileStatus(); });
}

Status Engine::Impl::KeepCache() {
  if (!opened_.store || !WhyNot()) return {};
  opened_.cache->KeepAll();
  return opened_.store->file().status();
}

void Engine::LimitGrammars(std::size_t max_bytes) const noexcept {
  impl_->preparation().LimitGrammars(max_bytes);
}

double Engine::PlainStepUs(int requests) const {
  return impl_->accounting().PlainStepUs(requests);
}

const EngineSummary& Engine::summary() const {
  return impl_->summary();
}

Result<PreparedRequest> Engine::Impl::Prepare(Request request) const {
  FORETOKEN_CHECK_OK(WhyNot());
  return preparation_->Prepare(std::move(request));
}

Result<Ticket> Engine::Impl::Begin(PreparedRequest request, OnRound on_round) {
  if (!CanGoOn()) return Fail(WhyNot().error());
  if (!preparation_->Made(request))
    return Fail(ErrorCode::kInvalidArgument,
                "request: another engine prepared it; prepare it with this one");
  return admission_->Add(std::move(request), std::move(on_round));
}

Result<Ticket> Engine::Impl::Begin(Request request, OnRound on_round) {
  FORETOKEN_TRY(auto prepared, Prepare(std::move(request)));
  return Begin(std::move(prepared), std::move(on_round));
}

void Engine::Impl::Forget() {
  for (const loader::DrafterEntry& entry : drafters_) entry.drafter->Forget();
}

Result<std::vector<Completion>> Engine::Impl::Generate(std::span<const Request> requests,
                                                       const OnRound& on_round) {
  std::vector<PreparedRequest> prepared;
  for (const Request& request : requests) {
    FORETOKEN_TRY(auto one, Prepare(request));
    prepared.push_back(std::move(one));
  }
  struct Begun {  // ends the requests that are left when this function returns
    Impl& engine;
    std::vector<Ticket> tickets = {};
    ~Begun() {
      for (const Ticket ticket : tickets) engine.End(ticket), engine.Take(ticket);
    }
  } begun{*this};
  std::vector<Completion> completions;
  begun.tickets.reserve(requests.size()), completions.reserve(requests.size());
  if (!CanGoOn()) return Fail(WhyNot().error());
  for (PreparedRequest& request : prepared)
    begun.tickets.push_back(admission_->Add(std::move(request), on_round, true));
  for (const Ticket ticket : begun.tickets) {
    auto completion = Take(ticket);
    for (; !completion; completion = Take(ticket)) Step();
    if (completion->error) return Fail(*std::move(completion->error));
    completions.push_back(*std::move(completion));
  }
  return completions;
}

Result<Measurements> Engine::Impl::Measure(const MeasureOptions& options) {
  const calibrate::Subject subject = engine::SubjectOf(opened_);
  FORETOKEN_CHECK_OK(options.sampling.Validate(opened_.vocabulary));
  if (opened_.options.speculative.strategy == VerifyStrategy::kGreedy && !options.sampling.greedy())
    return Fail(ErrorCode::kInvalidArgument,
                "measure: 'greedy' verifies only at temperature 0; set the temperature to 0");
  FORETOKEN_CHECK_OK(calibrate::CheckMeasure(options, subject));
  Request request;
  request.sampling = options.sampling;
  const ModelSummary* const draft = opened_.summary.draft_model.get();
  // The first drafter of requests that name no method.
  const std::vector<int>& defaults = drafters_.defaults();
  return calibrate::Measure(
      options, {.subject = subject,
                .drafter = defaults.empty() ? nullptr : drafters_[defaults.front()].drafter.get(),
                .draft_context = draft == nullptr ? 0 : draft->context_size,
                .prefill_rows = opened_.options.prefill_rows,
                .verifier = speculation_->VerifierFor(request)});
}

}  // namespace foretoken
