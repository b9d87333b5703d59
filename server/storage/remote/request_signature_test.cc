// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/request_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "server/storage/remote/store_address.h"

namespace quire {
namespace {

const StoreCredentials& ExampleCredentials() {
  static const auto& credentials = *new StoreCredentials{
      .access_key_id = "AKIAIOSFODNN7EXAMPLE",
      .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
      .session_token = ""};
  return credentials;
}

std::string ValueOf(const HttpHeaders& headers, absl::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) {
      return value;
    }
  }
  return "";
}

// Amazon S3 API Reference, "Signature Calculations for the Authorization
// Header: Transferring Payload in a Single Chunk", example "GET Object".
TEST(RequestSignatureTest, EqualsTheExampleOfTheDocumentation) {
  const HttpHeaders headers = SignRequest(
      {.host = "examplebucket.s3.amazonaws.com",
       .path = "/test.txt",
       .headers = {{"Range", "bytes=0-9"}}},
      ExampleCredentials(), "us-east-1", absl::FromUnixSeconds(1369353600));
  EXPECT_EQ(ValueOf(headers, "x-amz-date"), "20130524T000000Z");
  EXPECT_EQ(
      ValueOf(headers, "Authorization"),
      "AWS4-HMAC-SHA256 "
      "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
      "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
      "Signature="
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

// The same, examples "PUT Object", "GET Bucket Lifecycle" and "Get Bucket (List
// Objects)".
TEST(RequestSignatureTest, EqualsTheExamplesWithABodyAndWithQueries) {
  const auto signature_of = [](const UnsignedRequest& request) {
    const std::string value =
        ValueOf(SignRequest(request, ExampleCredentials(), "us-east-1",
                            absl::FromUnixSeconds(1369353600)),
                "Authorization");
    return value.substr(value.rfind('=') + 1);
  };
  constexpr char kHost[] = "examplebucket.s3.amazonaws.com";
  EXPECT_EQ(
      signature_of({.method = "PUT",
                    .host = kHost,
                    .path = "/test%24file.text",
                    .headers = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                                {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                    .body = "Welcome to Amazon S3."}),
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  EXPECT_EQ(signature_of({.host = kHost,
                          .path = "/",
                          .headers = {},
                          .query = {{"lifecycle", ""}}}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(signature_of({.host = kHost,
                          .path = "/",
                          .headers = {},
                          .query = {{"prefix", "J"}, {"max-keys", "2"}}}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(RequestSignatureTest, EncodesQueries) {
  EXPECT_EQ(EncodeStoreQuery({{"uploadId", "a/b+c="}, {"partNumber", "2"}}),
            "partNumber=2&uploadId=a%2Fb%2Bc%3D");
}

TEST(RequestSignatureTest, SignsASessionToken) {
  StoreCredentials credentials = ExampleCredentials();
  credentials.session_token = "TOKEN";
  const HttpHeaders headers =
      SignRequest({.host = "h", .path = "/p", .headers = {}}, credentials,
                  "eu-west-1", absl::UnixEpoch());
  EXPECT_EQ(ValueOf(headers, "x-amz-security-token"), "TOKEN");
  EXPECT_TRUE(
      absl::StrContains(ValueOf(headers, "Authorization"),
                        "SignedHeaders=host;x-amz-content-sha256;x-amz-date;"
                        "x-amz-security-token,"));
}

TEST(RequestSignatureTest, DoesNotShowTheSecret) {
  for (const auto& [name, value] :
       SignRequest({.host = "h", .path = "/p", .headers = {}},
                   ExampleCredentials(), "eu-west-1", absl::UnixEpoch())) {
    EXPECT_FALSE(absl::StrContains(value, "EXAMPLEKEY")) << name;
  }
}

TEST(StoreAddressTest, EncodesKeys) {
  EXPECT_EQ(EncodeStorePath("a b+c:d/\xC3\xA4~-._%"),
            "a%20b%2Bc%3Ad/%C3%A4~-._%25");
}

TEST(StoreAddressTest, Parses) {
  const auto amazon =
      ParseStoreAddress("s3://bucket/some prefix/docs.quire/", "", "eu-west-1");
  ASSERT_TRUE(amazon.ok()) << amazon.status();
  EXPECT_EQ(amazon->url, "s3://bucket/some prefix/docs.quire");
  EXPECT_EQ(amazon->drive, "s3://bucket");
  EXPECT_EQ(amazon->UrlOf("MANIFEST"),
            "https://bucket.s3.eu-west-1.amazonaws.com/some%20prefix/"
            "docs.quire/MANIFEST");
  const auto dotted = ParseStoreAddress("s3://my.bucket/p", "", "eu-west-1");
  ASSERT_TRUE(dotted.ok()) << dotted.status();
  EXPECT_EQ(dotted->UrlOf("x"),
            "https://s3.eu-west-1.amazonaws.com/my.bucket/p/x");
  const auto own =
      ParseStoreAddress("s3://bucket", "http://127.0.0.1:9000/s3/", "");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->UrlOf("x"), "http://127.0.0.1:9000/s3/bucket/x");
  EXPECT_EQ(own->host, "127.0.0.1:9000");
  const auto web = ParseStoreAddress("https://host:444/a%20b/", "", "");
  ASSERT_TRUE(web.ok()) << web.status();
  EXPECT_FALSE(web->is_s3);
  EXPECT_EQ(web->drive, "https://host:444");
  EXPECT_EQ(web->UrlOf("segment-00000001"),
            "https://host:444/a%20b/segment-00000001");
}

TEST(StoreAddressTest, DropsDefaultPorts) {
  for (const auto& [endpoint, host] :
       {std::pair("https://host:443/s3", "host"),
        std::pair("http://host:80", "host"),
        std::pair("http://[::1]:80/", "[::1]"),
        std::pair("https://host:80", "host:80"),
        std::pair("http://host:443", "host:443"),
        std::pair("http://host:8080", "host:8080")}) {
    const auto address = ParseStoreAddress("s3://bucket/a:80", endpoint, "");
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->host, host) << endpoint;
    EXPECT_TRUE(absl::EndsWith(address->origin, absl::StrCat("//", host)))
        << address->origin;
    EXPECT_TRUE(absl::EndsWith(address->UrlOf("x"), "/bucket/a%3A80/x"))
        << address->UrlOf("x");
  }
  const auto web = ParseStoreAddress("https://host:443/docs", "", "");
  ASSERT_TRUE(web.ok()) << web.status();
  EXPECT_EQ(web->UrlOf("x"), "https://host/docs/x");
  EXPECT_FALSE(ParseStoreAddress("http://:80/docs", "", "").ok());
}

TEST(StoreAddressTest, PartsShareAllFilesButManifest) {
  const auto part =
      ParseStoreAddress("s3://bucket/a b/parts/07", "http://host/s3", "");
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->UrlOf("MANIFEST"),
            "http://host/s3/bucket/a%20b/parts/07/MANIFEST");
  EXPECT_EQ(part->UrlOf("segment-00000001"),
            "http://host/s3/bucket/a%20b/segment-00000001");
  EXPECT_EQ(part->KeyOf("MANIFEST"), "a b/parts/07/MANIFEST");
  EXPECT_EQ(part->KeyOf("segment-00000001"), "a b/segment-00000001");
  EXPECT_EQ(part->bucket_path, "/s3/bucket");
  EXPECT_EQ(part->url, "s3://bucket/a b/parts/07");
  const auto odd = ParseStoreAddress("s3://bucket/a/parts/0\n7", "", "r");
  ASSERT_TRUE(odd.ok());
  EXPECT_EQ(odd->PathOf("MANIFEST"), "/a/parts/0%0A7/MANIFEST");
  EXPECT_EQ(odd->KeyOf("MANIFEST"), "a/parts/0\n7/MANIFEST");
  for (const char* whole : {"s3://bucket/parts/07/x", "s3://bucket/xparts/07",
                            "s3://bucket/parts", "s3://bucket/07"}) {
    const auto address = ParseStoreAddress(whole, "", "eu-west-1");
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->manifest_directory, "") << whole;
  }
  EXPECT_EQ(ParseStoreAddress("s3://bucket/parts/07", "", "r")->UrlOf("x"),
            "https://bucket.s3.r.amazonaws.com/x");
}

TEST(StoreAddressTest, RefusesMalformedUrls) {
  for (const char* url :
       {"s3://", "s3://ab/x", "s3://bu cket/x", "s3://bu\"cket/x", "https://",
        "https:///path", "https://host/a b", "https://host/x?y",
        "https://host/x#y", "https://u:p@host/x", "ftp://host/x", ""}) {
    const auto parsed = ParseStoreAddress(url, "", "us-east-1");
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument)
        << url;
  }
  EXPECT_FALSE(ParseStoreAddress("s3://bucket", "127.0.0.1:9000", "").ok());
}

}  // namespace
}  // namespace quire
