// SPDX-License-Identifier: Apache-2.0
// config/idle_reasons.h: why a setting of speculation has no effect, for the rows of SpeculativeKeys(); empty: it
// has one. kReaders: the names of the methods, strategies or controllers that read the setting.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "foretoken/options.h"

namespace foretoken::idle {

using Names = std::span<const std::string_view>;
using Options = SpeculativeOptions;
using Use = SpeculativeUse;

std::string WhereDrafted(const Options& options, const Use& use);
std::string IdleDraftModels(const Options& options, const Use& use);
std::string IdleForNetworks(const Options& options, const Use& use);
std::string IdleCopy(const Options& options, const Use& use);
std::string IdleBestBlocks(const Options& options, const Use& use);
std::string ForCostModels(const Options& options, const Use& use);
std::string IdleMethod(const Options& options, const Use& use);
std::string IdleStrategy(const Options& options, const Use& use);
std::string IdleTokens(const Options& options, const Use& use);
std::string IdleMixedTokens(const Options& options, const Use& use);
std::string IdleProbability(const Options& options, const Use& use);
std::string IdleFirstTarget(const Options& options, const Use& use);
std::string IdleSynthetic(const Options& options, const Use& use);
std::string IdleSyntheticEach(const Options& options, const Use& use);
std::string IdleThinking(const Options& options, const Use& use);
std::string IdleMark(const Options& options, const Use& use);
std::string IdleNgramMin(const Options& options, const Use& use);

std::string OfMethods(Names readers, const Use& use);
std::string OfStrategies(Names readers, const Options& options, const Use& use);
std::string OfLookaheads(Names readers, const Use& use);
std::string OfLaterRequests(Names readers, const Use& use);

template <const auto& kReaders>
std::string ForMethods(const Options&, const Use& use) {
  return OfMethods(kReaders, use);
}
template <const auto& kReaders>
std::string ForStrategies(const Options& options, const Use& use) {
  return OfStrategies(kReaders, options, use);
}
template <const auto& kReaders>
std::string ForLookaheads(const Options&, const Use& use) {
  return OfLookaheads(kReaders, use);
}
// What earlier requests taught.
template <const auto& kReaders>
std::string ForLaterRequests(const Options&, const Use& use) {
  return OfLaterRequests(kReaders, use);
}

}  // namespace foretoken::idle
