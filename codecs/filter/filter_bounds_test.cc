// SPDX-License-Identifier: Apache-2.0
//
// Random filters: an evaluator written for this test must agree with
// Filter::Matches(), and Filter::CouldMatch() never excludes a group of
// documents with a match.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

#include "codecs/filter/filter.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using Random = std::mt19937_64;

size_t Below(Random& random, size_t end) {
  return random() % end;
}

// Columns s, i, f, b and t, of one type each, and the id.
constexpr size_t kColumns = 6;
constexpr const char* kNames[kColumns] = {"s", "i", "f", "b", "t", "id"};
constexpr size_t kId = 5;
constexpr const char* kDomains[] = {"test", "news.test", "shop.news.test",
                                    "b.test"};

// Few values, so that many are equal; the first is null.
const std::vector<FieldValue>& Pool(size_t column) {
  static const auto* const pools = new std::vector<std::vector<FieldValue>>{
      {FieldValue(), std::string(), std::string("a"), std::string("ab"),
       std::string("abc"), std::string("b"), std::string("\xff"),
       std::string("\xff\xff", 2), std::string("a\0", 2)},
      {FieldValue(), int64_t{-2}, int64_t{0}, int64_t{1}, int64_t{2},
       int64_t{9007199254740993}},
      {FieldValue(), -1.5, 0.0, 1.0, 1.5, 9007199254740992.0, std::nan("")},
      {FieldValue(), false, true},
      {FieldValue(), FieldTime{-86400000000}, FieldTime{0}, FieldTime{1500000},
       FieldTime{86400000000}},
      {std::string("http://news.test/"), std::string("ftp://www.b.test:21/"),
       std::string("urn:view:https://shop.news.test/?a"),
       std::string("screenshot:http://a.shop.news.test"),
       std::string("https://oldnews.test/"), std::string("news.test"),
       std::string("docs/a")}};
  return (*pools)[column];
}

FieldValue PickValue(Random& random, size_t column) {
  return Pool(column)[Below(random, Pool(column).size())];
}

// A value that can be written in a filter.
FieldValue PickLiteral(Random& random, size_t column) {
  for (;;) {
    FieldValue value = PickValue(random, column);
    const auto* const number = std::get_if<double>(&value);
    if (!std::holds_alternative<std::monostate>(value) &&
        (number == nullptr || !std::isnan(*number))) {
      return value;
    }
  }
}

// The opposite of unknown is unknown: so is 2 - 1.
enum Truth { kFalse = 0, kUnknown = 1, kTrue = 2 };

// -1, 0 or 1; REQUIRES: two strings, two numbers, ... but no nulls.
int Order(const FieldValue& a, const FieldValue& b) {
  const auto number = [](const FieldValue& value) -> long double {
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      return static_cast<long double>(*integer);
    }
    if (const auto* real = std::get_if<double>(&value)) {
      return *real;
    }
    if (const auto* boolean = std::get_if<bool>(&value)) {
      return *boolean ? 1 : 0;
    }
    return static_cast<long double>(std::get<FieldTime>(value).us);
  };
  if (const auto* text = std::get_if<std::string>(&a)) {
    const auto& other = std::get<std::string>(b);
    return *text < other ? -1 : *text > other ? 1 : 0;
  }
  return number(a) < number(b) ? -1 : number(a) > number(b) ? 1 : 0;
}

struct Tree {
  std::string text;
  size_t column = 0;
  // Operator of a condition, or "in", "prefix", "null".
  std::string op;
  std::vector<FieldValue> values;
  // Operands of "and", "or" and "not".
  std::vector<Tree> children;
};

// True if the text after "://" begins with the domain, perhaps after other
// names of hosts.
bool IsOfDomain(const std::string& id, const std::string& domain,
                bool with_hosts_below) {
  const size_t mark = id.find("://");
  if (mark == std::string::npos) {
    return false;
  }
  std::string host = id.substr(mark + 3);
  host = host.substr(0, host.find_first_of(":/"));
  host = host.rfind("www.", 0) == 0 ? host.substr(4) : host;
  const std::string end = "." + domain;
  return host == domain || (with_hosts_below && host.size() > end.size() &&
                            host.substr(host.size() - end.size()) == end);
}

