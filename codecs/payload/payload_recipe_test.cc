// SPDX-License-Identifier: Apache-2.0
//
// Tests of payloads with recipes; block_codec_test.cc covers all codecs.
#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/payload/inflated_count.h"
#include "codecs/payload/partition_coder.h"
#include "codecs/payload/payload_codec.h"
#include "codecs/payload/recipe.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/deflate_test_streams.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeed = 11;

MATCHER_P(HoldsText, text, "has the text") {
  return arg.ok() && *arg == text;
}

// Words that only a dictionary helps to compress.
std::string Words(TestRandom& random, size_t size) {
  return RandomText(random, size, 2000);
}

class PayloadRecipeTest : public ::testing::Test {
 protected:
  PayloadRecipeTest()
      : context_(MakeTestContext(256 << 10)),
        codec_(MakeCodec(kInflatedBlockSizeMax)),
        text_codec_(MakeCodec(0)),
        scratch_(codec_->NewScratch()) {}

  std::unique_ptr<PayloadCodec> MakeCodec(size_t inflated_text_size_max) const {
    return *MakePayloadCodec({.id = CodecId::kRlz, .level = 2}, context_,
                             CodecUse::kEncodeAndDecode,
                             inflated_text_size_max);
  }

  std::string Encode(const std::string& block) {
    return EncodeWith(*codec_, block);
  }

  std::string EncodeWith(const PayloadCodec& codec, const std::string& block) {
    std::string stored(codec.StoredSizeMax(block.size()), '?');
    const auto payload =
        codec.Encode(AsBytes(block), AsMutableBytes(stored), *scratch_);
    EXPECT_THAT(payload, IsOk());
    if (!payload.ok()) {
      return "";
    }
    has_recipe_ = payload->has_recipe;
    is_raw_ = payload->is_raw;
    return std::string(AsText(payload->bytes));
  }

  size_t SizeWithoutInflating(const std::string& block) {
    const auto scratch = text_codec_->NewScratch();
    std::vector<uint8_t> stored(text_codec_->StoredSizeMax(block.size()));
    return text_codec_->Encode(AsBytes(block), stored, *scratch)->bytes.size();
  }

  absl::StatusOr<std::string> Decode(const std::string& stored, size_t size) {
    std::string block(size, '?');
    const absl::Status status =
        codec_->Decode(PayloadOf(stored), AsMutableBytes(block), *scratch_);
    if (!status.ok()) {
      return status;
    }
    return block;
  }

  // Returns `stored` as the result of the last Encode().
  Payload PayloadOf(const std::string& stored) const {
    return {
        .bytes = AsBytes(stored), .is_raw = is_raw_, .has_recipe = has_recipe_};
  }

  // Text of the dictionary, which takes almost no space once it is inflated.
  std::string KnownText(size_t offset, size_t size) const {
    return context_->dictionary.substr(offset, size);
  }

  const std::shared_ptr<const CodecContext> context_;
  const std::unique_ptr<PayloadCodec> codec_;
  const std::unique_ptr<PayloadCodec> text_codec_;
  const std::unique_ptr<PayloadCodec::Scratch> scratch_;
  // Set for the last encoded block.
  bool has_recipe_ = false;
  bool is_raw_ = false;
};

// A server takes no workspace larger than that.
TEST(DecodeScratchBytesMaxTest, IsBoundedForAllCodecs) {
  for (const CodecInfo& info : AllCodecs()) {
    EXPECT_LE(DecodeScratchBytesMax(info.id, kBlockSizeBytesMax, true),
              kDecodeScratchBytesMax)
        << info.name;
  }
}

