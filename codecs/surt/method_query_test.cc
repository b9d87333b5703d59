// SPDX-License-Identifier: Apache-2.0
#include "codecs/surt/method_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "codecs/surt/surt_key.h"

namespace quire {
namespace {

constexpr char kForm[] = "application/x-www-form-urlencoded";
constexpr char kUrl[] = "http://example.com/";

std::string Posted(const std::string& type, const std::string& body,
                   const std::string& url = kUrl) {
  return UrlWithMethod(url, "POST", type, body);
}

// Published by webrecorder/cdxj-indexer (test_postappend.py).
TEST(MethodQuery, AgreesWithPublishedExamples) {
  const std::string form = "foo=bar&dir=%2Fbaz";
  EXPECT_EQ(Posted(kForm, form),
            "http://example.com/?__wb_method=POST&foo=bar&dir=/baz");
  EXPECT_EQ(Posted(kForm, form, "http://example.com/?123=ABC"),
            "http://example.com/?123=ABC&__wb_method=POST&foo=bar&dir=/baz");
  EXPECT_EQ(UrlWithMethod(kUrl, "PUT", kForm, form),
            "http://example.com/?__wb_method=PUT&foo=bar&dir=/baz");
  EXPECT_EQ(
      Posted("application/json", R"({"a": "b", "c": {"a": 2}, "d": "e"})"),
      "http://example.com/?__wb_method=POST&a=b&a.2_=2&d=e");
  EXPECT_EQ(
      Posted(
          "application/json",
          R"([{"a": "b", "c": {"a": 2}}, {"d": "e"}, "ignored", false, null, 0])"),
      "http://example.com/?__wb_method=POST&a=b&a.2_=2&d=e");
  EXPECT_EQ(Posted("application/json",
                   "{\"a\": \"b\"}\n{\"c\": {\"a\": 2}, \"d\": \"e\"}"),
            "http://example.com/?__wb_method=POST&a=b&a.2_=2&d=e");
  EXPECT_EQ(Posted("application/octet-stream", form),
            "http://example.com/"
            "?__wb_method=POST&__wb_post_data=Zm9vPWJhciZkaXI9JTJGYmF6");
  EXPECT_EQ(Posted("text/plain", form, "http://example.com/pathbar?id=123"),
            "http://example.com/"
            "pathbar?id=123&__wb_method=POST&__wb_post_data="
            "Zm9vPWJhciZkaXI9JTJGYmF6");
  EXPECT_EQ(Posted(kForm, ""), "http://example.com/?__wb_method=POST");
  EXPECT_EQ(Posted(kForm, "foo=bar&dir=%2"),
            "http://example.com/?__wb_method=POST&foo=bar&dir=%2");
  EXPECT_EQ(
      Posted(kForm,
             "\x81"
             "6l`L\xA0"
             "4P\x0E\xE0r\x02\xB5\x89\x19" +
                 std::string("\0fP\xDB\x0E\xB0\x02,", 8)),
      "http://example.com/"
      "?__wb_method=POST&__wb_post_data=gTZsYEygNFAO4HICtYkZAGZQ2w6wAiw=");
  EXPECT_EQ(
      Posted("multipart/form-data; boundary=----WebKitFormBoundaryX",
             "------WebKitFormBoundaryX\r\nContent-Disposition: "
             "form-data;name=\"ts\"\r\n\r\n1761714108199\r\n"
             "------WebKitFormBoundaryX\r\nContent-Disposition: form-data; "
             "name=\"post_0\"; filename=\"blob\"\r\nContent-Type: "
             "application/octet-stream\r\n\r\n\x9c\r\n"
             "------WebKitFormBoundaryX--\r\n"),
      "http://example.com/?__wb_method=POST&ts=1761714108199&post_0=%9C");
  EXPECT_EQ(Posted("multipart/form-data", form),
            "http://example.com/"
            "?__wb_method=POST&__wb_post_data=Zm9vPWJhciZkaXI9JTJGYmF6");
  EXPECT_EQ(UrlWithMethod(kUrl, "OPTIONS", "", ""),
            "http://example.com/?__wb_method=OPTIONS");
}

TEST(MethodQuery, WritesValuesOfJsonAsPythonDoes) {
  EXPECT_EQ(
      Posted("application/json",
             R"({"t":true,"n":null,"i":-7,"b":123456789012345678901234,)"
             R"("f":1.0,"e":1e5,"s":1.5e-7,"l":1e22,"q":0.001,"x":"a b&c"})"),
      "http://example.com/?__wb_method=POST&t=True&n=None&i=-7"
      "&b=123456789012345678901234&f=1.0&e=100000.0&s=1.5e-07&l=1e%2B22"
      "&q=0.001&x=a+b%26c");
  EXPECT_EQ(Posted("application/json", R"({"a":[1,[2,{"b":3}],4]})"),
            "http://example.com/?__wb_method=POST&a=1&a.2_=2&b=3&a.3_=4");
  EXPECT_EQ(Posted("application/json", "{"),
            "http://example.com/?__wb_method=POST");
}

TEST(MethodQuery, IsBounded) {
  const std::string large(size_t{2} << 20, 'x');
  for (const char* const type :
       {kForm, "application/json", "text/plain", "image/png",
        "multipart/form-data; boundary=b"}) {
    EXPECT_LE(Posted(type, large).size(), 40 + kMethodQuerySizeBytesMax);
  }
  // Deep nesting takes no stack.
  EXPECT_EQ(Posted("application/json", std::string(500'000, '[')),
            "http://example.com/?__wb_method=POST");
}

TEST(MethodQuery, BecomesAKey) {
  EXPECT_EQ(
      SurtKey(Posted(kForm, "foo=bar&test=abc", "http://httpbin.org/post")),
      "org,httpbin)/post?__wb_method=post&foo=bar&test=abc");
  EXPECT_TRUE(HasMethodQuery("post"));
  EXPECT_FALSE(HasMethodQuery("GET"));
}

TEST(MethodQuery, KeepsAnswersToHeadApart) {
  EXPECT_TRUE(HasMethodKey("HEAD"));
  EXPECT_TRUE(HasMethodKey("post"));
  for (const char* const method : {"GET", "get", "", "G=T", "HTTP/1.1"}) {
    EXPECT_FALSE(HasMethodKey(method)) << method;
  }
  EXPECT_TRUE(HasMethodKey(std::string(kMethodSizeBytesMax, 'A')));
  EXPECT_FALSE(HasMethodKey(std::string(kMethodSizeBytesMax + 1, 'A')));
  EXPECT_EQ(SurtKey(UrlWithMethod("http://a.org/b", "HEAD", "", "")),
            "org,a)/b?__wb_method=head");
}

}  // namespace
}  // namespace quire
