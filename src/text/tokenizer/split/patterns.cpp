// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/split/patterns.h"

namespace foretoken::text {
namespace {

// ---- Zones ----

constexpr ZoneRange kIdeographsAndKana[] = {{0x4E00, 0x9FA5, 1}, {0x3040, 0x30FF, 1}};
constexpr ZoneRange kIdeographsAndNeighbours[] = {{0x0800, 0x9FA5, 1}, {0xAC00, 0xD7FF, 1}};
constexpr ZoneRange kHan[] = {{0x4E00, 0x9FFF, 1},   {0x3400, 0x4DBF, 1}, {0x20000, 0x2A6DF, 1},
                              {0x2A700, 0x2EBEF, 1}, {0xF900, 0xFAFF, 1}, {0x2F800, 0x2FA1F, 1}};
constexpr ZoneRange kStops[] = {{0x2026, 0x2026, 1}, {0x3001, 0x3002, 1}, {0xFF0C, 0xFF0C, 1},
                                {0x0964, 0x0964, 1}, {0x06D4, 0x06D4, 1}, {0x060C, 0x060C, 1}};
constexpr ZoneRange kJoiners[] = {{0x200C, 0x200D, 1}};  // zero-width
constexpr ZoneRange kSpaceMarks[] = {{0x2581, 0x2581, 1}};
// 1: Hangul, 2: punctuation, 3: Bopomofo, 4: ideographs and kana. They do not overlap.
constexpr ZoneRange kYoutuZones[] = {{0xAC00, 0xD7A3, 1}, {0x3131, 0x318E, 1}, {0xFF01, 0xFF01, 2},
                                     {0x2026, 0x2026, 2}, {0x201C, 0x201D, 2}, {0x2018, 0x2019, 2},
                                     {0x2014, 0x2014, 2}, {0xFF1A, 0xFF1B, 2}, {0xFF0C, 0xFF0C, 2},
                                     {0x3001, 0x303F, 2}, {0xFE30, 0xFE4F, 2}, {0x3105, 0x312F, 3},
                                     {0x4E00, 0x9FA5, 4}, {0x3040, 0x30FF, 4}};
constexpr ZoneRange kDeepSeekZones[] =
    {  // 1: letters with case, 2: punctuation, 4: ideographs and their neighbours
        {0xB5, 0xB5, 1},       {0xC0, 0xD6, 1},       {0xD8, 0xF6, 1},       {0xF8, 0x1BA, 1},
        {0x1BC, 0x1BF, 1},     {0x1C4, 0x293, 1},     {0x295, 0x2AF, 1},     {0x370, 0x373, 1},
        {0x376, 0x376, 1},     {0x377, 0x377, 1},     {0x37B, 0x37D, 1},     {0x37F, 0x37F, 1},
        {0x386, 0x386, 1},     {0x388, 0x38A, 1},     {0x38C, 0x38C, 1},     {0x38E, 0x3A1, 1},
        {0x3A3, 0x3F5, 1},     {0x3F7, 0x481, 1},     {0x48A, 0x52F, 1},     {0x531, 0x556, 1},
        {0x10A0, 0x10C5, 1},   {0x13A0, 0x13F5, 1},   {0x13F8, 0x13FD, 1},   {0x1C90, 0x1CBA, 1},
        {0x1CBD, 0x1CBF, 1},   {0x1D00, 0x1D2B, 1},   {0x1D6B, 0x1D77, 1},   {0x1D79, 0x1D9A, 1},
        {0x1E00, 0x1F15, 1},   {0x1F18, 0x1F1D, 1},   {0x1F20, 0x1F45, 1},   {0x1F48, 0x1F4D, 1},
        {0x1F50, 0x1F57, 1},   {0x1F59, 0x1F59, 1},   {0x1F5B, 0x1F5B, 1},   {0x1F5D, 0x1F5D, 1},
        {0x1F5F, 0x1F7D, 1},   {0x1F80, 0x1FB4, 1},   {0x1FB6, 0x1FBC, 1},   {0x1FBE, 0x1FBE, 1},
        {0x1FC2, 0x1FC4, 1},   {0x1FC6, 0x1FCC, 1},   {0x1FD0, 0x1FD3, 1},   {0x1FD6, 0x1FDB, 1},
        {0x1FE0, 0x1FEC, 1},   {0x1FF2, 0x1FF4, 1},   {0x1FF6, 0x1FFC, 1},   {0x2102, 0x2102, 1},
        {0x2107, 0x2107, 1},   {0x210A, 0x2113, 1},   {0x2115, 0x2115, 1},   {0x2119, 0x211D, 1},
        {0x2124, 0x2124, 1},   {0x2126, 0x2126, 1},   {0x2128, 0x2128, 1},   {0x212A, 0x212D, 1},
        {0x212F, 0x2134, 1},   {0x2139, 0x2139, 1},   {0x213C, 0x213F, 1},   {0x2145, 0x2149, 1},
        {0x214E, 0x214E, 1},   {0x2183, 0x2183, 1},   {0x2184, 0x2184, 1},   {0x2C00, 0x2C7B, 1},
        {0x2C7E, 0x2CE4, 1},   {0x2CEB, 0x2CEE, 1},   {0x2CF2, 0x2CF2, 1},   {0x2CF3, 0x2CF3, 1},
        {0xA640, 0xA66D, 1},   {0xA680, 0xA69B, 1},   {0xA722, 0xA76F, 1},   {0xA771, 0xA787, 1},
        {0xA78B, 0xA78E, 1},   {0xAB70, 0xABBF, 1},   {0xFB00, 0xFB06, 1},   {0xFB13, 0xFB17, 1},
        {0xFF21, 0xFF3A, 1},   {0xFF41, 0xFF5A, 1},   {0x10400, 0x1044F, 1}, {0x104B0, 0x104D3, 1},
        {0x104D8, 0x104FB, 1}, {0x10C80, 0x10CB2, 1}, {0x10CC0, 0x10CF2, 1}, {0x118A0, 0x118DF, 1},
        {0x1E900, 0x1E943, 1}, {0xFF01, 0xFF0F, 2},   {0xFF1A, 0xFF5E, 2},   {0x2018, 0x201F, 2},
        {0x3000, 0x3002, 2},   {0x0800, 0x9FA5, 4},   {0xAC00, 0xD7FF, 4}};
constexpr ZoneRange kAsianZones[] = {
    {0x4E00, 0x9FFF, 1}, {0x3400, 0x4DBF, 1}, {0x8C48, 0xFAFF, 1}, {0x3040, 0x309F, 1},
    {0x30A0, 0x30FF, 1}, {0xFF65, 0xFF9F, 1}, {0x2F00, 0x2FDF, 1}, {0xE40, 0xE7F, 1},
    {0xE80, 0xEFF, 1},   {0x1780, 0x17FF, 1}, {0x1000, 0x109F, 1}, {0xAA60, 0xAA7F, 1},
    {0xA9E0, 0xA9FF, 1}, {0xAC00, 0xD7AF, 1}, {0x1100, 0x11FF, 1},
};

// ---- Expressions ----

// \contraction is '[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD], and \space is
// [\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+ (spaces with the newlines behind them, then spaces but for the
// one that belongs to the next word).
constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|[\s]+(?![^\s])|[\s]+)";
constexpr std::string_view kQwen2Words =
    R"(\contraction|[^\r\n\p{L}\p{N}]?[\p{L}]+|[\p{N}]| ?[^\s\p{L}\p{N}]+[\r\n]*|\space)";
constexpr std::string_view kDeepSeek3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\space)";