TEST_F(PayloadRecipeTest, StoresMembersAsTheirText) {
  TestRandom random(kSeed);
  const std::vector<std::string> streams = {
      ZlibStream({.level = 6}, KnownText(1000, 30000), DeflateContainer::kZlib),
      ZlibStream({.level = 9}, KnownText(50000, 20000),
                 DeflateContainer::kGzip),
      GzipProgramStream(9, KnownText(90000, 40000))};
  std::string all;
  for (const std::string& stream : streams) {
    std::string block = Words(random, 500);
    block += stream;
    block += Words(random, 300);
    const std::string stored = Encode(block);
    EXPECT_LT(stored.size(), SizeWithoutInflating(block) / 4);
    EXPECT_THAT(Decode(stored, block.size()), HoldsText(block));
    all += block;
  }
  const std::string stored = Encode(all);
  EXPECT_TRUE(has_recipe_);
  EXPECT_EQ(stored[0], static_cast<char>(streams.size()));
  EXPECT_THAT(Decode(stored, all.size()), HoldsText(all));
}

TEST_F(PayloadRecipeTest, DecodesRangesOfMembersAndBetweenThem) {
  TestRandom random(kSeed);
  const std::string block =
      Words(random, 700) + GzipProgramStream(6, KnownText(7000, 30000)) +
      Words(random, 900) +
      ZlibStream({.level = 9}, KnownText(60000, 9000), DeflateContainer::kZlib);
  const std::string stored = Encode(block);
  ASSERT_TRUE(has_recipe_);
  ASSERT_EQ(stored[0], 2);
  for (size_t offset = 0; offset < block.size(); offset += 211) {
    const size_t size = std::min<size_t>(block.size() - offset, 600);
    std::string range(size, '?');
    QUIRE_ASSERT_OK(codec_->DecodeRange(PayloadOf(stored), block.size(), offset,
                                        AsMutableBytes(range), *scratch_));
    EXPECT_EQ(range, block.substr(offset, size)) << offset;
  }
}

TEST_F(PayloadRecipeTest, DecodesToTheInflatedText) {
  TestRandom random(kSeed);
  const std::string inner = KnownText(7000, 30000);
  const std::string block =
      Words(random, 700) + GzipProgramStream(6, inner) + Words(random, 900);
  std::vector<uint8_t> text;
  Recipe recipe;
  const std::string stored = Encode(block);
  QUIRE_ASSERT_OK(codec_->DecodeInflated(PayloadOf(stored), block.size(), text,
                                         recipe, *scratch_));
  ASSERT_EQ(recipe.members.size(), 1u);
  const InflatedMember& member = recipe.members[0];
  std::string expected = block;
  expected.replace(member.offset, member.recipe.member_size, inner);
  EXPECT_EQ(member.text_offset, member.offset);
  EXPECT_EQ(AsText(text), expected);

  EXPECT_THAT(text_codec_->DecodeInflated(PayloadOf(stored), block.size(), text,
                                          recipe, *text_codec_->NewScratch()),
              HasCode(absl::StatusCode::kDataLoss));
  for (size_t size = 0; size < stored.size(); size += 7) {
    const std::string cut = stored.substr(0, size);
    EXPECT_THAT(codec_->DecodeInflated(PayloadOf(cut), block.size(), text,
                                       recipe, *scratch_),
                HasCode(absl::StatusCode::kDataLoss));
  }
  // Without a recipe, and as the text itself.
  for (const std::string& other : {Words(random, 5000), std::string("short")}) {
    const std::string encoded = Encode(other);
    QUIRE_ASSERT_OK(codec_->DecodeInflated(PayloadOf(encoded), other.size(),
                                           text, recipe, *scratch_));
    EXPECT_EQ(AsText(text), other);
    EXPECT_TRUE(recipe.members.empty());
  }
}

TEST_F(PayloadRecipeTest, LeavesWhatDoesNotPayOrCannotBeMadeAgain) {
  TestRandom random(kSeed);
  const std::string stream =
      ZlibStream({.level = 6}, KnownText(3000, 30000), DeflateContainer::kZlib);
  std::string damaged = stream;
  damaged[damaged.size() / 2] ^= 1;
  const std::vector<std::string> blocks = {
      Words(random, 5000), stream.substr(0, stream.size() - 1), damaged,
      // A member that no dictionary helps: its text takes more than the stream.
      ZlibStream({.level = 9}, MixedText(random, 3000),
                 DeflateContainer::kZlib),
      // The same member with compressible text in the block.
      Words(random, 5000) + ZlibStream({.level = 9}, MixedText(random, 3000),
                                       DeflateContainer::kZlib)};
  for (const std::string& block : blocks) {
    const std::string stored = Encode(block);
    EXPECT_LE(stored.size(), SizeWithoutInflating(block));
    EXPECT_THAT(Decode(stored, block.size()), HoldsText(block));
  }
  Encode(blocks[1]);
  EXPECT_FALSE(has_recipe_);
  Encode(blocks[2]);
  EXPECT_FALSE(has_recipe_);
}

