// SPDX-License-Identifier: Apache-2.0
//
// Tests specific to partitions; block_codec_test.cc covers all codecs.
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/payload/partition_table.h"
#include "codecs/payload/payload_codec.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/deflate_check.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kSize = kPartitionSizeBytesMin;
constexpr size_t kTextSize = 3 * kSize + 1000;

class PayloadPartitionsTest : public ::testing::Test {
 protected:
  void Use(const std::string& name, uint32_t partition_size = kSize) {
    QUIRE_ASSERT_OK_AND_ASSIGN(CodecSpec spec, ParseCodecSpec(name));
    spec.partition_size_bytes = partition_size;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        codec_, MakePayloadCodec(spec, context_, CodecUse::kEncodeAndDecode));
    scratch_ = codec_->NewScratch();
  }

  std::string Encode(const std::string& text) {
    std::string stored(codec_->StoredSizeMax(text.size()), '\0');
    const auto payload =
        codec_->Encode(AsBytes(text), AsMutableBytes(stored), *scratch_);
    EXPECT_THAT(payload, IsOk());
    is_raw_ = payload.ok() && payload->is_raw;
    return payload.ok() ? std::string(AsText(payload->bytes)) : "";
  }

  // Returns the partitions of a block that Encode() made.
  static std::vector<std::string> Split(const std::string& stored,
                                        size_t raw_size) {
    PartitionTable table;
    EXPECT_THAT(table.Parse(AsBytes(stored), PartitionCount(raw_size, kSize)),
                IsOk());
    std::vector<std::string> parts;
    for (size_t i = 0; i < table.count(); ++i) {
      parts.emplace_back(AsText(table.Stored(i)));
    }
    return parts;
  }

  static std::string Join(const std::vector<std::string>& parts) {
    std::vector<uint32_t> sizes;
    std::string body;
    for (const std::string& part : parts) {
      sizes.push_back(static_cast<uint32_t>(part.size()));
      body += part;
    }
    std::string head(PartitionTableSizeMax(parts.size()), '\0');
    head.resize(WritePartitionTable(sizes, AsMutableBytes(head)));
    return head + body;
  }

  absl::StatusOr<std::string> DecodeRange(const std::string& stored,
                                          size_t raw_size, size_t offset,
                                          size_t size) {
    std::string out(size, '?');
    const absl::Status status =
        codec_->DecodeRange({.bytes = AsBytes(stored)}, raw_size, offset,
                            AsMutableBytes(out), *scratch_);
    if (!status.ok()) {
      return status;
    }
    return out;
  }

  // Expects that every range that has the damaged partition whole detects the
  // damage, and that no range of the others does.
  void ExpectDamagedPartition(const std::string& stored,
                              const std::string& text, size_t damaged,
                              const char* message) {
    EXPECT_THAT(DecodeRange(stored, text.size(), 0, text.size()),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)))
        << message;
    for (size_t begin = 0; begin < text.size(); begin += kSize) {
      const size_t size = std::min<size_t>(kSize, text.size() - begin);
      const auto part = DecodeRange(stored, text.size(), begin, size);
      if (begin / kSize == damaged) {
        EXPECT_THAT(part,
                    FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)))
            << message;
      } else {
        EXPECT_TRUE(part.value_or("") == text.substr(begin, size)) << message;
      }
    }
  }

  TestRandom random_{7};
  const std::string text_ = RandomText(random_, kTextSize);
  const std::shared_ptr<const CodecContext> context_ =
      MakeTestContext(64 << 10);
  std::unique_ptr<PayloadCodec> codec_;
  std::unique_ptr<PayloadCodec::Scratch> scratch_;
  // True if the last block was stored as its text.
  bool is_raw_ = false;
};

TEST_F(PayloadPartitionsTest, ZlibPartitionsAreOneStreamForZlib) {
  for (const char* const name : {"zlib:1", "zlib", "zlib:9"}) {
    Use(name);
    for (const size_t size : {size_t{1}, size_t{kSize}, size_t{kSize} + 1,
                              kTextSize, kBlockSizeBytesMax}) {
      for (const TestInput& input : TestInputs(random_, size, text_)) {
        const std::string stored = Encode(input.text);
        if (is_raw_) {
          continue;
        }
        std::string body;
        for (const std::string& part : Split(stored, size)) {
          body += part;
        }
        std::string raw(size, '?');
        z_stream inflater = {};
        ASSERT_EQ(inflateInit2(&inflater, -15), Z_OK);
        inflater.next_in = reinterpret_cast<Bytef*>(body.data());
        inflater.avail_in = static_cast<uInt>(body.size());
        inflater.next_out = reinterpret_cast<Bytef*>(raw.data());
        inflater.avail_out = static_cast<uInt>(size);
        EXPECT_EQ(inflate(&inflater, Z_FINISH), Z_STREAM_END) << input.name;
        EXPECT_EQ(inflater.avail_in, 0u);
        EXPECT_EQ(inflater.avail_out, 0u);
        inflateEnd(&inflater);
        EXPECT_TRUE(raw == input.text) << input.name << " " << size;
      }
    }
  }
}