constexpr SplitStage kLlama3[] = {
    {R"(\contraction|[^\r\n\p{L}\p{N}]?[\p{L}]+|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\space)"}};
// A chunk of spaces was taken where no newline follows, so none is searched behind a chunk.
constexpr SplitStage kJais2[] = {
    {R"(\contraction|[^\r\n\p{L}\p{N}]?[\p{L}]+|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|(?<![\blank])[\s]*[\r\n]+|[\s]{512}(?![^\s])|[\s]{256}(?![^\s])|[\s]{128}(?![^\s])|[\s]{64}(?![^\s])|[\s]{32}(?![^\s])|[\s]{16}(?![^\s])|[\s]{8}(?![^\s])|[\s]{4}(?![^\s])|[\s]{1,2}(?![^\s])|[\s])"}};
constexpr SplitStage kQwen2[] = {{kQwen2Words}};
constexpr SplitStage kQwen35[] = {
    {R"(\contraction|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|[\p{N}]| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\space)"}};
constexpr SplitStage kUfakzeka[] = {
    {R"([^\r\n\p{L}\p{N}]?[\p{L}]+|[\p{N}]| ?[^\s\p{L}\p{N}]+[\r\n]*|\space)"}};
constexpr SplitStage kSeedCoder[] = {
    {R"(\contraction|[^\r\n\p{L}\p{N}]?[\p{L}]+|[\p{N}]| ?[^\s\p{L}\p{N}\r\n]+|\space)"}};
