// SPDX-License-Identifier: Apache-2.0
#include "client/quire/batch_reader.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/quire/client_status.h"
#include "client/quire/testing/client_fixture.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

class BatchReaderTest : public ClientFixture {
 protected:
  std::vector<ReadTarget> RandomSpans(size_t count, uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::vector<ReadTarget> targets;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t offset = random() % web_text_.size();
      const uint64_t size_bytes =
          std::min<uint64_t>(random() % 200, web_text_.size() - offset);
      targets.push_back(ByteSpan{offset, size_bytes});
    }
    return targets;
  }

  // Answers checked and decoded.
  uint64_t AnswerCount() const {
    return client_->GetWireStats()
        .traffic[static_cast<size_t>(AnswerEncoding::kIdentity)]
        .answer_count;
  }

  // Reads all and expects each answered once and correctly. Returns the tags in
  // order of arrival.
  std::vector<uint64_t> ExpectAllRight(const std::vector<ReadTarget>& targets) {
    std::vector<uint64_t> tags;
    std::set<uint64_t> seen;
    QUIRE_EXPECT_OK(client_->ReadBatch("web", targets, [&](BatchAnswer answer) {
      tags.push_back(answer.tag);
      EXPECT_TRUE(seen.insert(answer.tag).second);
      QUIRE_EXPECT_OK(answer.result);
      if (answer.result.ok()) {
        const auto& span = std::get<ByteSpan>(targets.at(answer.tag));
        EXPECT_EQ(answer.result->data,
                  web_text_.substr(span.offset, span.size_bytes));
      }
      return absl::OkStatus();
    }));
    EXPECT_EQ(tags.size(), targets.size());
    return tags;
  }
};

TEST_F(BatchReaderTest, AnswersTwentyThousandItemsOutOfOrder) {
  const std::vector<uint64_t> tags = ExpectAllRight(RandomSpans(20000, 3));
  EXPECT_FALSE(std::is_sorted(tags.begin(), tags.end()));
  EXPECT_EQ(server_->CallCount("BatchRead"), 1);
  EXPECT_EQ(server_->LargestBatchMessage(), 100);
}

TEST_F(BatchReaderTest, GivesEachOfManyItsOwnStatus) {
  constexpr uint64_t kItemCount = kIsSanitized ? 20'000 : 100'000;
  FakeSettings settings;
  settings.batch_message_items_max = 4096;
  settings.batch_window_items = kItemCount;
  StartServer(settings);
  // The connection is lost midway.
  FakeFaults faults;
  faults.broken_streams = 1;
  faults.messages_before_break = static_cast<int>(kItemCount / 14);
  server_->SetFaults(faults);
  std::vector<ReadTarget> targets;
  for (uint64_t i = 0; i < kItemCount; ++i) {
    switch (i % 4) {
      case 0:
        targets.push_back(ByteSpan{i % 7000, 20});
        break;
      case 1:
        targets.push_back(DocumentKey::Ordinal(i % 40));
        break;
      case 2:
        targets.push_back(DocumentKey::Id("twice"));
        break;
      default:
        targets.push_back(DocumentKey::Id("nothing"));
    }
  }
  std::vector<uint8_t> answered(kItemCount);
  uint64_t wrong_count = 0;
  QUIRE_ASSERT_OK(client_->ReadBatch("web", targets, [&](BatchAnswer answer) {
    const uint64_t tag = answer.tag;
    ++answered.at(tag);
    const std::string text = tag % 4 == 0 ? web_text_.substr(tag % 7000, 20)
                             : tag % 4 == 1
                                 ? archives_.at("web").documents[tag % 40].text
                                 : "second version";
    const bool is_right =
        tag % 4 == 3 ? absl::IsNotFound(answer.result.status())
                     : answer.result.ok() && answer.result->data == text;
    wrong_count += is_right ? 0 : 1;
    return absl::OkStatus();
  }));
  EXPECT_EQ(wrong_count, 0u);
  EXPECT_EQ(std::count(answered.begin(), answered.end(), 1), kItemCount);
  EXPECT_EQ(server_->CallCount("BatchRead"), 2);
}

