// SPDX-License-Identifier: Apache-2.0
//
// All calls of the client in all wire encodings.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/quire/batch_reader.h"
#include "client/quire/client.h"
#include "client/quire/client_status.h"
#include "client/quire/testing/client_fixture.h"
#include "client/quire/wire_encoding.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::map<std::string, FakeArchive> EncodedArchives() {
  std::map<std::string, FakeArchive> archives = TestArchives();
  FakeArchive& web = archives.at("web");
  for (size_t i = 0; i < web.documents.size(); i += 2) {
    web.documents[i].text = WordyText(i, web.documents[i].text.size());
  }
  web.has_symbol_table = true;
  web.codec = "rlz";
  web.dictionary = WordyText(1000, 4500);
  archives.at("tiny").codec = "zlib";
  archives.at("tiny").dictionary.clear();
  return archives;
}

class WireEncodingTest : public ClientFixture,
                         public ::testing::WithParamInterface<EncodingChoice> {
 protected:
  void SetUp() override {
    server_ = FakeServer::Start({}, encoded_);
    ASSERT_NE(server_, nullptr);
    options_.address = server_->address();
    options_.retry_backoff = absl::Milliseconds(1);
    options_.encoding = GetParam();
    Connect();
    // On a busy machine a connection may take several attempts.
    for (int i = 0; i < 50 && !client_->GetLimits().ok(); ++i) {
    }
  }

  // Number of answers, which must all have this encoding.
  uint64_t AnswerCount(AnswerEncoding encoding) const {
    return client_->GetWireStats().traffic[IndexOf(encoding)].answer_count;
  }

  absl::Status Scan(std::string& text) {
    return client_->Scan("web", {}, [&](const ScanPiece& piece) {
      EXPECT_EQ(piece.offset, text.size());
      text.append(AsText(piece.data).data(), piece.data.size());
      return absl::OkStatus();
    });
  }

  const std::map<std::string, FakeArchive> encoded_ = EncodedArchives();
  const std::string text_ = WholeText(encoded_.at("web"));
};

class EncodedTest : public WireEncodingTest {
 protected:
  AnswerEncoding encoding() const {
    return GetParam() == EncodingChoice::kFsst ? AnswerEncoding::kFsst
                                               : AnswerEncoding::kStored;
  }
};

TEST_P(WireEncodingTest, GivesTheSameBytesByAllCalls) {
  for (uint64_t i = 0; i < 44; ++i) {
    const auto result = client_->ReadDocument("web", DocumentKey::Ordinal(i));
    QUIRE_ASSERT_OK(result);
    EXPECT_EQ(result->data, encoded_.at("web").documents[i].text);
    EXPECT_EQ(result->document->ordinal(), i);
  }
  EXPECT_EQ(client_->Read("web", ByteSpan{100, 0})->data, "");
  EXPECT_EQ(client_->Read("web", ByteSpan{1, 29000})->data,
            text_.substr(1, 29000));
  EXPECT_EQ(client_->ReadDocument("tiny", DocumentKey::Id("only"))->data,
            "the only document");
  std::string text;
  QUIRE_ASSERT_OK(Stream(ByteSpan{17, 9999}, text));
  EXPECT_EQ(text, text_.substr(17, 9999));
  text.clear();
  QUIRE_ASSERT_OK(Scan(text));
  EXPECT_EQ(text, text_);
  std::vector<ReadTarget> targets;
  for (uint64_t i = 0; i < 2000; ++i) {
    targets.push_back(ByteSpan{i, 7 * i % 3000});
  }
  size_t count = 0;
  QUIRE_ASSERT_OK(client_->ReadBatch("web", targets, [&](BatchAnswer answer) {
    const auto& span = std::get<ByteSpan>(answer.target);
    EXPECT_EQ(answer.result->data, text_.substr(span.offset, span.size_bytes));
    ++count;
    return absl::OkStatus();
  }));
  EXPECT_EQ(count, 2000u);
}

TEST_P(WireEncodingTest, TakesUpABrokenScan) {
  FakeFaults faults;
  faults.broken_streams = 6;
  faults.messages_before_break = 4;
  server_->SetFaults(faults);
  std::string text;
  QUIRE_ASSERT_OK(Scan(text));
  EXPECT_EQ(text, text_);
  // Fetching a dictionary is resumed as well.
  EXPECT_GE(server_->CallCount("Scan"), 6);
}

