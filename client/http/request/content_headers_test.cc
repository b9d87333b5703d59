// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/content_headers.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(DocumentMediaTypeTest, IsThatOfTheSourceOrOfTheSuffix) {
  EXPECT_EQ(DocumentMediaType("image/x; a=b", "a.html"), "image/x; a=b");
  EXPECT_EQ(DocumentMediaType("", "a/b.html"), "text/html");
  EXPECT_EQ(DocumentMediaType("text/\x01", "B.PNG"), "image/png");
  EXPECT_EQ(DocumentMediaType("", "notes.md"), "text/plain; charset=utf-8");
  for (const char* id :
       {"", ".", "html", "a.html/b", "a.html.", "a.exe", "a."}) {
    EXPECT_EQ(DocumentMediaType("", id), "application/octet-stream") << id;
  }
}

}  // namespace
}  // namespace quire
