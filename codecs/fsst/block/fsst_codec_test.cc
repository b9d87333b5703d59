// SPDX-License-Identifier: Apache-2.0
//
// Properties specific to the codec `fsst`; block_codec_test.cc has the rest.
#include "codecs/fsst/block/fsst_codec.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "codecs/fsst/block/fsst_block.h"
#include "codecs/fsst/table/symbol_table.h"
#include "codecs/fsst/training/symbol_trainer.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBlockSize = 64 << 10;

std::unique_ptr<BlockCodec> Make(
    FsstCodecLevel level, const std::shared_ptr<const CodecContext>& context) {
  auto made = MakeFsstCodec(*FindCodec(CodecId::kFsst), level, context,
                            CodecUse::kEncodeAndDecode);
  EXPECT_THAT(made, IsOk());
  return *std::move(made);
}

std::vector<uint8_t> Encode(const BlockCodec& codec, const std::string& text) {
  std::vector<uint8_t> stored(codec.StoredSizeMax(text.size()));
  const auto scratch = codec.NewScratch();
  const auto size = codec.Encode(AsBytes(text), stored, *scratch);
  EXPECT_THAT(size, IsOk());
  stored.resize(size.value_or(0));
  return stored;
}

absl::Status Decode(const BlockCodec& codec, ByteView stored,
                    const std::string& expected) {
  std::string text(expected.size(), '\0');
  const auto scratch = codec.NewScratch();
  const absl::Status status =
      codec.Decode(stored, AsMutableBytes(text), *scratch);
  EXPECT_TRUE(!status.ok() || text == expected);
  return status;
}

std::shared_ptr<const CodecContext> ContextFor(const std::string& text) {
  auto context = std::make_shared<CodecContext>();
  const ByteView bytes = AsBytes(text);
  context->symbol_table = TrainSymbolTable(std::span(&bytes, 1)).Serialise();
  return context;
}

class FsstCodecTest : public ::testing::Test {
 protected:
  FsstCodecTest() {
    TestRandom random(1);
    known_ = RandomText(random, kBlockSize, 300);
    // Text of other words: the archive's table has only their letters.
    other_ = RandomText(random, kBlockSize, 300);
    for (char& c : other_) {
      c = static_cast<char>(c >= 'a' && c <= 'z' ? 'A' + 'z' - c : c);
    }
    context_ = ContextFor(known_);
  }

  std::string known_;
  std::string other_;
  std::shared_ptr<const CodecContext> context_;
};

TEST_F(FsstCodecTest, StoresWhatTheArchivesTableFitsAfterAZero) {
  for (const FsstCodecLevel level :
       {FsstCodecLevel::kArchiveTable, FsstCodecLevel::kOwnTables}) {
    const auto codec = Make(level, context_);
    const std::vector<uint8_t> stored = Encode(*codec, known_);
    ASSERT_EQ(stored[0], 0);
    QUIRE_EXPECT_OK(Decode(*codec, stored, known_));
    // The rest is the block that a cache holds and answers are cut from.
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const SymbolTable table,
        SymbolTable::Parse(AsBytes(context_->symbol_table)));
    std::vector<uint8_t> block(FsstBlockSizeMax(known_.size()));
    block.resize(EncodeFsstBlock(FsstEncoder(table), AsBytes(known_), block));
    EXPECT_TRUE(block ==
                std::vector<uint8_t>(stored.begin() + 1, stored.end()));
  }
}

TEST_F(FsstCodecTest, GivesATableOfItsOwnToWhatTheArchivesDoesNotFit) {
  const std::vector<uint8_t> fast =
      Encode(*Make(FsstCodecLevel::kArchiveTable, context_), other_);
  EXPECT_EQ(fast[0], 0);
  const auto codec = Make(FsstCodecLevel::kOwnTables, context_);
  const std::vector<uint8_t> stored = Encode(*codec, other_);
  ASSERT_EQ(stored[0], 1);
  EXPECT_LT(stored.size(), fast.size() / 2);
  QUIRE_EXPECT_OK(Decode(*codec, stored, other_));
  // Decoding does not need the archive's table.
  QUIRE_EXPECT_OK(
      Decode(*Make(FsstCodecLevel::kArchiveTable, nullptr), stored, other_));
}

TEST_F(FsstCodecTest, IsSmallerAtMax) {
  const auto text = other_;
  EXPECT_LE(Encode(*Make(FsstCodecLevel::kMax, context_), text).size(),
            Encode(*Make(FsstCodecLevel::kOwnTables, context_), text).size());
}

TEST_F(FsstCodecTest, DoesWithoutATable) {
  auto empty = std::make_shared<CodecContext>();
  empty->symbol_table = SymbolTable().Serialise();
  for (const auto& context : {std::shared_ptr<const CodecContext>(),
                              std::make_shared<const CodecContext>(),
                              std::shared_ptr<const CodecContext>(empty)}) {
    for (const FsstCodecLevel level :
         {FsstCodecLevel::kArchiveTable, FsstCodecLevel::kMax}) {
      const auto codec = Make(level, context);
      const std::vector<uint8_t> stored = Encode(*codec, known_);
      EXPECT_LT(stored.size(), known_.size() * 3 / 5);
      QUIRE_EXPECT_OK(Decode(*codec, stored, known_));
    }
  }
}

// Other writers may use the archive's table although it has no symbols: then
// all bytes are escaped.
TEST_F(FsstCodecTest, DecodesWithATableWithoutSymbols) {
  auto empty = std::make_shared<CodecContext>();
  empty->symbol_table = SymbolTable().Serialise();
  const auto codec = Make(FsstCodecLevel::kArchiveTable, empty);
  const std::vector<uint8_t> stored = {0, kFsstEscape, 'a', kFsstEscape, 'b'};
  QUIRE_EXPECT_OK(Decode(*codec, stored, "ab"));
}

TEST_F(FsstCodecTest, SaysWhatIsWrongWithABlock) {
  const auto codec = Make(FsstCodecLevel::kOwnTables, context_);
  const auto expect = [&](const BlockCodec& decoder,
                          const std::vector<uint8_t>& stored,
                          const std::string& text, const char* message) {
    EXPECT_THAT(Decode(decoder, stored, text),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)));
  };
  std::vector<uint8_t> stored = Encode(*codec, known_);
  expect(*Make(FsstCodecLevel::kArchiveTable, nullptr), stored, known_,
         "needs a symbol table");
  stored[0] = 2;
  expect(*codec, stored, known_, "reserved");
  stored = Encode(*codec, other_);
  stored.resize(100);
  expect(*codec, stored, other_, "symbol table");
  stored = {0};
  expect(*codec, stored, other_, "bytes of text");
  stored.clear();
  expect(*codec, stored, other_, "no bytes");
}

TEST_F(FsstCodecTest, RefusesAMalformedTable) {
  auto context = std::make_shared<CodecContext>(*context_);
  context->symbol_table.pop_back();
  EXPECT_THAT(
      MakeFsstCodec(*FindCodec(CodecId::kFsst), FsstCodecLevel::kArchiveTable,
                    context, CodecUse::kDecode),
      FailsWith(absl::StatusCode::kInvalidArgument,
                HasSubstr("symbol table for codec fsst")));
}

}  // namespace
}  // namespace quire