// DEFLATE finds matches of three bytes, the text's encoder does not, so the
// text takes more than the stream. The block is smaller than its text in both
// forms.
TEST_F(PayloadRecipeTest, LeavesAMemberWhoseTextTakesMore) {
  TestRandom random(kSeed);
  std::vector<std::string> words(80);
  for (std::string& word : words) {
    word = RandomBytes(random, 3);
  }
  std::string text;
  while (text.size() < 9000) {
    text += words[RandomBelow(random, words.size())];
  }
  const std::string block =
      KnownText(3000, 20000) +
      ZlibStream({.level = 9}, text, DeflateContainer::kZlib);
  BlockInflater inflater(kInflatedBlockSizeMax);
  ASSERT_TRUE(inflater.Inflate(AsBytes(block)));
  const std::string stored = Encode(block);
  EXPECT_FALSE(has_recipe_);
  EXPECT_EQ(stored.size(), SizeWithoutInflating(block));
  EXPECT_THAT(Decode(stored, block.size()), HoldsText(block));
}

TEST_F(PayloadRecipeTest, EncodesALargeTextInParts) {
  TestRandom random(kSeed);
  // With 100 bytes before it and a header of 10, the block's text has three
  // parts, and exactly two.
  for (const size_t size :
       SomeOf<size_t>({(size_t{2} << 20) + 1, (size_t{2} << 20) - 110}, 2)) {
    std::string text;
    while (text.size() < size) {
      text += KnownText(RandomBelow(random, 200 << 10), 5000);
      text += Words(random, 60);
    }
    text.resize(size);
    const std::string head = Words(random, 100);
    const std::string block = head + GzipProgramStream(9, text);
    ASSERT_LT(block.size(), kBlockSizeBytesMax);
    BlockInflater inflater(kInflatedLargeSizeMax);
    ASSERT_TRUE(inflater.Inflate(AsBytes(block)));
    ASSERT_EQ(inflater.text().size(), size + 110);
    const std::string plain = Encode(block);
    EXPECT_FALSE(has_recipe_);  // Members have at most 1 MiB of text here.
    const auto codec = MakeCodec(kInflatedLargeSizeMax);
    const auto scratch = codec->NewScratch();
    std::string buffer(codec->StoredSizeMax(block.size()), '?');
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const Payload payload,
        codec->Encode(AsBytes(block), AsMutableBytes(buffer), *scratch));
    std::string stored(AsText(payload.bytes));
    is_raw_ = false;
    has_recipe_ = payload.has_recipe;
    ASSERT_TRUE(has_recipe_);
    EXPECT_LT(stored.size(), plain.size() / 2);
    EXPECT_THAT(Decode(stored, block.size()), HoldsText(block));
    // The size of the first part, which follows the head.
    for (size_t i = 0; i < 60; ++i) {
      for (const char flip : {'\x01', '\x40', '\x80'}) {
        stored[i] ^= flip;
        // The flip may not affect the text, as in zstd's unused bits.
        const auto decoded = Decode(stored, block.size());
        EXPECT_TRUE(decoded.ok() ? decoded->substr(110) == block.substr(110)
                                 : absl::IsDataLoss(decoded.status()))
            << i;
        stored[i] ^= flip;
      }
    }
    for (const size_t left :
         {stored.size() - 1, stored.size() / 2, size_t{30}}) {
      EXPECT_THAT(Decode(stored.substr(0, left), block.size()),
                  HasCode(absl::StatusCode::kDataLoss));
    }
  }
}

