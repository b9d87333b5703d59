// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/archive/captures/capture_cursor.h"
#include "server/archive/captures/capture_digest.h"
#include "server/archive/captures/capture_leaf.h"
#include "server/archive/captures/captures_builder.h"
#include "server/archive/captures/segment_captures.h"
#include "server/archive/container/container_part.h"
#include "server/archive/format/archive_format.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::SizeIs;

// An index as a reader sees it.
class Index {
 public:
  explicit Index(const std::vector<SegmentCapture>& captures,
                 uint64_t document_count = 1'000'000) {
    CapturesBuilder builder;
    for (const SegmentCapture& capture : captures) {
      QUIRE_EXPECT_OK(builder.Add(capture));
    }
    ContainerData data;
    const auto head = builder.Build(data);
    QUIRE_EXPECT_OK(head.status());
    bytes = std::move(data).Take();
    auto parsed =
        SegmentCaptures::Parse(AsBytes(*head), document_count, bytes.size());
    QUIRE_EXPECT_OK(parsed.status());
    head_ = *parsed;
    load_ = [this](const ContainerPart& part)
        -> absl::StatusOr<std::optional<PartBytes>> {
      ++load_count;
      if (--parts_at_hand < 0) {
        return std::nullopt;
      }
      auto raw = std::make_shared<std::vector<uint8_t>>(part.size_bytes);
      QUIRE_RETURN_IF_ERROR(DecodePart(
          part, AsBytes(bytes).subspan(part.offset, part.stored_size_bytes),
          *raw));
      return PartBytes{.owner = raw, .bytes = *raw};
    };
  }

  CaptureCursor Cursor() { return CaptureCursor(head_, 0, cache_, load_); }

  absl::StatusOr<std::vector<std::string>> All() {
    std::vector<std::string> all;
    QUIRE_RETURN_IF_ERROR(
        VisitCaptures(head_, load_, [&](const SegmentCapture& capture) {
          all.push_back(Describe(capture));
          return absl::OkStatus();
        }));
    return all;
  }

  absl::StatusOr<uint64_t> StoredSizeBytes() const {
    return StoredCapturesSizeBytes(head_, load_);
  }

  static std::string Describe(const SegmentCapture& capture) {
    return absl::StrCat(capture.key, " ", capture.time_ms, " ", capture.ordinal,
                        " ", capture.status, " ", capture.digest, " ",
                        capture.id_skip_bytes.has_value()
                            ? absl::StrCat(*capture.id_skip_bytes)
                            : std::string(capture.url));
  }

  const SegmentCaptures& head() const { return head_; }

  std::string bytes;
  int parts_at_hand = std::numeric_limits<int>::max();
  int load_count = 0;

 private:
  SegmentCaptures head_;
  CaptureCache cache_;
  PartLoader load_;
};

// Captures with keys that last as long as this.
struct Samples {
  explicit Samples(uint64_t count) {
    std::mt19937_64 random(7);
    for (uint64_t i = 0; i < count; ++i) {
      // Some URLs have many captures, and some captures the same time.
      keys.push_back(i % 3 == 0 ? "com,example)/front"
                                : absl::StrCat("com,example)/", random() % 500,
                                               "/page-", random() % 100));
    }
    for (uint64_t i = 0; i < count; ++i) {
      SegmentCapture capture = {
          .key = keys[i],
          .time_ms =
              static_cast<int64_t>(1'600'000'000'000 + random() % 5000 * 1000),
          .ordinal = i * 2,
          .status = static_cast<uint32_t>(random() % 5 * 100)};
      if (i % 5 == 1) {
        capture.digest = "sha256:abc";
      } else if (i % 5 > 1) {
        Sha1 sha1 = {};
        sha1[0] = static_cast<uint8_t>(random() % 256);
        sha1[19] = static_cast<uint8_t>(random() % 256);
        capture.digest = FormatSha1Digest(AsText(sha1));
      }
      if (i % 7 == 0) {
        capture.id_skip_bytes = std::nullopt;
        capture.url = "http://example.com/stated";
      } else {
        capture.id_skip_bytes = static_cast<uint32_t>(i % 11);
      }
      captures.push_back(capture);
    }
  }

