// SPDX-License-Identifier: Apache-2.0
#include "client/quire/client.h"

#include <unistd.h>

#include <atomic>
#include <future>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/quire/batch_reader.h"
#include "client/quire/client_status.h"
#include "client/quire/testing/client_fixture.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClientTest : public ClientFixture {
 protected:
  absl::StatusOr<std::string> ReadText(const ReadTarget& target) {
    absl::StatusOr<ReadResult> result = client_->Read("web", target);
    if (!result.ok()) {
      return result.status();
    }
    return result->data;
  }

  absl::StatusOr<std::string> ScanText(absl::string_view archive,
                                       const ScanOptions& options) {
    std::string text;
    const absl::Status status =
        client_->Scan(archive, options, [&](const ScanPiece& piece) {
          EXPECT_EQ(piece.offset, options.offset + text.size());
          text.append(AsText(piece.data).data(), piece.data.size());
          return absl::OkStatus();
        });
    if (!status.ok()) {
      return status;
    }
    return text;
  }

  // Makes calls of each kind, one after the other.
  void MakeEachCall() {
    QUIRE_EXPECT_OK(client_->ListArchives());
    QUIRE_EXPECT_OK(client_->GetArchive("tiny"));
    QUIRE_EXPECT_OK(ReadText(DocumentKey::Id("doc/17")));
    QUIRE_EXPECT_OK(client_->ListDocuments("tiny").Next());
    QUIRE_EXPECT_OK(ScanText("tiny", {}));
    std::string text;
    QUIRE_EXPECT_OK(Stream(DocumentKey::Id("large"), text));
    QUIRE_EXPECT_OK(client_->ReadBatch(
        "web", {DocumentKey::Id("doc/17")},
        [](const BatchAnswer&) { return absl::OkStatus(); }));
    const auto drop = [](uint64_t, ByteView) { return absl::OkStatus(); };
    QUIRE_EXPECT_OK(client_->GetDictionary("hash-of-web", drop, "web"));
    QUIRE_EXPECT_OK(client_->GetDictionary("hash-of-web", drop));
    std::promise<absl::Status> done;
    client_->StartRead("web", DocumentKey::Id("doc/18"), {},
                       [&](const absl::StatusOr<ReadResult>& result) {
                         done.set_value(result.status());
                       });
    QUIRE_EXPECT_OK(done.get_future().get());
  }
};

TEST_F(ClientTest, RefusesOptionsOutOfRange) {
  for (const char* address :
       {"", "localhost", "localhost:", "localhost:0", "localhost:65536",
        "localhost:http", ":7420", "unix:", "http://localhost:7420"}) {
    ClientOptions options;
    options.address = address;
    EXPECT_THAT(
        Client::Connect(options),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")))
        << address;
  }
  ClientOptions options;
  options.attempts_max = 101;
  EXPECT_THAT(Client::Connect(options),
              HasCode(absl::StatusCode::kInvalidArgument));
  options = {};
  options.deadline = absl::ZeroDuration();
  EXPECT_THAT(Client::Connect(options),
              HasCode(absl::StatusCode::kInvalidArgument));
  options = {};
  options.keepalive_interval = absl::Seconds(1);
  EXPECT_THAT(Client::Connect(options),
              HasCode(absl::StatusCode::kInvalidArgument));
}

TEST_F(ClientTest, AcceptsEveryFormOfAddress) {
  for (const char* address : {"localhost:7420", "[::1]:7420", "unix:/run/q",
                              "dns:///quire:7420", "10.0.0.1:1"}) {
    ClientOptions options;
    options.address = address;
    QUIRE_EXPECT_OK(Client::Connect(options)) << address;
  }
}

TEST_F(ClientTest, ListsArchivesOverSeveralPages) {
  FakeSettings settings;
  settings.page_size_max = 1;
  StartServer(settings);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archives, client_->ListArchives());
  ASSERT_EQ(archives.size(), 3u);
  EXPECT_EQ(archives[0].name(), "empty");
  EXPECT_EQ(archives[1].name(), "tiny");
  EXPECT_EQ(archives[2].name(), "web");
  EXPECT_EQ(archives[2].size_bytes(), web_text_.size());
}

