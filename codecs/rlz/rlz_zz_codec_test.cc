// SPDX-License-Identifier: Apache-2.0
//
// What is particular to rlz-zz; block_codec_test.cc has what all codecs do.
#include "codecs/rlz/rlz_zz_codec.h"

#include <zlib.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_matchers.h"
#include "codecs/base/varint.h"
#include "codecs/codec_test_inputs.h"
#include "codecs/rlz/factor.h"
#include "codecs/rlz/factor_streams.h"

namespace quire {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::unique_ptr<BlockCodec> MakeCodec(const std::string& dictionary) {
  auto context = std::make_shared<CodecContext>();
  context->dictionary = dictionary;
  auto codec = MakeBlockCodec({.id = CodecId::kRlzZz, .level = 9}, context,
                              CodecUse::kEncodeAndDecode);
  EXPECT_THAT(codec, IsOk());
  return std::move(codec).value_or(nullptr);
}

// zlib's own calls, for what the codec must be compatible with.
std::string RawDeflate(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string out(bytes.size() * 2 + 100, '\0');
  std::string in = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// A stored block put together by the format's description alone.
std::string StoredBlock(const FactorList& factors) {
  std::string offsets;
  std::string lengths;
  for (size_t i = 0; i < factors.size(); ++i) {
    for (int shift = 0; shift < 32; shift += 8) {
      offsets.push_back(static_cast<char>(factors.offsets[i] >> shift));
    }
    AppendVarint(factors.lengths[i], lengths);
  }
  const std::string offset_stream = RawDeflate(offsets);
  std::string stored;
  AppendVarint(factors.size(), stored);
  AppendVarint(offset_stream.size(), stored);
  return stored + offset_stream + RawDeflate(lengths);
}

FactorList MakeFactors(
    std::initializer_list<std::pair<uint32_t, uint32_t>> pairs) {
  FactorList factors;
  for (const auto& [offset, length] : pairs) {
    factors.Add(offset, length);
  }
  return factors;
}

absl::StatusOr<std::string> Decode(const BlockCodec& codec,
                                   const std::string& stored, size_t size) {
  const auto scratch = codec.NewScratch();
  std::string raw(size, '?');
  const absl::Status status =
      codec.Decode(AsBytes(stored), AsMutableBytes(raw), *scratch);
  if (!status.ok()) {
    return status;
  }
  return raw;
}

TEST(RlzZzCodecTest, WritesAndReadsTheDocumentedForm) {
  std::string dictionary;
  for (int i = 0; i < 40; ++i) {
    dictionary.push_back(static_cast<char>('0' + i));
  }
  const auto codec = MakeCodec(dictionary);
  // Long runs of the dictionary, so that the streams win over the text.
  std::string text = dictionary + "\xFE" + dictionary.substr(7) + dictionary;
  text += dictionary.substr(1) + dictionary.substr(2, 30);
  const std::string expected = StoredBlock(
      MakeFactors({{0, 40}, {0xFE, 0}, {7, 33}, {0, 40}, {1, 39}, {2, 30}}));
  const auto scratch = codec->NewScratch();
  std::vector<uint8_t> stored(codec->StoredSizeMax(text.size()));
  QUIRE_ASSERT_OK_AND_ASSIGN(const size_t size,
                             codec->Encode(AsBytes(text), stored, *scratch));
  stored.resize(size);
  EXPECT_THAT(stored, ElementsAreArray(AsBytes(expected)));
  EXPECT_EQ(Decode(*codec, expected, text.size()).value_or(""), text);
}

TEST(RlzZzCodecTest, StoresTextThatFactorsWouldEnlarge) {
  TestRandom random(1);
  const std::string text = RandomBytes(random, 5000);
  const auto codec = MakeCodec("abc");
  const auto scratch = codec->NewScratch();
  std::vector<uint8_t> stored(codec->StoredSizeMax(text.size()));
  QUIRE_ASSERT_OK_AND_ASSIGN(const size_t size,
                             codec->Encode(AsBytes(text), stored, *scratch));
  ASSERT_EQ(size, text.size() + 1);
  EXPECT_EQ(stored[0], 0);
  EXPECT_EQ(AsText(ByteView(stored).subspan(1)), text);
}

TEST(RlzZzCodecTest, WorksWithAnEmptyDictionary) {
  const auto codec = MakeCodec("");
  const std::string text(3000, 'a');
  const auto scratch = codec->NewScratch();
  std::vector<uint8_t> stored(codec->StoredSizeMax(text.size()));
  QUIRE_ASSERT_OK_AND_ASSIGN(const size_t size,
                             codec->Encode(AsBytes(text), stored, *scratch));
  EXPECT_LT(size, 100u);
  EXPECT_EQ(Decode(*codec, std::string(AsText(ByteView(stored).first(size))),
                   text.size())
                .value_or(""),
            text);
}

// Blocks that are well-formed for zlib and wrong for us.
TEST(RlzZzCodecTest, NamesWhatIsWrongWithABlock) {
  const auto codec = MakeCodec("0123456789");
  const auto expect = [&](const std::string& stored, const char* message) {
    EXPECT_THAT(Decode(*codec, stored, 20),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  expect("", "malformed variable-length integer");
  expect("\x14", "malformed variable-length integer");
  expect("\x15", "claims 21 factors");
  const std::string good = StoredBlock(MakeFactors({{0, 10}, {0, 10}}));
  EXPECT_THAT(Decode(*codec, good, 20), IsOk());
  expect("\x15" + good.substr(1), "claims 21 factors");
  expect("\x03" + good.substr(1), "length stream: ends after 2 of 3");
  expect("\x01" + good.substr(1), "length stream: gives 10 bytes of text");
  expect(good.substr(0, 1) + "\x7F" + good.substr(2), "claims 127 bytes");
  expect(good + "x", "follow the end");
  expect(StoredBlock(MakeFactors({{0, 10}})), "gives 10 bytes of text");
  expect(StoredBlock(MakeFactors({{0, 10}, {0, 10}, {'x', 0}})),
         "factor 2 has 1 bytes of text where 0 are left");
  expect(StoredBlock(MakeFactors({{0, 10}, {1, 10}})),
         "factor 1 is the 10 bytes at 1 of a dictionary of 10 bytes");
  expect(StoredBlock(MakeFactors({{0, 10}, {0, 9}, {256, 0}})),
         "factor 2 is the literal 256");
  expect(StoredBlock(MakeFactors({{0, UINT32_MAX}})),
         "length stream: malformed variable-length integer");
  expect(StoredBlock(MakeFactors({{0, 10}, {0, 11}})),
         "factor 1 has 11 bytes of text where 10 are left");
  expect(std::string("\0", 1) + "short", "decodes to 5 bytes where 20");
}

TEST(RlzZzCodecTest, RangeEndsWhereTheRangeDoes) {
  TestRandom random(1);
  const std::string dictionary = RandomText(random, 50000);
  const auto codec = MakeCodec(dictionary);
  const std::string text = EditedPieces(random, dictionary, 600000);
  const auto scratch = codec->NewScratch();
  std::vector<uint8_t> stored(codec->StoredSizeMax(text.size()));
  QUIRE_ASSERT_OK_AND_ASSIGN(const size_t size,
                             codec->Encode(AsBytes(text), stored, *scratch));
  // Without its last bytes the block cannot be decoded, but its front can.
  const ByteView cut = ByteView(stored).first(size - 1);
  std::string out(1000, '?');
  QUIRE_EXPECT_OK(
      codec->DecodeRange(cut, text.size(), 20, AsMutableBytes(out), *scratch));
  EXPECT_EQ(out, text.substr(20, 1000));
  EXPECT_THAT(codec->DecodeRange(cut, text.size(), text.size() - 1000,
                                 AsMutableBytes(out), *scratch),
              HasCode(absl::StatusCode::kDataLoss));
}

// Lengths of one, two and three bytes, across all places where the reader's
// chunks can cut them.
TEST(FactorStreamsTest, ReadLengthsAcrossChunks) {
  FactorStreamWriter writer(9);
  FactorStreamReader reader;
  for (size_t shift = 0; shift < 6; ++shift) {
    FactorList factors;
    size_t text_size = 0;
    const auto add = [&](uint32_t length) {
      factors.Add(static_cast<uint32_t>(factors.size()), length);
      text_size += TextSizeOf(length);
    };
    for (size_t i = 0; i < shift; ++i) {
      add(1);
    }
    for (uint32_t i = 0; i < 1500; ++i) {
      add(i % 50 == 7 ? 16384 : i % 2 == 0 ? 200 : i % 5 == 0 ? 0 : 3);
    }
    QUIRE_ASSERT_OK_AND_ASSIGN(const ByteView stored, writer.Write(factors));
    FactorList back;
    QUIRE_ASSERT_OK(reader.Read(stored, text_size, text_size, back));
    EXPECT_EQ(back.lengths, factors.lengths);
    EXPECT_EQ(back.offsets, factors.offsets);
    for (size_t end = 0; end < text_size; end += 997) {
      QUIRE_ASSERT_OK(reader.Read(stored, text_size, end, back));
      ASSERT_EQ(back.offsets.size(), back.lengths.size());
      size_t found = 0;
      for (size_t i = 0; i < back.size(); ++i) {
        ASSERT_EQ(back.lengths[i], factors.lengths[i]);
        ASSERT_EQ(back.offsets[i], factors.offsets[i]);
        found += TextSizeOf(back.lengths[i]);
      }
      ASSERT_GE(found, end);
    }
  }
}

}  // namespace
}  // namespace quire