INSTANTIATE_TEST_SUITE_P(All, WireEncodingTest,
                         ::testing::Values(EncodingChoice::kIdentity,
                                           EncodingChoice::kFsst,
                                           EncodingChoice::kStored,
                                           EncodingChoice::kAuto),
                         [](const auto& param) {
                           return std::string(EncodingChoiceName(param.param));
                         });

TEST_P(EncodedTest, CountsWhatCame) {
  QUIRE_ASSERT_OK(client_->Read("web", ByteSpan{0, 5000}));
  const WireStats stats = client_->GetWireStats();
  const WireTraffic& traffic = stats.traffic[IndexOf(encoding())];
  EXPECT_EQ(traffic.answer_count, 1u);
  EXPECT_EQ(traffic.decoded_size_bytes, 5000u);
  EXPECT_GT(traffic.wire_size_bytes, 100u);
  EXPECT_NE(traffic.wire_size_bytes, 5000u);
  EXPECT_GT(traffic.decode_ns, 0u);
  EXPECT_EQ(stats.Total().answer_count, 1u);
  EXPECT_GT(stats.fetched_size_bytes, 0u);
}

TEST_P(EncodedTest, LetsACallChooseAnother) {
  QUIRE_ASSERT_OK(client_->Read("web", ByteSpan{0, 10},
                                {.encoding = EncodingChoice::kIdentity}));
  EXPECT_EQ(AnswerCount(AnswerEncoding::kIdentity), 1u);
  ScanOptions options;
  options.encoding = EncodingChoice::kIdentity;
  QUIRE_ASSERT_OK(client_->Scan(
      "web", options, [](const ScanPiece&) { return absl::OkStatus(); }));
  BatchOptions batch_options;
  batch_options.encoding = EncodingChoice::kIdentity;
  const auto batch = client_->StartBatch("web", batch_options);
  batch->Add(1, ByteSpan{0, 10});
  batch->CloseAdds();
  QUIRE_EXPECT_OK(batch->Next()->result);
  EXPECT_EQ(AnswerCount(encoding()), 0u);
}

TEST_P(EncodedTest, TakesIdentityWhereThereIsNothingElse) {
  server_->Reload(TestArchives());
  QUIRE_EXPECT_OK(client_->Read("web", ByteSpan{0, 10}));
  EXPECT_EQ(AnswerCount(AnswerEncoding::kIdentity), 1u);
}

TEST_P(EncodedTest, FetchesATableOnceForAllThreads) {
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      QUIRE_EXPECT_OK(client_->Read("web", ByteSpan{0, 5000}));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(server_->CallCount("GetSymbolTable") +
                server_->CallCount("GetDictionary"),
            1);
}

TEST_P(EncodedTest, AsksTheServerOfTheArchiveForTables) {
  QUIRE_EXPECT_OK(client_->ReadDocument("web", DocumentKey::Id("doc/38")));
  EXPECT_THAT(server_->ArchiveHeaders(),
              ::testing::Contains(encoding() == AnswerEncoding::kFsst
                                      ? "GetSymbolTable web"
                                      : "GetDictionary web"));
}

TEST_P(EncodedTest, KeepsTablesInADirectory) {
  const std::string directory =
      absl::StrCat(::testing::TempDir(), "wire_encoding_test_", getpid());
  options_.cache_directory = directory;
  for (int i = 0; i < 2; ++i) {
    Connect();
    EXPECT_EQ(client_->Read("web", ByteSpan{0, 5000})->data,
              text_.substr(0, 5000));
  }
  EXPECT_EQ(server_->CallCount("GetSymbolTable") +
                server_->CallCount("GetDictionary"),
            1);
  std::filesystem::remove_all(directory);
}

TEST_P(EncodedTest, FollowsAnArchiveThatIsReplaced) {
  QUIRE_ASSERT_OK(client_->Read("web", ByteSpan{0, 100}));
  auto archives = encoded_;
  archives.at("web").dictionary = WordyText(77, 3000);
  archives.at("web").documents[41].text = "another second version";
  server_->Reload(archives);
  EXPECT_EQ(client_->ReadDocument("web", DocumentKey::Id("twice"))->data,
            "another second version");
  EXPECT_GT(AnswerCount(encoding()), 1u);
}

