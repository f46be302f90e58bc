// SPDX-License-Identifier: Apache-2.0
#include "foretoken/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "engine/impl.h"
#include "foretoken/no_memory.h"
#include "foretoken/speculative_config.h"
#include "text/chat_template.h"

namespace foretoken {

namespace {

// For rounds of up to n drafts.
void MakeRoomForCounts(SpeculationStats& stats, std::size_t n) {
  for (auto* counts :
       {&stats.drafted_per_position, &stats.judged_per_position, &stats.accepted_per_position})
    counts->resize(std::max(counts->size(), n));
  stats.k_histogram.resize(std::max(stats.k_histogram.size(), n + 1));
}

}  // namespace

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

Status Engine::PrepareGrammar(SamplingParameters& sampling) const {
  return CatchNoMemory("grammar", [&] { return impl_->PrepareGrammar(sampling); });
}

std::vector<std::int32_t> Engine::Tokenize(const std::string& text, bool add_special,
                                           bool parse_special) const {
  return impl_->tokenizer().Encode(text,
                                   {.add_special = add_special, .parse_special = parse_special});
}

std::string Engine::Detokenize(std::span<const std::int32_t> tokens, bool special) const {
  return impl_->tokenizer().Decode(tokens, special);
}

Result<std::int32_t> Engine::TokenOf(const std::string& text, bool special) const {
  // Behind a letter, so that no space is put before it; the letter may not become a part of it.
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

Result<std::vector<Token>> Engine::Impl::FormatChat(std::span<const ChatMessage> messages,
                                                    const ChatOptions& options) const {
  FORETOKEN_TRY(const auto chat_template,
                text::ChatTemplate::Choose(checkpoint_->metadata(), options.chat_template));
  return text::EncodeChat(chat_template, *tokenizer_, messages, options);
}

Status Engine::FileStatus() const {
  return CatchNoMemory("model files", [&] { return impl_->files().status(); });
}

Status Engine::RecordStatus() const {
  return CatchNoMemory("trace", [&] { return impl_->record_status(); });
}

EngineLoad Engine::load() const {
  return impl_->load();
}

const EngineCounts& Engine::counts() const {
  return impl_->counts();
}

std::vector<RowCost> Engine::PassCosts() const {
  return impl_->PassCosts();
}

double Engine::PlainStepUs(int requests) const {
  return impl_->PlainStepUs(requests);
}

const EngineSummary& Engine::summary() const {
  return impl_->summary();
}

std::vector<Token> Engine::Impl::PromptTokens(const Request& request) const {
  if (!request.prompt_tokens.empty()) return request.prompt_tokens;
  auto tokens = tokenizer_->Encode(
      request.prompt, {.add_special = request.add_special, .parse_special = request.parse_special});
  if (tokens.empty() && tokenizer_->bos()) tokens.push_back(*tokenizer_->bos());
  return tokens;
}

Status Engine::Impl::Check(const Request& request, std::span<const Token> prompt) const {
  const auto bad = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  FORETOKEN_CHECK_OK(request.sampling.Validate(vocabulary_));
  if (request.speculative.draft_sampling) {
    if (auto status = request.speculative.draft_sampling->Validate(vocabulary_); !status)
      return Fail(std::move(status).error().In("draft sampling"));
  }
  if (request.max_new_tokens < 0)
    return bad(fmt::format("max tokens: {} is negative; use 0 or more", request.max_new_tokens));
  if (request.min_new_tokens < 0)
    return bad(fmt::format("min tokens: {} is negative; use 0 or more", request.min_new_tokens));
  if (request.min_new_tokens > request.max_new_tokens)
    return bad(fmt::format("min tokens: {} is more than max tokens {}; lower it",
                           request.min_new_tokens, request.max_new_tokens));
  if (request.logprobs < -1 || request.logprobs > sampling::kMaxTopLogprobs)
    return bad(fmt::format("logprobs: {} is out of range; use 0 to {}", request.logprobs,
                           sampling::kMaxTopLogprobs));
  if (request.prompt_logprobs < -1 || request.prompt_logprobs > sampling::kMaxTopLogprobs)
    return bad(fmt::format("prompt logprobs: {} is out of range; use 0 to {}",
                           request.prompt_logprobs, sampling::kMaxTopLogprobs));
  for (const auto& stop : request.stop)
    if (stop.empty()) return bad("stop: an empty stop string; drop it");
  for (const Token id : request.stop_token_ids)
    if (id < 0 || id >= vocabulary_)
      return bad(fmt::format("stop token ids: {} is not in the vocabulary; use 0 to {}", id,
                             vocabulary_ - 1));
  for (const Token id : prompt)
    if (id < 0 || id >= vocabulary_)
      return bad(fmt::format("prompt tokens: {} is not in the vocabulary; use 0 to {}", id,
                             vocabulary_ - 1));
  FORETOKEN_CHECK_OK(CheckSpeculation(request));
  if (prompt.empty()) return bad("prompt: it has no tokens; give some text");
  if (static_cast<int>(prompt.size()) >= context_size_)
    return Fail(
        ErrorCode::kTooLarge,
        fmt::format("prompt: {} tokens do not fit a context of {}; shorten it or raise --ctx-size",
                    prompt.size(), context_size_));
  // It must be able to run when all others have given their blocks back.
  const auto n = static_cast<int>(prompt.size());
  const int more = std::min(request.max_new_tokens, context_size_ - n);
  if (n + more > MostPositions())
    return Fail(ErrorCode::kTooLarge,
                fmt::format("prompt: {} tokens and up to {} more do not fit a cache of {}; ask for "
                            "fewer or raise --cache-tokens",
                            n, more, MostPositions()));
  return {};
}

Result<std::vector<int>> Engine::Impl::DraftersOf(std::string_view methods) const {
  std::vector<int> found;
  for (std::size_t at = 0; at <= methods.size();) {
    const std::size_t comma = std::min(methods.find(',', at), methods.size());
    const std::string_view method = methods.substr(at, comma - at);
    at = comma + 1;
    if (method == "none" || method.empty()) continue;
    const std::size_t before = found.size();
    for (std::size_t d = 0; d < drafters_.size(); ++d)
      if (drafters_[d].Answers(method)) found.push_back(static_cast<int>(d));
    if (found.size() == before && method != "portfolio") {
      std::vector<std::string_view> names = {"none"};
      for (const DrafterEntry& entry : drafters_) names.push_back(entry.name);
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("speculative method: '{}' is not one of this engine's; use {}",
                              method, fmt::join(names, ", ")));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// REQUIRES: checked.
std::vector<int> Engine::Impl::DraftersFor(const Request& request) const {
  const SpeculativeParameters& s = request.speculative;
  const int k = s.num_speculative_tokens.value_or(*options_.speculative.num_speculative_tokens);
  if (!s.enabled.value_or(true) || k == 0) return {};
  auto drafters = s.method ? *DraftersOf(*s.method) : default_drafters_;
  const bool any = !drafters.empty();
  std::erase_if(drafters, [&](int d) {
    const std::string_view method = drafters_[static_cast<std::size_t>(d)].method;
    return method == "grammar" || (method == "prediction" && request.prediction.empty());
  });
  // What a grammar forces is drafted before all else, whatever method was chosen.
  if (any && !request.sampling.grammar.empty() && !ReadsDrafts(request))
    drafters.insert(drafters.begin(), DraftersOf("grammar")->front());
  return drafters;
}

// Whether the rule asked for reads laws or logits, which not every drafter has.
bool Engine::Impl::ReadsDrafts(const Request& request) const {
  const VerifyStrategy strategy = StrategyOf(request);
  const verify::Verifier* const verifier = own_verifier_ ? own_verifier_.get()
                                           : strategy == VerifyStrategy::kAuto
                                               ? nullptr
                                               : &VerifierOf(strategy);
  return verifier != nullptr && (verifier->NeedsLaws() || verifier->NeedsLogits());
}

// The rule for a request: asked for by name, else by what its drafts will be.
const verify::Verifier& Engine::Impl::VerifierFor(const Request& request) const {
  if (synthetic_) return *synthetic_;
  if (own_verifier_) return *own_verifier_;
  // At temperature 0 every rule is greedy, so that is the name and the promise of the result.
  if (request.sampling.greedy()) return VerifierOf(VerifyStrategy::kGreedy);
  const VerifyStrategy strategy = StrategyOf(request);
  if (strategy != VerifyStrategy::kAuto) return VerifierOf(strategy);
  // Where draft lengths follow measured time or the load, no text may depend on them (ADR 0009).
  const SpeculativeOptions& set = options_.speculative;
  const bool by_time = set.lookahead == "cost-model" || set.lookahead == "batch-size";
  const bool bent = set.acceptance_threshold != 0 || set.skip_sample_adjustment;
  // A shortest draft needs a rule under which short ones may be withheld.
  if ((by_time || LeastDraftsOf(request) > 1) && !bent)
    return VerifierOf(VerifyStrategy::kSampleMatch);
  const bool certain = request.speculative.draft_sampling.value_or(request.sampling).greedy();
  for (const int d : DraftersFor(request))
    if (drafters_[static_cast<std::size_t>(d)].drafter->ReportsLaws() && !certain)
      return VerifierOf(VerifyStrategy::kResidual);
  return VerifierOf(VerifyStrategy::kSampleMatch);
}

std::vector<std::string> Engine::Impl::StrategyNames() const {
  std::vector<std::string> names;
  if (synthetic_ || own_verifier_) return names;
  const auto reported = [this](auto what) {
    return std::any_of(drafters_.begin(), drafters_.end(),
                       [what](const DrafterEntry& entry) { return ((*entry.drafter).*what)(); });
  };
  for (std::size_t i = 1; i < verify::Rules::kCount; ++i) {
    const verify::Verifier& verifier = VerifierOf(static_cast<VerifyStrategy>(i));
    if (verifier.NeedsLaws() && !reported(&draft::Drafter::ReportsLaws)) continue;
    if (verifier.NeedsLogits() && !reported(&draft::Drafter::ReportsLogits)) continue;
    names.emplace_back(verifier.name());
  }
  return names;
}

// By the rules for the engine's own setting.
Status Engine::Impl::CheckLeastDrafts(const Request& request) const {
  const SpeculativeParameters& s = request.speculative;
  const SpeculativeOptions& set = options_.speculative;
  if (LeastDraftsOf(request) > 1 && JudgesLaws(request))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("min_speculative_tokens: under {} a drawn draft must be verified, and "
                            "dropping short ones would bias the text; set it to 0 or use "
                            "sample-match",
                            VerifierFor(request).name()));
  if (!s.min_speculative_tokens) return {};
  SpeculativeOptions asked;
  asked.strategy = StrategyOf(request);
  asked.num_speculative_tokens = s.num_speculative_tokens.value_or(*set.num_speculative_tokens);
  asked.min_speculative_tokens = *s.min_speculative_tokens;
  asked.synthetic_acceptance_rate = set.synthetic_acceptance_rate;
  auto config = SpeculativeConfig::Create(asked);
  return config ? Status() : Fail(std::move(config).error());
}

// Of a round that has any. The engine's setting counts as K for requests with a smaller K.
int Engine::Impl::LeastDraftsOf(const Request& request) const {
  const SpeculativeParameters& s = request.speculative;
  const SpeculativeOptions& set = options_.speculative;
  const int most = s.num_speculative_tokens.value_or(*set.num_speculative_tokens);
  return std::max(1, std::min(most, s.min_speculative_tokens.value_or(set.min_speculative_tokens)));
}

bool Engine::Impl::JudgesLaws(const Request& request) const {
  const bool certain = request.speculative.draft_sampling.value_or(request.sampling).greedy();
  if (certain || request.sampling.greedy() || !VerifierFor(request).NeedsLaws()) return false;
  const auto drafters = DraftersFor(request);
  return std::any_of(drafters.begin(), drafters.end(), [this](int d) {
    return drafters_[static_cast<std::size_t>(d)].drafter->ReportsLaws();
  });
}

// At temperature 0 lossless strategies are greedy, and those of foretoken's own that are not, too.
// Synthetic acceptance is for measurements, which want the engine's controller.
bool Engine::Impl::FollowsDrafts(const Request& request, const verify::Verifier& verifier) const {
  if (verifier.SharesNoise() || &verifier == synthetic_.get()) return false;
  const bool own = &verifier == own_verifier_.get();
  return !request.sampling.greedy() || (own && !verifier.Lossless());
}

// What a strategy asks of the drafters.
Status Engine::Impl::CheckSpeculation(const Request& request) const {
  const auto bad = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  const SpeculativeParameters& s = request.speculative;
  if (s.method) {
    if (auto drafters = DraftersOf(*s.method); !drafters) return Fail(std::move(drafters).error());
  }
  const int k = s.num_speculative_tokens.value_or(0);
  if (k < 0 || k > kMaxDraft)
    return bad(fmt::format("speculative tokens: {} is out of range; use 0 to {}", k, kMaxDraft));
  const float p_min = s.draft_p_min.value_or(0);
  if (!(p_min >= 0 && p_min <= 1))
    return bad(fmt::format("draft p-min: {} is out of range; use 0 to 1", p_min));
  FORETOKEN_CHECK_OK(CheckLeastDrafts(request));
  if (recorder_ && !s.first_target.value_or(options_.speculative.first_target))
    return bad(
        "first target: a trace begins with a token of the target's; leave it on, or record "
        "nothing");
  constexpr VerifyStrategy kAuto = VerifyStrategy::kAuto;
  const VerifyStrategy strategy = StrategyOf(request);
  if ((synthetic_ || own_verifier_) && s.strategy.value_or(kAuto) != kAuto)
    return bad(fmt::format("verify: '{}' verifies every request of this engine; leave '{}' out",
                           VerifierFor(request).name(), Name(strategy)));
  if (strategy == VerifyStrategy::kGreedy && !request.sampling.greedy())
    return bad(
        fmt::format("verify: 'greedy' with temperature {} would give greedy text; use temperature "
                    "0, or residual or sample-match",
                    request.sampling.temperature));
  if (synthetic_ || (strategy == kAuto && !own_verifier_)) return {};
  // The rule that was asked for, also where temperature 0 replaces it by greedy.
  const verify::Verifier& verifier = own_verifier_ ? *own_verifier_ : VerifierOf(strategy);
  for (const int d : DraftersFor(request)) {
    const DrafterEntry& entry = drafters_[static_cast<std::size_t>(d)];
    if (verifier.NeedsLaws() && !entry.drafter->ReportsLaws())
      return bad(fmt::format(
          "verify: '{}' needs a drafter that reports its distributions, and {} reports none; use "
          "sample-match",
          verifier.name(), entry.name));
    if (verifier.NeedsLogits() && !entry.drafter->ReportsLogits())
      return bad(
          fmt::format("verify: '{}' needs a drafter that reports its logits, and {} reports none; "
                      "use sample-match",
                      verifier.name(), entry.name));
  }
  return {};
}

Result<std::unique_ptr<engine::Job>> Engine::Impl::MakeJob(Request request, OnRound on_round) {
  FORETOKEN_CHECK_OK(CheckFiles());
  auto job = std::make_unique<engine::Job>();
  job->prompt = PromptTokens(request);
  FORETOKEN_CHECK_OK(Check(request, job->prompt));
  FORETOKEN_TRY(job->grammar, grammars_->Of(request.sampling));
  job->no_memory = NoMemory("request");
  job->request = std::move(request);
  job->on_round = std::move(on_round);
  return job;
}

// Where memory is refused, the request was never there.
Ticket Engine::Impl::Enqueue(std::unique_ptr<engine::Job> job) {
  const Ticket ticket = job->ticket = last_ticket_ + 1;
  const auto at = jobs_.emplace(ticket, std::move(job)).first;
  try {
    waiting_.push_back(at->second.get());
  } catch (const std::bad_alloc&) {
    jobs_.erase(at);
    throw;
  }
  return last_ticket_ = ticket;
}

Result<Ticket> Engine::Impl::Begin(Request request, OnRound on_round) {
  FORETOKEN_TRY(auto job, MakeJob(std::move(request), std::move(on_round)));
  return Enqueue(std::move(job));
}

void Engine::Impl::Cancel(Ticket ticket) noexcept {
  if (const auto found = jobs_.find(ticket); found != jobs_.end()) found->second->cancelled = true;
}

void Engine::Impl::Forget() {
  for (const DrafterEntry& entry : drafters_) entry.drafter->Forget();
}

std::optional<Completion> Engine::Impl::Take(Ticket ticket) noexcept {
  const auto found = jobs_.find(ticket);
  if (found == jobs_.end() || !found->second->completion) return std::nullopt;
  auto completion = std::move(found->second->completion);
  jobs_.erase(found);
  return completion;
}

const engine::Job* Engine::Impl::JobOf(Ticket ticket) const noexcept {
  const auto found = jobs_.find(ticket);
  return found == jobs_.end() ? nullptr : found->second.get();
}

const engine::Sequence* Engine::Impl::SequenceOf(Ticket ticket) const noexcept {
  const engine::Job* const job = JobOf(ticket);
  if (job == nullptr || job->seq < 0) return nullptr;
  return sequences_[static_cast<std::size_t>(job->seq)].get();
}

void Engine::Impl::Pause(Ticket ticket, bool paused) noexcept {
  if (const auto found = jobs_.find(ticket); found != jobs_.end()) found->second->paused = paused;
}

Status Engine::Impl::Replace(Ticket ticket, std::span<const Token> drafts) {
  const auto bad = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  const engine::Sequence* const s = SequenceOf(ticket);
  const auto work = std::find_if(work_.begin(), work_.end(), [&](const Work& w) {
    return s != nullptr && w.seq == s->job->seq && w.decodes && !w.prefill;
  });
  if (!drafted_ || work == work_.end())
    return bad("drafts: the request does not decode in this step; call Draft first");
  const int most = std::min(kMaxDraft, s->emitter.tokens_left() - 1);
  if (static_cast<int>(drafts.size()) > most)
    return bad(fmt::format("drafts: {} are given, and this request takes {} at most; give fewer",
                           drafts.size(), most));
  for (const Token id : drafts)
    if (id < 0 || id >= vocabulary_)
      return bad(
          fmt::format("drafts: {} is not in the vocabulary; use 0 to {}", id, vocabulary_ - 1));
  if (s->verifier->NeedsLogits())
    return bad(
        fmt::format("drafts: '{}' compares a drafter's logits, and given drafts have none; "
                    "use another strategy",
                    s->verifier->name()));
  const round::Proposal made = std::exchange(work->proposal, {.tokens = drafts});
  if (BlocksOfPass() > cache_->n_available_blocks()) {
    work->proposal = made;
    return Fail(ErrorCode::kTooLarge,
                fmt::format("drafts: the cache has no blocks left for {}; give fewer or raise "
                            "--cache-tokens",
                            drafts.size()));
  }
  work->given = true;
  Completion& completion = sequences_[static_cast<std::size_t>(work->seq)]->completion;
  completion.lossless = s->verifier->Lossless();
  MakeRoomForCounts(completion.speculation, drafts.size());
  return {};
}

void Engine::Impl::Admit(engine::Job& job, SeqId seq) {
  const Request& request = job.request;
  job.seq = seq;
  const verify::Verifier& verifier = VerifierFor(request);
  const int room = context_size_ - static_cast<int>(job.prompt.size());
  const int max_new = std::min(request.max_new_tokens, room);
  std::vector<Token> end_tokens = request.stop_token_ids;  // all that end this request
  if (!request.ignore_eos)
    end_tokens.insert(end_tokens.end(), end_tokens_.begin(), end_tokens_.end());
  sampling::Sampler sampler({.parameters = request.sampling,
                             .end_tokens = end_tokens,
                             .min_new_tokens = request.min_new_tokens,
                             .noise = Noise(request.seed, request.id),
                             .grammar = job.grammar},
                            vocabulary_, *kernels_);
  sampler.Begin(job.prompt, max_new + kMaxDraft + 1);
  auto& slot = sequences_[static_cast<std::size_t>(seq)];
  slot.reset(
      new engine::Sequence{.job = &job,
                           .sampler = std::move(sampler),
                           .emitter = engine::Emitter(*tokenizer_, request, end_tokens, room),
                           .verifier = &verifier,
                           .drafters = DraftersFor(request),
                           .completion = {}});
  Completion& completion = slot->completion;
  completion.seed = request.seed;
  completion.strategy = verifier.name();
  // Without drafts no rule of foretoken's changes anything; `synthetic` takes the best token.
  const bool plain = slot->drafters.empty() && !synthetic_ && !own_verifier_;
  completion.lossless = plain || verifier.Lossless();
  completion.notices = NoticesOf(request);
  completion.token_ids.reserve(static_cast<std::size_t>(max_new));
  if (request.logprobs >= 0) completion.logprobs.reserve(static_cast<std::size_t>(max_new));
  if (request.prompt_logprobs >= 0) completion.prompt_logprobs.reserve(job.prompt.size() - 1);
  slot->follows_drafts = FollowsDrafts(request, verifier);
  BeginDrafters(*slot, seq, max_new);
  completion.lookahead = LookaheadOf(*slot);
  RecordRequest(seq);
  completion.prompt_token_ids = job.prompt;
}

void Engine::Impl::BeginDrafters(engine::Sequence& s, SeqId seq, int max_new) {
  const Request& request = s.request();
  const SpeculativeParameters& speculative = request.speculative;
  const SpeculativeOptions& options = options_.speculative;
  if (s.drafts())
    s.most_drafts = speculative.num_speculative_tokens.value_or(*options.num_speculative_tokens);
  MakeRoomForCounts(s.completion.speculation, static_cast<std::size_t>(s.most_drafts));
  if (!s.drafts()) return;
  const SamplingParameters sampling = speculative.draft_sampling.value_or(request.sampling);
  std::vector<Token> end_tokens = request.stop_token_ids;
  if (!request.ignore_eos)
    end_tokens.insert(end_tokens.end(), end_tokens_.begin(), end_tokens_.end());
  const auto prediction =
      tokenizer_->Encode(request.prediction, {.add_special = false, .parse_special = false});
  for (const int d : s.drafters) {
    draft::Drafter& drafter = *drafters_[static_cast<std::size_t>(d)].drafter;
    s.n_likely = std::max(s.n_likely, drafter.LikelyTokens());
    drafter.Begin({.seq = seq,
                   .prompt = s.sampler.text(),
                   .max_new_tokens = max_new,
                   .sampling = sampling,
                   .end_tokens = end_tokens,
                   .min_new_tokens = request.min_new_tokens,
                   .noise = s.sampler.noise(),
                   .stream = s.verifier->SharesNoise() ? Stream::kTarget : Stream::kDraft,
                   .draft_p_min = speculative.draft_p_min.value_or(options.draft_p_min),
                   .prediction = prediction,
                   .own_text_only = s.follows_drafts,
                   .grammar = s.job->grammar});
  }
  s.drafts_first =
      !speculative.first_target.value_or(options.first_target) && request.prompt_logprobs < 0;
  s.least_drafts = LeastDraftsOf(request);
  lookahead_->Begin(seq, {s.least_drafts, s.most_drafts, s.follows_drafts});
}

// The controller that chooses its draft lengths.
std::string Engine::Impl::LookaheadOf(const engine::Sequence& s) const {
  if (!s.drafts()) return "";
  const std::string& name = options_.speculative.lookahead;
  const bool by_time = name == "cost-model" || name == "batch-size";
  return by_time && s.follows_drafts ? "by-text" : name;
}

Result<std::vector<Completion>> Engine::Impl::Generate(std::span<const Request> requests,
                                                       const OnRound& on_round) {
  std::vector<std::unique_ptr<engine::Job>> jobs;
  for (const Request& request : requests) {
    FORETOKEN_TRY(auto job, MakeJob(request, on_round));
    jobs.push_back(std::move(job));
  }
  struct Begun {  // what is still there when this function returns must not run on
    Impl& engine;
    std::vector<Ticket> tickets = {};
    ~Begun() {
      for (const Ticket ticket : tickets) engine.End(ticket), engine.Take(ticket);
    }
  } begun{*this};
  std::vector<Completion> completions;
  begun.tickets.reserve(jobs.size()), completions.reserve(jobs.size());
  for (auto& job : jobs) {
    job->in_batch = true;
    begun.tickets.push_back(Enqueue(std::move(job)));
  }
  for (const Ticket ticket : begun.tickets) {
    auto completion = Take(ticket);
    for (; !completion; completion = Take(ticket)) Step();
    if (completion->error) return Fail(*std::move(completion->error));
    completions.push_back(*std::move(completion));
  }
  return completions;
}

Result<std::vector<float>> Engine::Impl::Score(std::span<const Token> tokens) {
  if (static_cast<int>(tokens.size()) > MostPositions())
    return Fail(ErrorCode::kTooLarge, fmt::format("score: {} tokens do not fit a context of {}",
                                                  tokens.size(), MostPositions()));
  for (const Token id : tokens)
    if (id < 0 || id >= vocabulary_)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("score: token {} is not in the vocabulary of {}", id, vocabulary_));
  if (std::any_of(sequences_.begin(), sequences_.end(), [](const auto& s) { return s != nullptr; }))
    return Fail(ErrorCode::kInvalidArgument,
                "score: requests are running; take their results first");
  std::vector<float> logprobs;
  if (tokens.empty()) return logprobs;
  const Feed feed{0, tokens.first(tokens.size() - 1)};
  logprobs.reserve(tokens.size());
  const Status read = CatchNoMemory("score", [&] {
    return ReadRows({&feed, 1}, [&](std::size_t, int i, const float* logits) {
      logprobs.push_back(logprobs_->Of(logits, tokens[static_cast<std::size_t>(i) + 1]));
    });
  });
  cache_->Truncate(0, 0);
  if (!read) return Fail(read.error());
  return logprobs;
}

}  // namespace foretoken
