// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests all methods over a real socket against the original documents.
#include "server/service/server.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

#include "codecs/base/checksum.h"
#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

class ServerCallsTest : public ServerTest {
 protected:
  ServerCallsTest() : documents_(MakeDocuments(300, 1)) {
    // The same id three times.
    for (const char* text : {"first", "second", "third and last"}) {
      documents_.push_back({"again", text});
    }
    all_ = Concatenate(documents_);
    WriteArchive(archive_path(), documents_);
    StartServer();
  }

  grpc::Status Read(const v1::ReadRequest& request,
                    v1::ReadResponse* response) {
    grpc::ClientContext context;
    return stub().Read(&context, request, response);
  }

  v1::ReadRequest RangeRequest(uint64_t offset, uint64_t size_bytes) {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_range()->set_offset(offset);
    request.mutable_range()->set_size_bytes(size_bytes);
    return request;
  }

  v1::ReadRequest IdRequest(const std::string& id) {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_document()->set_id(id);
    return request;
  }

  uint64_t StartOf(size_t index) const {
    uint64_t start = 0;
    for (size_t i = 0; i < index; ++i) {
      start += documents_[i].text.size();
    }
    return start;
  }

  std::vector<TestDocument> documents_;
  std::string all_;
};

TEST_F(ServerCallsTest, ReadsRangesExactly) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    const uint64_t offset = random() % (all_.size() + 1);
    const uint64_t size_bytes =
        std::min<uint64_t>(random() % 100000, all_.size() - offset);
    v1::ReadResponse response;
    const grpc::Status status =
        Read(RangeRequest(offset, size_bytes), &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response.data(), all_.substr(offset, size_bytes));
    EXPECT_EQ(response.checksum(), Checksum64(AsBytes(response.data())));
    EXPECT_EQ(response.encoding(), v1::WIRE_ENCODING_IDENTITY);
    EXPECT_EQ(response.range().offset(), offset);
    EXPECT_EQ(response.range().size_bytes(), size_bytes);
    EXPECT_FALSE(response.has_document());
  }
}

TEST_F(ServerCallsTest, ReadsDocumentsByIdAndOrdinal) {
  for (size_t i = 0; i < documents_.size(); ++i) {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_document()->set_ordinal(i);
    v1::ReadResponse response;
    ASSERT_TRUE(Read(request, &response).ok());
    EXPECT_EQ(response.data(), documents_[i].text);
    EXPECT_EQ(response.document().id(), documents_[i].id);
    EXPECT_EQ(response.document().ordinal(), i);
    EXPECT_EQ(response.document().range().offset(), StartOf(i));
    EXPECT_EQ(response.document().media_type(), "text/html");
    EXPECT_EQ(response.document().capture_time_ms(),
              static_cast<int64_t>(documents_[i].text.size()));
    EXPECT_FALSE(response.document().has_record_type());
    if (documents_[i].id != "again") {
      ASSERT_TRUE(Read(IdRequest(documents_[i].id), &response).ok());
      EXPECT_EQ(response.data(), documents_[i].text);
    }
  }
}

