// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/request_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"

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