// A member that is longer than its text by more than an eighth.
TEST_F(PayloadRecipeTest, StoresMembersThatAreLongerThanTheirText) {
  TestRandom random(kSeed);
  std::string text;
  for (size_t i = 0; i < 90000; ++i) {
    text += static_cast<char>(i < 511 ? RandomBelow(random, 144)
                                      : 144 + RandomBelow(random, 112));
  }
  const std::string block = ZlibStream({.memory_level = 3,
                                        .window_bits = 9,
                                        .strategy = DeflateStrategy::kFixed},
                                       text, DeflateContainer::kZlib);
  ASSERT_GT(block.size(), text.size() + text.size() / 8 + 64);
  const std::string stored = Encode(block);
  EXPECT_EQ(stored[0], 1);
  EXPECT_THAT(Decode(stored, block.size()), HoldsText(block));
}

TEST_F(PayloadRecipeTest, IsCounted) {
  TestRandom random(kSeed);
  const std::string zlib =
      ZlibStream({.level = 6}, KnownText(1000, 30000), DeflateContainer::kZlib);
  const std::string gzip = GzipProgramStream(9, KnownText(50000, 20000));
  const std::string with = Encode(zlib + gzip + zlib + Words(random, 300));
  ASSERT_EQ(with[0], 3);
  InflatedCount count;
  count.Add(AsBytes(with));
  const InflatedMembers& of_zlib = count.of(DeflateContainer::kZlib);
  const InflatedMembers& of_gzip = count.of(DeflateContainer::kGzip);
  EXPECT_EQ(of_zlib.count, 2u);
  EXPECT_EQ(of_zlib.size_bytes, 2 * (zlib.size() - 2));
  EXPECT_EQ(of_gzip.count, 1u);
  EXPECT_EQ(of_gzip.size_bytes, gzip.size() - 10);
  EXPECT_EQ(count.of(DeflateContainer::kRaw), InflatedMembers());
  // Each gets its share of the payload; the words take some of it.
  EXPECT_NEAR(static_cast<double>(of_zlib.stored_size_bytes),
              3.0 * static_cast<double>(of_gzip.stored_size_bytes), 6);
  EXPECT_LT(of_zlib.stored_size_bytes + of_gzip.stored_size_bytes, with.size());
  // Damaged payloads are harmless, and both counts add up.
  InflatedCount sum;
  sum.Add(count);
  sum.Add(count);
  EXPECT_EQ(sum.of(DeflateContainer::kZlib).count, 4u);
  for (size_t size = 0; size < std::min<size_t>(with.size(), 60); ++size) {
    sum.Add(AsBytes(with).first(size));
  }
}

TEST_F(PayloadRecipeTest, BoundsWhatABlockBecomes) {
  // Each is a bomb of 300 KiB in about 300 bytes.
  const std::string bomb = ZlibStream({.level = 9}, std::string(300 << 10, 'x'),
                                      DeflateContainer::kZlib);
  std::string block;
  while (block.size() < 8000) {
    block += bomb;
  }
  BlockInflater inflater(kInflatedLargeSizeMax);
  if (inflater.Inflate(AsBytes(block))) {
    EXPECT_LE(inflater.text().size(), kInflatedBlockSizeMax);
  }
  EXPECT_THAT(Decode(Encode(block), block.size()), HoldsText(block));
}

TEST_F(PayloadRecipeTest, DeliversNothingThatDiffers) {
  const std::string block = GzipProgramStream(9, KnownText(5000, 20000));
  std::string stored = Encode(block);
  ASSERT_EQ(stored[0], 1);
  uint64_t refused = 0;
  for (size_t i = 0; i < stored.size(); ++i) {
    for (const char flip : {'\x01', '\x10', '\x80'}) {
      stored[i] ^= flip;
      const auto decoded = Decode(stored, block.size());
      // The flip may not affect the text, as in zstd's unused bits.
      if (decoded.ok()) {
        // The container's header is not a part of the member; the frame's
        // checksum covers everything.
        EXPECT_TRUE(absl::string_view(*decoded).substr(10) ==
                    absl::string_view(block).substr(10));
      } else {
        ++refused;
        EXPECT_THAT(decoded, HasCode(absl::StatusCode::kDataLoss));
      }
      stored[i] ^= flip;
    }
  }
  EXPECT_GT(refused, stored.size() * 2);
}