constexpr SplitStage kMiniCpm5[] = {
    {R"([\p{N}]{1,3})"},
    {R"(\contraction|[^\r\n\p{L}\p{N}]?[\p{L}]+|[\p{N}]+| ?[^\s\p{L}\p{N}]+[\r\n]*|\space)"}};
constexpr SplitStage kLaguna[] = {{R"([^\n]+|[\n]+)"}, {kQwen2Words}};
// Words with single spaces between them are one part.
constexpr SplitStage kExaoneMoe[] = {
    {R"(\contraction|[^\r\n\p{L}\p{N}]?[\p{L}][\p{L}\p{M}]*+(?: [\p{L}][\p{L}\p{M}]*+)*+|[\p{N}]| ?[^\s\p{L}\p{N}]+[\r\n/]?|[\s]*[\r\n]|[\s]+(?![^\s])|[\s]+)"}};

constexpr SplitStage kGpt2[] = {{kGpt2Words}};
constexpr SplitStage kSmolLm[] = {{R"([\p{N}])"}, {kGpt2Words}};
constexpr SplitStage kFalcon[] = {{R"([\p{P}$+<=>^~|`]+)"}, {kGpt2Words}, {"[0-9]{3}"}};
constexpr SplitStage kDefault[] = {
    {R"([\p{P}$+<=>^~|]+)"}, {kGpt2Words}, {R"([\p{N}]+)"}, {"[0-9]{3}"}};
constexpr SplitStage kChameleon[] = {{"<sentinel:[0-9]+>"},       {"IMGIMG[A-I]{1,4}Z"},
                                     {R"([\t\n]|    |  )"},       {R"([\p{N}])"},
                                     {R"([\p{P}!-/:-@\[-`{-~])"}, {kGpt2Words}};

constexpr SplitStage kBloom[] = {{R"( ?[^(\s|.,!?\z{1})]+)"}};
constexpr SplitStage kViking[] = {{R"( ?[^(\s|.,!?\z{1})]+)"}, {R"([\p{N}])"}};

constexpr SplitStage kDeepSeekLlm[] = {{R"([\r\n])"},
                                       {R"([\s]?[A-Za-z\z{1357}]+)"},
                                       {R"([\s]?[!-/:-~\z{2367}]+)"},
                                       {R"((?<![\s])[\s]+\z)"},
                                       {R"([\z{4567}]+)"},
                                       {R"([\p{N}]+)"}};
constexpr SplitStage kDeepSeekCoder[] = {
    {R"([\r\n])"}, {R"([\s]?[\p{L}]+)"}, {R"([\s]?[\p{P}]+)"}, {R"([\z{1}]+)"}, {R"([\p{N}])"}};
constexpr SplitStage kDeepSeek3[] = {{R"([\p{N}]{1,3})"}, {R"([\z{1}]+)"}, {kDeepSeek3Words}};
constexpr SplitStage kSpark[] = {
    {R"([\p{N}]{1,3})"},
    {R"([\z{1}]+)"},
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|[\s]+(?![^\s])|[\s]+)"},
    {R"([\p{N}])"}};
