// SPDX-License-Identifier: Apache-2.0
// tests/ranks/rank_choices.cpp: whether rows of logits choose the same tokens on several ranks as in
// one process, with whole output heads and with some of their rows. Started by mpirun.
//
// usage: rank_choices FOLDER              small models are written into FOLDER, which all ranks see
//        rank_choices --traffic FILE      what a pass of 5 rows of this model gathers
// Rank 0 prints the number of comparisons, or the bytes. Exit code 1: there was a difference.
#include "fixtures/tiny_model.h"
#include "kernels/choice_testing.h"
#include "loader/ranks/follower.h"
#include "model/ranks/lead_runner.h"
#include "ranks/rank_testing.h"

namespace foretoken {
namespace {

using kernels::Choice;
using kernels::ChoiceRule;

constexpr int kPositions = 96, kMaxRows = 32;

std::unique_ptr<model::LocalRunner> Open(const formats::Checkpoint& file, ThreadPool& pool,
                                         comm::Ranks* ranks, const std::vector<int>& speeds,
                                         const std::vector<std::int32_t>& output_tokens) {
  model::RunnerOptions options;
  options.max_rows = options.max_logit_rows = kMaxRows;
  options.max_positions = kPositions;
  options.cache.n_blocks = kPositions / tensor::kKvBlock;
  options.output_tokens = output_tokens;
  options.ranks = ranks;
  if (ranks != nullptr) options.division = model::Division(ranks->rank(), speeds);
  return Checked(model::LocalRunner::Load(file, ConfigOf(file), options, Kernels(), pool, {}));
}

// A pass whose rows choose.
struct ChoosingPass : TestPass {
  using TestPass::TestPass;
  std::vector<Choice> choices;
  model::Pass View() const {
    model::Pass pass = TestPass::View();
    pass.choices = choices;
    return pass;
  }
};

Choice MakeChoice(ChoiceRule rule, int n_tokens, int number) {
  return {.rule = rule,
          .n_tokens = n_tokens,
          .inverse_temperature = 0.5f + 0.25f * static_cast<float>(number % 5),
          .noise = {{static_cast<std::uint32_t>(number), 7, 1}, {42, 3}}};
}

// Runs of rows that choose, and of rows that are whole.
int Compare(model::Runner& many, model::Runner& one, int columns, const std::string& what) {
  int position = 0, n_compared = 0;
  for (const int n_rows : {20, 31, 1, 5, 1, 1}) {
    ChoosingPass test(position, n_rows);
    for (int i = 0; i < n_rows; ++i) {
      const int number = position + i;
      const ChoiceRule rule = number % 7 < 2    ? ChoiceRule::kNone
                              : number % 2 == 0 ? ChoiceRule::kBest
                                                : ChoiceRule::kRace;
      test.choices.push_back(MakeChoice(rule, columns - number % 3 * (columns / 8), number));
    }
    const model::PassResult &got = many.Run(test.View()), &wanted = one.Run(test.View());
    for (int i = 0; i < n_rows; ++i, ++n_compared) {
      const std::string at = what + " at position " + std::to_string(position + i);
      const auto row = static_cast<std::size_t>(i), width = static_cast<std::size_t>(columns);
      const Token token = got.chosen.empty() ? kNoToken : got.chosen[row];
      Check(got.Finite(i), at + ": it is not finite");
      if (token == kNoToken)
        Check(Same(got.Logits(i), wanted.Logits(i), columns), at + ": other logits");
      else
        Check(token ==
                  kernels::ChoiceOfWhole(Kernels(), test.choices[row], {wanted.Logits(i), width}),
              at + ": another token");
      const bool whole = !many.info().chooses || test.choices[row].rule == ChoiceRule::kNone;
      Check((token == kNoToken) == whole, at + ": another kind of row");
    }
    position += n_rows;
  }
  return n_compared;
}

// Calls fn(lead) on rank 0, while the other ranks follow.
template <typename Function>
void OnRanks(RankGroup::Impl& group, const std::shared_ptr<formats::Checkpoint>& file,
             std::unique_ptr<model::LocalRunner> own, Function&& fn) {
  if (!group.ranks().leads()) {
    loader::Follower follower(group);
    follower.Add(0, file, std::move(own));
    const Status status = follower.Run();
    Check(status.has_value(), status ? "" : status.error().message);
    return;
  }
  {
    model::LeadRunner lead(std::move(own), 0, group.ranks());
    fn(lead);
  }
  group.Leave();
}

int RunAll(RankGroup::Impl& group, const std::string& folder) {
  comm::Ranks& ranks = group.ranks();
  int n_compared = 0;
  const std::vector<int> uneven = Shares(ranks.size(), 3);
  std::vector<std::int32_t> some, few = {5, 6, 100, 101, 310};
  for (int i = 3; i < 320; i += 1 + i % 3) some.push_back(i);
  for (const char* const architecture : {"llama", "gemma2", "granite"})
    for (const auto type : {tensor::DType::kF32, tensor::DType::kQ8_0})
      for (const auto& kept : {std::vector<std::int32_t>(), some, few})
        for (const int n_threads : {1, 2}) {
          auto options = fixtures::SmallestOf(architecture);
          options.seed = 11, options.vocab = 320, options.weight_type = type;
          const auto file =
              Share(ranks, ranks.leads() ? fixtures::WriteTinyModel(folder, options) : "");
          ThreadPool pool(n_threads);
          OnRanks(group, file, Open(*file, pool, &ranks, uneven, kept), [&](model::Runner& lead) {
            ThreadPool alone(1);
            const auto one = Open(*file, alone, nullptr, {}, kept);
            const int columns = kept.empty() ? options.vocab : static_cast<int>(kept.size());
            Check(lead.info().output_tokens.size() == kept.size(), "other output tokens");
            n_compared += Compare(lead, *one, columns,
                                  std::string(architecture) + ", " + std::to_string(kept.size()) +
                                      " tokens, " + std::to_string(n_threads) + " threads");
          });
        }
  return n_compared;
}

void PrintTraffic(RankGroup::Impl& group, const std::string& path) {
  comm::Ranks& ranks = group.ranks();
  const std::shared_ptr<formats::Checkpoint> file = Checked(formats::OpenCheckpoint(path));
  ThreadPool pool(1);
  OnRanks(
      group, file, Open(*file, pool, &ranks, Shares(ranks.size()), {}), [&](model::Runner& lead) {
        ChoosingPass test(0, 5);
        const auto bytes = [&](std::vector<int> rows, std::vector<Choice> choices) {
          test.logit_rows = std::move(rows), test.choices = std::move(choices);
          const auto before = ranks.traffic();
          lead.Run(test.View());
          return std::pair(ranks.traffic().gathered_bytes - before.gathered_bytes,
                           ranks.traffic().gathers - before.gathers);
        };
        const auto none = bytes({}, {});
        for (const auto& [name, rule] :
             {std::pair("whole", ChoiceRule::kNone), std::pair("best", ChoiceRule::kBest),
              std::pair("race", ChoiceRule::kRace)}) {
          std::vector<Choice> choices;
          for (int i = 0; i < 5; ++i)
            choices.push_back(MakeChoice(rule, lead.info().vocabulary, i));
          const auto all = bytes({0, 1, 2, 3, 4}, choices);
          std::printf(
              "%d ranks, vocabulary %d, 5 rows, %s: rank 0 receives %lld bytes in %lld gathers\n",
              ranks.size(), lead.info().vocabulary, name,
              static_cast<long long>(all.first - none.first),
              static_cast<long long>(all.second - none.second));
        }
      });
}

int Run(const std::vector<std::string>& arguments) {
  RankGroup::Impl group(Checked(comm::JoinMpi({})), 1);
  if (arguments.size() == 2 && arguments[0] == "--traffic") {
    PrintTraffic(group, arguments[1]);
    return 0;
  }
  const int n_compared = RunAll(group, arguments[0]);
  if (group.ranks().leads())
    std::printf("%d ranks: %d rows equal\n", group.ranks().size(), n_compared);
  return 0;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) {
  return argc < 2 ? 2 : foretoken::Run({argv + 1, argv + argc});
}