  std::vector<std::string> Sorted() {
    std::ranges::sort(captures, {}, [](const SegmentCapture& capture) {
      return std::tuple(capture.key, capture.time_ms, capture.ordinal);
    });
    std::vector<std::string> all;
    for (const SegmentCapture& capture : captures) {
      all.push_back(Index::Describe(capture));
    }
    return all;
  }

  std::vector<std::string> keys;
  std::vector<SegmentCapture> captures;
};

TEST(Captures, AreSortedAndKept) {
  for (const uint64_t count :
       std::vector<uint64_t>{1, 2, 255, 256, 257, 2000}) {
    Samples samples(count);
    Index index(samples.captures);
    EXPECT_EQ(index.head().capture_count, count);
    EXPECT_EQ(index.head().level_count, count <= 256 ? 0 : 1);
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<std::string> all, index.All());
    EXPECT_EQ(all, samples.Sorted());
  }
}

TEST(Captures, SizesAreSummedWithoutLeaves) {
  const Samples few(3);
  const Index leaf(few.captures);
  EXPECT_EQ(leaf.StoredSizeBytes().value(), leaf.bytes.size());
  const Samples samples(3000);
  Index index(samples.captures);
  EXPECT_EQ(index.StoredSizeBytes().value(), index.bytes.size());
  EXPECT_EQ(index.load_count, 1);
  std::string& bytes = index.bytes;
  bytes[index.head().root.offset] =
      static_cast<char>(bytes[index.head().root.offset] ^ 1);
  EXPECT_TRUE(absl::IsDataLoss(index.StoredSizeBytes().status()));
}

TEST(Captures, CursorsFindAndWalkBothWays) {
  Samples samples(3000);
  Index index(samples.captures);
  const std::vector<std::string> sorted = samples.Sorted();
  const std::vector<SegmentCapture>& captures = samples.captures;
  CaptureCursor cursor = index.Cursor();
  for (size_t i = 0; i < captures.size(); i += 37) {
    const SegmentCapture& wanted = captures[i];
    QUIRE_ASSERT_OK(cursor.Seek(wanted.place()).status());
    ASSERT_EQ(Index::Describe(cursor.Get()), sorted[i]);
    SegmentCapturePlace after = wanted.place();
    ++after.ordinal;
    QUIRE_ASSERT_OK(cursor.Seek(after).status());
    ASSERT_EQ(cursor.at_end() ? "end" : Index::Describe(cursor.Get()),
              i + 1 == sorted.size() ? "end" : sorted[i + 1]);
    QUIRE_ASSERT_OK(cursor.Seek(wanted.place()).status());
    const size_t first = i;
    bool is_first = false;
    CaptureCursor back = cursor;
    for (size_t at = first; at-- > 0 && at + 300 > first;) {
      QUIRE_ASSERT_OK(back.Previous(is_first).status());
      ASSERT_FALSE(is_first);
      ASSERT_EQ(Index::Describe(back.Get()), sorted[at]);
    }
    for (size_t at = first + 1; at < std::min(first + 300, sorted.size());
         ++at) {
      QUIRE_ASSERT_OK(cursor.Next().status());
      ASSERT_EQ(Index::Describe(cursor.Get()), sorted[at]);
    }
  }
  QUIRE_ASSERT_OK(cursor.Seek({.key = "com,example)/front"}).status());
  EXPECT_EQ(cursor.Key(), "com,example)/front");
  QUIRE_ASSERT_OK(cursor.Seek({}).status());
  EXPECT_EQ(Index::Describe(cursor.Get()), sorted.front());
  bool is_first = false;
  QUIRE_ASSERT_OK(cursor.Previous(is_first).status());
  EXPECT_TRUE(is_first);
  QUIRE_ASSERT_OK(cursor.Seek({.key = "d"}).status());
  EXPECT_TRUE(cursor.at_end());
  QUIRE_ASSERT_OK(cursor.Previous(is_first).status());
  EXPECT_EQ(Index::Describe(cursor.Get()), sorted.back());
  QUIRE_ASSERT_OK(cursor.Next().status());
  EXPECT_TRUE(cursor.at_end());
}