TEST_F(ClientTest, DescribesAnArchive) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto web, client_->GetArchive("web"));
  EXPECT_EQ(web.document_count(), 44u);
  const auto missing = client_->GetArchive("nowhere");
  EXPECT_THAT(missing, HasCode(absl::StatusCode::kNotFound));
  EXPECT_EQ(ErrorReasonOf(missing.status()), "ARCHIVE_NOT_FOUND");
}

TEST_F(ClientTest, AsksForLimitsOnce) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const v1::Limits limits, client_->GetLimits());
  EXPECT_EQ(limits.read_size_bytes_max(), 10000u);
  QUIRE_EXPECT_OK(ReadText(ByteSpan{0, 10}));
  QUIRE_EXPECT_OK(ReadText(ByteSpan{10, 10}));
  EXPECT_EQ(server_->CallCount("ListArchives"), 1);
}

TEST_F(ClientTest, ReadsRangesOfAllPlaces) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 100; ++i) {
    const uint64_t offset = random() % (web_text_.size() + 1);
    const uint64_t size_bytes =
        random() % (std::min<uint64_t>(web_text_.size() - offset, 300) + 1);
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const ReadResult result,
        client_->Read("web", ByteSpan{offset, size_bytes}));
    EXPECT_EQ(result.data, web_text_.substr(offset, size_bytes));
    EXPECT_EQ(result.offset, offset);
    EXPECT_FALSE(result.document.has_value());
  }
}

TEST_F(ClientTest, RefusesRangesPastTheEnd) {
  const auto result = client_->Read("web", ByteSpan{web_text_.size(), 1});
  EXPECT_THAT(result, HasCode(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(ErrorReasonOf(result.status()), "RANGE_PAST_END");
  EXPECT_THAT(client_->Read("web", ByteSpan{~uint64_t{0}, ~uint64_t{0}}),
              HasCode(absl::StatusCode::kOutOfRange));
}

TEST_F(ClientTest, ReadsDocumentsByIdAndOrdinal) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ReadResult result,
      client_->ReadDocument("web", DocumentKey::Id("doc/17")));
  EXPECT_EQ(result.data, archives_.at("web").documents[17].text);
  ASSERT_TRUE(result.document.has_value());
  EXPECT_EQ(result.document->ordinal(), 17u);
  EXPECT_EQ(result.offset, result.document->range().offset());

  for (uint64_t i = 0; i < 44; ++i) {
    EXPECT_EQ(*ReadText(DocumentKey::Ordinal(i)),
              archives_.at("web").documents[i].text);
  }
  EXPECT_EQ(*ReadText(DocumentKey::Id("\x01\x1B[31m\xFF\n")), "binary");
  EXPECT_THAT(ReadText(DocumentKey::Id("nothing")),
              HasCode(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadText(DocumentKey::Ordinal(44)),
              HasCode(absl::StatusCode::kNotFound));
}

TEST_F(ClientTest, SelectsByTypeAndTime) {
  constexpr char kPage[] = "http://example.org/";
  std::map<std::string, FakeArchive> archives;
  archives["crawl"].documents = {{kPage, "newer", 2000, {}, "response"},
                                 {kPage, "older", 1000, {}, "response"},
                                 {kPage, "asked", 3000, {}, "request"}};
  const auto server = FakeServer::Start({}, archives);
  ClientOptions options;
  options.address = server->address();
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(options));
  DocumentKey key = DocumentKey::Id(kPage);
  EXPECT_EQ(client->ReadDocument("crawl", key)->data, "newer");
  key.at_time_ms = 1999;
  EXPECT_EQ(client->ReadDocument("crawl", key)->data, "older");
  key.record_types = {"request"};
  const auto later = client->ReadDocument("crawl", key);
  EXPECT_EQ(later->data, "asked");
  EXPECT_EQ(later->document->capture_time_ms(), 3000);
  key.record_types = {"revisit", "metadata"};
  EXPECT_EQ(ErrorReasonOf(client->ReadDocument("crawl", key).status()),
            "RECORD_TYPE_NOT_FOUND");
}

