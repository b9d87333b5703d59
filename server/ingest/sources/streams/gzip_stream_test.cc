// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/streams/gzip_stream.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::string> Gunzip(const std::string& compressed,
                                   size_t in_size, size_t out_size) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream,
                         OpenGzipStream(std::make_unique<MemoryStream>(
                                            AsBytes(compressed), in_size),
                                        "x.gz"));
  std::string text;
  std::string piece(out_size, '\0');
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const size_t got,
                           stream->Read(AsMutableBytes(piece)));
    if (got == 0) {
      return text;
    }
    text.append(piece, 0, got);
  }
}

TEST(GzipStreamTest, ReadsManyMembersInPiecesOfAnySize) {
  std::string text;
  std::string compressed;
  for (const size_t size : std::vector<size_t>{0, 1, 100, 70000, 0, 200000}) {
    const std::string part = MakeTestText(size, size);
    text += part;
    compressed += Gzip(part);
  }
  for (const size_t in_size : std::vector<size_t>{1, 1000, 1000000}) {
    for (const size_t out_size : std::vector<size_t>{1, 777, 1000000}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(const std::string back,
                                 Gunzip(compressed, in_size, out_size));
      EXPECT_EQ(back, text) << in_size << " " << out_size;
    }
  }
}

TEST(GzipStreamTest, PassesOverZerosAtTheEnd) {
  const std::string compressed = Gzip("abc") + std::string(1000, '\0');
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string back,
                             Gunzip(compressed, 10, 10));
  EXPECT_EQ(back, "abc");
  EXPECT_THAT(
      Gunzip(compressed + Gzip("def"), 10, 10),
      FailsWith(absl::StatusCode::kDataLoss, HasSubstr("hold no gzip member")));
}

TEST(GzipStreamTest, EveryCutIsAnErrorButBetweenMembers) {
  const std::string first = Gzip(MakeTestText(300, 1));
  const std::string compressed = first + Gzip("more");
  for (size_t size = 1; size < compressed.size(); ++size) {
    const absl::StatusOr<std::string> text =
        Gunzip(compressed.substr(0, size), 64, 64);
    if (size == first.size()) {
      EXPECT_THAT(text, IsOk());
    } else {
      EXPECT_THAT(text, FailsWith(absl::StatusCode::kDataLoss,
                                  HasSubstr("x.gz: the file ends")))
          << size;
    }
  }
}

TEST(GzipStreamTest, ChecksTheChecksumAndNamesTheOffset) {
  const std::string first = Gzip("first member");
  std::string second = Gzip("second member");
  second[second.size() - 8] = static_cast<char>(second[second.size() - 8] ^ 1);
  EXPECT_THAT(
      Gunzip(first + second, 100, 100),
      FailsWith(absl::StatusCode::kDataLoss,
                HasSubstr(absl::StrCat("gzip member 2 that starts at byte ",
                                       first.size()))));
  EXPECT_THAT(Gunzip(first + "garbage", 100, 100),
              HasCode(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace quire