TEST_P(EncodedTest, ReadsInIdentityWhatItsTableIsGoneOf) {
  for (int FakeFaults::*const fault :
       {&FakeFaults::missing_tables, &FakeFaults::withheld_tables}) {
    FakeFaults faults;
    faults.*fault = -1;
    server_->SetFaults(faults);
    EXPECT_EQ(client_->Read("web", ByteSpan{3, 500})->data,
              text_.substr(3, 500));
    std::string text;
    QUIRE_EXPECT_OK(Stream(ByteSpan{17, 9999}, text));
    EXPECT_EQ(text, text_.substr(17, 9999));
    text.clear();
    QUIRE_EXPECT_OK(Scan(text));
    EXPECT_EQ(text, text_);
    QUIRE_EXPECT_OK(
        client_->ReadBatch("web", {ByteSpan{0, 10}}, [](BatchAnswer answer) {
          EXPECT_THAT(answer.result, FailsWith(absl::StatusCode::kUnavailable,
                                               HasSubstr("replaced")));
          return absl::OkStatus();
        }));
    EXPECT_EQ(AnswerCount(encoding()), 0u);
  }
}

// As where a proxy sends first attempts to a server that cannot open the
// archive, and further ones to another.
TEST_P(EncodedTest, AsksAnotherServerForATable) {
  FakeFaults faults;
  faults.missing_tables = 1;
  server_->SetFaults(faults);
  EXPECT_EQ(client_->Read("web", ByteSpan{3, 500})->data, text_.substr(3, 500));
  EXPECT_EQ(AnswerCount(encoding()), 1u);
  EXPECT_THAT(server_->Attempts().back(), ::testing::EndsWith(" 1"));
}

TEST_P(EncodedTest, RefusesTablesThatAreNotWhatTheyAreCalled) {
  FakeFaults faults;
  faults.wrong_tables = -1;
  server_->SetFaults(faults);
  EXPECT_THAT(client_->Read("web", ByteSpan{3, 500}),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("its hash")));
  // They are not cached.
  server_->SetFaults({});
  QUIRE_EXPECT_OK(client_->Read("web", ByteSpan{3, 500}));
}

TEST_P(EncodedTest, RefusesLiesByAllCalls) {
  FakeFaults faults;
  faults.spoil = [](v1::EncodingDetails& details, std::string&) {
    details.set_front_cut_size_bytes(details.front_cut_size_bytes() + 1);
  };
  server_->SetFaults(faults);
  const auto is_data_loss =
      FailsWith(absl::StatusCode::kDataLoss, HasSubstr("the server sent"));
  EXPECT_THAT(client_->Read("web", ByteSpan{3, 500}), is_data_loss);
  std::string text;
  EXPECT_THAT(Stream(ByteSpan{3, 9000}, text), is_data_loss);
  EXPECT_THAT(Scan(text), is_data_loss);
  QUIRE_EXPECT_OK(
      client_->ReadBatch("web", {ByteSpan{0, 10}}, [&](BatchAnswer answer) {
        EXPECT_THAT(answer.result, is_data_loss);
        return absl::OkStatus();
      }));
  EXPECT_EQ(text, "");
}

TEST_P(EncodedTest, RefusesMoreThanTheServerAnnounced) {
  server_ = FakeServer::Start({.announced_size_bytes_max = 300}, encoded_);
  ASSERT_NE(server_, nullptr);
  options_.address = server_->address();
  Connect();
  const auto is_data_loss =
      FailsWith(absl::StatusCode::kDataLoss, HasSubstr("over its limit"));
  QUIRE_EXPECT_OK(client_->ReadDocument("web", DocumentKey::Ordinal(30)));
  EXPECT_THAT(client_->ReadDocument("web", DocumentKey::Ordinal(38)),
              is_data_loss);
  std::string text;
  EXPECT_THAT(Stream(ByteSpan{3, 9000}, text), is_data_loss);
  EXPECT_THAT(Scan(text), is_data_loss);
  EXPECT_EQ(text, "");
  QUIRE_EXPECT_OK(
      client_->ReadBatch("web", {ByteSpan{0, 500}}, [&](BatchAnswer answer) {
        EXPECT_THAT(answer.result, is_data_loss);
        return absl::OkStatus();
      }));
}

TEST_P(EncodedTest, HandsOutWhatCameBeforeADamagedMessage) {
  // The server may continue briefly after the call has ended.
  const auto count = std::make_shared<std::atomic<int>>(0);
  FakeFaults faults;
  faults.spoil = [count](v1::EncodingDetails&, std::string& data) {
    if (++*count == 7) {
      data.pop_back();
    }
  };
  server_->SetFaults(faults);
  std::string text;
  EXPECT_THAT(Stream(ByteSpan{0, 20000}, text),
              HasCode(absl::StatusCode::kDataLoss));
  EXPECT_EQ(text, text_.substr(0, 6000));
}

