// SPDX-License-Identifier: Apache-2.0
// draft_length/round_costs.h: the cost of a round on this machine with these models: the target's
// passes by rows and context, drafts by drafter, and the engine's own work. It starts with
// measurements and is updated while the engine runs.
//
// There is one for each engine. Readings are stored by rows, without what their contexts cost
// (context_costs.h), relative to the machine's current speed, so a slow minute does not make a pass look
// expensive later. More rows never cost less: where readings say otherwise, they are averaged, weighted by how often each was
// made (isotonic regression, by pooling neighbours that disagree). Few readings of a row count weigh
// little beside many of its neighbours, so one bad reading does not rule a length out. In a long run of
// passes of equal rows a reading tells of the machine's speed, and hardly of these rows beside others. Work may take longer than it
// must, but never less: of two passes measured at the start the wider one bounds the narrower one,
// and a reading of a row count that was not read for long is believed at once if it is far below
// what was expected, and the next pass of other rows does not show that the machine has become
// faster. A reading far above what at least four readings of its row count agree on is a pause and is not
// believed, unless another one follows at once or in the next pass of as many rows. Drafts, too, are
// stored relative to the machine's speed. A row count that was never read is estimated from its
// neighbours along the curve that was measured at the start. Nothing is estimated beyond the measured
// rows, or twice the rows that were seen. Passes of mixtures of experts are stored as those of rows that
// choose their experts independently (expert_costs.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "draft_length/context_costs.h"
#include "draft_length/expert_costs.h"
#include "foretoken/tools/measure.h"

namespace foretoken::draft_length {

// What a RoundCosts has learned: as Start and StartDrafter take it.
struct LearnedCosts {
  struct Pass {
    int rows = 0;
    double us = 0;
  };
  struct Drafts {
    double one_us = 0, all_us = 0, row_us = 0, first = 1;
  };
  std::vector<Pass> passes;    // ascending rows; of a mixture: those of independent rows
  std::vector<Drafts> drafts;  // by drafter
  ContextCosts::Prices position = {};
  // Nothing was measured: readings alone have moved what another one had learned. They do not tell well what
  // a pass costs without context.
  bool of_another = false;
};

class RoundCosts {
 public:
  // max_rows: of a pass; max_sequences: the most that may draft together.
  RoundCosts(int max_rows, int n_drafters, int max_sequences = 1);

  // Measured costs (medians), before the first reading. The smallest context gives the curve;
  // others give the price of a position of context.
  void Start(std::span<const PassCost> passes) noexcept;
  // The target is a mixture of experts. The passes of Start must be those of independent rows;
  // `passes` tell how many experts they read in fact.
  void StartExperts(const ExpertShape& shape, double us_per_expert,
                    std::span<const PassCost> passes = {}) noexcept;
  // From now on a draft is a whole proposal: the drafter makes all its tokens in one pass.
  void DraftsAtOnce(int drafter) noexcept;
  // The cost of one more draft for one sequence, and for all that may run together (0: not known);
  // of a row that the drafter reads; and how many further drafts the first one of a proposal costs: it
  // finds the drafter's weights where the target's pass has left them.
  void StartDrafter(int drafter, double one_us, double all_us, double row_us,
                    double first = 1) noexcept;

  // All costs are known, but are of another moment. The first few passes that are read tell the machine's
  // speed today, and nothing else; nor do drafts meanwhile.
  void StartWith(const LearnedCosts& learned);

  // It costs what another one costs behind short texts.
  void StartDrafterLike(int drafter, int other) noexcept;

  // A pass of the target that only decoded, and whose rows used so many experts (0: not known).
  void RecordPass(const ContextPass& pass, double us, std::int64_t distinct_experts = 0) noexcept;
  void RecordPass(int rows, int context, double us) noexcept {
    RecordPass({.rows = rows, .context = context}, us);
  }
  // Proposals that a drafter made together, with so many tokens in all and `longest` in the longest one,
  // behind an average of `context` positions.
  void RecordDrafts(int drafter, int drafts, int longest, double us, int context = 0) noexcept;
  // Rows that a drafter had to read before.
  void RecordCatchUp(int drafter, int rows, double us) noexcept;
  // What else a round took.
  void RecordRest(double us) noexcept;

  LearnedCosts Learned() const;
  // Passes that were read.
  std::int64_t n_read() const noexcept { return passes_; }

