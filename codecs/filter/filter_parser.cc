// SPDX-License-Identifier: Apache-2.0
//
// Filter::Parse(): a lexer and a parser by recursive descent.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/filter.h"
#include "codecs/surt/surt_key.h"

namespace quire {
namespace {

// Part of a token that a message shows.
constexpr size_t kShownSizeBytesMax = 40;

enum class TokenKind : uint8_t { kEnd, kWord, kValue, kSymbol };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t offset = 0;
  // As in the filter.
  absl::string_view text;
  // Set for kValue.
  FieldValue value = {};

  bool Is(absl::string_view symbol) const {
    return kind == TokenKind::kSymbol && text == symbol;
  }

  bool IsWord(absl::string_view word) const {
    return kind == TokenKind::kWord && absl::EqualsIgnoreCase(text, word);
  }
};

bool IsNameByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '.';
}

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// Cuts a filter into tokens. Borrows the text.
class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) {}

  // Errors: InvalidArgument  no token begins here, or a value is malformed.
  absl::StatusOr<Token> Next() {
    while (offset_ < text_.size() &&
           absl::ascii_isspace(static_cast<unsigned char>(text_[offset_]))) {
      ++offset_;
    }
    Token token;
    token.offset = offset_;
    if (offset_ == text_.size()) {
      return token;
    }
    const char first = text_[offset_];
    const bool is_negative = first == '-' && offset_ + 1 < text_.size() &&
                             IsDigit(text_[offset_ + 1]);
    if (first == '"' || first == '\'') {
      return String(std::move(token));
    }
    if (IsDigit(first) || is_negative) {
      return NumberOrTime(std::move(token));
    }
    if (IsNameByte(first) && first != '.') {
      return Word(std::move(token));
    }
    return Symbol(std::move(token));
  }

 private:
  // Ends the token before `end`.
  Token Cut(Token token, TokenKind kind, size_t end) {
    token.kind = kind;
    token.text = text_.substr(token.offset, end - token.offset);
    offset_ = end;
    return token;
  }

  absl::StatusOr<Token> Word(Token token) {
    size_t end = offset_;
    while (end < text_.size() && IsNameByte(text_[end])) {
      ++end;
    }
    token = Cut(std::move(token), TokenKind::kWord, end);
    if (token.text.size() > kFieldNameSizeBytesMax) {
      return FilterError(
          text_, token.offset,
          absl::StrCat("found a name of ", token.text.size(),
                       " bytes, expected at most ", kFieldNameSizeBytesMax));
    }
    const bool is_true = token.IsWord("true");
    if (is_true || token.IsWord("false")) {
      token.kind = TokenKind::kValue;
      token.value = is_true;
    }
    return token;
  }

  absl::StatusOr<Token> Symbol(Token token) {
    for (const absl::string_view symbol :
         {"!=", "<=", ">=", "=", "<", ">", "(", ")", ","}) {
      if (absl::StartsWith(text_.substr(offset_), symbol)) {
        return Cut(std::move(token), TokenKind::kSymbol,
                   offset_ + symbol.size());
      }
    }
    const size_t size =
        std::max<size_t>(1, Utf8SequenceSize(text_.substr(offset_)));
    return FilterError(
        text_, offset_,
        absl::StrCat("found ", QuotedText(text_.substr(offset_, size)),
                     ", expected a name, a value, an operator or a "
                     "parenthesis"));
  }

  absl::StatusOr<Token> String(Token token) {
    const char quote = text_[offset_];
    std::string value;
    size_t at = offset_ + 1;
    for (; at < text_.size() && text_[at] != quote; ++at) {
      if (text_[at] != '\\') {
        value += text_[at];
        continue;
      }
      const absl::string_view escape = text_.substr(at + 1);
      const bool is_hex =
          escape.size() >= 3 && escape[0] == 'x' &&
          absl::ascii_isxdigit(static_cast<unsigned char>(escape[1])) &&
          absl::ascii_isxdigit(static_cast<unsigned char>(escape[2]));
      if (is_hex) {
        value += absl::HexStringToBytes(escape.substr(1, 2));
        at += 3;
      } else if (!escape.empty() && absl::string_view("\\\"'").find(
                                        escape[0]) != absl::string_view::npos) {
        value += escape[0];
        at += 1;
      } else {
        return FilterError(
            text_, at,
            "found a backslash, expected \\\\, \\\", \\' or \\xNN with two hex "
            "digits after it");
      }
    }
    if (at >= text_.size()) {
      return FilterError(text_, offset_,
                         absl::StrCat("found a string without its end, "
                                      "expected another ",
                                      absl::string_view(&quote, 1)));
    }
    token.value = std::move(value);
    return Cut(std::move(token), TokenKind::kValue, at + 1);
  }

  absl::StatusOr<Token> NumberOrTime(Token token) {
    size_t end = offset_ + 1;
    while (end < text_.size() && (IsNameByte(text_[end]) ||
                                  absl::string_view("+-:").find(text_[end]) !=
                                      absl::string_view::npos)) {
      ++end;
    }
    token = Cut(std::move(token), TokenKind::kValue, end);
    const absl::string_view text = token.text;
    if (text.substr(1).find_first_not_of("0123456789") ==
        absl::string_view::npos) {
      int64_t integer = 0;
      if (!absl::SimpleAtoi(text, &integer)) {
        return Malformed(token, "an integer of 64 bits");
      }
      token.value = integer;
    } else if (text.size() > 4 && text[4] == '-' &&
               std::all_of(text.begin(), text.begin() + 4, IsDigit)) {
      const std::optional<FieldTime> time = ParseFieldTime(text);
      if (!time.has_value()) {
        return Malformed(token,
                         "a date or time that exists, such as 2024-01-31, "
                         "2024-01-31T12:30:45Z or 2024-01-31T12:30:45.5+02:00");
      }
      token.value = *time;
    } else {
      double number = 0;
      if (text.find_first_not_of("-+.0123456789eE") !=
              absl::string_view::npos ||
          !absl::SimpleAtod(text, &number) || !std::isfinite(number)) {
        return Malformed(token,
                         "a number or a date, such as 12, -1.5e3 or "
                         "2024-01-31");
      }
      token.value = number;
    }
    return token;
  }

  absl::Status Malformed(const Token& token, absl::string_view expected) const {
    return FilterError(
        text_, token.offset,
        absl::StrCat("found ", QuotedText(token.text, kShownSizeBytesMax),
                     ", expected ", expected));
  }

  const absl::string_view text_;
  size_t offset_ = 0;
};

}  // namespace