TEST_F(ServerCallsTest, PicksAmongDocumentsOfOneId) {
  v1::ReadResponse response;
  ASSERT_TRUE(Read(IdRequest("again"), &response).ok());
  EXPECT_EQ(response.data(), "third and last");
  v1::ReadRequest request = IdRequest("again");
  request.mutable_document()->set_occurrence(1);
  ASSERT_TRUE(Read(request, &response).ok());
  EXPECT_EQ(response.data(), "second");
  request.mutable_document()->mutable_range()->set_offset(3);
  request.mutable_document()->mutable_range()->set_size_bytes(2);
  ASSERT_TRUE(Read(request, &response).ok());
  EXPECT_EQ(response.data(), "on");
  request.mutable_document()->set_occurrence(3);
  EXPECT_EQ(Read(request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServerCallsTest, RefusesWithCodeAndReason) {
  v1::ReadRequest elsewhere = RangeRequest(0, 1);
  elsewhere.set_archive("elsewhere");
  v1::ReadRequest nothing;
  nothing.set_archive("docs");
  v1::ReadRequest empty_document;
  empty_document.set_archive("docs");
  empty_document.mutable_document();
  v1::ReadRequest past_document = IdRequest("again");
  past_document.mutable_document()->mutable_range()->set_size_bytes(15);
  v1::ReadRequest ordinal;
  ordinal.set_archive("docs");
  ordinal.mutable_document()->set_ordinal(documents_.size());

  const struct {
    v1::ReadRequest request;
    grpc::StatusCode code;
    const char* reason;
  } cases[] = {
      {elsewhere, grpc::StatusCode::NOT_FOUND, "ARCHIVE_NOT_FOUND"},
      {nothing, grpc::StatusCode::INVALID_ARGUMENT, "MALFORMED_REQUEST"},
      {empty_document, grpc::StatusCode::INVALID_ARGUMENT, "MALFORMED_REQUEST"},
      {IdRequest("no such"), grpc::StatusCode::NOT_FOUND, "DOCUMENT_NOT_FOUND"},
      {IdRequest(std::string(100000, 'x')), grpc::StatusCode::INVALID_ARGUMENT,
       "MALFORMED_REQUEST"},
      {ordinal, grpc::StatusCode::NOT_FOUND, "DOCUMENT_NOT_FOUND"},
      {past_document, grpc::StatusCode::OUT_OF_RANGE, "RANGE_PAST_END"},
      {RangeRequest(all_.size(), 1), grpc::StatusCode::OUT_OF_RANGE,
       "RANGE_PAST_END"},
      {RangeRequest(UINT64_MAX, 2), grpc::StatusCode::OUT_OF_RANGE,
       "RANGE_PAST_END"},
      {RangeRequest(2, UINT64_MAX), grpc::StatusCode::OUT_OF_RANGE,
       "RANGE_PAST_END"},
  };

  for (const auto& c : cases) {
    v1::ReadResponse response;
    const grpc::Status status = Read(c.request, &response);
    EXPECT_EQ(status.error_code(), c.code) << c.request.ShortDebugString();
    EXPECT_EQ(ReasonIn(status), c.reason) << status.error_message();
    EXPECT_EQ(status.error_message().find(directory()), std::string::npos);
  }
}

TEST_F(ServerCallsTest, StreamsInOrder) {
  for (const auto& [offset, size_bytes] :
       std::vector<std::pair<uint64_t, uint64_t>>{
           {0, all_.size()}, {12345, 3000000}, {all_.size(), 0}, {7, 1}}) {
    grpc::ClientContext context;
    const auto reader =
        stub().ReadStream(&context, RangeRequest(offset, size_bytes));
    std::string got;
    size_t message_count = 0;
    for (v1::ReadStreamResponse response; reader->Read(&response);) {
      EXPECT_EQ(response.range().offset(), offset + got.size());
      EXPECT_EQ(response.checksum(), Checksum64(AsBytes(response.data())));
      got += response.data();
      ++message_count;
    }
    EXPECT_TRUE(reader->Finish().ok());
    EXPECT_GE(message_count, 1u);
    EXPECT_TRUE(got == all_.substr(offset, size_bytes));
  }
}

TEST_F(ServerCallsTest, ScansAndResumes) {
  v1::ScanRequest request;
  request.set_archive("docs");
  request.set_offset(1000);
  std::string got;
  // Stops after every message and resumes with its token.
  for (bool more = true; more;) {
    grpc::ClientContext context;
    const auto reader = stub().Scan(&context, request);
    v1::ScanResponse response;
    more = reader->Read(&response) && !response.data().empty();
    if (more) {
      EXPECT_EQ(response.range().offset(), 1000 + got.size());
      got += response.data();
      request.set_resume_token(response.resume_token());
      context.TryCancel();
    }
    while (reader->Read(&response)) {
    }
    (void)reader->Finish();
  }
  EXPECT_TRUE(got == all_.substr(1000));

  request.set_resume_token("made up");
  grpc::ClientContext context;
  v1::ScanResponse response;
  const auto reader = stub().Scan(&context, request);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerCallsTest, AnswersEveryItemOfABatch) {
  std::mt19937_64 random(3);
  std::map<uint64_t, std::string> expected;
  std::set<uint64_t> bad;
  grpc::ClientContext context;
  const auto stream = stub().BatchRead(&context);
  uint64_t tag = 0;
  for (int message = 0; message < 20; ++message) {
    v1::BatchReadRequest request;
    request.set_archive("docs");
    for (int i = 0; i < 200; ++i, ++tag) {
      v1::BatchItem* item = request.add_items();
      item->set_tag(tag);
      if (tag % 50 == 7) {
        item->mutable_document()->set_id("no such");
        bad.insert(tag);
      } else if (tag % 3 == 0) {
        const size_t index = random() % documents_.size();
        item->mutable_document()->set_ordinal(index);
        expected[tag] = documents_[index].text;
      } else {
        const uint64_t offset = random() % all_.size();
        const uint64_t size_bytes =
            std::min<uint64_t>(random() % 30000, all_.size() - offset);
        item->mutable_range()->set_offset(offset);
        item->mutable_range()->set_size_bytes(size_bytes);
        expected[tag] = all_.substr(offset, size_bytes);
      }
    }
    ASSERT_TRUE(stream->Write(request));
  }
  ASSERT_TRUE(stream->WritesDone());
  uint64_t answer_count = 0;
  for (v1::BatchReadResponse response; stream->Read(&response);) {
    for (const v1::BatchResult& result : response.results()) {
      ++answer_count;
      if (bad.erase(result.tag()) == 1) {
        EXPECT_EQ(result.status().code(), 5);
        EXPECT_EQ(result.status().reason(), v1::DOCUMENT_NOT_FOUND);
        continue;
      }
      ASSERT_FALSE(result.has_status()) << result.status().message();
      ASSERT_TRUE(expected.contains(result.tag()));
      EXPECT_TRUE(result.data() == expected[result.tag()]);
      EXPECT_EQ(result.checksum(), Checksum64(AsBytes(result.data())));
      expected.erase(result.tag());
    }
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answer_count, tag);
  EXPECT_TRUE(expected.empty());
  EXPECT_TRUE(bad.empty());
}

TEST_F(ServerCallsTest, AnswersABatchInDeviceOrder) {
  grpc::ClientContext context;
  const auto stream = stub().BatchRead(&context);
  v1::BatchReadRequest request;
  request.set_archive("docs");
  std::mt19937_64 random(4);
  for (uint64_t tag = 0; tag < 500; ++tag) {
    v1::BatchItem* item = request.add_items();
    item->set_tag(tag);
    item->mutable_range()->set_offset(random() % (all_.size() - 100));
    item->mutable_range()->set_size_bytes(100);
  }
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->WritesDone());
  std::vector<uint64_t> offsets;
  for (v1::BatchReadResponse response; stream->Read(&response);) {
    for (const v1::BatchResult& result : response.results()) {
      offsets.push_back(result.range().offset());
    }
  }
  EXPECT_TRUE(stream->Finish().ok());
  ASSERT_EQ(offsets.size(), 500u);
  // Blocks are decoded by several threads, one of which may be descheduled
  // while it holds a block. In random order, two in five pairs would descend so
  // far.
  size_t descents = 0;
  for (size_t i = 1; i < offsets.size(); ++i) {
    descents += offsets[i] + 20 * 16384 < offsets[i - 1] ? 1 : 0;
  }
  EXPECT_LE(descents, 100u);
}

TEST_F(ServerCallsTest, RefusesAnOversizedBatchMessage) {
  grpc::ClientContext context;
  const auto stream = stub().BatchRead(&context);
  v1::BatchReadRequest request;
  request.set_archive("docs");
  for (int i = 0; i < 4097; ++i) {
    request.add_items()->mutable_range();
  }
  stream->Write(request);
  stream->WritesDone();
  v1::BatchReadResponse response;
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonIn(status), "LIMIT_EXCEEDED");
}

