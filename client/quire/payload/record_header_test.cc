// SPDX-License-Identifier: Apache-2.0
#include "client/quire/payload/record_header.h"

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

#include "client/quire/payload/record_testing.h"
#include "codecs/base/bytes.h"

namespace quire {
namespace {

HttpStatusSearch StatusOf(const std::string& record) {
  return FindHttpStatus(AsBytes(absl::string_view(record)));
}

TEST(HttpStatusTest, FindsTheStatusOfResponsesAndRevisits) {
  EXPECT_EQ(StatusOf(Response("", "body")).code, 200);
  EXPECT_EQ(StatusOf(Record("revisit", "HTTP/1.0 304\r\n\r\n")).code, 304);
  EXPECT_EQ(StatusOf(Record("response",
                            "HTTP/1.1 100 Continue\r\n\r\n"
                            "HTTP/1.1 503 Busy\r\n\r\n"))
                .code,
            503);
  EXPECT_EQ(StatusOf(Record("response", "HTTP/1.1 101 Switching\r\n\r\n")).code,
            101);
  // A header that does not end, and a line that does not.
  EXPECT_EQ(StatusOf(Record("response", "HTTP/1.1 404 Not")).code, 404);
  for (const std::string& record :
       {Record("revisit", ""), Record("request", "GET / HTTP/1.1\r\n\r\n"),
        Record("response", "no HTTP"), Record("response", "HTTP/1.1 abc\r\n"),
        Record("response", "HTTP/1.1 200 OK\r\n\r\n", "", "text/dns"),
        Record("warcinfo", "HTTP/1.1 200 OK\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\n\r\n"), std::string("WARC/1.1\r\n\r\n"),
        Record("response", std::string(2'000'000, 'x')),
        Record("response", "\r\n"), ArcRecord("dns:e.org", "1.2.3.4\n"),
        ArcRecord("filedesc://x.arc", "HTTP/1.1 200 OK\r\n\r\n")}) {
    EXPECT_TRUE(StatusOf(record).is_decided) << record.substr(0, 100);
    EXPECT_FALSE(StatusOf(record).code.has_value()) << record.substr(0, 100);
  }
}

TEST(HttpStatusTest, AsksForMoreOnlyWhereMoreDecides) {
  const std::string block =
      "\r\nHTTP/1.1 100 Continue\r\n\r\n\r\nHTTP/1.1 200 OK\r\n\r\nbody";
  for (const std::string& record :
       {Record("response", block), ArcRecord("http://e.org/", block)}) {
    const size_t line_end = record.find("OK\r\n") + 4;
    for (size_t size = 0; size <= record.size(); ++size) {
      const HttpStatusSearch found = StatusOf(record.substr(0, size));
      EXPECT_EQ(found.is_decided, size >= line_end) << size;
      EXPECT_EQ(found.code,
                size >= line_end ? std::optional<int>(200) : std::nullopt)
          << size;
    }
  }
  // Headers without an end are given up.
  EXPECT_TRUE(
      StatusOf("WARC/1.1\r\n" + std::string(kRecordHeaderSizeBytesMax, 'x'))
          .is_decided);
  EXPECT_FALSE(StatusOf("WARC/1.1\r\nx").is_decided);
  EXPECT_FALSE(StatusOf("http").is_decided);
  EXPECT_TRUE(StatusOf("<none>").is_decided);
  EXPECT_TRUE(StatusOf("http://e.org/ and more\n").is_decided);
}

}  // namespace
}  // namespace quire