// Every gap between captures is found from both sides.
TEST(Captures, CursorsFindTimesBetweenCaptures) {
  std::vector<SegmentCapture> captures;
  for (uint64_t i = 0; i < 1000; ++i) {
    captures.push_back({.key = "com,example)/",
                        .time_ms = static_cast<int64_t>(i * 10),
                        .ordinal = i});
  }
  Index index(captures);
  CaptureCursor cursor = index.Cursor();
  for (int64_t time = -5; time < 9990; time += 5) {
    QUIRE_ASSERT_OK(
        cursor.Seek({.key = "com,example)/", .time_ms = time}).status());
    ASSERT_FALSE(cursor.at_end());
    ASSERT_EQ(cursor.TimeMs(), (time + 9) / 10 * 10) << time;
  }
}

// A page can begin between captures of one time, which fill several leaves.
TEST(Captures, CursorsFindCapturesOfOneTime) {
  std::vector<SegmentCapture> captures;
  for (uint64_t i = 0; i < 1000; ++i) {
    captures.push_back(
        {.key = "com,example)/", .time_ms = 5, .ordinal = i * 2});
  }
  Index index(captures);
  CaptureCursor cursor = index.Cursor();
  for (uint64_t ordinal = 0; ordinal < 1999; ++ordinal) {
    QUIRE_ASSERT_OK(
        cursor.Seek({.key = "com,example)/", .time_ms = 5, .ordinal = ordinal})
            .status());
    ASSERT_EQ(cursor.Get().ordinal, (ordinal + 1) / 2 * 2);
  }
}

