// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/request_parser.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/service/base/service_error.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kItemsMax = 4096;

// Returns `bytes` in pieces of 1,000, as long messages arrive.
grpc::ByteBuffer InPieces(const std::string& bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += 1000) {
    slices.emplace_back(bytes.substr(at, 1000));
  }
  return {slices.data(), slices.size()};
}

grpc::ByteBuffer InOnePiece(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string Repeat(const std::string& bytes, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    all += bytes;
  }
  return all;
}

// Returns `bytes` as a length-delimited field.
std::string Field(int number, const std::string& bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  for (size_t size = bytes.size(); true; size >>= 7) {
    if (size < 0x80) {
      field.push_back(static_cast<char>(size));
      break;
    }
    field.push_back(static_cast<char>((size & 0x7F) | 0x80));
  }
  return field + bytes;
}

// Returns an empty field that every message here does not know.
const std::string& Unknown() {
  static const std::string& field = *new std::string(Field(15, ""));
  return field;
}

v1::BatchReadRequest FullBatch(uint64_t item_count) {
  v1::BatchReadRequest request;
  request.set_archive("pages");
  request.add_accepted_encodings(v1::WIRE_ENCODING_STORED);
  for (uint64_t i = 0; i < item_count; ++i) {
    v1::BatchItem& item = *request.add_items();
    item.set_tag(i << 40);
    item.mutable_document()->set_id(std::string(i % 200, 'x'));
    item.mutable_document()->set_occurrence(i);
    item.mutable_document()->mutable_range()->set_offset(i << 50);
    item.mutable_document()->mutable_range()->set_size_bytes(i);
  }
  return request;
}

TEST(RequestParserTest, TakesAllThatHonestRequestsHave) {
  const v1::BatchReadRequest batch = FullBatch(kItemsMax);
  for (const auto& cut : {InPieces, InOnePiece}) {
    v1::BatchReadRequest parsed;
    QUIRE_ASSERT_OK(
        ParseBatchRequest(cut(batch.SerializeAsString()), kItemsMax, parsed));
    EXPECT_EQ(parsed.SerializeAsString(), batch.SerializeAsString());
    v1::ReadRequest read;
    read.set_archive("pages");
    read.mutable_document()->set_id(std::string(65'535, 'x'));
    read.mutable_document()->mutable_range()->set_size_bytes(1);
    for (int i = 0; i < 100; ++i) {
      read.add_accepted_encodings(static_cast<v1::WireEncoding>(i));
    }
    v1::ReadRequest parsed_read;
    QUIRE_ASSERT_OK(ParseRequest(cut(read.SerializeAsString()), parsed_read));
    EXPECT_EQ(parsed_read.SerializeAsString(), read.SerializeAsString());
  }
}

TEST(RequestParserTest, RefusesTooManyItemsBeforeTheyAreParsed) {
  const std::string items = Repeat(Field(2, ""), 1 << 20);
  for (const auto& cut : {InPieces, InOnePiece}) {
    v1::BatchReadRequest parsed;
    const absl::Status status =
        ParseBatchRequest(cut(items), kItemsMax, parsed);
    EXPECT_EQ(ReasonOf(status), v1::LIMIT_EXCEEDED) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("4096"));
    EXPECT_EQ(parsed.items_size(), 0);
  }
  v1::BatchReadRequest parsed;
  EXPECT_EQ(ReasonOf(ParseBatchRequest(
                InOnePiece(FullBatch(kItemsMax + 1).SerializeAsString()),
                kItemsMax, parsed)),
            v1::LIMIT_EXCEEDED);
}

// Each field takes many times its two bytes once parsed.
TEST(RequestParserTest, RefusesFieldsWithoutEnd) {
  const std::string many = Repeat(Unknown(), 1'000'000);
  const std::string batches[] = {
      many,
      // In an item, and in a message within an item.
      Field(2, many),
      Field(2, Field(3, many)),
      Field(2, Field(3, Field(4, many))),
      Field(2, Field(2, many)),
      // Values of a packed field.
      Field(3, std::string(1'000'000, '\1')),
      // The same field, repeated.
      Repeat(Field(1, ""), 1'000'000),
  };
  for (const std::string& batch : batches) {
    v1::BatchReadRequest parsed;
    EXPECT_EQ(ReasonOf(ParseBatchRequest(InPieces(batch), kItemsMax, parsed)),
              v1::MALFORMED_REQUEST);
    EXPECT_EQ(parsed.ByteSizeLong(), 0u);
  }
  const std::string some = Repeat(Unknown(), 1000);
  for (const std::string& read :
       {some, Field(2, some), Field(3, some), Field(3, Field(4, some)),
        Field(4, std::string(2000, '\1'))}) {
    v1::ReadRequest parsed;
    EXPECT_EQ(ReasonOf(ParseRequest(InOnePiece(read), parsed)),
              v1::MALFORMED_REQUEST);
    EXPECT_EQ(parsed.ByteSizeLong(), 0u);
  }
}

TEST(RequestParserTest, BoundsWhatItemsHaveTogether) {
  // The limit of all items together, and a few more.
  const std::string item =
      Field(2, Repeat(Unknown(), kItemFieldsMax) + Field(14, ""));
  v1::BatchReadRequest parsed;
  QUIRE_EXPECT_OK(ParseBatchRequest(InPieces(Repeat(item, 50)), 60, parsed));
  EXPECT_EQ(parsed.items_size(), 50);
  // Each item at its limit.
  const std::string full_item = Field(2, Repeat(Unknown(), kItemFieldsMax));
  QUIRE_EXPECT_OK(
      ParseBatchRequest(InPieces(Repeat(full_item, 1000)), 1000, parsed));
  EXPECT_EQ(
      ReasonOf(ParseBatchRequest(InPieces(Repeat(item, 1000)), 1000, parsed)),
      v1::MALFORMED_REQUEST);
}

TEST(RequestParserTest, RefusesWhatIsNoMessage) {
  const std::string padding = Field(1, std::string(2000, 'x'));
  for (const std::string& end :
       {std::string("\xFF"), std::string("\x12\x05"), std::string("\x09\x01"),
        std::string("\x0D\x01"), std::string("\0", 1),
        // An item that ends past its enclosing message.
        std::string("\x12\x42") + std::string(10, '\0')}) {
    for (const auto& cut : {InPieces, InOnePiece}) {
      v1::BatchReadRequest parsed;
      EXPECT_EQ(
          ReasonOf(ParseBatchRequest(cut(padding + end), kItemsMax, parsed)),
          v1::MALFORMED_REQUEST);
      EXPECT_EQ(ReasonOf(ParseBatchRequest(cut(end), kItemsMax, parsed)),
                v1::MALFORMED_REQUEST);
    }
  }
}

// Short groups are treated as unknown fields.
TEST(RequestParserTest, RefusesGroupsThatItWouldHaveToCount) {
  v1::BatchReadRequest parsed;
  EXPECT_EQ(ReasonOf(ParseBatchRequest(
                InPieces(Field(1, std::string(2000, 'x')) + "\x0B\x0C"),
                kItemsMax, parsed)),
            v1::MALFORMED_REQUEST);
}

TEST(RequestParserTest, RefusesALongSingleRequest) {
  v1::ListDocumentsRequest request;
  request.set_prefix(std::string(kSingleRequestSizeBytesMax, 'x'));
  v1::ListDocumentsRequest parsed;
  const absl::Status status =
      ParseRequest(InPieces(request.SerializeAsString()), parsed);
  EXPECT_EQ(ReasonOf(status), v1::MALFORMED_REQUEST);
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 262144"));
}

}  // namespace
}  // namespace quire