Truth Evaluate(const Tree& tree, const std::vector<FieldValue>& row) {
  if (tree.op == "not") {
    return static_cast<Truth>(2 - Evaluate(tree.children[0], row));
  }
  if (tree.op == "and" || tree.op == "or") {
    std::vector<Truth> parts;
    for (const Tree& child : tree.children) {
      parts.push_back(Evaluate(child, row));
    }
    return tree.op == "and" ? *std::min_element(parts.begin(), parts.end())
                            : *std::max_element(parts.begin(), parts.end());
  }
  const FieldValue& value = row[tree.column];
  const auto truth = [](bool is_true) { return is_true ? kTrue : kFalse; };
  if (tree.op == "host" || tree.op == "domain") {
    return truth(IsOfDomain(std::get<std::string>(value),
                            std::get<std::string>(tree.values[0]),
                            tree.op == "domain"));
  }
  if (tree.op == "null") {
    return truth(value.index() == 0);
  }
  const auto* const number = std::get_if<double>(&value);
  if (value.index() == 0 || (number != nullptr && std::isnan(*number))) {
    return kUnknown;
  }
  if (tree.op == "prefix") {
    const auto& prefix = std::get<std::string>(tree.values[0]);
    return truth(std::get<std::string>(value).rfind(prefix, 0) == 0);
  }
  if (tree.op == "in") {
    return truth(std::any_of(
        tree.values.begin(), tree.values.end(),
        [&](const FieldValue& other) { return Order(value, other) == 0; }));
  }
  const int order = Order(value, tree.values[0]);
  return truth(
      (tree.op == "=" && order == 0) || (tree.op == "!=" && order != 0) ||
      (tree.op == "<" && order < 0) || (tree.op == "<=" && order <= 0) ||
      (tree.op == ">" && order > 0) || (tree.op == ">=" && order >= 0));
}

// Integers and floats are compared with both.
size_t LiteralColumn(Random& random, size_t column) {
  return column == 1 || column == 2 ? 1 + Below(random, 2) : column;
}

Tree RandomCondition(Random& random) {
  static constexpr const char* kOperators[] = {
      "=",  "!=",     "<",    "<=",   ">",     ">=",
      "in", "prefix", "null", "host", "domain"};
  Tree tree;
  tree.column = Below(random, kColumns);
  tree.op = kOperators[Below(random, std::size(kOperators))];
  if (tree.op == "host" || tree.op == "domain") {
    const std::string domain = kDomains[Below(random, std::size(kDomains))];
    tree.column = kId;
    tree.values = {domain};
    tree.text = absl::StrCat(tree.op, " '", domain, "'");
    return tree;
  }
  if (tree.op == "prefix") {
    tree.column = 0;
  }
  const std::string name = kNames[tree.column];
  if (tree.op == "null") {
    tree.text = name + " is null";
    return tree;
  }
  const size_t count = tree.op == "in" ? 1 + Below(random, 4) : 1;
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    tree.values.push_back(
        PickLiteral(random, LiteralColumn(random, tree.column)));
    texts.push_back(FormatField(ViewOf(tree.values.back())));
  }
  tree.text = tree.op == "in"
                  ? absl::StrCat(name, " in (", absl::StrJoin(texts, ", "), ")")
                  : absl::StrCat(name, " ", tree.op, " ", texts[0]);
  return tree;
}

