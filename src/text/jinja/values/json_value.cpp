// SPDX-License-Identifier: Apache-2.0
// Reads JSON into values.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/jinja/values/json_text.h"

namespace foretoken::text::jinja {
namespace {

constexpr std::size_t kMostDepth = 90;

// Receives the parts of a JSON text in order. A function that returns false ends the reading.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(Budget& budget, bool from_input) : budget_(budget), from_input_(from_input) {}

  bool null() override { return Add(Value(None{})); }
  bool boolean(bool value) override { return Add(Value(value)); }
  bool number_integer(std::int64_t value) override { return Add(Value(value)); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > INT64_MAX) return Refuse("an integer is beyond 64 bits");
    return Add(Value(static_cast<std::int64_t>(value)));
  }
  bool number_float(double value, const std::string& written) override {
    if (written.find_first_of(".eE") == std::string::npos)
      return Refuse("an integer is beyond 64 bits");
    return Add(Value(value));
  }
  bool string(std::string& value) override { return Add(TextValue(budget_, value, from_input_)); }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return Open(true); }
  bool key(std::string& value) override {
    open_.back().key = TextValue(budget_, value, from_input_);
    return true;
  }
  bool end_object() override {
    Value made = open_.back().members.Take();
    open_.pop_back();
    return Add(std::move(made));
  }
  bool start_array(std::size_t /*size*/) override { return Open(false); }
  bool end_array() override {
    Value made = ListValue(budget_, std::move(open_.back().items));
    open_.pop_back();
    return Add(std::move(made));
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return Refuse(fmt::format("it is not JSON (at byte {})", position));
  }

  Result<Value> Take() {
    FORETOKEN_CHECK_OK(budget_.status());
    if (!why_.empty()) return Fail(ErrorCode::kInvalidArgument, why_ + "; give JSON");
    return std::move(root_);
  }

 private:
  struct Container {
    bool object;
    DictionaryBuilder members;
    Values items = {};
    Value key = {};
  };

  bool Refuse(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }

  bool Open(bool object) {
    if (open_.size() == kMostDepth)
      return Refuse(
          fmt::format("lists and objects are more than {} inside each other", kMostDepth));
    open_.push_back({.object = object, .members = DictionaryBuilder(budget_)});
    return true;
  }

  bool Add(Value value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back().object)
      open_.back().members.Set(std::move(open_.back().key), std::move(value));
    else
      open_.back().items.push_back(std::move(value));
    return !budget_.over();
  }

  Budget& budget_;
  bool from_input_;
  List<Container> open_;
  Value root_;
  std::string why_;
};

}  // namespace

Result<Value> FromJson(Budget& budget, std::string_view json, bool from_input) {
  return WithinMemory(budget, [&] {
    Builder builder(budget, from_input);
    nlohmann::json::sax_parse(json, &builder);
    return builder.Take();
  });
}

}  // namespace foretoken::text::jinja