TEST_F(ServerCallsTest, ListsByPrefixAndPage) {
  std::vector<std::string> expected;
  for (const TestDocument& document : documents_) {
    if (document.id.starts_with("dir3/")) {
      expected.push_back(document.id);
    }
  }
  std::sort(expected.begin(), expected.end());
  std::vector<std::string> got;
  v1::ListDocumentsRequest request;
  request.set_archive("docs");
  request.set_prefix("dir3/");
  request.set_page_size(7);
  v1::ListDocumentsResponse response;
  do {
    response.Clear();
    grpc::ClientContext context;
    ASSERT_TRUE(stub().ListDocuments(&context, request, &response).ok());
    EXPECT_LE(response.documents_size(), 7);
    for (const v1::Document& document : response.documents()) {
      got.push_back(document.id());
      EXPECT_EQ(documents_[document.ordinal()].id, document.id());
    }
    request.set_page_token(response.next_page_token());
  } while (response.has_next_page_token());
  EXPECT_EQ(got, expected);

  // A token of another prefix is refused.
  request.set_page_size(1);
  request.clear_page_token();
  grpc::ClientContext first;
  ASSERT_TRUE(stub().ListDocuments(&first, request, &response).ok());
  request.set_page_token(response.next_page_token());
  request.set_prefix("dir4/");
  grpc::ClientContext second;
  EXPECT_EQ(stub().ListDocuments(&second, request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerCallsTest, ListsDocumentsInTheOrderOfTheArchive) {
  const uint64_t first = documents_.size() - 20;
  v1::ListDocumentsRequest request;
  request.set_archive("docs");
  request.set_first_ordinal(first);
  request.set_page_size(7);
  v1::ListDocumentsResponse response;
  uint64_t next = first;
  uint64_t offset = 0;
  do {
    response.Clear();
    grpc::ClientContext context;
    ASSERT_TRUE(stub().ListDocuments(&context, request, &response).ok());
    EXPECT_LE(response.documents_size(), 7);
    for (const v1::Document& document : response.documents()) {
      EXPECT_EQ(document.ordinal(), next);
      EXPECT_EQ(document.id(), documents_[next].id);
      if (next > first) {
        EXPECT_EQ(document.range().offset(), offset);
      }
      offset = document.range().offset() + document.range().size_bytes();
      ++next;
    }
    request.set_page_token(response.next_page_token());
  } while (response.has_next_page_token());
  EXPECT_EQ(next, documents_.size());
  EXPECT_EQ(offset, all_.size());

  // Past the end there are no documents, and a prefix excludes an ordinal.
  request.clear_page_token();
  for (const uint64_t past : {documents_.size(), SIZE_MAX}) {
    request.set_first_ordinal(past);
    grpc::ClientContext context;
    ASSERT_TRUE(stub().ListDocuments(&context, request, &response).ok());
    EXPECT_EQ(response.documents_size(), 0);
  }
  request.set_prefix("dir3/");
  grpc::ClientContext context;
  EXPECT_EQ(stub().ListDocuments(&context, request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerCallsTest, AResumedScanEndsWhereTheFirstWouldHave) {
  const uint64_t offset = 30'000;
  const uint64_t size_bytes = all_.size() / 2;
  v1::ScanRequest request;
  request.set_archive("docs");
  request.set_offset(offset);
  request.set_size_bytes(size_bytes);
  std::string got;
  std::string token;
  {
    grpc::ClientContext context;
    const auto reader = stub().Scan(&context, request);
    v1::ScanResponse response;
    ASSERT_TRUE(reader->Read(&response));
    got = response.data();
    token = response.resume_token();
    context.TryCancel();
    reader->Finish();
  }
  ASSERT_LT(got.size(), size_bytes);
  v1::ScanRequest resumed;
  resumed.set_archive("docs");
  resumed.set_resume_token(token);
  grpc::ClientContext context;
  const auto reader = stub().Scan(&context, resumed);
  for (v1::ScanResponse response; reader->Read(&response);) {
    got += response.data();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(got.size(), size_bytes);
  EXPECT_TRUE(got == all_.substr(offset, size_bytes));
}

TEST_F(ServerCallsTest, ListsArchivesPageByPageAndRefusesForeignTokens) {
  ServerOptions options;
  for (const char* name : {"a", "b", "c"}) {
    options.archives.push_back({name, archive_path()});
  }
  StartServer(options);
  v1::ListArchivesRequest request;
  request.set_page_size(2);
  grpc::ClientContext first_context;
  v1::ListArchivesResponse first;
  ASSERT_TRUE(stub().ListArchives(&first_context, request, &first).ok());
  ASSERT_EQ(first.archives_size(), 2);
  request.set_page_token(first.next_page_token());
  grpc::ClientContext second_context;
  v1::ListArchivesResponse second;
  ASSERT_TRUE(stub().ListArchives(&second_context, request, &second).ok());
  ASSERT_EQ(second.archives_size(), 1);
  EXPECT_EQ(second.archives(0).name(), "c");
  EXPECT_FALSE(second.has_next_page_token());

  v1::ListDocumentsRequest list;
  list.set_archive("a");
  list.set_page_size(1);
  grpc::ClientContext list_context;
  v1::ListDocumentsResponse documents;
  ASSERT_TRUE(stub().ListDocuments(&list_context, list, &documents).ok());
  for (const std::string& token :
       {std::string(), std::string("b"), documents.next_page_token()}) {
    request.set_page_token(token);
    grpc::ClientContext context;
    v1::ListArchivesResponse response;
    const grpc::Status status =
        stub().ListArchives(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << token;
    EXPECT_EQ(ReasonIn(status), "MALFORMED_REQUEST");
  }
}

TEST_F(ServerCallsTest, DescribesArchivesAndLimits) {
  grpc::ClientContext context;
  v1::ListArchivesResponse response;
  ASSERT_TRUE(stub().ListArchives(&context, {}, &response).ok());
  ASSERT_EQ(response.archives_size(), 1);
  EXPECT_EQ(response.archives(0).name(), "docs");
  EXPECT_EQ(response.archives(0).size_bytes(), all_.size());
  EXPECT_EQ(response.archives(0).document_count(), documents_.size());
  EXPECT_EQ(response.archives(0).codec(), "zstd");
  EXPECT_FALSE(response.archives(0).has_dictionary_hash());
  EXPECT_GT(response.limits().read_size_bytes_max(), 0u);
  EXPECT_GT(response.limits().in_flight_size_bytes_max(), 0u);
}

}  // namespace
}  // namespace quire