TEST_F(PayloadPartitionsTest, ZstdAndLz4PartitionsAreOnesOfTheLibraries) {
  std::string raw(kSize, '?');
  Use("zstd");
  std::vector<std::string> parts = Split(Encode(text_), kTextSize);
  ASSERT_EQ(parts.size(), 4u);
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t size = std::min<size_t>(kSize, kTextSize - i * kSize);
    EXPECT_EQ(ZSTD_decompress(raw.data(), raw.size(), parts[i].data(),
                              parts[i].size()),
              size);
    EXPECT_TRUE(raw.substr(0, size) == text_.substr(i * kSize, size));
  }
  Use("lz4");
  parts = Split(Encode(text_), kTextSize);
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t size = std::min<size_t>(kSize, kTextSize - i * kSize);
    EXPECT_EQ(LZ4_decompress_safe(parts[i].data(), raw.data(),
                                  static_cast<int>(parts[i].size()),
                                  static_cast<int>(kSize)),
              static_cast<int>(size));
    EXPECT_TRUE(raw.substr(0, size) == text_.substr(i * kSize, size));
  }
}

TEST_F(PayloadPartitionsTest, RangesReadNoOtherPartition) {
  for (const char* const name : {"zlib", "zstd", "lz4", "rlz"}) {
    SCOPED_TRACE(name);
    Use(name);
    std::vector<std::string> parts = Split(Encode(text_), kTextSize);
    parts[1] = std::string(parts[1].size(), '\xFF');
    const std::string stored = Join(parts);
    for (int i = 0; i < 300; ++i) {
      const size_t offset = RandomBelow(random_, kTextSize);
      const size_t size = 1 + RandomBelow(random_, kTextSize - offset);
      const auto range = DecodeRange(stored, kTextSize, offset, size);
      if (offset < 2 * kSize && offset + size > kSize) {
        EXPECT_THAT(range, FailsWith(absl::StatusCode::kDataLoss,
                                     HasSubstr("partition 1: ")))
            << offset << " " << size;
      } else {
        EXPECT_TRUE(range.value_or("") == text_.substr(offset, size))
            << offset << " " << size;
      }
    }
  }
}

TEST_F(PayloadPartitionsTest, SaysWhichPartitionsARangeDecodes) {
  Use("zlib");
  const auto expect = [this](TextRange range, size_t offset, size_t size) {
    const TextRange decoded = codec_->DecodedRange(kTextSize, range);
    EXPECT_EQ(decoded.offset, offset) << range.offset << " " << range.size;
    EXPECT_EQ(decoded.size, size) << range.offset << " " << range.size;
  };
  expect({.offset = 0, .size = 1}, 0, kSize);
  expect({.offset = 0, .size = kSize}, 0, kSize);
  expect({.offset = 0, .size = kSize + 1}, 0, 2 * kSize);
  expect({.offset = kSize - 1, .size = 2}, 0, 2 * kSize);
  expect({.offset = kSize, .size = 1}, kSize, kSize);
  expect({.offset = 2 * kSize + 5, .size = kSize}, 2 * kSize, kSize + 1000);
  expect({.offset = kTextSize - 1, .size = 1}, 3 * kSize, 1000);
  expect({.offset = 5, .size = 0}, 0, 0);
  // Other codecs decode all of a block, or none.
  QUIRE_ASSERT_OK_AND_ASSIGN(const CodecSpec spec, ParseCodecSpec("zlib"));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      codec_, MakePayloadCodec(spec, nullptr, CodecUse::kDecode));
  expect({.offset = kSize, .size = 1}, 0, kTextSize);
  expect({.offset = kSize, .size = 0}, 0, 0);
}

TEST_F(PayloadPartitionsTest, ABadHeadIsSeenByEveryRange) {
  for (const char* const name : {"zlib", "zstd", "lz4", "rlz"}) {
    SCOPED_TRACE(name);
    Use(name);
    const std::vector<std::string> parts = Split(Encode(text_), kTextSize);
    const std::string good = Join(parts);
    std::string zero = good;
    zero.replace(0, 2, std::string(1, '\0'));
    const std::string short_body =
        good.substr(0, good.size() - parts[3].size());
    for (const std::string& stored : {zero, short_body}) {
      for (const size_t offset : {size_t{0}, size_t{kSize}, kTextSize - 1}) {
        EXPECT_THAT(DecodeRange(stored, kTextSize, offset, 1),
                    HasCode(absl::StatusCode::kDataLoss));
      }
    }
  }
}