// Fills one Filter.
class FilterParser {
 public:
  explicit FilterParser(Filter& filter)
      : filter_(filter), lexer_(filter.text_) {}

  absl::Status Parse() {
    QUIRE_RETURN_IF_ERROR(Advance());
    QUIRE_ASSIGN_OR_RETURN(filter_.root_, Or());
    return token_.kind == TokenKind::kEnd
               ? absl::OkStatus()
               : Unexpected("\"and\", \"or\" or the end of the filter");
  }

 private:
  using Kind = FilterNode::Kind;
  using Index = absl::StatusOr<uint32_t>;

  absl::Status Advance() {
    QUIRE_ASSIGN_OR_RETURN(token_, lexer_.Next());
    return absl::OkStatus();
  }

  absl::Status Unexpected(absl::string_view expected) const {
    const std::string found =
        token_.kind == TokenKind::kEnd
            ? "the end of the filter"
            : absl::StrCat(
                  "\"",
                  PrintableText(token_.text.substr(0, kShownSizeBytesMax)),
                  token_.text.size() > kShownSizeBytesMax ? "..." : "", "\"");
    return FilterError(filter_.text_, token_.offset,
                       absl::StrCat("found ", found, ", expected ", expected));
  }

  Index Add(FilterNode node) {
    filter_.nodes_.push_back(std::move(node));
    return static_cast<uint32_t>(filter_.nodes_.size() - 1);
  }

  // Operands of `word`, each by `operand`.
  Index Chain(Kind kind, absl::string_view word,
              Index (FilterParser::*operand)()) {
    FilterNode node = {.kind = kind};
    for (;;) {
      QUIRE_ASSIGN_OR_RETURN(const uint32_t child, (this->*operand)());
      node.children.push_back(child);
      if (!token_.IsWord(word)) {
        break;
      }
      QUIRE_RETURN_IF_ERROR(Advance());
    }
    return node.children.size() == 1 ? Index(node.children.front())
                                     : Add(std::move(node));
  }

