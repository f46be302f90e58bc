// SPDX-License-Identifier: Apache-2.0
// cli/cluster/cluster_report.h: the results of `cluster check`, for people; cluster_json.cpp writes them
// for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/pair/pair_estimate.h"
#include "foretoken/engine.h"
#include "loader/ranks/cluster.h"

namespace foretoken::cli {

// The speed of some number of ranks. That of all ranks is measured. That of fewer is computed: what is
// not the network is divided among the ranks.
struct PredictedSpeed {
  int ranks = 1;
  double plain = 0, drafting = 0;  // tokens per second; drafting: at the best fixed length
  int k = 0;                       // that length; 0: drafts do not pay
};

// Measurements of a model on all ranks.
struct ClusterModel {
  std::string path, method;
  // What one request's texts exchange in a pass of one row; its bytes grow with the rows.
  PassTraffic traffic;
  double gather_us = 0;  // of such a pass, waiting for slower ranks included
  // It covers plain passes and rounds, and drafts of fixed lengths where there is a drafter.
  PairEstimate estimate;
  std::vector<PredictedSpeed> speeds;
};

struct ClusterCheck {
  ClusterFacts facts;
  std::optional<ClusterModel> model;
};

// For 1 to all ranks.
std::vector<PredictedSpeed> PredictSpeeds(const ClusterFacts& facts, const ClusterModel& model);

std::string ClusterTables(const ClusterCheck& check);
std::string ClusterJson(const ClusterCheck& check);

}  // namespace foretoken::cli
