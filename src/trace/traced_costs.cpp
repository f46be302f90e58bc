// SPDX-License-Identifier: Apache-2.0
#include "trace/traced_costs.h"

#include <algorithm>
#include <cmath>

namespace foretoken::trace {
namespace {

constexpr double kPriorPasses = 8;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Medians of y by x.
class Groups {
 public:
  void Add(int x, double y) { by_x_[x].push_back(y); }
  const std::map<int, std::vector<double>>& all() const { return by_x_; }
  std::vector<RisingCurve::Point> Points() const {
    std::vector<RisingCurve::Point> points;
    for (const auto& [x, ys] : by_x_)
      points.push_back({static_cast<double>(x), Median(ys), static_cast<double>(ys.size())});
    return points;
  }

 private:
  std::map<int, std::vector<double>> by_x_;
};

// How y rises along the context among readings that are otherwise alike, at least 0: medians of
// the lower and of the upper half. `kind` separates readings that are not alike.
class ContextSlope {
 public:
  void Add(int kind, int context, double y) { by_kind_[kind].push_back({context, y}); }
  double Fit() const {
    double slope = 0, weight = 0;
    for (auto [kind, readings] : by_kind_) {
      if (readings.size() < kLeast) continue;
      std::sort(readings.begin(), readings.end());
      const std::size_t half = readings.size() / 2;
      const auto [low_x, low_y] = Middle(readings, 0, half);
      const auto [high_x, high_y] = Middle(readings, half, readings.size());
      if (high_x - low_x < kNearest) continue;
      const auto n = static_cast<double>(readings.size());
      slope += n * (high_y - low_y) / (high_x - low_x);
      weight += n;
    }
    return weight > 0 ? std::max(0.0, slope / weight) : 0;
  }

