// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/answer_bytes.h"

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {
namespace {

class TextBlock : public DecodedBlock {
 public:
  explicit TextBlock(std::string text) : text_(std::move(text)) {}

  ByteView bytes() const override { return AsBytes(text_); }

 private:
  const std::string text_;
};

// Sizes around the limit of copying and around those where a length takes one
// byte more. All texts differ.
constexpr uint32_t kSizes[] = {0,    1,    127,  128,   1000,
                               4095, 4096, 4097, 16383, 70000};

std::string TextOfSize(uint32_t size_bytes) {
  std::string text;
  for (uint32_t i = 0; i < size_bytes; ++i) {
    text.push_back(static_cast<char>((i * 7 + i / 256 + size_bytes) % 251));
  }
  return text;
}

// Returns a piece of `text` with another byte on either side.
BlockPiece PieceOf(const std::string& text) {
  return {.block = std::make_shared<TextBlock>("<" + text + ">"),
          .offset = 1,
          .size_bytes = static_cast<uint32_t>(text.size())};
}

std::string Flatten(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

TEST(AnswerBytesTest, FieldsAndTextAreOneMessage) {
  for (const uint32_t first_size : kSizes) {
    for (const uint32_t second_size : kSizes) {
      const std::string first = TextOfSize(first_size);
      const std::string second = TextOfSize(second_size);
      v1::ReadResponse head;
      head.mutable_range()->set_offset(uint64_t{1} << 40);
      head.set_checksum(77);
      AnswerBytes bytes;
      bytes.AppendFields(head);
      bytes.AppendBytesField(v1::ReadResponse::kDataFieldNumber,
                             {PieceOf(first), PieceOf(second)});
      const uint64_t size_bytes = bytes.size_bytes();
      // The pieces are destroyed by now; referenced text stays valid.
      const std::string serialised = Flatten(bytes.Take());
      EXPECT_EQ(serialised.size(), size_bytes);
      EXPECT_EQ(bytes.size_bytes(), 0U);
      v1::ReadResponse response;
      ASSERT_TRUE(response.ParseFromString(serialised));
      EXPECT_EQ(response.range().offset(), uint64_t{1} << 40);
      EXPECT_EQ(response.checksum(), 77U);
      EXPECT_TRUE(response.data() == first + second)
          << first_size << " and " << second_size << " bytes";
    }
  }
}

TEST(AnswerBytesTest, NestedMessagesKeepTheirOrderAndText) {
  AnswerBytes bytes;
  for (const uint32_t size_bytes : kSizes) {
    v1::BatchResult head;
    head.set_tag(size_bytes);
    v1::Document document;
    document.set_ordinal(size_bytes);
    // Every description has a range, so that none is empty.
    document.mutable_range();
    document.set_id(TextOfSize(size_bytes));
    const std::string description =
        size_bytes % 2 == 0 ? document.SerializeAsString() : "";
    bytes.AppendNested(v1::BatchReadResponse::kResultsFieldNumber, head,
                       {v1::BatchResult::kDocumentFieldNumber, description},
                       v1::BatchResult::kDataFieldNumber,
                       {PieceOf(TextOfSize(size_bytes))});
  }
  const uint64_t size_bytes = bytes.size_bytes();
  const std::string serialised = Flatten(bytes.Take());
  EXPECT_EQ(serialised.size(), size_bytes);
  v1::BatchReadResponse response;
  ASSERT_TRUE(response.ParseFromString(serialised));
  ASSERT_EQ(response.results_size(), static_cast<int>(std::size(kSizes)));
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    const v1::BatchResult& result = response.results(static_cast<int>(i));
    EXPECT_EQ(result.tag(), kSizes[i]);
    EXPECT_TRUE(result.data() == TextOfSize(kSizes[i])) << kSizes[i];
    EXPECT_EQ(result.has_document(), kSizes[i] % 2 == 0);
    if (result.has_document()) {
      EXPECT_EQ(result.document().ordinal(), kSizes[i]);
      EXPECT_TRUE(result.document().id() == TextOfSize(kSizes[i]));
    }
  }
}

TEST(AnswerBytesTest, ABlockLivesAsLongAsTheSlicesOfItsPieces) {
  const std::string text = TextOfSize(70000);
  auto block = std::make_shared<TextBlock>(text);
  auto other = std::make_shared<TextBlock>(TextOfSize(5000));
  const std::weak_ptr<TextBlock> weak = block;
  AnswerBytes bytes;
  // Neighbours in one block, a copied piece, and the block again.
  bytes.AppendBytesField(1, {{block, 0, 30000}, {block, 30000, 40000}});
  bytes.AppendBytesField(1, {{block, 7, 5}, {other, 0, 5000}});
  bytes.AppendBytesField(1, {{block, 100, 69900}});
  const std::string first = text;
  const std::string second = text.substr(7, 5) + TextOfSize(5000);
  const std::string third = text.substr(100);
  block.reset();
  other.reset();
  std::vector<grpc::Slice> slices;
  {
    const grpc::ByteBuffer buffer = bytes.Take();
    std::string expected;
    for (const std::string& part : {first, second, third}) {
      AnswerBytes copy;
      copy.AppendField({1, part});
      expected += Flatten(copy.Take());
    }
    EXPECT_TRUE(Flatten(buffer) == expected);
    ASSERT_TRUE(buffer.Dump(&slices).ok());
  }
  EXPECT_FALSE(weak.expired());
  // The builder has let go of it.
  slices.clear();
  EXPECT_TRUE(weak.expired());
}

TEST(AnswerBytesTest, AnEmptyMessageIsStillOne) {
  AnswerBytes bytes;
  EXPECT_EQ(Flatten(bytes.Take()), "");
}

}  // namespace
}  // namespace quire