constexpr SplitStage kAfmoe[] = {
    {R"([\p{N}]+)", Cut::kThreesEnd}, {R"([\z{1}]+)"}, {kDeepSeek3Words}};

constexpr SplitStage kTinyAya[] = {
    {R"([\p{N}]+)", Cut::kThreesEnd},
    {R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?:\contraction)?|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\space)"}};
constexpr SplitStage kSuperBpe[] = {{R"([\p{N}]+)"}, {"[0-9]+", Cut::kBeforeThrees}};

// llama.cpp separates upper and lower case in ASCII only: letters beyond it count as both. The
// models' own expressions know the case of every letter, and marks are part of words.
constexpr SplitStage kTekken[] = {
    {R"([^\r\n\p{L}\p{N}]?[\p{upper}]*[\p{lower}]+|[^\r\n\p{L}\p{N}]?[\p{upper}]+[\p{lower}]*|[\p{N}]| ?[^\s\p{L}\p{N}]+[\r\n/]*|\space)"}};
constexpr SplitStage kTekkenExact[] = {
    {R"([^\r\n\p{L}\p{N}]?[\p{Upper}]*[\p{Lower}]+|[^\r\n\p{L}\p{N}]?[\p{Upper}]+[\p{Lower}]*|[\p{N}]| ?[^\s\p{L}\p{N}]+[\r\n/]*|\space)"}};
constexpr SplitStage kGpt4o[] = {
    {R"([^\r\n\p{L}\p{N}]?[\p{upper}]*[\p{lower}]+(?:\contraction)?|[^\r\n\p{L}\p{N}]?[\p{upper}]+[\p{lower}]*(?:\contraction)?|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\space)"}};
constexpr SplitStage kGpt4oExact[] = {
    {R"([^\r\n\p{L}\p{N}]?[\p{Upper}]*[\p{Lower}]+(?:\contraction)?|[^\r\n\p{L}\p{N}]?[\p{Upper}]+[\p{Lower}]*(?:\contraction)?|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\space)"}};
constexpr SplitStage kGraniteEmbedding[] = {
    {R"([^\r\n\p{L}\p{N}]?[\p{upper}\p{M}]*[\p{lower}\p{M}]+(?:\contraction)?|[^\r\n\p{L}\p{N}]?[\p{upper}\p{M}]+[\p{lower}\p{M}]*(?:\contraction)?|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\space)"}};
constexpr SplitStage kYoutu[] = {
    {R"([\z{1}]+|[\z{2}]+|[\z{3}]+|[\z{4}]+)"},
    {R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?:\contraction)?|[\p{N}]| ?[^\s\p{L}\p{N}]+[\r\n/]*|\space)"}};
constexpr SplitStage kKimi[] = {
    {R"([\z{1}]+|[^\r\n\p{L}\p{N}]?[\p{L0}]+(?:\contraction)?|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\space)"}};
constexpr SplitStage kK2Horizon[] = {
    {R"(\contraction|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}\z{1}]+|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\space)"}};

constexpr SplitStage kLines[] = {{R"([^\n]+|[\n]+)"}};
// Words that begin with the mark of a space.
constexpr SplitStage kMarkedWords[] = {{R"([\n]+|[\z{1}]?[^\n\z{1}]+|[\z{1}])"}};
constexpr SplitStage kBetweenSpaces[] = {{R"([^\s]+)"}};

