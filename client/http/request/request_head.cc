// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/request_head.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "client/http/request/answer_status.h"
#include "client/http/request/content_headers.h"
#include "client/quire/channel_security.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/trace_parent.h"

namespace quire {
namespace {

constexpr const char* kMethods = "GET, HEAD, OPTIONS";

// True for bytes that neither a target nor the value of a header may have, such
// as a CR without LF, which others take for the end of a line (RFC 9112,
// section 2.2).
bool IsControl(char c) {
  return absl::ascii_iscntrl(static_cast<unsigned char>(c));
}

// The headers that the gateway reads. Repeated ones among them are refused,
// except lists.
struct KnownHeaders {
  std::optional<absl::string_view> host;
  std::optional<absl::string_view> authorization;
  std::optional<absl::string_view> range;
  std::optional<absl::string_view> if_range;
  std::optional<absl::string_view> trace_parent;
  std::optional<absl::string_view> content_length;
  std::optional<absl::string_view> forwarded_prefix;
  std::optional<std::string> if_match;
  std::optional<std::string> if_none_match;
  bool has_body = false;
  bool has_malformed_name = false;
  bool has_control = false;
  // Not empty: a header that was repeated.
  std::string repeated;
};

void TakeOnce(absl::string_view name, absl::string_view value,
              std::optional<absl::string_view>& header, KnownHeaders& known) {
  if (header.has_value()) {
    known.repeated = std::string(name);
  }
  header = value;
}

void TakeList(absl::string_view value, std::optional<std::string>& header) {
  header = header.has_value() ? absl::StrCat(*header, ", ", value)
                              : std::string(value);
}

KnownHeaders FindHeaders(const RequestHead& head) {
  KnownHeaders known;
  const std::pair<absl::string_view, std::optional<absl::string_view>*>
      singles[] = {{"Host", &known.host},
                   {"Authorization", &known.authorization},
                   {"Range", &known.range},
                   {"If-Range", &known.if_range},
                   {"traceparent", &known.trace_parent},
                   {"Content-Length", &known.content_length},
                   {"X-Forwarded-Prefix", &known.forwarded_prefix}};
  for (const auto& [name, text] : head.headers) {
    const absl::string_view value = absl::StripTrailingAsciiWhitespace(text);
    known.has_malformed_name = known.has_malformed_name || !IsHttpToken(name);
    known.has_control =
        known.has_control || std::any_of(text.begin(), text.end(), [](char c) {
          return c != '\t' && IsControl(c);
        });
    for (const auto& [single, header] : singles) {
      if (absl::EqualsIgnoreCase(name, single)) {
        TakeOnce(single, value, *header, known);
      }
    }
    if (absl::EqualsIgnoreCase(name, "If-Match")) {
      TakeList(value, known.if_match);
    } else if (absl::EqualsIgnoreCase(name, "If-None-Match")) {
      TakeList(value, known.if_none_match);
    } else if (absl::EqualsIgnoreCase(name, "Transfer-Encoding")) {
      known.has_body = true;
    }
  }
  known.has_body = known.has_body || (known.content_length.has_value() &&
                                      *known.content_length != "0");
  return known;
}

std::string HostName(absl::string_view authority) {
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  if (colon != absl::string_view::npos &&
      (bracket == absl::string_view::npos || colon > bracket)) {
    authority = authority.substr(0, colon);
  }
  return absl::AsciiStrToLower(authority);
}

Answer Closing(Answer answer) {
  answer.closes = true;
  return answer;
}

Method MethodOf(absl::string_view name) {
  return name == "GET"       ? Method::kGet
         : name == "HEAD"    ? Method::kHead
         : name == "OPTIONS" ? Method::kOptions
                             : Method::kOther;
}

// The answer to a request that is wrong, whatever its target.
std::optional<Answer> CheckHead(const RequestHead& head,
                                const KnownHeaders& known,
                                absl::string_view authority,
                                const RequestRules& rules) {
  if (head.version != "HTTP/1.1" && head.version != "HTTP/1.0") {
    return Closing(TextAnswer(400, "the request line must end with HTTP/1.1"));
  }
  if (std::any_of(head.target.begin(), head.target.end(),
                  [](char c) { return c == ' ' || IsControl(c); })) {
    return Closing(
        TextAnswer(400,
                   "the target of a request must have no blanks and control "
                   "characters; write them as %20 and the like"));
  }
  // Such as "Transfer-Encoding :", which a proxy may understand otherwise.
  if (known.has_malformed_name) {
    return Closing(TextAnswer(400, "the name of a header is malformed"));
  }
  if (known.has_control) {
    return Closing(TextAnswer(
        400,
        "the value of a header must have no control characters, such as a "
        "CR that is not followed by LF"));
  }
  if (!known.repeated.empty()) {
    return Closing(
        TextAnswer(400, absl::StrCat(known.repeated, " must be given once")));
  }
  if (known.has_body) {
    return Closing(TextAnswer(400, "requests must have no body"));
  }
  if (!known.host.has_value() && head.version == "HTTP/1.1") {
    return Closing(TextAnswer(400, "a request needs a Host"));
  }
  if (std::find(rules.hosts.begin(), rules.hosts.end(), HostName(authority)) ==
      rules.hosts.end()) {
    return Closing(TextAnswer(
        421, absl::StrCat("this gateway is not the host ",
                          QuotedText(authority), "; see quire-http --host")));
  }
  return std::nullopt;
}

Answer AnswerOptions() {
  Answer answer;
  answer.status = 204;
  answer.headers = {{"Allow", kMethods},
                    {"Access-Control-Allow-Methods", kMethods},
                    {"Access-Control-Allow-Headers",
                     "Authorization, If-Match, If-None-Match, If-Range, Range"},
                    {"Access-Control-Max-Age", "86400"}};
  return answer;
}

std::optional<std::string> ToString(std::optional<absl::string_view> value) {
  return value.has_value() ? std::optional<std::string>(*value) : std::nullopt;
}

}  // namespace

bool CoversHead(absl::string_view block, std::vector<absl::string_view> parts) {
  static constexpr absl::string_view kSeparators("\0 \t\r\n:", 6);
  const std::less<const char*> precedes;
  std::sort(parts.begin(), parts.end(),
            [&](absl::string_view a, absl::string_view b) {
              return precedes(a.data(), b.data());
            });
  const char* const end = block.data() + block.size();
  const char* position = block.data();
  const auto covers_up_to = [&](const char* next) {
    return absl::string_view(position, static_cast<size_t>(next - position))
               .find_first_not_of(kSeparators) == absl::string_view::npos;
  };
  for (const absl::string_view part : parts) {
    const char* const part_end = part.data() + part.size();
    // Elsewhere, or within the part before.
    if (precedes(part.data(), position) || precedes(end, part_end)) {
      continue;
    }
    if (!covers_up_to(part.data())) {
      return false;
    }
    position = part_end;
  }
  return covers_up_to(end);
}

std::variant<HttpRequest, Answer> ParseRequest(const RequestHead& head,
                                               const RequestRules& rules) {
  KnownHeaders known = FindHeaders(head);
  absl::string_view raw = head.target;
  const absl::string_view authority =
      TakeAuthority(raw).value_or(known.host.value_or(""));
  if (std::optional<Answer> fault = CheckHead(head, known, authority, rules)) {
    return *std::move(fault);
  }
  HttpRequest request;
  request.method = MethodOf(head.method);
  if (request.method == Method::kOptions) {
    return AnswerOptions();
  }
  if (request.method == Method::kOther) {
    Answer answer = TextAnswer(405, absl::StrCat("use one of ", kMethods));
    answer.headers.emplace_back("Allow", kMethods);
    return Closing(std::move(answer));
  }
  absl::StatusOr<std::string> base_path =
      ParseBasePath(known.forwarded_prefix.value_or(rules.base_path));
  if (!base_path.ok()) {
    return TextAnswer(400, absl::StrCat("X-Forwarded-Prefix: ",
                                        base_path.status().message()));
  }
  request.base_path = *std::move(base_path);
  absl::string_view path = raw;
  if (absl::ConsumePrefix(&path, rules.base_path) &&
      absl::StartsWith(path, "/")) {
    raw = path;
  }
  absl::StatusOr<RequestTarget> target = ParseRequestTarget(raw);
  if (!target.ok()) {
    return AnswerOfStatus(target.status());
  }
  request.target = *std::move(target);
  if (known.authorization.has_value()) {
    if (!rules.forwards_tokens) {
      return TextAnswer(
          403,
          "this gateway forwards no tokens: it has one of its own, or "
          "reaches its server without TLS");
    }
    if (!IsBearerHeader(*known.authorization)) {
      return UnauthorizedAnswer("Authorization must be \"Bearer TOKEN\"");
    }
    request.headers.authorization = std::string(*known.authorization);
  }
  if (known.trace_parent.has_value() && IsTraceParent(*known.trace_parent)) {
    request.headers.trace_parent = std::string(*known.trace_parent);
  }
  request.range = ParseRangeHeader(known.range.value_or(""));
  request.conditions = {.if_match = std::move(known.if_match),
                        .if_none_match = std::move(known.if_none_match),
                        .if_range = ToString(known.if_range)};
  return request;
}

void AddOriginHeaders(absl::string_view origin, const RequestRules& rules,
                      Answer& answer) {
  if (rules.allowed_origins.empty()) {
    return;
  }
  answer.headers.emplace_back("Vary", "Origin");
  const auto allows = [&](const std::string& allowed) {
    return allowed == "*" || origin == absl::string_view(allowed);
  };
  const auto allowed = std::find_if(rules.allowed_origins.begin(),
                                    rules.allowed_origins.end(), allows);
  if (origin.empty() || allowed == rules.allowed_origins.end()) {
    return;
  }
  answer.headers.emplace_back("Access-Control-Allow-Origin", *allowed);
  answer.headers.emplace_back(
      "Access-Control-Expose-Headers",
      "Accept-Ranges, Content-Length, Content-Range, ETag");
}

}  // namespace quire