TEST_F(ClientTest, ReadsOccurrencesAndParts) {
  DocumentKey key = DocumentKey::Id("twice");
  EXPECT_EQ(*ReadText(key), "second version");
  key.occurrence = 0;
  EXPECT_EQ(*ReadText(key), "first version");
  key.part = ByteSpan{6, 3};
  EXPECT_EQ(*ReadText(key), "ver");
  key.part = ByteSpan{6, 300};
  EXPECT_THAT(ReadText(key), HasCode(absl::StatusCode::kOutOfRange));
  key.occurrence = 2;
  EXPECT_THAT(ReadText(key), HasCode(absl::StatusCode::kNotFound));
}

TEST_F(ClientTest, StreamsWhatIsTooLargeForOneMessage) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReadResult range,
                             client_->Read("web", ByteSpan{5, 20000}));
  EXPECT_EQ(range.data, web_text_.substr(5, 20000));
  EXPECT_EQ(range.offset, 5u);
  EXPECT_EQ(server_->CallCount("Read"), 0);
  EXPECT_EQ(server_->CallCount("ReadStream"), 1);

  QUIRE_ASSERT_OK_AND_ASSIGN(
      const ReadResult large,
      client_->ReadDocument("web", DocumentKey::Id("large")));
  EXPECT_EQ(large.data, archives_.at("web").documents[43].text);
  EXPECT_EQ(large.document->id(), "large");
  EXPECT_EQ(large.offset, large.document->range().offset());
  EXPECT_EQ(server_->CallCount("ReadStream"), 2);
}