TEST(Captures, ALookUpNeedsOnePartALevel) {
  // Parts are full after a few long keys.
  std::vector<std::string> keys;
  std::vector<SegmentCapture> captures;
  for (uint64_t i = 0; i < 6000; ++i) {
    keys.push_back(
        absl::StrCat("com,example)/", std::string(1000, 'x'), 10'000 + i));
  }
  for (uint64_t i = 0; i < keys.size(); ++i) {
    captures.push_back({.key = keys[i], .ordinal = i});
  }
  Index index(captures);
  EXPECT_EQ(index.head().level_count, 2);
  for (uint64_t i = 0; i < keys.size(); i += 999) {
    CaptureCursor cursor = index.Cursor();
    index.load_count = 0;
    QUIRE_ASSERT_OK(cursor.Seek({.key = keys[i]}).status());
    EXPECT_LE(index.load_count, 3);
    EXPECT_EQ(cursor.Get().ordinal, i);
  }
  // The head alone is held in memory.
  EXPECT_LT(index.head().Encode().size(), 40);
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<std::string> all, index.All());
  EXPECT_EQ(all.size(), keys.size());
}

TEST(Captures, CursorsStayWherePartsAreMissing) {
  Samples samples(3000);
  Index index(samples.captures);
  const std::vector<std::string> sorted = samples.Sorted();
  CaptureCursor cursor = index.Cursor();
  index.parts_at_hand = 0;
  QUIRE_ASSERT_OK_AND_ASSIGN(bool is_moved, cursor.Seek({}));
  EXPECT_FALSE(is_moved);
  index.parts_at_hand = 2;
  QUIRE_ASSERT_OK_AND_ASSIGN(is_moved, cursor.Seek({}));
  EXPECT_TRUE(is_moved);
  std::vector<std::string> all;
  while (!cursor.at_end()) {
    all.push_back(Index::Describe(cursor.Get()));
    QUIRE_ASSERT_OK_AND_ASSIGN(is_moved, cursor.Next());
    if (!is_moved) {
      EXPECT_EQ(Index::Describe(cursor.Get()), all.back());
      index.parts_at_hand = 1;
      QUIRE_ASSERT_OK_AND_ASSIGN(is_moved, cursor.Next());
      ASSERT_TRUE(is_moved);
    }
  }
  EXPECT_EQ(all, sorted);
}

TEST(Captures, TakeAFewBytes) {
  Samples samples(20'000);
  for (SegmentCapture& capture : samples.captures) {
    capture.digest.clear();
  }
  const Index index(samples.captures);
  EXPECT_LT(index.bytes.size(), 20'000 * 10);
}

TEST(Captures, LongKeysFitTheirParts) {
  std::vector<std::string> keys;
  for (int i = 0; i < 26; ++i) {
    keys.push_back(std::string(kCaptureKeySizeBytesMax - 1, 'x') +
                   static_cast<char>('a' + i));
  }
  std::vector<SegmentCapture> captures;
  for (const std::string& key : keys) {
    captures.push_back({.key = key, .ordinal = captures.size()});
  }
  Index index(captures);
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::vector<std::string> all, index.All());
  EXPECT_THAT(all, SizeIs(26));
  CapturesBuilder builder;
  EXPECT_TRUE(absl::IsInvalidArgument(builder.Add({.key = ""})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      builder.Add({.key = keys[0] + std::string(1, 'x')})));
  EXPECT_TRUE(
      absl::IsInvalidArgument(builder.Add({.key = "a", .status = 1000})));
}

TEST(Captures, DamageIsFound) {
  Samples samples(3000);
  Index index(samples.captures);
  for (const size_t at :
       {size_t{0}, index.bytes.size() / 2, index.bytes.size() - 1}) {
    std::string& bytes = index.bytes;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    EXPECT_TRUE(absl::IsDataLoss(index.All().status())) << at;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
  }
  SegmentCaptures head = index.head();
  head.capture_count += 1;
  EXPECT_TRUE(absl::IsDataLoss(VisitCaptures(
      head,
      [&index](const ContainerPart& part)
          -> absl::StatusOr<std::optional<PartBytes>> {
        auto raw = std::make_shared<std::vector<uint8_t>>(part.size_bytes);
        QUIRE_RETURN_IF_ERROR(DecodePart(
            part,
            AsBytes(index.bytes).subspan(part.offset, part.stored_size_bytes),
            *raw));
        return PartBytes{.owner = raw, .bytes = *raw};
      },
      [](const SegmentCapture&) { return absl::OkStatus(); })));
  // More captures than documents.
  EXPECT_FALSE(SegmentCaptures::Parse(AsBytes(index.head().Encode()), 2999,
                                      index.bytes.size())
                   .ok());
}

TEST(Captures, LeavesOutOfOrderAreRefused) {
  const SegmentCapture a = {.key = "a", .time_ms = 5, .ordinal = 1};
  const SegmentCapture later = {.key = "a", .time_ms = 6, .ordinal = 0};
  const auto parse = [](const std::vector<SegmentCapture>& captures,
                        uint64_t document_count) {
    return CaptureLeaf::Parse(AsBytes(EncodeCaptureLeaf(captures)),
                              document_count)
        .status();
  };
  QUIRE_EXPECT_OK(parse({a, later}, 2));
  EXPECT_TRUE(absl::IsDataLoss(parse({later, a}, 2)));
  EXPECT_TRUE(absl::IsDataLoss(parse({a, a}, 2)));
  EXPECT_TRUE(absl::IsDataLoss(parse({a, later}, 1)));
}

TEST(CaptureDigest, KeepsSha1InTwentyBytes) {
  const std::string digest = "sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A";
  const std::optional<Sha1> bytes = ParseSha1Digest(digest);
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(FormatSha1Digest(AsText(*bytes)), digest);
  EXPECT_EQ((*bytes)[0], 0x0E);
  for (const char* const other :
       {"", "sha1:", "sha1:b2ltwwpuoyah7uipq7zupq4vmbsvc36a",
        "SHA1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A",
        "sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36AA",
        "sha256:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A"}) {
    EXPECT_FALSE(ParseSha1Digest(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace quire