// A text without bytes would have no partition.
TEST_F(PayloadRecipeTest, RefusesAnEmptyCodedText) {
  Recipe recipe;
  recipe.members.resize(1);
  recipe.members[0].recipe.member_size = 64;
  std::string stored;
  AppendRecipe(recipe, stored);
  for (const absl::string_view rest : {"", "?"}) {
    const std::string bytes = absl::StrCat(stored, rest);
    const Payload payload = {.bytes = AsBytes(bytes), .has_recipe = true};
    std::vector<uint8_t> raw(64);
    EXPECT_THAT(codec_->Decode(payload, raw, *scratch_),
                HasCode(absl::StatusCode::kDataLoss));
    std::vector<uint8_t> text;
    Recipe back;
    EXPECT_THAT(
        codec_->DecodeInflated(payload, raw.size(), text, back, *scratch_),
        HasCode(absl::StatusCode::kDataLoss));
  }
}

// A range must not decode members that it does not touch, nor detect damage
// there.
TEST_F(PayloadRecipeTest, RangesReproduceOnlyTheirMembers) {
  TestRandom random(kSeed);
  const std::string first = GzipProgramStream(6, KnownText(7000, 30000));
  const std::string gap = Words(random, 900);
  const std::string second =
      ZlibStream({.level = 9}, KnownText(60000, 9000), DeflateContainer::kZlib);
  const std::string block = first + gap + second;
  std::string stored = Encode(block);
  ASSERT_TRUE(has_recipe_);
  Recipe recipe;
  ByteView rest = AsBytes(stored);
  QUIRE_ASSERT_OK(TakeRecipe(rest, block.size(), recipe));
  ASSERT_EQ(recipe.members.size(), 2u);
  const size_t recipe_size = stored.size() - rest.size();
  recipe.members[0].checksum ^= 1;
  std::string other;
  AppendRecipe(recipe, other);
  ASSERT_EQ(other.size(), recipe_size);
  stored.replace(0, recipe_size, other);
  const auto decode = [&](size_t offset, size_t size) {
    std::string out(size, '?');
    const absl::Status status =
        codec_->DecodeRange(PayloadOf(stored), block.size(), offset,
                            AsMutableBytes(out), *scratch_);
    return status.ok() ? absl::StatusOr<std::string>(out) : status;
  };
  const size_t first_end = first.size();
  EXPECT_THAT(decode(first_end, block.size() - first_end),
              HoldsText(block.substr(first_end)));
  EXPECT_THAT(decode(first_end - 1, 1),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("reproduced")));
  EXPECT_THAT(decode(0, block.size()), HasCode(absl::StatusCode::kDataLoss));
}

// Counts decoded partitions.
class CountingCoder final : public PartitionCoder {
 public:
  CountingCoder(std::unique_ptr<const BlockCodec> codec, size_t& decoded)
      : coder_(MakeCodecPartitions(std::move(codec))), decoded_(decoded) {}

  size_t StoredSizeMax(size_t raw_size) const override {
    return coder_->StoredSizeMax(raw_size);
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return coder_->NewScratch();
  }

  size_t MemoryBytes() const override { return coder_->MemoryBytes(); }

  absl::StatusOr<size_t> Encode(ByteView raw, bool is_last,
                                MutableByteView stored,
                                Scratch& scratch) const override {
    return coder_->Encode(raw, is_last, stored, scratch);
  }

  absl::Status Decode(ByteView stored, bool is_last, size_t raw_size,
                      MutableByteView output, Scratch& scratch) const override {
    ++decoded_;
    return coder_->Decode(stored, is_last, raw_size, output, scratch);
  }

  absl::Status DecodeRange(ByteView stored, bool is_last, size_t raw_size,
                           size_t offset, MutableByteView out,
                           Scratch& scratch) const override {
    ++decoded_;
    return coder_->DecodeRange(stored, is_last, raw_size, offset, out, scratch);
  }