TEST_F(BatchReaderTest, ReadsWhileItWritesWithLittleRoom) {
  // The server answers at once and reads nothing while it sends; the client
  // holds few answers. A client that only wrote would deadlock.
  FakeSettings settings;
  settings.batch_window_items = 1;
  StartServer(settings);
  BatchOptions options;
  options.ready_size_bytes_max = 1;
  const auto batch = client_->StartBatch("web", options);
  for (uint64_t i = 0; i < 5000; ++i) {
    batch->Add(i, ByteSpan{0, 9000});
  }
  batch->CloseAdds();
  EXPECT_EQ(batch->unanswered_count(), 5000u);
  size_t count = 0;
  while (const auto answer = batch->Next()) {
    ASSERT_TRUE(answer->result.ok()) << answer->result.status();
    ASSERT_EQ(answer->result->data.size(), 9000u);
    ++count;
  }
  EXPECT_EQ(count, 5000u);
  EXPECT_EQ(batch->unanswered_count(), 0u);
}

// Messages have seven answers; only the one that Next() returns next is
// decoded.
TEST_F(BatchReaderTest, DecodesNoMoreThanMayWait) {
  BatchOptions options;
  options.ready_size_bytes_max = 1;
  const auto batch = client_->StartBatch("web", options);
  for (uint64_t i = 0; i < 1000; ++i) {
    batch->Add(i, ByteSpan{i, 10});
  }
  batch->CloseAdds();
  for (uint64_t count = 1; const auto answer = batch->Next(); ++count) {
    QUIRE_ASSERT_OK(answer->result);
    ASSERT_LE(AnswerCount(), count + 1);
  }
  EXPECT_EQ(AnswerCount(), 1000u);
}

TEST_F(BatchReaderTest, DescriptionsCountAmongWhatWaits) {
  constexpr size_t kIdSizeBytes = 60'000;
  FakeArchive archive;
  for (int i = 0; i < 40; ++i) {
    archive.documents.push_back(
        {absl::StrCat(std::string(kIdSizeBytes, 'x'), i), "", {}, {}});
  }
  server_->Reload({{"web", archive}});
  BatchOptions options;
  // The third answer does not fit.
  options.ready_size_bytes_max = 2 * kIdSizeBytes;
  const auto batch = client_->StartBatch("web", options);
  for (uint64_t i = 0; i < archive.documents.size(); ++i) {
    batch->Add(i, DocumentKey::Ordinal(i));
  }
  batch->CloseAdds();
  for (uint64_t count = 1; const auto answer = batch->Next(); ++count) {
    QUIRE_ASSERT_OK(answer->result);
    EXPECT_GT(answer->result->document->id().size(), kIdSizeBytes);
    ASSERT_LE(AnswerCount(), count + 2);
  }
  EXPECT_EQ(AnswerCount(), archive.documents.size());
}