  bool known() const noexcept { return seen_rows_ > 0 || !start_.empty(); }
  double PassUs(const ContextPass& pass) const noexcept;  // > 0 once known
  double PassUs(int rows, int context) const noexcept {
    return PassUs({.rows = rows, .context = context});
  }
  // What the pass may cost at the least. What was read of its rows long ago, or only at the start, may have
  // been read in a bad moment: then it costs little more than the widest pass of at most so many rows that was
  // read lately. And the context's price may be lower, as far as it is in doubt. At most PassUs; equal to it
  // where no pass was read and there is no context.
  double LeastPassUs(int rows, int context) const noexcept;
  // One more draft for each of `sequences`, which share the drafter's passes; 0 for none. before: the
  // drafts that each has already.
  double DraftUs(int drafter, int sequences, int before = 0, int context = 0) const noexcept;
  // Proposals as in RecordDrafts.
  double DraftsUs(int drafter, int drafts, int longest, int context = 0) const noexcept;
  // What they cost at least: a part of DraftsUs where drafts were only measured at the start, and less by
  // how far the context's price is in doubt.
  double LeastDraftsUs(int drafter, int drafts, int longest, int context = 0) const noexcept;
  double CatchUpUs(int drafter, int rows) const noexcept {
    return level_ * rows * At(drafter).row_us;
  }
  double RestUs() const noexcept { return rest_us_; }
  // The recent error of PassUs, as a share of it.
  double Jitter() const noexcept { return jitter_; }
  // Row counts that were measured at the start or read since, ascending.
  std::vector<int> KnownRows() const;
  // The most rows that may be planned for.
  int TrustedRows() const noexcept;

 private:
  struct Point {
    int rows;
    double us;
  };
  struct DrafterCosts {            // relative to the machine's speed
    std::vector<double> draft_us;  // [max_sequences + 1], by sequences; 0: no reading
    double row_us = 0, first = 1;
    ContextCosts context;  // of a further draft
    int n_read = 0;        // proposals, while the engine ran
    bool at_once = false;  // all drafts of a proposal are the first one

    double ShareOf(int before) const { return before == 0 ? first : at_once ? 0 : 1; }
    // What a proposal costs, in further drafts.
    double Drafts(int longest) const { return first + (longest - 1) * ShareOf(1); }
  };
  static constexpr int kUntimed =
      3;  // passes: one of them is hardly ever disturbed by chance alone
  double Calm() const noexcept;
  double Moved(double known, double seen) const noexcept;
  static int Together(int drafts, int longest) noexcept;
  const DrafterCosts& At(int drafter) const { return drafters_[static_cast<std::size_t>(drafter)]; }
  double FurtherUs(int drafter, int sequences) const noexcept;
  double FurtherUs(int drafter, int sequences, int context) const noexcept;
  double Curve(int rows) const noexcept;
  struct Reading {
    double us = 0;  // relative to the machine's speed; 0: no reading
    int n = 0;
    double monotone = 0;    // us with what the neighbours say, made monotone in the rows
    std::int64_t pass = 0;  // the last one that was read
    bool above = false;     // the last one took far longer than was expected
  };
  struct Pool {
    double us, weight;
    int last;  // rows
  };
  // A reading far below what passes of so many rows were believed to take.
  struct Doubt {
    int rows = 0;  // 0: there is none
    double us = 0, off = 0;
  };
  Reading& ReadingOf(int rows) { return readings_[static_cast<std::size_t>(rows)]; }
  const Reading& ReadingOf(int rows) const { return readings_[static_cast<std::size_t>(rows)]; }
  bool FasterSince(int rows, double off) noexcept;
  bool BelievedAbove(int rows, double off, double doubt) noexcept;
  void Believe(int rows, Reading reading) noexcept;
  double Off(double us, double expected, double doubt) const noexcept;
  void SetLevel(double level) noexcept;
  bool ReadLately(const Reading& reading) const noexcept;
  void MoveLevel(double off) noexcept;
  double WithNeighbours(int rows) const noexcept;
  void Raise() noexcept;
  double Estimate(int rows) const noexcept;

  std::vector<Point> start_;       // ascending rows, without context
  ContextCosts context_;           // relative to the machine's speed
  std::vector<Reading> readings_;  // [max_rows + 1], by rows: without context
  std::vector<Pool> pools_;
  double level_ = 1;         // the machine's current speed
  int untimed_ = 0;          // passes that will tell it
  bool of_another_ = false;  // the curve is what another engine has learned
  double jitter_ = 0;        // recent mean error of the estimates
  int n_aside_ = 0;          // the last readings that were far off; < 0: below
  int seen_rows_ = 0;        // the most that were read
  int last_rows_ = 0;        // of the last pass that was read
  double run_ = 0;           // passes of as many rows in a row before it
  std::int64_t passes_ = 0;  // that were read
  Doubt doubt_;
  std::vector<DrafterCosts> drafters_;
  double rest_us_ = 0;
  ExpertCosts experts_;  // relative to the machine's speed
};

}  // namespace foretoken::draft_length