  Index Or() { return Chain(Kind::kOr, "or", &FilterParser::And); }

  Index And() { return Chain(Kind::kAnd, "and", &FilterParser::Factor); }

  Index Factor() {
    const bool is_not = token_.IsWord("not");
    if (!is_not && !token_.Is("(")) {
      return Condition();
    }
    if (depth_ == kFilterDepthMax) {
      return Unexpected(absl::StrCat("at most ", kFilterDepthMax,
                                     " parentheses and \"not\" inside each "
                                     "other"));
    }
    ++depth_;
    QUIRE_RETURN_IF_ERROR(Advance());
    if (is_not) {
      QUIRE_ASSIGN_OR_RETURN(const uint32_t inner, Factor());
      --depth_;
      return Add({.kind = Kind::kNot, .children = {inner}});
    }
    QUIRE_ASSIGN_OR_RETURN(const uint32_t inner, Or());
    --depth_;
    if (!token_.Is(")")) {
      return Unexpected("\"and\", \"or\" or \")\"");
    }
    QUIRE_RETURN_IF_ERROR(Advance());
    return inner;
  }

  bool IsName() const {
    return token_.kind == TokenKind::kWord &&
           (DocumentAttributeType(token_.text).has_value() ||
            CheckFieldName(token_.text).ok());
  }

  uint32_t NameIndex(absl::string_view name) {
    const auto found =
        std::find(filter_.names_.begin(), filter_.names_.end(), name);
    const auto index = static_cast<uint32_t>(found - filter_.names_.begin());
    if (found == filter_.names_.end()) {
      filter_.names_.emplace_back(name);
    }
    return index;
  }

  Index Condition() {
    if (!IsName()) {
      return Unexpected("the name of a field, \"not\" or \"(\"");
    }
    const Token name = token_;
    QUIRE_RETURN_IF_ERROR(Advance());
    const bool is_domain = name.IsWord("domain");
    if ((is_domain || name.IsWord("host")) &&
        std::holds_alternative<std::string>(token_.value)) {
      return Host(is_domain ? Kind::kDomain : Kind::kHost, name);
    }
    FilterNode node;
    node.name = NameIndex(name.text);
    node.name_offset = name.offset;
    if (token_.IsWord("is")) {
      return IsNull(std::move(node));
    }
    const bool is_not = token_.IsWord("not");
    if (is_not) {
      QUIRE_RETURN_IF_ERROR(Advance());
    }
    if (token_.IsWord("in")) {
      node.kind = Kind::kIn;
      QUIRE_RETURN_IF_ERROR(Advance());
      QUIRE_RETURN_IF_ERROR(List(node));
    } else if (token_.IsWord("prefix")) {
      node.kind = Kind::kPrefix;
      QUIRE_RETURN_IF_ERROR(Advance());
      if (!std::holds_alternative<std::string>(token_.value)) {
        return Unexpected("a string, such as \"https://\"");
      }
      QUIRE_RETURN_IF_ERROR(Value(node));
    } else if (is_not) {
      return Unexpected("\"in\" or \"prefix\"");
    } else {
      QUIRE_RETURN_IF_ERROR(Comparison(node));
    }
    QUIRE_ASSIGN_OR_RETURN(const uint32_t condition, Add(std::move(node)));
    return is_not ? Add({.kind = Kind::kNot, .children = {condition}})
                  : Index(condition);
  }

  // The host after the word `name`.
  Index Host(Kind kind, const Token& name) {
    const std::string value = std::get<std::string>(token_.value);
    std::optional<std::string> host = ParseSurtHost(value);
    if (!host.has_value()) {
      return Unexpected(
          "the name of a host alone, such as \"news.test\" or \"192.0.2.1\", "
          "without scheme, port, path and *");
    }
    // The domain of a host would be larger than what it names.
    const size_t dot = value.find('.');
    if (kind == Kind::kDomain && dot != std::string::npos &&
        ParseSurtHost(absl::string_view(value).substr(dot + 1)) == host) {
      return Unexpected(
          "a domain without www., which is ignored in hosts; the domain has "
          "all hosts below it");
    }
    FilterNode node = {.kind = kind};
    node.name = NameIndex("id");
    node.name_offset = name.offset;
    QUIRE_RETURN_IF_ERROR(Value(node));
    node.values.front() = *std::move(host);
    return Add(std::move(node));
  }