TEST_F(ClientTest, StartsReadsWithoutWaiting) {
  const std::vector<ReadTarget> targets = {
      DocumentKey::Id("doc/17"), ByteSpan{5, 200}, DocumentKey::Id("absent"),
      ByteSpan{web_text_.size(), 1}};
  std::vector<std::promise<absl::StatusOr<ReadResult>>> results(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    client_->StartRead("web", targets[i], {},
                       [&results, i](absl::StatusOr<ReadResult> result) {
                         results[i].set_value(std::move(result));
                       });
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReadResult document,
                             results[0].get_future().get());
  EXPECT_EQ(document.document->id(), "doc/17");
  EXPECT_EQ(document.data,
            web_text_.substr(document.offset, document.data.size()));
  QUIRE_ASSERT_OK_AND_ASSIGN(const ReadResult range,
                             results[1].get_future().get());
  EXPECT_EQ(range.data, web_text_.substr(5, 200));
  EXPECT_EQ(range.offset, 5u);
  EXPECT_THAT(results[2].get_future().get(),
              HasCode(absl::StatusCode::kNotFound));
  EXPECT_THAT(results[3].get_future().get(),
              HasCode(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(server_->CallCount("Read"), 4);
}

TEST_F(ClientTest, StreamsToASinkAndStopsWhenItSaysSo) {
  std::string text;
  std::string id;
  const auto on_document = [&](const v1::Document& document) {
    id = document.id();
    return absl::OkStatus();
  };
  QUIRE_ASSERT_OK(
      client_->ReadStream("web", DocumentKey::Id("large"), on_document,
                          [&](uint64_t, ByteView data) {
                            text.append(AsText(data).data(), data.size());
                            return absl::OkStatus();
                          }));
  EXPECT_EQ(text, archives_.at("web").documents[43].text);
  EXPECT_EQ(id, "large");

  int piece_count = 0;
  EXPECT_THAT(client_->ReadStream("web", DocumentKey::Id("large"), on_document,
                                  [&](uint64_t, ByteView) {
                                    ++piece_count;
                                    return absl::UnavailableError("enough");
                                  }),
              FailsWith(absl::StatusCode::kUnavailable, "enough"));
  EXPECT_EQ(piece_count, 1);
}

TEST_F(ClientTest, StreamsEmptyTargetsWithoutAPiece) {
  EXPECT_EQ(*ReadText(DocumentKey::Id("doc/00")), "");
  const auto never = [](uint64_t, ByteView) {
    return absl::InternalError("a piece of nothing");
  };
  const auto any = [](const v1::Document&) { return absl::OkStatus(); };
  QUIRE_EXPECT_OK(client_->ReadStream("web", ByteSpan{3, 0}, any, never));
  QUIRE_EXPECT_OK(
      client_->ReadStream("web", DocumentKey::Id("doc/00"), any, never));
}

TEST_F(ClientTest, ScansAllAndParts) {
  EXPECT_EQ(*ScanText("web", {}), web_text_);
  EXPECT_EQ(*ScanText("empty", {}), "");
  EXPECT_EQ(
      *ScanText("web", {.offset = 777, .size_bytes = {}, .resume_token = {}}),
      web_text_.substr(777));
  EXPECT_EQ(
      *ScanText("web", {.offset = 777, .size_bytes = 3333, .resume_token = {}}),
      web_text_.substr(777, 3333));
  EXPECT_EQ(
      *ScanText("web", {.offset = 7, .size_bytes = 0, .resume_token = {}}), "");
  EXPECT_THAT(ScanText("web", {.offset = web_text_.size() + 1,
                               .size_bytes = {},
                               .resume_token = {}}),
              HasCode(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(ScanText("nowhere", {}), HasCode(absl::StatusCode::kNotFound));
}

TEST_F(ClientTest, GoesOnWithAScanByToken) {
  std::string text;
  std::string token;
  EXPECT_THAT(
      client_->Scan("web", {},
                    [&](const ScanPiece& piece) {
                      text.append(AsText(piece.data).data(), piece.data.size());
                      token = std::string(piece.resume_token);
                      return text.size() < 5000 ? absl::OkStatus()
                                                : absl::AbortedError("pause");
                    }),
      HasCode(absl::StatusCode::kAborted));
  ScanOptions options;
  options.resume_token = token;
  QUIRE_ASSERT_OK(client_->Scan("web", options, [&](const ScanPiece& piece) {
    EXPECT_EQ(piece.offset, text.size());
    text.append(AsText(piece.data).data(), piece.data.size());
    return absl::OkStatus();
  }));
  EXPECT_EQ(text, web_text_);
  options.size_bytes = 10;
  EXPECT_THAT(ScanText("web", options),
              HasCode(absl::StatusCode::kInvalidArgument));
}

TEST_F(ClientTest, ListsFieldsOfDocumentsThatMatch) {
  std::vector<FakeDocument> documents;
  for (int64_t i = 0; i < 30; ++i) {
    documents.push_back({.id = absl::StrCat("d", 10 + i),
                         .text = "x",
                         .fields = {i, i % 2 == 0}});
  }
  server_->Reload({{"rows",
                    {.documents = documents,
                     .fields = {{"n", FieldType::kInteger},
                                {"even", FieldType::kBoolean}}}}});
  DocumentLister lister = client_->ListDocuments(
      "rows", {.fields = {"even", "n"}, .filter = "n > 20 and even = true"});
  for (int64_t i = 22; i < 30; i += 2) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto document, lister.Next());
    ASSERT_TRUE(document.has_value());
    EXPECT_EQ(document->fields(0).boolean_value(), true);
    EXPECT_EQ(document->fields(1).integer_value(), i);
  }
  EXPECT_FALSE(lister.Next()->has_value());
  EXPECT_THAT(client_->ListDocuments("rows", {.fields = {"m"}}).Next(),
              HasCode(absl::StatusCode::kInvalidArgument));
  FakeFaults faults;
  faults.knows_no_fields = true;
  server_->SetFaults(faults);
  EXPECT_THAT(client_->ListDocuments("rows", {.fields = {"n"}}).Next(),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("does not know fields")));
  EXPECT_THAT(client_->ListDocuments("rows", {.filter = "size > 0"}).Next(),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("does not know filters")));
}