Tree RandomTree(Random& random, int depth) {
  const size_t choice = depth == 0 ? 0 : Below(random, 4);
  if (choice == 0) {
    return RandomCondition(random);
  }
  Tree tree;
  tree.op = choice == 1 ? "not" : choice == 2 ? "and" : "or";
  std::vector<std::string> texts;
  const size_t count = choice == 1 ? 1 : 2 + Below(random, 2);
  for (size_t i = 0; i < count; ++i) {
    tree.children.push_back(RandomTree(random, depth - 1));
    texts.push_back(absl::StrCat("(", tree.children.back().text, ")"));
  }
  tree.text = choice == 1
                  ? "not " + texts[0]
                  : absl::StrJoin(texts, absl::StrCat(" ", tree.op, " "));
  return tree;
}

std::vector<FieldValue> RandomRow(Random& random) {
  std::vector<FieldValue> row;
  for (size_t column = 0; column < kColumns; ++column) {
    row.push_back(PickValue(random, column));
  }
  return row;
}

size_t ColumnOf(const std::string& name) {
  return static_cast<size_t>(std::find(kNames, kNames + kColumns, name) -
                             kNames);
}

bool Matches(const Filter& filter, const std::vector<FieldValue>& row) {
  std::vector<FieldView> views;
  for (const std::string& name : filter.names()) {
    views.push_back(ViewOf(row[ColumnOf(name)]));
  }
  return filter.Matches(views);
}

TEST(FilterBoundsTest, AgreesWithASimpleEvaluator) {
  Random random(1);
  size_t match_count = 0;
  for (int i = 0; i < 500; ++i) {
    const Tree tree = RandomTree(random, 4);
    const absl::StatusOr<Filter> filter = Filter::Parse(tree.text);
    ASSERT_THAT(filter, IsOk()) << tree.text;
    QUIRE_ASSERT_OK(filter->Check({{"s", FieldType::kString},
                                   {"i", FieldType::kInteger},
                                   {"f", FieldType::kFloat},
                                   {"b", FieldType::kBoolean},
                                   {"t", FieldType::kTime}}));
    for (int j = 0; j < 20; ++j) {
      const std::vector<FieldValue> row = RandomRow(random);
      const bool expected = Evaluate(tree, row) == kTrue;
      ASSERT_EQ(Matches(*filter, row), expected) << tree.text;
      match_count += expected ? 1 : 0;
    }
  }
  EXPECT_GT(match_count, 1000U);
}

// Bounds of one column of some rows, and the strings that they borrow.
struct Bounds {
  FieldRange range;
  FieldValue least;
  FieldValue greatest;
};

Bounds BoundsOf(const std::vector<std::vector<FieldValue>>& rows, size_t column,
                bool shortens) {
  Bounds bounds;
  bounds.range.may_have_nulls = false;
  bounds.range.may_have_values = false;
  for (const std::vector<FieldValue>& row : rows) {
    const FieldValue& value = row[column];
    if (value.index() == 0) {
      bounds.range.may_have_nulls = true;
      continue;
    }
    bounds.range.may_have_values = true;
    const auto* const number = std::get_if<double>(&value);
    if (number != nullptr && std::isnan(*number)) {
      continue;
    }
    if (bounds.least.index() == 0 || Order(value, bounds.least) < 0) {
      bounds.least = value;
    }
    if (bounds.greatest.index() == 0 || Order(value, bounds.greatest) > 0) {
      bounds.greatest = value;
    }
  }
  // As an archive may: one byte of a string, and for the greatest the next one.
  auto* const least = std::get_if<std::string>(&bounds.least);
  auto* const greatest = std::get_if<std::string>(&bounds.greatest);
  if (shortens && least != nullptr && greatest != nullptr) {
    least->resize(std::min<size_t>(least->size(), 1));
    if (greatest->size() > 1) {
      greatest->resize(1);
      const auto byte = static_cast<unsigned char>(greatest->front());
      if (byte == 0xff) {
        bounds.greatest = FieldValue();
      } else {
        greatest->front() = static_cast<char>(byte + 1);
      }
    }
  }
  return bounds;
}

