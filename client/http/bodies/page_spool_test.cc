// SPDX-License-Identifier: Apache-2.0
#include "client/http/bodies/page_spool.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

// The value; an error gives an empty one and fails the test.
std::string BytesOf(const absl::StatusOr<std::string>& value) {
  QUIRE_EXPECT_OK(value);
  return value.value_or("");
}

std::shared_ptr<SpooledPage> Spooled(PageSpool& spool,
                                     const std::string& text) {
  absl::StatusOr<std::shared_ptr<SpooledPage>> page = spool.Create();
  QUIRE_EXPECT_OK(page.status());
  const absl::string_view view(text);
  QUIRE_EXPECT_OK(spool.Append(**page, AsBytes(view.substr(0, 3))));
  QUIRE_EXPECT_OK(spool.Append(**page, AsBytes(view.substr(3))));
  return *std::move(page);
}

TEST(PageSpool, ReturnsWhatWasAppended) {
  PageSpool spool(::testing::TempDir(), 100);
  const std::shared_ptr<SpooledPage> page = Spooled(spool, "0123456789");
  EXPECT_EQ(page->size_bytes(), 10U);
  EXPECT_EQ(BytesOf(page->Read(2, 5)), "23456");
  EXPECT_EQ(BytesOf(page->Read(8, 5)), "89");
  EXPECT_EQ(spool.Find("\"a\""), nullptr);
  spool.Keep("\"a\"", page);
  EXPECT_EQ(spool.Find("\"a\""), page);
}

TEST(PageSpool, NamesAFileThatWasTruncated) {
  PageSpool spool(::testing::TempDir(), 100);
  const std::shared_ptr<SpooledPage> page = Spooled(spool, "0123456789");
  int truncated_count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::filesystem::path file =
        std::filesystem::read_symlink(entry.path(), error);
    if (absl::StrContains(file.string(), "/quire-page-")) {
      truncated_count += truncate(entry.path().c_str(), 4) == 0 ? 1 : 0;
    }
  }
  ASSERT_EQ(truncated_count, 1);
  EXPECT_EQ(BytesOf(page->Read(2, 2)), "23");
  EXPECT_THAT(page->Read(5, 2),
              FailsWith(absl::StatusCode::kDataLoss,
                        ::testing::HasSubstr("its file ends before byte 5")));
}

TEST(PageSpool, DropsTheLeastRecentlyUsedPage) {
  PageSpool spool(::testing::TempDir(), 30);
  for (const char* etag : {"a", "b", "c"}) {
    spool.Keep(etag, Spooled(spool, "0123456789"));
  }
  EXPECT_EQ(spool.budget().free_bytes(), 0U);
  EXPECT_NE(spool.Find("a"), nullptr);
  spool.Keep("d", Spooled(spool, "9876543210"));
  EXPECT_NE(spool.Find("a"), nullptr);
  EXPECT_EQ(spool.Find("b"), nullptr);
  EXPECT_NE(spool.Find("c"), nullptr);
  EXPECT_NE(spool.Find("d"), nullptr);
}

TEST(PageSpool, IsFullWhilePagesAreRead) {
  PageSpool spool(::testing::TempDir(), 25);
  const std::shared_ptr<SpooledPage> read = Spooled(spool, "0123456789");
  std::shared_ptr<SpooledPage> other = Spooled(spool, "0123456789");
  spool.Keep("a", read);
  absl::StatusOr<std::shared_ptr<SpooledPage>> page = spool.Create();
  QUIRE_ASSERT_OK(page.status());
  EXPECT_EQ(spool.Append(**page, AsBytes("0123456789")).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(BytesOf(read->Read(0, 10)), "0123456789");
  other.reset();
  QUIRE_EXPECT_OK(spool.Append(**page, AsBytes("0123456789")));
}

TEST(PageSpool, NeedsADirectory) {
  PageSpool spool("/nowhere", 25);
  EXPECT_EQ(spool.Create().status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(JoinedBytes, ReadsAcrossItsParts) {
  PageSpool spool(::testing::TempDir(), 1000);
  const std::shared_ptr<SpooledPage> empty = *spool.Create();
  const std::string first = "first part, ";
  const std::string second = "second part";
  JoinedBytes joined({empty, Spooled(spool, first), empty, empty,
                      Spooled(spool, second), empty});
  const std::string all = first + second;
  ASSERT_EQ(joined.size_bytes(), all.size());
  for (size_t offset = 0; offset < all.size(); ++offset) {
    for (size_t size = 1; size <= all.size(); ++size) {
      const absl::StatusOr<std::string> read = joined.Read(offset, size);
      QUIRE_ASSERT_OK(read.status());
      EXPECT_FALSE(read->empty());
      EXPECT_EQ(*read, all.substr(offset, read->size()));
      EXPECT_LE(read->size(), size);
    }
  }
}

}  // namespace
}  // namespace quire