TEST_F(ClientTest, ListsDocumentsPageByPage) {
  DocumentLister all = client_->ListDocuments("web");
  size_t count = 0;
  std::string last_id;
  for (;;) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto document, all.Next());
    if (!document.has_value()) {
      break;
    }
    EXPECT_LE(last_id, document->id());
    last_id = document->id();
    ++count;
  }
  EXPECT_EQ(count, 44u);
  EXPECT_EQ(server_->CallCount("ListDocuments"), 5);
  EXPECT_FALSE(all.Next()->has_value());

  DocumentLister tens = client_->ListDocuments("web", {.prefix = "doc/1"});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ((*tens.Next())->id(), absl::StrCat("doc/1", i));
  }
  EXPECT_FALSE(tens.Next()->has_value());

  DocumentLister in_order =
      client_->ListDocuments("web", {.first_ordinal = 30});
  for (uint64_t ordinal = 30; ordinal < 44; ++ordinal) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto document, in_order.Next());
    ASSERT_TRUE(document.has_value());
    EXPECT_EQ(document->ordinal(), ordinal);
  }
  EXPECT_FALSE(in_order.Next()->has_value());
  DocumentLister past = client_->ListDocuments("web", {.first_ordinal = 44});
  EXPECT_FALSE(past.Next()->has_value());

  DocumentLister none = client_->ListDocuments("nowhere");
  EXPECT_THAT(none.Next(), HasCode(absl::StatusCode::kNotFound));
  EXPECT_THAT(none.Next(), HasCode(absl::StatusCode::kNotFound));
}

TEST_F(ClientTest, SkipsAndCountsWithdrawnDocumentsInLists) {
  FakeArchive archive;
  for (int i = 0; i < 30; ++i) {
    archive.documents.push_back({.id = absl::StrCat("d", i),
                                 .text = "text",
                                 .is_redacted = i < 20 || i == 25});
  }
  server_->Reload({{"web", archive}});
  for (const std::optional<uint64_t> first :
       {std::optional<uint64_t>(), std::optional<uint64_t>(0)}) {
    DocumentLister lister =
        client_->ListDocuments("web", {.first_ordinal = first});
    std::vector<uint64_t> ordinals;
    for (;;) {
      QUIRE_ASSERT_OK_AND_ASSIGN(const auto document, lister.Next());
      if (!document.has_value()) {
        break;
      }
      ordinals.push_back(document->ordinal());
    }
    EXPECT_THAT(ordinals, ElementsAre(20, 21, 22, 23, 24, 26, 27, 28, 29));
    EXPECT_EQ(lister.withdrawn_count(), 21u);
    // A page that has none of the others is no end.
    ListOptions options = {.first_ordinal = first};
    uint64_t withdrawn_count = 0;
    size_t count = 0;
    do {
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const ListPage page,
          client_->ListDocuments("web", options).NextPage());
      withdrawn_count += page.withdrawn_count;
      count += page.entries.size();
      options.page_token = page.next_page_token;
    } while (!options.page_token.empty());
    EXPECT_EQ(withdrawn_count, 21u);
    EXPECT_EQ(count, 9u);
  }
  DocumentLister all = client_->ListDocuments(
      "web", {.first_ordinal = 0, .with_withdrawn = true});
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto first, all.Next());
  EXPECT_EQ(first->record_type(), kWithdrawnRecordType);
  EXPECT_TRUE(
      IsWithdrawn(client_->Read("web", DocumentKey::Ordinal(3)).status()));
}