TEST_P(EncodedTest, StopsAStreamWhenItsSinkSaysSo) {
  options_.decode_threads = 3;
  Connect();
  int piece_count = 0;
  EXPECT_THAT(client_->Scan("web", {},
                            [&](const ScanPiece&) {
                              return ++piece_count == 5
                                         ? absl::AbortedError("enough")
                                         : absl::OkStatus();
                            }),
              FailsWith(absl::StatusCode::kAborted, "enough"));
  EXPECT_EQ(piece_count, 5);
}

INSTANTIATE_TEST_SUITE_P(Encoded, EncodedTest,
                         ::testing::Values(EncodingChoice::kFsst,
                                           EncodingChoice::kStored),
                         [](const auto& param) {
                           return std::string(EncodingChoiceName(param.param));
                         });

// `auto`.
class AutoEncodingTest : public WireEncodingTest {
 protected:
  // Returns the encoding of the answers to a scan of `size_bytes`.
  AnswerEncoding ScanSome(uint64_t size_bytes) {
    const uint64_t stored_before = AnswerCount(AnswerEncoding::kStored);
    const uint64_t identity_before = AnswerCount(AnswerEncoding::kIdentity);
    ScanOptions options;
    options.size_bytes = size_bytes;
    std::string text;
    QUIRE_EXPECT_OK(client_->Scan("web", options, [&](const ScanPiece& piece) {
      text.append(AsText(piece.data).data(), piece.data.size());
      return absl::OkStatus();
    }));
    EXPECT_EQ(text, text_.substr(0, size_bytes));
    const bool is_stored = AnswerCount(AnswerEncoding::kStored) > stored_before;
    EXPECT_NE(AnswerCount(AnswerEncoding::kIdentity) > identity_before,
              is_stored);
    return is_stored ? AnswerEncoding::kStored : AnswerEncoding::kIdentity;
  }
};

TEST_P(AutoEncodingTest, IsStoredForScansThatReceiveLess) {
  // The dictionary would take more than the blocks save.
  EXPECT_EQ(ScanSome(5'000), AnswerEncoding::kIdentity);
  EXPECT_EQ(client_->GetWireStats().dictionary_count, 0u);
  EXPECT_EQ(ScanSome(text_.size()), AnswerEncoding::kStored);
  // Now the dictionary is here.
  EXPECT_EQ(ScanSome(5'000), AnswerEncoding::kStored);
}

TEST_P(AutoEncodingTest, FetchesNoDictionaryOverTheLimit) {
  options_.dictionary_size_bytes_max = 4'000;
  Connect();
  EXPECT_EQ(ScanSome(text_.size()), AnswerEncoding::kIdentity);
}

TEST_P(AutoEncodingTest, IsIdentityForTheRest) {
  QUIRE_EXPECT_OK(client_->Read("web", ByteSpan{0, 5'000}));
  std::string text;
  QUIRE_EXPECT_OK(Stream(ByteSpan{0, text_.size()}, text));
  QUIRE_EXPECT_OK(
      client_->ReadBatch("web", {ByteSpan{0, 5'000}}, [&](BatchAnswer answer) {
        QUIRE_EXPECT_OK(answer.result);
        return absl::OkStatus();
      }));
  EXPECT_GE(AnswerCount(AnswerEncoding::kIdentity), 3u);
  EXPECT_EQ(client_->GetWireStats().fetched_size_bytes, 0u);
}

INSTANTIATE_TEST_SUITE_P(Auto, AutoEncodingTest,
                         ::testing::Values(EncodingChoice::kAuto));

TEST(EncodingChoiceTest, IsReadAsWritten) {
  for (const char* name : {"identity", "fsst", "stored", "auto"}) {
    EXPECT_EQ(EncodingChoiceName(*ParseEncodingChoice(name)), name);
  }
  EXPECT_THAT(ParseEncodingChoice("gzip"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr("identity, fsst, stored and auto")));
}

class DictionaryLimitTest : public ClientFixture {};

TEST_F(DictionaryLimitTest, IsKept) {
  server_->Reload(EncodedArchives());
  options_.encoding = EncodingChoice::kStored;
  options_.dictionary_size_bytes_max = 4499;
  Connect();
  EXPECT_THAT(client_->Read("web", ByteSpan{0, 10}),
              FailsWith(absl::StatusCode::kResourceExhausted,
                        HasSubstr("over 4499 bytes")));
}

}  // namespace
}  // namespace quire