TEST_F(PayloadPartitionsTest, PartitionsAreExactlyTheirTextAndNoMore) {
  for (const char* const name : {"zlib", "zstd", "lz4", "rlz"}) {
    SCOPED_TRACE(name);
    Use(name);
    const std::vector<std::string> parts = Split(Encode(text_), kTextSize);
    for (size_t i = 0; i < parts.size(); ++i) {
      std::vector<std::string> edited = parts;
      edited[i].pop_back();
      ExpectDamagedPartition(Join(edited), text_, i, "partition ");
      edited[i] = parts[i] + '\0';
      ExpectDamagedPartition(Join(edited), text_, i, "partition ");
    }
    // More text than a partition has, and less: the block of other partitions.
    const std::string longer =
        Split(Encode(RandomText(random_, kSize)), kSize)[0];
    const std::string shorter = Split(Encode(RandomText(random_, 999)), 999)[0];
    std::vector<std::string> edited = parts;
    edited[3] = longer;
    ExpectDamagedPartition(Join(edited), text_, 3, "partition 3: ");
    edited[3] = shorter;
    ExpectDamagedPartition(Join(edited), text_, 3, "partition 3: ");
  }
}

// A decoder that inflates all of a block as one stream would accept these.
TEST_F(PayloadPartitionsTest, ZlibMatchesMustNotLeaveTheirPartition) {
  Use("zlib");
  const std::string half = RandomText(random_, kSize);
  const std::string text = half + half;
  z_stream stream = {};
  ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::vector<std::string> parts;
  for (const int flush : {Z_SYNC_FLUSH, Z_FINISH}) {
    std::string in = half;
    std::string part(2 * kSize, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(in.data());
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    deflate(&stream, flush);
    part.resize(part.size() - stream.avail_out);
    parts.push_back(part);
  }
  deflateEnd(&stream);
  // It does copy from the first half.
  ASSERT_LT(parts[1].size(), 100u);
  ASSERT_EQ(DifferenceToZlib(AsBytes(parts[0] + parts[1]), {}, text.size(), 99),
            "");
  ExpectDamagedPartition(Join(parts), text, 1, "partition 1: malformed");
}

TEST_F(PayloadPartitionsTest, ZlibPartitionsEndWithAFullFlush) {
  Use("zlib");
  const std::vector<std::string> parts = Split(Encode(text_), kTextSize);
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    EXPECT_TRUE(parts[i].ends_with(std::string("\0\0\xFF\xFF", 4)));
  }
  std::vector<std::string> edited = parts;
  // A final block before other partitions.
  edited[1] = RawDeflate(text_.substr(kSize, kSize));
  ExpectDamagedPartition(Join(edited), text_, 1, "final block");
  // An empty final block after all text, before the flush.
  edited[1] = parts[1].substr(0, parts[1].size() - 4) +
              std::string("\0\0\xFF\xFF\x03\0", 6);
  ExpectDamagedPartition(Join(edited), text_, 1, "final block");
  // The last one without its final block.
  edited = parts;
  edited[3] = Split(Encode(text_.substr(3 * kSize) + std::string(kSize, 'x')),
                    kSize + 1000)[0];
  EXPECT_THAT(DecodeRange(Join(edited), kTextSize, 3 * kSize, 1000),
              HasCode(absl::StatusCode::kDataLoss));
  // Two flushes are valid.
  edited = parts;
  edited[0] += std::string("\0\0\0\xFF\xFF", 5);
  EXPECT_TRUE(DecodeRange(Join(edited), kTextSize, 0, kTextSize).value_or("") ==
              text_);
}

TEST_F(PayloadPartitionsTest, TextThatDoesNotShrinkStaysAsItIs) {
  for (const char* const name : {"zlib:1", "zlib:9", "zstd"}) {
    Use(name);
    const std::string text = RandomBytes(random_, kTextSize);
    EXPECT_EQ(Encode(text), text);
    EXPECT_TRUE(is_raw_);
  }
  // Their coded forms are a few bytes larger.
  for (const char* const name : {"zlib", "zstd", "lz4", "rlz", "xz"}) {
    Use(name, /*partition_size=*/0);
    for (const size_t size :
         {size_t{1}, size_t{20}, size_t{100}, size_t{1000}}) {
      SCOPED_TRACE(::testing::Message() << name << " " << size);
      const std::string text = RandomBytes(random_, size);
      EXPECT_EQ(Encode(text), text);
      EXPECT_TRUE(is_raw_);
    }
  }
}

}  // namespace
}  // namespace quire