TEST_F(BatchReaderTest, FailsBadItemsAlone) {
  std::vector<ReadTarget> targets = {
      DocumentKey::Id("doc/05"), DocumentKey::Id("nothing"),
      ByteSpan{web_text_.size(), 1}, DocumentKey::Ordinal(12),
      DocumentKey::Id("large")};
  std::map<uint64_t, absl::StatusOr<ReadResult>> results;
  QUIRE_ASSERT_OK(client_->ReadBatch("web", targets, [&](BatchAnswer answer) {
    results.emplace(answer.tag, std::move(answer.result));
    return absl::OkStatus();
  }));
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(results.at(0)->document->id(), "doc/05");
  EXPECT_EQ(ErrorReasonOf(results.at(1).status()), "DOCUMENT_NOT_FOUND");
  EXPECT_THAT(results.at(2), HasCode(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(results.at(3)->data, archives_.at("web").documents[12].text);
  EXPECT_EQ(ErrorReasonOf(results.at(4).status()), "LIMIT_EXCEEDED");
}

TEST_F(BatchReaderTest, ToleratesRepeatedTagsAndNoItems) {
  const auto batch = client_->StartBatch("web", {});
  EXPECT_FALSE(batch->Next().has_value());
  batch->Add(7, DocumentKey::Id("doc/01"));
  batch->Add(7, DocumentKey::Id("doc/02"));
  batch->CloseAdds();
  EXPECT_EQ(batch->Next()->tag, 7u);
  EXPECT_EQ(batch->Next()->tag, 7u);
  EXPECT_FALSE(batch->Next().has_value());

  QUIRE_EXPECT_OK(client_->ReadBatch("web", {}, [](BatchAnswer) {
    return absl::InternalError("an answer to nothing");
  }));
}

TEST_F(BatchReaderTest, TakesMoreAfterAnswers) {
  FakeSettings settings;
  settings.batch_window_items = 1;
  StartServer(settings);
  const auto batch = client_->StartBatch("web", {});
  for (uint64_t i = 0; i < 20; ++i) {
    batch->Add(i, DocumentKey::Ordinal(i));
    const auto answer = batch->Next();
    ASSERT_TRUE(answer.has_value() && answer->result.ok());
    EXPECT_EQ(answer->result->document->ordinal(), i);
  }
  EXPECT_EQ(server_->CallCount("BatchRead"), 1);
}

TEST_F(BatchReaderTest, LetsOneThreadAddWhileAnotherTakes) {
  const auto batch = client_->StartBatch("web", {});
  constexpr uint64_t kCount = 3000;
  batch->Add(0, ByteSpan{0, 1});
  std::thread adder([&] {
    for (uint64_t i = 1; i < kCount; ++i) {
      batch->Add(i, ByteSpan{i, 1});
    }
    batch->CloseAdds();
  });
  uint64_t count = 0;
  while (count < kCount) {
    const auto answer = batch->Next();
    if (answer.has_value()) {
      ASSERT_TRUE(answer->result.ok());
      EXPECT_EQ(answer->result->data, web_text_.substr(answer->tag, 1));
      ++count;
    }
  }
  adder.join();
}

TEST_F(BatchReaderTest, AsksAgainWhatABrokenStreamLeft) {
  FakeFaults faults;
  faults.broken_streams = 8;
  faults.messages_before_break = 5;
  server_->SetFaults(faults);
  ExpectAllRight(RandomSpans(2000, 4));
  EXPECT_EQ(server_->CallCount("BatchRead"), 9);
}

TEST_F(BatchReaderTest, GivesUpOnAServerThatStaysAway) {
  options_.stream_idle_max = absl::Milliseconds(500);
  Connect();
  FakeFaults faults;
  faults.unavailable_calls = -1;
  server_->SetFaults(faults);
  size_t failed_count = 0;
  QUIRE_ASSERT_OK(client_->ReadBatch(
      "web", RandomSpans(10, 4), [&](const BatchAnswer& answer) {
        EXPECT_THAT(answer.result, HasCode(absl::StatusCode::kUnavailable));
        ++failed_count;
        return absl::OkStatus();
      }));
  EXPECT_EQ(failed_count, 10u);
  EXPECT_GE(server_->CallCount("BatchRead"), 4);
}

// A server that never answered gets no extra time, neither from the batch nor,
// after it, from other calls.
TEST_F(BatchReaderTest, GivesUpSoonOnAServerThatNeverAnswered) {
  options_.deadline = absl::Milliseconds(500);
  Connect();
  FakeFaults faults;
  faults.unavailable_calls = -1;
  faults.with_listing = true;
  server_->SetFaults(faults);
  const auto batch = client_->StartBatch("web", {});
  batch->Add(1, DocumentKey::Ordinal(1));
  EXPECT_THAT(batch->Next()->result, HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(server_->CallCount("ListArchives"), 4);
  EXPECT_THAT(client_->GetArchive("web"),
              HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(server_->CallCount("GetArchive"), 4);
}

TEST_F(BatchReaderTest, AnswersEachItemOfAStreamThatEndsEarly) {
  FakeFaults faults;
  faults.early_ends = 1;
  faults.messages_before_break = 3;
  server_->SetFaults(faults);
  size_t good_count = 0;
  size_t lost_count = 0;
  QUIRE_ASSERT_OK(client_->ReadBatch(
      "web", RandomSpans(500, 6), [&](const BatchAnswer& answer) {
        if (answer.result.ok()) {
          ++good_count;
        } else {
          EXPECT_THAT(answer.result, FailsWith(absl::StatusCode::kDataLoss,
                                               HasSubstr("without an answer")));
          ++lost_count;
        }
        return absl::OkStatus();
      }));
  EXPECT_EQ(good_count, 21u);
  EXPECT_EQ(lost_count, 479u);
}

// The server refuses messages of over 4 MiB.
TEST_F(BatchReaderTest, CountsRecordTypesTowardsAMessage) {
  StartServer({.batch_message_items_max = 4096});
  DocumentKey key = DocumentKey::Id("doc/01");
  key.record_types.assign(15, std::string(256, 'x'));
  key.record_types.emplace_back();
  QUIRE_EXPECT_OK(client_->ReadBatch(
      "web", std::vector<ReadTarget>(1500, key),
      [](const BatchAnswer& answer) { return answer.result.status(); }));
}

TEST_F(BatchReaderTest, FailsAllOfAnUnknownArchive) {
  size_t count = 0;
  QUIRE_ASSERT_OK(client_->ReadBatch(
      "nowhere", RandomSpans(500, 6), [&](const BatchAnswer& answer) {
        EXPECT_THAT(answer.result, HasCode(absl::StatusCode::kNotFound));
        ++count;
        return absl::OkStatus();
      }));
  EXPECT_EQ(count, 500u);
}

TEST_F(BatchReaderTest, FindsDamagedAnswers) {
  for (const auto& [fault, code] :
       {std::pair(&FakeFaults::wrong_checksums, absl::StatusCode::kDataLoss),
        std::pair(&FakeFaults::wrong_ranges, absl::StatusCode::kInternal)}) {
    FakeFaults faults;
    faults.*fault = 1;
    server_->SetFaults(faults);
    std::map<absl::StatusCode, int> counts;
    QUIRE_ASSERT_OK(client_->ReadBatch(
        "web", RandomSpans(50, 8), [&](const BatchAnswer& answer) {
          ++counts[answer.result.status().code()];
          return absl::OkStatus();
        }));
    EXPECT_EQ(counts[absl::StatusCode::kOk], 49);
    EXPECT_EQ(counts[code], 1);
  }
}

TEST_F(BatchReaderTest, StopsAtAnswersNobodyAsked) {
  for (const auto fault :
       {&FakeFaults::unknown_tags, &FakeFaults::repeated_results}) {
    // A new server, without abandoned calls.
    StartServer();
    FakeFaults faults;
    faults.*fault = 1;
    server_->SetFaults(faults);
    size_t count = 0;
    size_t failed_count = 0;
    QUIRE_ASSERT_OK(client_->ReadBatch(
        "web", RandomSpans(50, 8), [&](const BatchAnswer& answer) {
          ++count;
          if (!answer.result.ok()) {
            EXPECT_THAT(answer.result, FailsWith(absl::StatusCode::kInternal,
                                                 HasSubstr("was not asked")));
            ++failed_count;
          }
          return absl::OkStatus();
        }));
    EXPECT_EQ(count, 50u);
    EXPECT_GT(failed_count, 0u);
  }
}

TEST_F(BatchReaderTest, GivesUpASilentServerButNotAnIdleStream) {
  options_.stream_idle_max = absl::Milliseconds(50);
  Connect();
  FakeFaults faults;
  faults.stalled_calls = 1;
  server_->SetFaults(faults);
  const auto batch = client_->StartBatch("web", {});
  batch->Add(1, DocumentKey::Ordinal(1));
  EXPECT_THAT(batch->Next()->result,
              HasCode(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(BatchReaderTest, IsDestroyedWithWorkLeft) {
  FakeFaults faults;
  faults.stalled_calls = 1;
  server_->SetFaults(faults);
  const auto batch = client_->StartBatch("web", {});
  for (uint64_t i = 0; i < 1000; ++i) {
    batch->Add(i, DocumentKey::Ordinal(1));
  }
}

TEST_F(BatchReaderTest, EndsWithTheCallersError) {
  int count = 0;
  EXPECT_THAT(client_->ReadBatch("web", RandomSpans(5000, 8),
                                 [&](const BatchAnswer&) {
                                   ++count;
                                   return absl::AbortedError("enough");
                                 }),
              HasCode(absl::StatusCode::kAborted));
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace quire