 private:
  const std::unique_ptr<PartitionCoder> coder_;
  size_t& decoded_;
};

// A block of partitions is read in parts, and one member may be in all of them.
TEST_F(PayloadRecipeTest, PartsReproduceEachMemberOnce) {
  const size_t part_size = kPartitionSizeBytesMin;
  TestRandom random(kSeed);
  const CodecSpec spec = {.id = CodecId::kRlz, .level = 2};
  size_t decoded = 0;
  const PayloadCodec codec(
      *FindCodec(spec.id),
      std::make_unique<CountingCoder>(
          *MakeBlockCodec(spec, context_, CodecUse::kEncodeAndDecode), decoded),
      part_size, kInflatedLargeSizeMax);
  const auto scratch = codec.NewScratch();
  const std::string text = KnownText(1000, 200000);
  const std::string block = Words(random, 5000) + GzipProgramStream(9, text) +
                            Words(random, 700) +
                            GzipProgramStream(6, text.substr(0, 400)) + "end";
  std::vector<uint8_t> memory(codec.StoredSizeMax(block.size()));
  const auto payload = codec.Encode(AsBytes(block), memory, *scratch);
  ASSERT_THAT(payload, IsOk());
  ASSERT_TRUE(payload->has_recipe);
  const size_t part_count = (block.size() + part_size - 1) / part_size;
  ASSERT_GT(part_count, 10u);

  const auto decode = [&](const std::vector<size_t>& indexes) {
    std::string found(block.size(), '?');
    std::string expected = found;
    std::vector<BlockPart> parts;
    for (const size_t index : indexes) {
      const size_t offset = index * part_size;
      const size_t size = std::min(part_size, block.size() - offset);
      parts.push_back({.offset_in_block = static_cast<uint32_t>(offset),
                       .text = AsMutableBytes(found).subspan(offset, size)});
      expected.replace(offset, size, block, offset, size);
    }
    QUIRE_EXPECT_OK(codec.DecodeParts(*payload, block.size(), parts, *scratch));
    EXPECT_TRUE(found == expected);
  };
  std::vector<size_t> all(part_count);
  std::iota(all.begin(), all.end(), size_t{0});
  decode(all);
  // Each partition of the coded text once, and few again.
  EXPECT_LE(decoded, 2 * (text.size() / part_size));
  decode({});
  decode({part_count - 1, 0, 5});
  decode({2, 3, 3});
}

TEST_F(PayloadRecipeTest, EveryCodecTakesRecipesAndPartitions) {
  TestRandom random(kSeed);
  const std::string block =
      Words(random, 700) + GzipProgramStream(6, KnownText(7000, 30000)) +
      Words(random, 900) +
      ZlibStream({.level = 9}, KnownText(60000, 9000), DeflateContainer::kZlib);
  size_t with_recipe = 0;
  for (const CodecInfo& info : AllCodecs()) {
    for (const uint32_t partition_size : {0U, kPartitionSizeBytesMin}) {
      SCOPED_TRACE(absl::StrCat(info.name, " ", partition_size));
      CodecSpec spec = DefaultCodecSpec(info);
      spec.partition_size_bytes = info.takes_partitions ? partition_size : 0;
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const auto codec,
          MakePayloadCodec(spec, context_, CodecUse::kEncodeAndDecode,
                           kInflatedBlockSizeMax));
      const auto scratch = codec->NewScratch();
      std::string stored(codec->StoredSizeMax(block.size()), '?');
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const Payload payload,
          codec->Encode(AsBytes(block), AsMutableBytes(stored), *scratch));
      with_recipe += payload.has_recipe ? 1 : 0;
      for (size_t offset = 0; offset < block.size(); offset += 1511) {
        const size_t size = std::min<size_t>(block.size() - offset, 5000);
        std::string range(size, '?');
        QUIRE_ASSERT_OK(codec->DecodeRange(payload, block.size(), offset,
                                           AsMutableBytes(range), *scratch));
        EXPECT_EQ(range, block.substr(offset, size)) << offset;
      }
    }
  }
  EXPECT_GT(with_recipe, AllCodecs().size());
}

