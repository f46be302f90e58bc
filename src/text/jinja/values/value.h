// SPDX-License-Identifier: Apache-2.0
// text/jinja/values/value.h: the values of templates, which are those of Python.
//
// Values are immutable, except for namespaces, loops and how far a generator was read. Copies share
// what they hold. Integers have 64 bits. Everything lives no longer than the Budget it was made
// with, which counts the memory of all of it (Charged).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/index_table.h"
#include "foretoken/result.h"
#include "text/jinja/values/budget.h"
#include "text/jinja/values/characters.h"

namespace foretoken::text::jinja {

class Value;
struct TextObject;
struct Sequence;
struct Dictionary;
struct Namespace;
struct Macro;
struct Loop;
struct Callable;
using Values = List<Value>;

struct None {};
// A variable, attribute or element that is not there; `why` is for the error of its use.
struct Undefined {
  std::shared_ptr<const Utf8Text> why;
};

class Value {
 public:
  Value() : data_(Undefined{}) {}
  explicit Value(Undefined undefined) : data_(std::move(undefined)) {}
  explicit Value(None) : data_(None{}) {}
  explicit Value(bool boolean) : data_(boolean) {}
  explicit Value(std::int64_t integer) : data_(integer) {}
  explicit Value(double number) : data_(number) {}
  template <typename T>
  explicit Value(std::shared_ptr<T> object) : data_(std::move(object)) {}

  static Value Missing(std::string_view why) { return Value(Undefined{Shared(Utf8Text(why))}); }

  bool IsUndefined() const { return std::holds_alternative<Undefined>(data_); }
  bool IsNone() const { return std::holds_alternative<None>(data_); }
  bool IsBoolean() const { return std::holds_alternative<bool>(data_); }
  bool IsInteger() const { return std::holds_alternative<std::int64_t>(data_); }
  bool IsFloat() const { return std::holds_alternative<double>(data_); }
  bool IsNumber() const { return IsBoolean() || IsInteger() || IsFloat(); }
  bool IsText() const { return Is<const TextObject>(); }

  bool boolean() const { return std::get<bool>(data_); }
  double number() const;                        // REQUIRES: IsNumber()
  std::optional<std::int64_t> integer() const;  // also of a boolean
  const Characters& text() const;               // REQUIRES: IsText()
  const TextObject* text_object() const { return As<const TextObject>(); }
  const Sequence* sequence() const { return As<const Sequence>(); }  // nullptr: another kind
  const Dictionary* dictionary() const { return As<const Dictionary>(); }
  const std::shared_ptr<Namespace>* name_space() const { return Ref<Namespace>(); }
  const std::shared_ptr<const Macro>* macro() const { return Ref<const Macro>(); }
  const std::shared_ptr<Loop>* loop() const { return Ref<Loop>(); }
  const Callable* callable() const { return As<const Callable>(); }
  std::string why() const;  // REQUIRES: IsUndefined()
  // Whether both are one object, as Python's `is` has it.
  bool SameAs(const Value& other) const;

 private:
  template <typename T>
  bool Is() const {
    return std::holds_alternative<std::shared_ptr<T>>(data_);
  }
  template <typename T>
  const std::shared_ptr<T>* Ref() const {
    return std::get_if<std::shared_ptr<T>>(&data_);
  }
  template <typename T>
  T* As() const {
    const auto* const ref = Ref<T>();
    return ref == nullptr ? nullptr : ref->get();
  }

  std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const TextObject>,
               std::shared_ptr<const Sequence>, std::shared_ptr<const Dictionary>,
               std::shared_ptr<Namespace>, std::shared_ptr<const Macro>, std::shared_ptr<Loop>,
               std::shared_ptr<const Callable>>
      data_;
};

struct TextObject {
  Characters characters;
  bool markup = false;  // what `safe` and `escape` give
};

// An error that is kept as a value.
struct Failure {
  ErrorCode code;
  Utf8Text message;

  tl::unexpected<Error> Raised() const { return Fail(code, std::string(message)); }
};

enum class SequenceKind { kList, kTuple, kGenerator, kKeys, kValues, kItems, kRange };

struct Sequence {
  SequenceKind kind;
  Values items;
  int depth = 1;
  std::size_t weight = 0;
  bool hashable = false;
  std::int64_t start = 0, stop = 0, step = 1;  // of a range
  mutable std::size_t n_read = 0;              // of a generator
  std::shared_ptr<const Failure> error = {};   // of a generator: what reading it gives

  bool IsGenerator() const { return kind == SequenceKind::kGenerator; }
  bool IsIndexed() const {
    return kind == SequenceKind::kList || kind == SequenceKind::kTuple ||
           kind == SequenceKind::kRange;
  }
};

using PlaceIndex = BasicIndexTable<Charged<std::byte>>;

struct Dictionary {
  List<std::pair<Value, Value>> items;  // in the order of their insertion
  PlaceIndex places;  // of the items, by the hashes of their keys; empty where they are few
  int depth = 1;
  std::size_t weight = 0;

  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;
  std::size_t PlaceOf(const Value& key) const;  // items.size(): there is none. REQUIRES: hashable
};

// A method with its object, or a global function.
struct Callable {
  enum class Kind { kMethod, kFunction };
  Kind kind;
  Utf8Text name;
  Value self;
};

Value TextValue(Budget& budget, Characters text, bool markup = false);
Value TextValue(Budget& budget, std::string_view text, bool from_input = false);
Value ConstantText(Characters text);  // outside any budget
Value ListValue(Budget& budget, Values items, SequenceKind kind = SequenceKind::kList);
Value FailingGenerator(const Error& error);
Value RangeValue(Budget& budget, std::int64_t start, std::int64_t stop, std::int64_t step);

// Collects the members of a dictionary. A later member with an equal key replaces the value.
class DictionaryBuilder {
 public:
  explicit DictionaryBuilder(Budget& budget) : budget_(&budget) {}

  void Set(Value key, Value value);
  void Set(std::string_view key, Value value) { Set(TextValue(*budget_, key), std::move(value)); }
  // A member without a value; false if there is one with an equal key.
  bool Add(const Value& key);
  Value Take();

 private:
  Budget* budget_;
  Dictionary dictionary_;
};

// How deep the values are that contain others; for Budget::SeeValueDepth.
int DepthOf(const Values& items);
// What a walk through the whole value touches, for Budget::Spend. A value may hold another many
// times, so this can be far more than its memory.
std::size_t WeightOf(const Value& value);
// Whether a value may be a key: its parts are immutable in Python, and it is not huge.
bool IsHashable(const Value& value);
std::uint64_t HashOf(const Value& value);  // seeded

bool IsTrue(const Value& value);
// The name of the type in Python: "str", "NoneType", "dict".
std::string TypeName(const Value& value);
// What len() gives; nothing where the type has no length.
std::optional<std::size_t> LengthOf(const Value& value);
// The elements as iteration gives them. A generator is read to its end. Error: not iterable.
[[nodiscard]] Result<Values> ItemsOf(Budget& budget, const Value& value);
bool IsIterable(const Value& value);

// As str() and repr(). What came from the conversation keeps its mark.
Characters StrOf(Budget& budget, const Value& value);
Characters ReprOf(Budget& budget, const Value& value);
std::string FloatText(double number);  // as repr(float)

}  // namespace foretoken::text::jinja
