// SPDX-License-Identifier: Apache-2.0
#include "proto/message_bounds.h"

#include <random>
#include <string>

#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gtest/gtest.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {
namespace {

BoundsCheck Check(const std::string& bytes, const MessageBounds& bounds) {
  google::protobuf::io::ArrayInputStream in(
      bytes.data(), static_cast<int>(bytes.size()), /*block_size=*/7);
  return CheckBounds(in, bounds, *v1::BatchReadResponse::descriptor());
}

v1::BatchReadResponse Results(int count) {
  v1::BatchReadResponse response;
  for (int i = 0; i < count; ++i) {
    v1::BatchResult& result = *response.add_results();
    result.set_tag(static_cast<uint64_t>(i));
    result.mutable_document()->set_id(std::string(100, 'x'));
    // Text is one field of any length.
    result.set_data(std::string(1000, 'y'));
  }
  return response;
}

TEST(MessageBoundsTest, CountsFieldsOfNestedMessages) {
  const std::string bytes = Results(10).SerializeAsString();
  // Ten results, each with tag, document, data, and the document's id.
  EXPECT_EQ(Check(bytes, {.fields_max = 50}), BoundsCheck::kWithin);
  EXPECT_EQ(Check(bytes, {.fields_max = 39}), BoundsCheck::kTooManyFields);
}

TEST(MessageBoundsTest, CountsShortMessagesAsFull) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    bytes += std::string("\x0A\x04\x08\x01\x08\x02", 6);
  }
  EXPECT_EQ(Check(bytes, {.fields_max = 300}), BoundsCheck::kWithin);
  EXPECT_EQ(Check(bytes, {.fields_max = 299}), BoundsCheck::kTooManyFields);
}

TEST(MessageBoundsTest, CountsItems) {
  const std::string bytes = Results(10).SerializeAsString();
  MessageBounds bounds{.fields_max = 1000, .items_field_number = 1};
  bounds.items_max = 10;
  EXPECT_EQ(Check(bytes, bounds), BoundsCheck::kWithin);
  bounds.items_max = 9;
  EXPECT_EQ(Check(bytes, bounds), BoundsCheck::kTooManyItems);
}

TEST(MessageBoundsTest, RefusesWhatEndsTooSoon) {
  const std::string bytes = Results(1).SerializeAsString();
  const MessageBounds bounds{.fields_max = 1000};
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_EQ(Check(bytes.substr(0, size), bounds), BoundsCheck::kMalformed)
        << size;
  }
}

// Unlimited bounds: the bytes are malformed, or within.
TEST(MessageBoundsTest, TakesAnyBytes) {
  std::mt19937 random(12);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = Results(2).SerializeAsString();
    bytes.resize(random() % bytes.size());
    for (int i = 0; i < 3 && !bytes.empty(); ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const BoundsCheck check = Check(bytes, {.fields_max = UINT64_MAX});
    EXPECT_TRUE(check == BoundsCheck::kWithin ||
                check == BoundsCheck::kMalformed)
        << "round " << round;
  }
}

}  // namespace
}  // namespace quire