Recipe SomeRecipe() {
  Recipe head;
  InflatedMember member;
  member.offset = 100;
  member.recipe.container = DeflateContainer::kZlib;
  member.recipe.member_size = 200;
  member.recipe.text_size = 1000;
  head.members = {member, member};
  head.members[1].offset = 300;
  head.text_size_bytes = 100 + 2000 + 500;
  head.members[0].checksum = 0x12345678;
  return head;
}

absl::Status Take(const Recipe& head, size_t raw_size) {
  std::string bytes;
  AppendRecipe(head, bytes);
  ByteView stored = AsBytes(bytes);
  Recipe back;
  return TakeRecipe(stored, raw_size, back);
}

TEST(RecipeTest, RefusesWhatCannotBe) {
  QUIRE_EXPECT_OK(Take(SomeRecipe(), 1000));
  const auto expect = [](const Recipe& head, size_t raw_size,
                         const char* message) {
    EXPECT_THAT(Take(head, raw_size),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  expect(SomeRecipe(), 1001, "behind the last member");
  expect(SomeRecipe(), 100, "compressed members");
  expect(SomeRecipe(), 450, "size of a member is 200");
  Recipe head = SomeRecipe();
  head.text_size_bytes = kInflatedBlockSizeMax + 1;
  expect(head, 1000, "size of the inflated text");
  // A single member may have more.
  head = SomeRecipe();
  head.members.pop_back();
  head.members[0].recipe.member_size = 60000;
  head.members[0].recipe.text_size = kInflatedLargeSizeMax - 100;
  head.text_size_bytes = kInflatedLargeSizeMax;
  QUIRE_EXPECT_OK(Take(head, 60100));
  ++head.text_size_bytes;
  expect(head, 60101, "size of the inflated text");
  head = SomeRecipe();
  head.text_size_bytes = 2000;
  expect(head, 1000, "size of a member's text");
  head = SomeRecipe();
  head.members[0].recipe.member_size = 63;
  head.members[0].offset = 237;
  expect(head, 1000, "at least 64");
  head = SomeRecipe();
  head.members[0].recipe.text_size = 100;
  expect(head, 1000, "cannot have a text of");
  // All sizes are possible, but the coded text has no partition.
  head = SomeRecipe();
  head.members.pop_back();
  head.members[0].offset = 0;
  head.members[0].recipe.member_size = 64;
  head.members[0].recipe.text_size = 0;
  head.text_size_bytes = 0;
  expect(head, 64, "size of the inflated text is 0");
}

TEST(RecipeTest, BoundsTheWorkOfABlock) {
  Recipe head;
  InflatedMember member;
  member.recipe.container = DeflateContainer::kZlib;
  member.recipe.member_size = 64;
  member.recipe.text_size = 100;
  const size_t count =
      static_cast<size_t>(kInflatedBlockWorkMax / DeflateWorkMax(100));
  for (size_t i = 0; i < count; ++i) {
    member.offset = 64 * i;
    head.members.push_back(member);
  }
  head.text_size_bytes = 100 * count;
  std::string bytes;
  const auto take = [&] {
    bytes.clear();
    AppendRecipe(head, bytes);
    ByteView stored = AsBytes(bytes);
    Recipe back;
    return TakeRecipe(stored, 64 * head.members.size(), back);
  };
  QUIRE_EXPECT_OK(take());
  member.offset = 64 * count;
  head.members.push_back(member);
  head.text_size_bytes += 100;
  EXPECT_THAT(take(), FailsWith(absl::StatusCode::kDataLoss,
                                HasSubstr("no more work")));
}

TEST(RecipeTest, RefusesEveryTruncation) {
  std::string bytes;
  AppendRecipe(SomeRecipe(), bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteView stored = AsBytes(bytes).first(size);
    Recipe back;
    EXPECT_THAT(TakeRecipe(stored, 1000, back),
                HasCode(absl::StatusCode::kDataLoss))
        << size;
  }
}

}  // namespace
}  // namespace quire