constexpr SplitRules kLlama3Rules = {kLlama3};
constexpr SplitRules kJais2Rules = {kJais2};
constexpr SplitRules kQwen2Rules = {kQwen2};
constexpr SplitRules kQwen35Rules = {kQwen35};
constexpr SplitRules kUfakzekaRules = {kUfakzeka};
constexpr SplitRules kSeedCoderRules = {kSeedCoder};
constexpr SplitRules kMiniCpm5Rules = {kMiniCpm5};
constexpr SplitRules kLagunaRules = {kLaguna};
constexpr SplitRules kExaoneMoeRules = {kExaoneMoe};
constexpr SplitRules kGpt2Rules = {kGpt2};
constexpr SplitRules kSmolLmRules = {kSmolLm};
constexpr SplitRules kFalconRules = {kFalcon};
constexpr SplitRules kDefaultRules = {kDefault};
constexpr SplitRules kChameleonRules = {kChameleon};
constexpr SplitRules kBloomRules = {kBloom, kStops};
constexpr SplitRules kVikingRules = {kViking, kStops};
constexpr SplitRules kDeepSeekLlmRules = {kDeepSeekLlm, kDeepSeekZones};
constexpr SplitRules kDeepSeekCoderRules = {kDeepSeekCoder, kIdeographsAndNeighbours};
constexpr SplitRules kDeepSeek3Rules = {kDeepSeek3, kIdeographsAndKana};
constexpr SplitRules kSparkRules = {kSpark, kIdeographsAndKana};
constexpr SplitRules kAfmoeRules = {kAfmoe, kAsianZones};
constexpr SplitRules kTinyAyaRules = {kTinyAya};
constexpr SplitRules kSuperBpeRules = {kSuperBpe};
constexpr SplitRules kTekkenRules = {kTekken, {}, kTekkenExact};
constexpr SplitRules kGpt4oRules = {kGpt4o, {}, kGpt4oExact};
constexpr SplitRules kGraniteEmbeddingRules = {kGraniteEmbedding, {}, kGpt4oExact};
constexpr SplitRules kYoutuRules = {kYoutu, kYoutuZones};
constexpr SplitRules kKimiRules = {kKimi, kHan};
constexpr SplitRules kK2HorizonRules = {kK2Horizon, kJoiners};
constexpr SplitRules kLinesRules = {kLines};
constexpr SplitRules kMarkedWordsRules = {kMarkedWords, kSpaceMarks};
constexpr SplitRules kBetweenSpacesRules = {kBetweenSpaces};

// ---- Names ----

constexpr Pattern WholeWords(std::string_view name, const SplitRules& rules, bool add_bos) {
  return {.name = name, .rules = &rules, .ignore_merges = true, .add_bos = add_bos};
}
constexpr Pattern Lines(std::string_view name) {
  return {.name = name, .rules = &kLinesRules, .symbols = Symbols::kMarkedCharacters};
}
constexpr Pattern Gemma4(std::string_view name) {
  Pattern pattern = Lines(name);
  pattern.add_bos = pattern.always_bos = pattern.whole_newlines = true;
  return pattern;
}
constexpr Pattern MmBert() {
  Pattern pattern = Lines("mmbert");
  pattern.rules = &kMarkedWordsRules;
  pattern.mark_lines = pattern.whole_newlines = true;
  return pattern;
}