 private:
  static constexpr std::size_t kLeast = 24;  // readings; fewer say more about noise
  static constexpr double kNearest = 32;     // positions between the halves
  using Readings = std::vector<std::pair<int, double>>;
  static std::pair<double, double> Middle(const Readings& readings, std::size_t from,
                                          std::size_t to) {
    std::vector<double> x, y;
    for (std::size_t i = from; i < to; ++i) {
      x.push_back(readings[i].first);
      y.push_back(readings[i].second);
    }
    return {Median(std::move(x)), Median(std::move(y))};
  }
  std::map<int, Readings> by_kind_;
};

// The cost table at one context, between and beyond its contexts.
std::vector<RisingCurve::Point> TableAt(const std::vector<TracedCost>& costs, double context) {
  std::map<int, std::vector<RisingCurve::Point>> by_rows;
  for (const TracedCost& cost : costs)
    by_rows[cost.rows].push_back({static_cast<double>(cost.context), cost.us});
  std::vector<RisingCurve::Point> points;
  for (auto& [rows, along] : by_rows) {
    std::sort(along.begin(), along.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
    points.push_back({static_cast<double>(rows), RisingCurve(std::move(along)).At(context)});
  }
  return points;
}

}  // namespace

RisingCurve::RisingCurve(std::vector<Point> points) {
  for (const Point& point : points) {
    points_.push_back(point);
    while (points_.size() > 1 && points_[points_.size() - 2].y > points_.back().y) {
      const Point b = points_.back();
      points_.pop_back();
      Point& a = points_.back();
      const double weight = a.weight + b.weight;
      a = {(a.x * a.weight + b.x * b.weight) / weight, (a.y * a.weight + b.y * b.weight) / weight,
           weight};
    }
  }
}

double RisingCurve::At(double x) const noexcept {
  if (points_.empty()) return 0;
  const Point &first = points_.front(), &last = points_.back();
  if (x <= first.x) return first.y;
  if (x >= last.x) {
    if (last.x <= first.x) return last.y;
    return last.y + (x - last.x) * (last.y - first.y) / (last.x - first.x);
  }
  const auto right = std::upper_bound(points_.begin(), points_.end(), x,
                                      [](double at, const Point& p) { return at < p.x; });
  const Point &a = *(right - 1), &b = *right;
  return a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
}

std::vector<TracedPass> PassesOf(const RunTrace& trace) {
  std::vector<TracedPass> passes;
  int requests = 0;
  for (const TracedRound& r : trace.rounds) {
    if (passes.empty() || passes.back().pass != r.pass) {
      passes.push_back({.pass = r.pass});
      requests = 0;
    }
    TracedPass& pass = passes.back();
    const auto drafts = static_cast<int>(r.drafts.size());
    pass.prefill |= r.prefill;
    pass.rows = r.rows;
    pass.context += (r.context - pass.context) / ++requests;
    pass.asking += r.asked > 0;
    pass.drafts = std::max(pass.drafts, drafts);
    pass.verified += r.committed > 0 ? r.accepted + 1 : 0;
    pass.committed += r.committed;
    pass.draft_us = r.draft_us;
    pass.verify_us = r.verify_us;
    pass.rest_us = std::max(pass.rest_us, r.rest_us);
  }
  return passes;
}

namespace {

bool AllAtOnce(const RunTrace& trace) {
  return std::all_of(trace.rounds.begin(), trace.rounds.end(),
                     [](const TracedRound& r) { return r.drafts.empty() || r.at_once; });
}

}  // namespace

TracedCosts::TracedCosts(const RunTrace& trace, const std::vector<TracedPass>& passes)
    : at_once_(AllAtOnce(trace)) {
  std::vector<TracedPass> decoding;
  std::vector<double> contexts;
  for (const TracedPass& pass : passes)
    if (!pass.prefill) decoding.push_back(pass), contexts.push_back(pass.context);
  middle_ = Median(std::move(contexts));
  FitVerify(trace, passes);
  FitDraft(decoding);
  FitRest(decoding);
  double recorded = 0, fitted = 0;
  for (const TracedPass& pass : decoding) recorded += pass.us(), fitted += Of(pass).us();
  if (fitted > 0 && recorded > 0) scale_ = recorded / fitted;
}

// What is expected of a number of rows or drafts counts as kPriorPasses passes: a few that lost
// their core for a while must not bend the curve.
void TracedCosts::LeanOn(const RisingCurve& expected, std::vector<RisingCurve::Point>& points) {
  for (RisingCurve::Point& point : points)
    point.y = (point.weight * point.y + kPriorPasses * expected.At(point.x)) /
              (point.weight + kPriorPasses);
}

// Recorded passes, leaning on the cost table, which fills in the rows that nobody decoded with. It
// is brought to the level of the recorded ones first, for passes in a row find other caches than
// passes among drafts. Without a table there are few passes of other rows, and, where all decoded
// with one number of rows, prompts.
void TracedCosts::FitVerify(const RunTrace& trace, const std::vector<TracedPass>& passes) {
  ContextSlope slope;
  for (const TracedPass& pass : passes)
    if (!pass.prefill) slope.Add(pass.rows, pass.context, pass.verify_us);
  verify_slope_ = slope.Fit();
  Groups groups, prompts;
  for (const TracedPass& pass : passes)
    (pass.prefill ? prompts : groups)
        .Add(pass.rows, pass.verify_us - verify_slope_ * (pass.context - middle_));
  std::vector<RisingCurve::Point> points = groups.Points();
  if (trace.costs.empty()) {
    if (points.size() == 1)
      for (const RisingCurve::Point& prompt : prompts.Points())
        if (prompt.x > points.front().x) points.push_back(prompt);
    verify_ = RisingCurve(std::move(points));
    return;
  }
  std::vector<RisingCurve::Point> table = TableAt(trace.costs, middle_);
  double recorded = 0, tabled = 0;
  for (const RisingCurve::Point& point : points) {
    recorded += point.weight * point.y;
    tabled += point.weight * RisingCurve(table).At(point.x);
  }
  if (recorded > 0 && tabled > 0)
    for (RisingCurve::Point& point : table) point.y *= recorded / tabled;
  LeanOn(RisingCurve(table), points);
  std::map<double, RisingCurve::Point> merged;
  for (const RisingCurve::Point& point : points) merged[point.x] = point;
  for (const RisingCurve::Point& point : table) merged.try_emplace(point.x, point);
  points.clear();
  for (const auto& [rows, point] : merged) points.push_back(point);
  verify_ = RisingCurve(std::move(points));
}

// No drafts cost nothing, so the number of drafts that was seen most gives a line for the others to
// lean on.
void TracedCosts::FitDraft(const std::vector<TracedPass>& passes) {
  ContextSlope slope;
  for (const TracedPass& pass : passes)
    if (pass.drafts > 0)
      slope.Add(pass.asking * 1000 + Units(pass.drafts), pass.context,
                pass.draft_us / Units(pass.drafts));
  draft_slope_ = slope.Fit();
  std::map<int, Groups> by_asking;
  for (const TracedPass& pass : passes)
    if (pass.asking > 0)
      by_asking[pass.asking].Add(
          Units(pass.drafts),
          pass.draft_us - draft_slope_ * Units(pass.drafts) * (pass.context - middle_));
  for (const auto& [asking, groups] : by_asking) {
    std::vector<RisingCurve::Point> points = groups.Points();
    RisingCurve::Point most;
    for (const RisingCurve::Point& point : points)
      if (point.x > 0 && (most.x == 0 || point.weight > most.weight)) most = point;
    if (points.front().x > 0) points.insert(points.begin(), {0, 0, 1});
    if (most.x > 0) LeanOn(RisingCurve({{0, points.front().y, 1}, most}), points);
    draft_[asking] = RisingCurve(std::move(points));
  }
}

void TracedCosts::FitRest(const std::vector<TracedPass>& passes) {
  Groups groups;
  for (const TracedPass& pass : passes) groups.Add(pass.verified, pass.rest_us);
  rest_ = RisingCurve(groups.Points());
}

TracedCosts::Cost TracedCosts::Of(const TracedPass& pass) const noexcept {
  const double further = pass.context - middle_;
  Cost cost;
  cost.verify_us = scale_ * std::max(0.0, verify_.At(pass.rows) + verify_slope_ * further);
  cost.rest_us = scale_ * rest_.At(pass.verified);
  if (pass.asking == 0 || draft_.empty()) return cost;
  auto nearest = draft_.lower_bound(pass.asking);
  if (nearest == draft_.end()) --nearest;
  const int units = Units(pass.drafts);
  cost.draft_us =
      scale_ * std::max(0.0, nearest->second.At(units) + draft_slope_ * units * further);
  return cost;
}

}  // namespace foretoken::trace
