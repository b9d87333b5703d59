// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/request_head.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/http/request/answer_status.h"
#include "client/http/request/content_headers.h"
#include "client/quire/client_status.h"

namespace quire {
namespace {

using ::testing::Contains;
using ::testing::Pair;
using ::testing::StrEq;

using Headers = std::vector<std::pair<absl::string_view, absl::string_view>>;

class RequestHeadTest : public ::testing::Test {
 protected:
  std::variant<HttpRequest, Answer> Parse(Headers headers) {
    head_.headers = std::move(headers);
    return ParseRequest(head_, rules_);
  }

  // 0 if there is no answer yet.
  int StatusOf(Headers headers) {
    const auto parsed = Parse(std::move(headers));
    const auto* answer = std::get_if<Answer>(&parsed);
    return answer == nullptr ? 0 : answer->status;
  }

  RequestHead head_{.method = "GET",
                    .target = "/v1/web/doc/a",
                    .version = "HTTP/1.1",
                    .headers = {}};
  RequestRules rules_{.hosts = {"localhost", "[::1]"}, .allowed_origins = {}};
};

TEST_F(RequestHeadTest, TakesRequests) {
  const auto parsed = Parse({{"HOST", "localhost:80"},
                             {"range", "bytes=1-2"},
                             {"If-None-Match", "\"a\""},
                             {"if-none-match", "\"b\""},
                             {"Authorization", "Bearer a.b"},
                             {"Content-Length", "0"}});
  const auto& request = std::get<HttpRequest>(parsed);
  EXPECT_EQ(request.target.id, "a");
  EXPECT_EQ(request.range.first, 1U);
  EXPECT_EQ(request.conditions.if_none_match, "\"a\", \"b\"");
  EXPECT_EQ(request.headers.authorization, "Bearer a.b");
}

TEST_F(RequestHeadTest, KnowsItsHosts) {
  EXPECT_EQ(StatusOf({{"Host", "LocalHost"}}), 0);
  EXPECT_EQ(StatusOf({{"Host", "[::1]:7480"}}), 0);
  EXPECT_EQ(StatusOf({{"Host", "evil.example"}}), 421);
  EXPECT_EQ(StatusOf({{"Host", "localhost.evil.example"}}), 421);
  EXPECT_EQ(StatusOf({{"Host", ""}}), 421);
  EXPECT_EQ(StatusOf({}), 400);
  EXPECT_EQ(StatusOf({{"Host", "localhost"}, {"host", "localhost"}}), 400);
  // An absolute target counts more than Host (RFC 9112, section 3.2.2).
  head_.target = "http://evil.example/v1/";
  EXPECT_EQ(StatusOf({{"Host", "localhost"}}), 421);
  head_.target = "http://localhost/v1/";
  EXPECT_EQ(StatusOf({{"Host", "localhost"}}), 0);
}

TEST_F(RequestHeadTest, RefusesBodies) {
  for (const auto& [name, value] : Headers{{"Content-Length", "1"},
                                           {"content-length", "00"},
                                           {"Content-Length", "-1"},
                                           {"Transfer-Encoding", "chunked"},
                                           {"transfer-encoding", "identity"}}) {
    const auto parsed = Parse({{"Host", "localhost"}, {name, value}});
    ASSERT_TRUE(std::holds_alternative<Answer>(parsed)) << name;
    EXPECT_EQ(std::get<Answer>(parsed).status, 400);
    EXPECT_TRUE(std::get<Answer>(parsed).closes);
  }
  EXPECT_EQ(StatusOf({{"Host", "localhost"},
                      {"Content-Length", "0"},
                      {"Content-Length", "0"}}),
            400);
}

TEST_F(RequestHeadTest, RefusesNamesThatOthersMayUnderstand) {
  for (const char* name : {"Transfer-Encoding ", "Transfer-Encoding\t",
                           "Content Length", "", "Content-L\xc3\xa9ngth"}) {
    EXPECT_EQ(StatusOf({{"Host", "localhost"}, {name, "chunked"}}), 400)
        << name;
  }
  EXPECT_EQ(StatusOf({{"Host", "localhost \t"}, {"X-!#$%&'*+.^_`|~", ""}}), 0);
}

TEST_F(RequestHeadTest, KnowsItsPathBehindAProxy) {
  const auto base_of = [&](Headers headers) {
    headers.emplace_back("Host", "localhost");
    const auto parsed = Parse(std::move(headers));
    const auto* request = std::get_if<HttpRequest>(&parsed);
    return request == nullptr ? "refused" : request->base_path;
  };
  EXPECT_EQ(base_of({}), "");
  EXPECT_EQ(base_of({{"X-Forwarded-Prefix", "/q"}}), "/q");
  EXPECT_EQ(base_of({{"x-forwarded-prefix", "/a/b-1/"}}), "/a/b-1");
  for (const char* none : {"", "/"}) {
    EXPECT_EQ(base_of({{"X-Forwarded-Prefix", none}}), "");
  }
  for (const char* wrong :
       {"q", "//evil.example", "/a//b", "/..", "/a/./b", "/a\"b", "/a b",
        "/%2F", "https://evil.example", "/a, /b", "/\\evil"}) {
    EXPECT_EQ(base_of({{"X-Forwarded-Prefix", wrong}}), "refused") << wrong;
  }
  EXPECT_EQ(
      base_of({{"X-Forwarded-Prefix", "/a"}, {"X-Forwarded-Prefix", "/b"}}),
      "refused");
  rules_.base_path = "/q";
  EXPECT_EQ(base_of({}), "/q");
  EXPECT_EQ(base_of({{"X-Forwarded-Prefix", "/r"}}), "/r");
  for (const char* target : {"/q/v1/web/doc/a", "/v1/web/doc/a",
                             "http://localhost/q/v1/web/doc/a"}) {
    head_.target = target;
    const auto parsed = Parse({{"Host", "localhost"}});
    EXPECT_EQ(std::get<HttpRequest>(parsed).target.id, "a") << target;
  }
  head_.target = "/qv1/web/doc/a";
  EXPECT_EQ(StatusOf({{"Host", "localhost"}}), 404);
}

TEST_F(RequestHeadTest, RefusesControlCharacters) {
  for (const char* value :
       {"a\rTransfer-Encoding: chunked", "\ra", "a\r", "a\x01", "\x7f"}) {
    EXPECT_EQ(StatusOf({{"Host", "localhost"}, {"X", value}}), 400) << value;
  }
  EXPECT_EQ(StatusOf({{"Host", "localhost"}, {"X", "a\tb \xc3\xa9"}}), 0);
  for (const char* target :
       {"/v1/web/doc/a b", "/v1/web/doc/\r", "/v1/web/doc/\x7f", " /v1/"}) {
    head_.target = target;
    const auto parsed = Parse({{"Host", "localhost"}});
    ASSERT_TRUE(std::holds_alternative<Answer>(parsed)) << target;
    EXPECT_EQ(std::get<Answer>(parsed).status, 400) << target;
    EXPECT_TRUE(std::get<Answer>(parsed).closes) << target;
  }
  head_.target = "/v1/web/doc/\xc3\xa9";
  EXPECT_EQ(StatusOf({{"Host", "localhost"}}), 0);
}

// The HTTP library leaves requests like this: separators are NUL.
TEST(CoversHead, FindsWhatIsHidden) {
  const auto covers = [](absl::string_view block,
                         const std::vector<absl::string_view>& words) {
    std::vector<absl::string_view> parts;
    for (const absl::string_view word : words) {
      const size_t at = block.find(word);
      EXPECT_NE(at, absl::string_view::npos) << word;
      parts.push_back(block.substr(at, word.size()));
    }
    return CoversHead(block, std::move(parts));
  };
  const auto block = [](std::string text) {
    std::replace(text.begin(), text.end(), '$', '\0');
    return text;
  };
  const std::vector<absl::string_view> words = {
      "GET", "/v1/a:b", "HTTP/1.1", "Host", "name:80", "X", "y"};
  const std::string whole =
      block("GET$  /v1/a:b$HTTP/1.1$$Host$ name:80$$X$y \t$$$$");
  EXPECT_TRUE(covers(whole, words));
  // After a NUL in the target, in a value, and a line that continues another.
  for (const char* text : {"GET$/v1/a:b$/c$HTTP/1.1$$Host$ name:80$$X$y$$$$",
                           "GET$/v1/a:b$HTTP/1.1$$Host$ name:80$evil$$X$y$$$$",
                           "GET$/v1/a:b$HTTP/1.1$$Host$ name:80$$X$y$$ z$$$$",
                           "GET$/v1/a:b$HTTP/1.1$$Host$ name:80$$X$y$$$$z"}) {
    EXPECT_FALSE(covers(block(text), words)) << text;
  }
  // A name that was moved elsewhere.
  const std::string elsewhere = "Xz";
  std::vector<absl::string_view> parts = {elsewhere};
  EXPECT_FALSE(CoversHead(whole, parts));
  EXPECT_TRUE(CoversHead("", {}));
}

TEST_F(RequestHeadTest, RefusesMethodsAndVersions) {
  const Headers host = {{"Host", "localhost"}};
  for (const char* method : {"POST", "PUT", "get", "CONNECT", "TRACE"}) {
    head_.method = method;
    EXPECT_EQ(StatusOf(host), 405) << method;
  }
  head_.method = "OPTIONS";
  EXPECT_EQ(StatusOf(host), 204);
  head_.method = "GET";
  for (const char* version : {"", "HTTP/0.9", "HTTP/2.0", "HTTP/1.10"}) {
    head_.version = version;
    EXPECT_EQ(StatusOf(host), 400) << version;
  }
}

TEST_F(RequestHeadTest, ChecksTokens) {
  EXPECT_EQ(StatusOf({{"Host", "localhost"}, {"Authorization", "Basic YTpi"}}),
            401);
  EXPECT_EQ(StatusOf({{"Host", "localhost"}, {"Authorization", "Bearer a\tb"}}),
            401);
  EXPECT_EQ(StatusOf({{"Host", "localhost"}, {"Authorization", "bearer a"}}),
            0);
  rules_.forwards_tokens = false;
  EXPECT_EQ(StatusOf({{"Host", "localhost"}, {"Authorization", "Bearer a"}}),
            403);
}

TEST_F(RequestHeadTest, NamesAllowedOrigins) {
  Answer answer;
  AddOriginHeaders("https://a", rules_, answer);
  EXPECT_TRUE(answer.headers.empty());
  rules_.allowed_origins = {"https://a"};
  AddOriginHeaders("https://b", rules_, answer);
  EXPECT_EQ(answer.headers.size(), 1U);
  AddOriginHeaders("https://a", rules_, answer);
  EXPECT_THAT(
      answer.headers,
      Contains(Pair(StrEq("Access-Control-Allow-Origin"), "https://a")));
}

TEST(ContentType, IsChecked) {
  EXPECT_TRUE(IsContentType("text/html"));
  EXPECT_TRUE(IsContentType("text/html; charset=\"a b\""));
  EXPECT_TRUE(IsContentType("application/rdf+xml ;q"));
  for (const char* type :
       {"", "text", "text/", "/html", "text/html\r\nA: b", "text/h\xc3\xa9",
        "te xt/html", "text/html;\x7f", "text/html;\t"}) {
    EXPECT_FALSE(IsContentType(type)) << type;
  }
  EXPECT_FALSE(IsContentType("a/" + std::string(255, 'b')));
}

TEST(AnswerOfStatus, MapsEachCode) {
  const std::pair<absl::StatusCode, int> expectations[] = {
      {absl::StatusCode::kCancelled, 503},
      {absl::StatusCode::kUnknown, 502},
      {absl::StatusCode::kInvalidArgument, 400},
      {absl::StatusCode::kDeadlineExceeded, 504},
      {absl::StatusCode::kNotFound, 404},
      {absl::StatusCode::kAlreadyExists, 502},
      {absl::StatusCode::kPermissionDenied, 403},
      {absl::StatusCode::kResourceExhausted, 503},
      {absl::StatusCode::kFailedPrecondition, 502},
      {absl::StatusCode::kAborted, 503},
      {absl::StatusCode::kOutOfRange, 416},
      {absl::StatusCode::kUnimplemented, 502},
      {absl::StatusCode::kInternal, 502},
      {absl::StatusCode::kUnavailable, 503},
      {absl::StatusCode::kDataLoss, 502},
      // By the client, which refuses the server.
      {absl::StatusCode::kUnauthenticated, 502}};
  for (const auto& [code, status] : expectations) {
    const Answer answer = AnswerOfStatus(absl::Status(code, "a\nb"));
    EXPECT_EQ(answer.status, status) << code;
    const bool may_name_server = code == absl::StatusCode::kUnavailable ||
                                 code == absl::StatusCode::kDeadlineExceeded ||
                                 code == absl::StatusCode::kUnauthenticated;
    EXPECT_EQ(answer.body == "a\\x0Ab\n", !may_name_server) << answer.body;
    EXPECT_NE(answer.body, "a\nb\n");
  }
  v1::ItemStatus withdrawn;
  withdrawn.set_reason(v1::DOCUMENT_WITHDRAWN);
  for (const absl::StatusCode code : {absl::StatusCode::kPermissionDenied,
                                      absl::StatusCode::kFailedPrecondition}) {
    withdrawn.set_code(static_cast<int>(code));
    EXPECT_EQ(AnswerOfStatus(StatusFromItem(withdrawn)).status, 451) << code;
  }
  EXPECT_THAT(AnswerOfStatus(absl::UnavailableError("")).headers,
              Contains(Pair(StrEq("Retry-After"), "1")));
  EXPECT_EQ(UnauthorizedAnswer("").status, 401);
  EXPECT_THAT(UnauthorizedAnswer("").headers,
              Contains(Pair(StrEq("WWW-Authenticate"), "Bearer")));
}

TEST(MemoryCharge, KeepsToTheBudget) {
  MemoryBudget budget(100);
  {
    MemoryCharge charge(&budget);
    EXPECT_TRUE(charge.TryResize(60));
    MemoryCharge other(&budget);
    EXPECT_FALSE(other.TryResize(41));
    EXPECT_TRUE(other.TryResize(40));
    EXPECT_FALSE(charge.TryResize(61));
    EXPECT_TRUE(charge.TryResize(10));
    EXPECT_EQ(budget.free_bytes(), 50U);
    charge = std::move(other);
    EXPECT_EQ(budget.used_bytes(), 40U);
  }
  EXPECT_EQ(budget.used_bytes(), 0U);
}

}  // namespace
}  // namespace quire