  Index IsNull(FilterNode node) {
    QUIRE_RETURN_IF_ERROR(Advance());
    const bool is_not = token_.IsWord("not");
    if (is_not) {
      QUIRE_RETURN_IF_ERROR(Advance());
    }
    if (!token_.IsWord("null")) {
      return Unexpected(is_not ? "\"null\"" : "\"null\" or \"not null\"");
    }
    QUIRE_RETURN_IF_ERROR(CountValue());
    QUIRE_RETURN_IF_ERROR(Advance());
    node.kind = Kind::kIsNull;
    QUIRE_ASSIGN_OR_RETURN(const uint32_t condition, Add(std::move(node)));
    return is_not ? Add({.kind = Kind::kNot, .children = {condition}})
                  : Index(condition);
  }

  absl::Status Comparison(FilterNode& node) {
    constexpr std::pair<absl::string_view, Kind> kOperators[] = {
        {"=", Kind::kEqual},   {"!=", Kind::kNotEqual},
        {"<", Kind::kLess},    {"<=", Kind::kLessOrEqual},
        {">", Kind::kGreater}, {">=", Kind::kGreaterOrEqual}};
    for (const auto& [symbol, kind] : kOperators) {
      if (token_.Is(symbol)) {
        node.kind = kind;
        QUIRE_RETURN_IF_ERROR(Advance());
        return Value(node);
      }
    }
    return Unexpected(
        "an operator: = != < <= > >= in, prefix, is null, not in, not prefix");
  }

  // "(", values and ")".
  absl::Status List(FilterNode& node) {
    if (!token_.Is("(")) {
      return Unexpected("\"(\" and a list of values, such as (\"de\", \"fr\")");
    }
    do {
      QUIRE_RETURN_IF_ERROR(Advance());
      const Token value = token_;
      QUIRE_RETURN_IF_ERROR(Value(node));
      if (!CompareFields(ViewOf(node.values.front()), ViewOf(value.value))
               .has_value()) {
        return FilterError(
            filter_.text_, value.offset,
            absl::StrCat("found a value of the type ",
                         FieldTypeName(TypeOf(ViewOf(value.value))),
                         ", expected ",
                         FieldTypeName(TypeOf(ViewOf(node.values.front()))),
                         ", the type of the first value of the list"));
      }
    } while (token_.Is(","));
    if (!token_.Is(")")) {
      return Unexpected("\",\" or \")\"");
    }
    std::sort(node.values.begin(), node.values.end(),
              [](const FieldValue& a, const FieldValue& b) {
                return *CompareFields(ViewOf(a), ViewOf(b)) < 0;
              });
    return Advance();
  }

  absl::Status Value(FilterNode& node) {
    if (token_.IsWord("null")) {
      return Unexpected(
          "a value; a field is compared with null by \"is null\"");
    }
    if (token_.Is("=")) {
      return Unexpected("a value; the operator of equality is a single =");
    }
    if (token_.kind != TokenKind::kValue) {
      return Unexpected(
          "a value: \"text\" in quotes, a number, a date such as 2024-01-31, "
          "true or false");
    }
    QUIRE_RETURN_IF_ERROR(CountValue());
    if (node.values.empty()) {
      node.value_offset = token_.offset;
    }
    node.values.push_back(token_.value);
    return Advance();
  }

  absl::Status CountValue() {
    if (++value_count_ > kFilterValuesMax) {
      return Unexpected(
          absl::StrCat("at most ", kFilterValuesMax, " values in a filter"));
    }
    return absl::OkStatus();
  }

  Filter& filter_;
  Lexer lexer_;
  Token token_;
  size_t depth_ = 0;
  size_t value_count_ = 0;
};

absl::StatusOr<Filter> Filter::Parse(absl::string_view text) {
  if (text.size() > kFilterSizeBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("the filter has ", text.size(),
                     " bytes, must have at most ", kFilterSizeBytesMax));
  }
  Filter filter;
  filter.text_ = std::string(text);
  QUIRE_RETURN_IF_ERROR(FilterParser(filter).Parse());
  return filter;
}

}  // namespace quire