TEST(FilterBoundsTest, NeverExcludesAMatch) {
  Random random(2);
  size_t excluded_count = 0;
  size_t empty_count = 0;
  for (int i = 0; i < 2500; ++i) {
    const Tree tree = RandomTree(random, 3);
    const absl::StatusOr<Filter> filter = Filter::Parse(tree.text);
    ASSERT_THAT(filter, IsOk()) << tree.text;
    std::vector<std::vector<FieldValue>> rows(1 + Below(random, 4));
    bool has_match = false;
    for (std::vector<FieldValue>& row : rows) {
      row = RandomRow(random);
      has_match |= Matches(*filter, row);
    }
    std::vector<Bounds> bounds;
    const bool shortens = Below(random, 2) == 0;
    const bool is_unknown = Below(random, 20) == 0;
    for (const std::string& name : filter->names()) {
      bounds.push_back(is_unknown ? Bounds()
                                  : BoundsOf(rows, ColumnOf(name), shortens));
    }
    std::vector<FieldRange> ranges;
    for (Bounds& bound : bounds) {
      bound.range.least = ViewOf(bound.least);
      bound.range.greatest = ViewOf(bound.greatest);
      ranges.push_back(bound.range);
    }
    const bool could_match = filter->CouldMatch(ranges);
    ASSERT_TRUE(could_match || !has_match) << tree.text;
    excluded_count += could_match ? 0 : 1;
    empty_count += has_match ? 0 : 1;
  }
  // Most groups without a match are excluded.
  EXPECT_GT(excluded_count, empty_count / 2);
}

// Each operator excludes exactly the groups that it can.
TEST(FilterBoundsTest, ExcludesByEachOperator) {
  const FieldRange values = {
      .least = int64_t{3}, .greatest = int64_t{5}, .may_have_nulls = false};
  const FieldRange strings = {.least = absl::string_view("ab"),
                              .greatest = absl::string_view("abd"),
                              .may_have_nulls = false};
  const FieldRange one = {.least = int64_t{3}, .greatest = int64_t{3}};
  const FieldRange nulls = {.may_have_values = false};
  const std::vector<std::tuple<std::string, FieldRange, bool>> cases = {
      {"a = 2", values, false},
      {"a = 3", values, true},
      {"a = 5", values, true},
      {"a = 6", values, false},
      {"a = 5.5", values, false},
      {"a < 3", values, false},
      {"a < 3.5", values, true},
      {"a <= 2", values, false},
      {"a <= 3", values, true},
      {"a > 5", values, false},
      {"a > 4", values, true},
      {"a >= 6", values, false},
      {"a >= 5", values, true},
      {"not a >= 3", values, false},
      {"not a > 3", values, true},
      {"not a <= 5", values, false},
      {"not a < 6", values, false},
      {"not a = 3", values, true},
      {"not a = 3", one, false},
      {"a != 3", one, false},
      {"a != 4", one, true},
      {"not a != 4", one, false},
      {"a in (1, 2, 6)", values, false},
      {"a in (1, 4)", values, true},
      {"a not in (1, 3)", one, false},
      {"a is null", values, false},
      {"a is null", one, true},
      {"a is not null", nulls, false},
      {"a = 1", nulls, false},
      {"not a = 1", nulls, false},
      {"a is null", nulls, true},
      {"a prefix 'abc'", strings, true},
      {"a prefix 'a'", strings, true},
      {"a prefix 'ac'", strings, false},
      {"a prefix 'aa'", strings, false},
      {"a prefix 'abda'", strings, false},
      {"a not prefix 'ab'", strings, false},
      {"a not prefix 'abc'", strings, true},
      {"a = 3 and a = 9", values, false},
      {"a = 9 or a = 3", values, true},
      {"a = 9 or a = 2", values, false},
      {"not (a = 3 or a > 1)", values, false}};
  for (const auto& [text, range, expected] : cases) {
    const absl::StatusOr<Filter> filter = Filter::Parse(text);
    ASSERT_THAT(filter, IsOk()) << text;
    EXPECT_EQ(filter->CouldMatch({range}), expected) << text;
    EXPECT_TRUE(filter->CouldMatch({FieldRange()})) << text;
  }
}

}  // namespace
}  // namespace quire