TEST_F(ClientTest, ListsALevel) {
  DocumentLister level = client_->ListDocuments("web", {.delimiter = "/"});
  std::vector<std::string> entries;
  for (;;) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto entry, level.NextEntry());
    if (!entry.has_value()) {
      break;
    }
    const auto* prefix = std::get_if<CommonPrefix>(&*entry);
    entries.push_back(prefix != nullptr ? absl::StrCat("prefix ", prefix->text)
                                        : std::get<v1::Document>(*entry).id());
  }
  EXPECT_THAT(entries, ElementsAre("\x01\x1B[31m\xFF\n", "prefix doc/", "large",
                                   "twice", "twice"));
  EXPECT_EQ(server_->CallCount("ListDocuments"), 1);

  // Documents alone, over pages that have other entries too.
  DocumentLister documents =
      client_->ListDocuments("web", {.prefix = "", .delimiter = "0"});
  size_t count = 0;
  for (;;) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto document, documents.Next());
    if (!document.has_value()) {
      break;
    }
    EXPECT_EQ(document->id().find('0'), std::string::npos);
    ++count;
  }
  // doc/11 to doc/19 and so on, and the last four.
  EXPECT_EQ(count, 3 * 9 + 4u);
}

TEST_F(ClientTest, ReadsOnlyTheContentsThatItNames) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const v1::ArchiveDescription before,
                             client_->GetArchive("web"));
  const DocumentKey key = DocumentKey::Id("doc/17");
  const auto run_all = [&] {
    std::vector<absl::Status> statuses;
    const ReadOptions options = {.archive_uuid = before.uuid()};
    statuses.push_back(client_->Read("web", key, options).status());
    // Streamed.
    statuses.push_back(
        client_->Read("web", ByteSpan{0, 20'000}, options).status());
    statuses.push_back(client_->ReadStream(
        "web", key, [](const v1::Document&) { return absl::OkStatus(); },
        [](uint64_t, ByteView) { return absl::OkStatus(); }, options));
    ScanOptions scan;
    scan.archive_uuid = before.uuid();
    statuses.push_back(ScanText("web", scan).status());
    statuses.push_back(
        client_->ListDocuments("web", {.archive_uuid = before.uuid()})
            .Next()
            .status());
    const auto batch =
        client_->StartBatch("web", {.archive_uuid = before.uuid()});
    batch->Add(1, key);
    batch->CloseAdds();
    statuses.push_back(batch->Next()->result.status());
    return statuses;
  };
  for (const absl::Status& status : run_all()) {
    QUIRE_EXPECT_OK(status);
  }
  DocumentLister lister = client_->ListDocuments("web");
  QUIRE_EXPECT_OK(lister.Next());
  std::string token;
  EXPECT_THAT(client_->Scan("web", {},
                            [&](const ScanPiece& piece) {
                              token = std::string(piece.resume_token);
                              return absl::AbortedError("pause");
                            }),
              HasCode(absl::StatusCode::kAborted));

  std::map<std::string, FakeArchive> others = archives_;
  others["web"].documents[0].id = "another";
  server_->Reload(others);
  for (const absl::Status& status : run_all()) {
    EXPECT_THAT(status, HasCode(absl::StatusCode::kFailedPrecondition));
    EXPECT_TRUE(IsOfOtherContents(status)) << status;
  }
  absl::Status status;
  while (status.ok()) {
    status = lister.Next().status();
  }
  EXPECT_TRUE(IsOfOtherContents(status)) << status;
  ScanOptions resumed;
  resumed.resume_token = token;
  EXPECT_TRUE(IsOfOtherContents(ScanText("web", resumed).status()));
}

TEST_F(ClientTest, FetchesADictionary) {
  std::string text;
  QUIRE_ASSERT_OK(client_->GetDictionary(
      "hash-of-web", [&](uint64_t offset, ByteView data) {
        EXPECT_EQ(offset, text.size());
        text.append(AsText(data).data(), data.size());
        return absl::OkStatus();
      }));
  EXPECT_EQ(text, archives_.at("web").dictionary);
  EXPECT_THAT(client_->GetDictionary(
                  "other", [](uint64_t, ByteView) { return absl::OkStatus(); }),
              HasCode(absl::StatusCode::kNotFound));
}

TEST_F(ClientTest, SendsTheTraceOfEachCall) {
  // A new span for each call, as in a program's tracing library.
  std::atomic<int> asked = 0;
  const auto header = [](int n) {
    return absl::StrFormat("00-%032x-%016x-01", 0xabc, n);
  };
  options_.trace_parent = [&] { return header(++asked); };
  Connect();
  MakeEachCall();
  for (const char* method :
       {"ListArchives", "GetArchive", "Read", "ListDocuments", "Scan",
        "ReadStream", "BatchRead", "GetDictionary"}) {
    EXPECT_GE(server_->CallCount(method), 1) << method;
  }
  std::vector<std::string> sent;
  for (int n = 1; n <= asked; ++n) {
    sent.push_back(header(n));
  }
  EXPECT_EQ(server_->TraceParents(), sent);
}

TEST_F(ClientTest, NamesTheArchiveForProxies) {
  MakeEachCall();
  // Scans ask for the size first.
  EXPECT_THAT(server_->ArchiveHeaders(),
              ElementsAre("ListArchives", "GetArchive tiny", "Read web",
                          "ListDocuments tiny", "GetArchive tiny", "Scan tiny",
                          "ReadStream web", "BatchRead web",
                          "GetDictionary web", "GetDictionary", "Read web"));
}

TEST_F(ClientTest, AsksTheServerOfTheArchiveForLimits) {
  QUIRE_EXPECT_OK(
      client_->ReadBatch("web", {DocumentKey::Id("doc/17")},
                         [](const BatchAnswer&) { return absl::OkStatus(); }));
  Connect();
  QUIRE_EXPECT_OK(client_->Read("tiny", ByteSpan{0, 3}));
  Connect();
  QUIRE_EXPECT_OK(client_->GetLimits("empty"));
  Connect();
  QUIRE_EXPECT_OK(client_->GetLimits());
  EXPECT_THAT(
      server_->ArchiveHeaders(),
      ElementsAre("ListArchives web", "BatchRead web", "ListArchives tiny",
                  "Read tiny", "ListArchives empty", "ListArchives"));
}

// The default server answers that there is no such archive.
TEST_F(ClientTest, SendsNoHeaderForNamesThatNoArchiveHas) {
  const std::string names[] = {"",          "a b", "a\nb: c",
                               "d\xC3\xB6", "a/b", std::string(129, 'a')};
  for (const std::string& name : names) {
    EXPECT_THAT(client_->GetArchive(name),
                HasCode(absl::StatusCode::kNotFound));
  }
  EXPECT_THAT(client_->GetArchive(std::string(128, 'a')),
              HasCode(absl::StatusCode::kNotFound));
  EXPECT_THAT(client_->GetArchive("A-b_c.9"),
              HasCode(absl::StatusCode::kNotFound));
  std::vector<std::string> headers(std::size(names), "GetArchive");
  headers.push_back("GetArchive " + std::string(128, 'a'));
  headers.emplace_back("GetArchive A-b_c.9");
  EXPECT_EQ(server_->ArchiveHeaders(), headers);
}

TEST_F(ClientTest, SendsNoTraceThatIsNone) {
  for (const char* header :
       {"", "00-malformed",
        "01-0000000000000000000000000000abcd-00000000000000ab-01-\n"}) {
    options_.trace_parent = [header] { return header; };
    Connect();
    QUIRE_EXPECT_OK(ReadText(DocumentKey::Id("doc/17")));
  }
  EXPECT_THAT(server_->TraceParents(), ::testing::Each(""));
}

TEST_F(ClientTest, SpeaksOverAUnixSocket) {
  FakeSettings settings;
  settings.listen = absl::StrCat("unix:", ::testing::TempDir(),
                                 "quire_client_test_", getpid(), ".sock");
  StartServer(settings);
  EXPECT_EQ(*ReadText(DocumentKey::Id("doc/17")),
            archives_.at("web").documents[17].text);
  EXPECT_EQ(*ScanText("web", {}), web_text_);
}

}  // namespace
}  // namespace quire
