// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/own_copy.h"

#include <gtest/gtest.h>

#include <array>

#include "base/failure_testing.h"
#include "fixtures/tiny_model.h"
#include "foretoken/tools/model_file.h"

namespace foretoken::loader {
namespace {

constexpr std::int64_t kNetworkBytes = std::int64_t{1} << 30;
constexpr double kBits[] = {2.625, 3.4375, 4.5};  // of the usual copies

model::CopySize Share(double share, std::int64_t network = kNetworkBytes, double bits = kBits[0]) {
  const auto read = static_cast<std::int64_t>(share * static_cast<double>(network));
  return {.own = read, .read = read, .network = network, .bits = bits};
}

TEST(OwnCopy, ReadsOneTypeOrTwo) {
  const auto types = CopyTypesFor("Q3_K,Q4_K");
  ASSERT_TRUE(types);
  EXPECT_EQ(types->layers, tensor::DType::kQ3_K);
  EXPECT_EQ(types->output, tensor::DType::kQ4_K);
  for (const char* usual : {"", "off"}) EXPECT_EQ(*CopyTypesFor(usual), model::CopyTypes());
  EXPECT_TRUE(CopyTypesFor("own")->are_own());
  EXPECT_EQ(model::NameOf(*CopyTypesFor("own")), "own");
  EXPECT_EQ(model::NameOf(*CopyTypesFor("own,Q4_K")), "own,Q4_K");
  for (const char* wrong : {"Q9", "own,", "q2_k", ",", "Q2_K,", "Q2_K,Q2_K,Q2_K"})
    EXPECT_FALSE(CopyTypesFor(wrong)) << wrong;
}

std::string Read(const std::string& names) {
  const auto types = CopyTypesFor(names);
  return types ? model::NameOf(*types) : types.error().message;
}

TEST(OwnCopy, ReadsTypesOfParts) {
  using tensor::DType;
  const auto types = CopyTypesFor("Q2_K, head=Q6_K,ends=Q4_K,attention=Q4_0,experts=Q3_K");
  ASSERT_TRUE(types);
  EXPECT_EQ(*types, (model::CopyTypes{.layers = DType::kQ2_K,
                                      .output = DType::kQ6_K,
                                      .attention = DType::kQ4_0,
                                      .experts = DType::kQ3_K,
                                      .ends = DType::kQ4_K}));
  EXPECT_EQ(Read("Q2_K,attention=own"), "Q2_K,attention=own");
}

// One copy has one name, and the name is read as the same copy.
TEST(OwnCopy, EqualCopiesHaveOneName) {
  for (const auto& [names, one] :
       {std::pair("Q2_K,head=Q4_K", "Q2_K,Q4_K"),
        {"Q2_K,head=Q2_K,experts=Q2_K", "Q2_K"},
        {"Q2_K,ends=Q2_K", "Q2_K"},
        {"Q2_K,ends=Q2_K,attention=Q2_K", "Q2_K"},
        {"Q2_K,ends=Q2_K,attention=Q4_0", "Q2_K,attention=Q4_0,ends=Q2_K"},  // but in the ends
        {"Q2_K,Q4_K,ends=Q4_K,experts=Q3_K,attention=Q6_K",
         "Q2_K,Q4_K,attention=Q6_K,experts=Q3_K,ends=Q4_K"}}) {
    EXPECT_EQ(Read(names), one);
    EXPECT_EQ(Read(one), one);
    EXPECT_EQ(*CopyTypesFor(names), *CopyTypesFor(one));
  }
}

TEST(OwnCopy, SaysWhichPartIsWrong) {
  EXPECT_EQ(Read("Q2_K,attention=Q9"),
            "self_draft: attention: 'Q9' is no number type of weights; use Q2_K, Q3_K, Q4_0 or "
            "Q4_K, or own");
  EXPECT_EQ(Read("Q2_K,ffn=Q4_K"),
            "self_draft: 'ffn' is no part of a model that can have a type of its own; name head, "
            "attention, experts or ends");
  EXPECT_EQ(Read("attention=Q4_K"),
            "self_draft: 'attention=Q4_K' names a part, and the type of the layers comes first: "
            "Q2_K,attention=Q4_K");
  EXPECT_EQ(Read("Q2_K,ends=Q4_K,ends=Q4_K"),
            "self_draft: the type of ends is given twice; leave one out");
  EXPECT_EQ(Read("Q2_K,Q4_K,head=Q4_K"),
            "self_draft: the type of head is given twice; leave one out");
  for (const char* wrong : {"Q2_K,=Q4_K", "Q2_K,layers=Q4_K", "Q2_K,ends=", "Q2_K,ends==Q4_K",
                            "Q2_K,ends=IQ2_XS", "Q2_K,ends=q4_k"})
    EXPECT_FALSE(CopyTypesFor(wrong)) << wrong;
}

TEST(OwnCopy, NamesTheUsualTypes) {
  SpeculativeOptions options;
  EXPECT_EQ(SelfDraftOf(options), "Q2_K");
  options.self_draft = "off";
  EXPECT_EQ(SelfDraftOf(options), "Q2_K");
  options.self_draft = "Q3_K,Q4_K";
  EXPECT_EQ(SelfDraftOf(options), "Q3_K,Q4_K");
  options.self_draft = "Q4_0, Q4_0";
  EXPECT_EQ(SelfDraftOf(options), "Q4_0");
}

double Gain(double share) {
  std::vector<CopyOffer> offers = {{.types = {}, .size = Share(share)}};
  Expect(offers, {});
  return GainOf(offers.front());
}

bool PaysUnasked(const model::CopySize& size) {
  std::vector<CopyOffer> offers = {{.types = {}, .size = size}};
  Expect(offers, {});
  return Pays(offers.front());
}

TEST(OwnCopy, GainsByTheBytesOfItsPasses) {
  EXPECT_NEAR(Gain(0.31), 1.42, 0.01);  // three drafts: 3.19 tokens in 2.23 passes
  EXPECT_NEAR(Gain(0.54), 1.13, 0.01);  // one draft: 1.85 tokens in 1.64 passes
  EXPECT_EQ(Gain(0.9), 1);              // none: plain decoding is faster
}

TEST(OwnCopy, IsMadeUnaskedOfLargeModelsOfManyBits) {
  EXPECT_TRUE(PaysUnasked(Share(0.31)));  // Q8_0 in Q2_K
  EXPECT_TRUE(PaysUnasked(Share(0.54)));  // Q4_K_M
  EXPECT_FALSE(PaysUnasked(Share(0.6)));  // IQ4_XS
  EXPECT_FALSE(PaysUnasked(Share(0.31, kNetworkBytes / 8)));
  EXPECT_FALSE(IsLarge(Share(0.31, kNetworkBytes / 8)));
  EXPECT_FALSE(PaysUnasked({}));
}

// Copies of a model in the usual types, whose passes read these shares of its bytes.
std::vector<CopyOffer> OffersOf(std::array<double, 3> shares,
                                const std::vector<CopyFigure>& figures) {
  std::vector<CopyOffer> offers;
  for (std::size_t i = 0; i < shares.size(); ++i)
    offers.push_back(
        {.types = UsualCopies()[i], .size = Share(shares[i], kNetworkBytes, kBits[i])});
  Expect(offers, figures);
  return offers;
}

std::string BestName(const std::vector<CopyOffer>& offers) {
  return model::NameOf(BestOf(offers).types);
}

constexpr std::array kOfQ8_0 = {0.31, 0.4, 0.53}, kOfF16 = {0.16, 0.21, 0.28};

TEST(OwnCopy, HasTheFewestBitsWhereNothingWasMeasured) {
  EXPECT_EQ(BestName(OffersOf(kOfQ8_0, {})), "Q2_K");
  EXPECT_EQ(BestName(OffersOf(kOfF16, {})), "Q2_K");  // Q3_K promises a fortieth more
}

TEST(OwnCopy, HasTheTypeThatPromisesMostByItsFigures) {
  const std::vector<CopyFigure> all = {
      {"Q2_K", 48, 96, 0.35}, {"Q3_K", 84, 96, 0.45}, {"Q4_K", 92, 96, 0.6}};
  const auto offers = OffersOf(kOfQ8_0, all);
  EXPECT_NEAR(offers[0].accepted, (48 + 0.85 * 16) / 112, 1e-9);
  EXPECT_EQ(offers[1].cost, 0.45);
  EXPECT_EQ(BestName(offers), "Q3_K");
  EXPECT_EQ(BestName(OffersOf(kOfQ8_0, {{"Q2_K", 90, 96, 0.35}, {"Q3_K", 91, 96, 0.45}})), "Q2_K");
  // Passes that are not as much cheaper as their bytes are fewer.
  EXPECT_EQ(BestName(OffersOf(kOfF16, {{"Q2_K", 80, 96, 0.5}, {"Q3_K", 92, 96, 0.5}})), "Q3_K");
  const auto poor =
      OffersOf(kOfQ8_0, {{"Q2_K", 20, 96, 0.35}, {"Q3_K", 30, 96, 0.45}, {"Q4_K", 40, 96, 0.6}});
  EXPECT_FALSE(Pays(BestOf(poor)));
}

TEST(OwnCopy, ExpectsOfOtherTypesWhatWasMeasuredOfOne) {
  const auto offers = OffersOf(kOfQ8_0, {{"Q2_K", 48, 96, 0.62}});
  const double rejected = (1 - offers[0].accepted) / 0.15;
  EXPECT_NEAR(offers[1].accepted, 1 - 0.0938 * rejected, 1e-4);
  EXPECT_NEAR(offers[1].cost, 0.8, 1e-6);                           // twice its bytes, as of Q2_K
  const auto elsewhere = OffersOf(kOfQ8_0, {{"Q2_K", 48, 96, 0}});  // on another machine
  EXPECT_EQ(elsewhere[0].accepted, offers[0].accepted);
  EXPECT_NEAR(elsewhere[0].cost, 0.31, 1e-6);
  EXPECT_GT(OffersOf(kOfQ8_0, {{"Q2_K", 0, 1 << 20, 0.31}})[1].accepted, 0.3);
}

// What a name promises counts less than what its copy holds: a copy in Q2_K of a model of short rows has 4.5 bits.
TEST(OwnCopy, ExpectsByBitsOfTheCopy) {
  std::vector<CopyOffer> offers;
  for (const double bits : {2.625, 3.4375, 4.5, 5.5})
    offers.push_back({.types = UsualCopies()[0], .size = Share(0.3, kNetworkBytes, bits)});
  Expect(offers, {});
  EXPECT_NEAR(offers[0].accepted, 0.85, 1e-6);
  EXPECT_NEAR(offers[1].accepted, 0.906, 5e-4);
  EXPECT_NEAR(offers[2].accepted, 0.949, 5e-4);
  EXPECT_NEAR(offers[3].accepted, 0.971, 1e-3);
}

// The types are the model's own: they say what the model says, and that tells nothing about others.
TEST(OwnCopy, ExpectsNothingOfACopyOfNoBytes) {
  const std::vector<CopyFigure> figures = {{"Q2_K", 70, 96, 0.6}, {"Q4_K", 96, 96, 0.95}};
  std::vector<CopyOffer> offers, same;
  for (std::vector<CopyOffer>* const to : {&offers, &same})
    for (const auto& [types, share] :
         {std::pair(UsualCopies()[0], 0.58), {UsualCopies()[1], 0.76}, {UsualCopies()[2], 1.0}})
      to->push_back({.types = types, .size = Share(share)});
  offers[2].size.own = same[2].size.own = 0;
  Expect(offers, figures);
  Expect(same, std::span(figures).first(1));
  for (std::size_t i = 0; i < offers.size(); ++i) {
    EXPECT_EQ(offers[i].accepted, same[i].accepted) << i;
    EXPECT_EQ(offers[i].cost, same[i].cost) << i;
  }
  EXPECT_EQ(GainOf(offers[2]), 1);
}

std::vector<std::string> CopiesOf(fixtures::TinyModelOptions tiny, const std::string& named = "") {
  EngineOptions options;
  options.model = fixtures::WriteTinyModel(fixtures::TemporaryFolder(), tiny);
  options.context_size = 64;
  options.speculative.self_draft = named;
  const auto copies = Got(DescribeCopies(options));
  std::vector<std::string> types;
  for (const ModelCopy& copy : copies) types.push_back(copy.types);
  return types;
}

TEST(OwnCopy, OffersTypesThatMakeDifferentCopies) {
  using Types = std::vector<std::string>;
  EXPECT_EQ(CopiesOf({.dim = 256, .ff = 256}), (Types{"Q2_K", "Q3_K", "Q4_K"}));
  EXPECT_EQ(CopiesOf({.dim = 64, .ff = 256}), (Types{"Q2_K", "Q3_K", "Q4_K"}));
  EXPECT_EQ(CopiesOf({.dim = 64, .ff = 96}), (Types{"Q2_K", "Q5_0"}));  // Q2_K: it is all Q4_0
  EXPECT_EQ(CopiesOf({.n_kv_heads = 4, .weight_type = tensor::DType::kQ4_0}), Types{"Q2_K"});
  EXPECT_EQ(CopiesOf({.dim = 64, .ff = 96}, "Q4_1"), Types{"Q4_1"});
}

// The shares are those of a model in F32, the figure is tiny 1M's.
TEST(OwnCopy, OfShortRowsHasFiveBitsWhereFourSayLittle) {
  const auto best = [](int agreed) {
    std::vector<CopyOffer> offers = {
        {.types = UsualCopies()[0], .size = Share(0.141, kNetworkBytes, 4.5)},
        {.types = kOfShortRows, .size = Share(0.172, kNetworkBytes, 5.5)}};
    Expect(offers, std::vector<CopyFigure>{{"Q2_K", agreed, 96, 0.141}});
    return model::NameOf(BestOf(offers).types);
  };
  EXPECT_EQ(best(86), "Q5_0");
  EXPECT_EQ(best(94), "Q2_K");
}

// Matrices that would not become smaller are the network's own, and its passes read them too.
TEST(OwnCopy, TellsWhatItTakesBeforeItIsMade) {
  const std::string path = fixtures::WriteTinyModel(
      fixtures::TemporaryFolder(), {.n_kv_heads = 4, .weight_type = tensor::DType::kQ8_0});
  EngineOptions options;
  options.model = path;
  options.context_size = 64;
  options.speculative.self_draft = "Q4_0";
  const auto smaller = Got(DescribeCopy(options));
  EXPECT_EQ(smaller.types, "Q4_0");
  EXPECT_GT(smaller.bytes, 0);
  EXPECT_NEAR(smaller.pass_share, 4.5 / 8.5, 0.02);
  EXPECT_FALSE(smaller.is_likely_to_pay);
  EXPECT_EQ(smaller.obstacle, "");
  options.speculative.draft_window = 32;
  for (const char* types : {"Q8_0", "own"}) {
    options.speculative.self_draft = types;
    const auto same = Got(DescribeCopy(options));
    EXPECT_EQ(same.types, types);
    EXPECT_EQ(same.bytes, 0);
    EXPECT_EQ(same.pass_share, 1);
  }
  options.speculative.self_draft = "Q9";
  EXPECT_FALSE(DescribeCopy(options));
}

}  // namespace
}  // namespace foretoken::loader