constexpr Pattern kPatterns[] = {
    {"default", &kDefaultRules},
    WholeWords("llama-bpe", kLlama3Rules, true),
    WholeWords("llama3", kLlama3Rules, true),
    WholeWords("llama-v3", kLlama3Rules, true),
    WholeWords("falcon3", kLlama3Rules, true),
    WholeWords("falcon-h1", kLlama3Rules, true),
    WholeWords("pixtral", kLlama3Rules, true),
    WholeWords("midm-2.0", kLlama3Rules, true),
    WholeWords("lfm2", kLlama3Rules, true),
    WholeWords("jina-v5-nano", kLlama3Rules, true),
    {"dbrx", &kLlama3Rules},
    {"smaug-bpe", &kLlama3Rules},
    {"chatglm-bpe", &kLlama3Rules},
    WholeWords("glm4", kLlama3Rules, false),
    WholeWords("glm5", kLlama3Rules, false),
    {"jais-2", &kJais2Rules},
    WholeWords("minicpm5", kMiniCpm5Rules, false),
    {"qwen2", &kQwen2Rules},
    {"deepseek-r1-qwen", &kQwen2Rules},
    {"megrez", &kQwen2Rules},
    {"kormo", &kQwen2Rules},
    {"f2llmv2", &kQwen2Rules},
    {"stablelm2", &kQwen2Rules},
    {"hunyuan", &kQwen2Rules},
    {"solar-open", &kQwen2Rules},
    {"grok-2", &kQwen2Rules},
    {"qwen35", &kQwen35Rules},
    {"ufakzeka", &kUfakzekaRules},
    {"seed-coder", &kSeedCoderRules},
    {"laguna", &kLagunaRules},
    {"bailingmoe", &kQwen2Rules},
    {"bailingmoe2", &kQwen2Rules},
    {"llada-moe", &kQwen2Rules},
    {"exaone-moe", &kExaoneMoeRules},
    {"gpt-2", &kGpt2Rules},
    {"phi-2", &kGpt2Rules},
    {"jina-es", &kGpt2Rules},
    {"jina-de", &kGpt2Rules},
    {"jina-v1-en", &kGpt2Rules},
    {"jina-v2-es", &kGpt2Rules},
    {"jina-v2-de", &kGpt2Rules},
    {"jina-v2-code", &kGpt2Rules},
    {"roberta-bpe", &kGpt2Rules},
    {"modern-bert", &kGpt2Rules},
    {"gigachat", &kGpt2Rules},
    {"a.x-4.0", &kGpt2Rules},
    {"mellum", &kGpt2Rules},
    {"mpt", &kGpt2Rules},
    {"olmo", &kGpt2Rules},
    {"jais", &kGpt2Rules},
    {"trillion", &kGpt2Rules},
    {"granite-docling", &kGpt2Rules},
    {"exaone4", &kGpt2Rules},
    {"smollm", &kSmolLmRules},
    {"starcoder", &kSmolLmRules},
    {"refact", &kSmolLmRules},
    {"command-r", &kSmolLmRules},
    {"codeshell", &kSmolLmRules},
    {"exaone", &kSmolLmRules},
    {"minerva-7b", &kSmolLmRules},
    {"mellum2", &kSmolLmRules},
    {"falcon", &kFalconRules},
    {.name = "chameleon", .rules = &kChameleonRules, .add_bos = true},
    {"bloom", &kBloomRules},
    {"poro-chat", &kBloomRules},
    {"gpt3-finnish", &kBloomRules},
    {"viking", &kVikingRules},
    {"deepseek-llm", &kDeepSeekLlmRules},
    {"deepseek-coder", &kDeepSeekCoderRules},
    {"deepseek-v3", &kDeepSeek3Rules},
    {"hunyuan-dense", &kDeepSeek3Rules},
    {"hy_v4", &kDeepSeek3Rules},
    {"joyai-llm", &kDeepSeek3Rules},
    {"spark2_5", &kSparkRules},
    {"afmoe", &kAfmoeRules},
    {"tiny_aya", &kTinyAyaRules},
    {"cohere2moe", &kTinyAyaRules},
    {"superbpe", &kSuperBpeRules},
    WholeWords("tekken", kTekkenRules, true),
    {"gpt-4o", &kGpt4oRules},
    {"llama4", &kGpt4oRules},
    {"kanana2", &kGpt4oRules},
    {"talkie", &kGpt4oRules},
    {"minimax-m2", &kGpt4oRules},
    WholeWords("granite-embed-multi-97m", kGraniteEmbeddingRules, false),
    WholeWords("youtu", kYoutuRules, false),
    {"kimi-k2", &kKimiRules},
    {"k2-horizon", &kK2HorizonRules},
    Gemma4("gemma4"),
    Gemma4("granite-embed-multi-311m"),
    MmBert(),
    Lines("sarvam-moe"),
    {.name = "whitespace", .rules = &kBetweenSpacesRules, .symbols = Symbols::kCharacters},
};

}  // namespace

std::span<const Pattern> AllPatterns() {
  return kPatterns;
}

Pattern FindPattern(std::string_view name) {
  if (name.empty()) return kPatterns[0];
  for (const Pattern& pattern : kPatterns) {
    if (pattern.name == name) return pattern;
  }
  Pattern fallback = kPatterns[0];
  fallback.known = false;
  return fallback;
}

}  // namespace foretoken::text
