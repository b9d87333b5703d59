// SPDX-License-Identifier: GPL-3.0-or-later
//
// Documents that were removed for good, and readers of the states before.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "server/archive/archive.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/segment_writer.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr uint64_t kRemoved = 3;

class ServerRedactionTest : public ServerTest {
 protected:
  void Start(const std::string& codec = "zstd") {
    // Several messages of a scan.
    documents_ = MakeDocuments(150, 7);
    WriteArchive(archive_path(), documents_, codec);
    StartServer();
    before_ = Describe();
  }

  v1::ArchiveDescription Describe() {
    grpc::ClientContext context;
    v1::GetArchiveRequest request;
    request.set_archive("docs");
    v1::GetArchiveResponse response;
    EXPECT_TRUE(stub().GetArchive(&context, request, &response).ok());
    return response.archive();
  }

  // Removes a document as `quired redact` does, reloads, and returns the
  // server's messages.
  std::vector<std::string> Remove(uint64_t ordinal) {
    Rewrite(ordinal);
    std::vector<std::string> lines = Reload();
    EXPECT_THAT(lines, Contains(HasSubstr("documents were removed")));
    return lines;
  }

  void Rewrite(uint64_t ordinal) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                               Archive::Open(archive_path()));
    QUIRE_ASSERT_OK_AND_ASSIGN(ArchiveChange change,
                               ArchiveChange::Begin(archive_path()));
    Manifest manifest = change.manifest();
    if (manifest.dictionary.has_value()) {
      std::string text(AsText(archive->dictionary()));
      std::ranges::fill(text.begin(), text.begin() + 100, '\0');
      auto context = std::make_shared<CodecContext>();
      context->dictionary = std::move(text);
      DictionaryFileWriter writer(change.fd(), change.name(), manifest.codec,
                                  context);
      QUIRE_ASSERT_OK_AND_ASSIGN(manifest.dictionary, writer.Finish());
    }
    QUIRE_ASSERT_OK_AND_ASSIGN(
        SegmentWriter segment,
        SegmentWriter::Create(
            change.fd(), change.name(),
            {.number = manifest.next_segment_number,
             .block_size_bytes = manifest.block_size_bytes,
             .codec_id = static_cast<uint32_t>(manifest.codec.id),
             .partition_size_bytes = manifest.codec.partition_size_bytes,
             .dictionary_hash =
                 manifest.dictionary ? manifest.dictionary->hash : 0}));
    std::ranges::fill(documents_[ordinal].text, '\0');
    const std::string text = Concatenate(documents_);
    for (size_t at = 0; at < text.size(); at += manifest.block_size_bytes) {
      const std::string block = text.substr(at, manifest.block_size_bytes);
      QUIRE_ASSERT_OK(segment.AppendBlock(
          AsBytes(block), {.bytes = AsBytes(block), .is_raw = true}));
    }
    for (uint64_t i = 0; i < documents_.size(); ++i) {
      QUIRE_ASSERT_OK_AND_ASSIGN(const Document document,
                                 archive->GetDocument({i}));
      NewDocument written = {.size_bytes = document.range.size_bytes,
                             .record_type = kWithdrawnRecordType};
      if (i != ordinal) {
        written.id = document.id;
        written.capture_time_ms = document.capture_time_ms;
        written.record_type = document.record_type;
      }
      QUIRE_ASSERT_OK(segment.AddDocument(written));
    }
    QUIRE_ASSERT_OK_AND_ASSIGN(ManifestSegment written, segment.Finish());
    written.codec_level = manifest.codec.level;
    manifest.next_segment_number = written.number + 1;
    manifest.slices_per_mib_max =
        std::max(manifest.slices_per_mib_max, segment.slices_per_mib_max());
    manifest.segments = {std::move(written)};
    QUIRE_ASSERT_OK(
        change.Commit(std::move(manifest), EarlierStates::kRedact).status());
  }

  // Returns the dictionary of the hash, or the reason why it is refused.
  std::string Dictionary(const std::string& hash) {
    v1::GetDictionaryRequest request;
    request.set_hash(hash);
    grpc::ClientContext context;
    const auto stream = stub().GetDictionary(&context, request);
    v1::GetDictionaryResponse part;
    std::string dictionary;
    while (stream->Read(&part)) {
      dictionary += part.data();
    }
    const grpc::Status status = stream->Finish();
    return status.ok() ? dictionary : ReasonIn(status);
  }

  v1::ReadRequest Request(const std::string& uuid) const {
    v1::ReadRequest request;
    request.set_archive("docs");
    if (!uuid.empty()) {
      request.set_archive_uuid(uuid);
    }
    return request;
  }

  v1::ReadRequest RequestOf(const v1::DocumentName& name,
                            const std::string& uuid) const {
    v1::ReadRequest request = Request(uuid);
    *request.mutable_document() = name;
    return request;
  }

  // Returns the text, or the reason of the error.
  std::string Read(const v1::ReadRequest& request) {
    grpc::ClientContext context;
    const grpc::Status status = stub().Read(&context, request, &response_);
    if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) {
      EXPECT_EQ(ReasonIn(status), "DOCUMENT_WITHDRAWN");
    }
    return status.ok() ? response_.data() : ReasonIn(status);
  }

  static v1::DocumentName Ordinal(uint64_t ordinal) {
    v1::DocumentName name;
    name.set_ordinal(ordinal);
    return name;
  }

  static v1::DocumentName Id(const std::string& id) {
    v1::DocumentName name;
    name.set_id(id);
    return name;
  }

  std::string Zeroed() const { return Concatenate(documents_); }

  std::vector<TestDocument> documents_;
  v1::ArchiveDescription before_;
  // Of the last Read().
  v1::ReadResponse response_;
};

TEST_F(ServerRedactionTest, ARemovedDocumentIsWithdrawnWhereItIsAskedFor) {
  Start();
  const std::string id = documents_[kRemoved].id;
  Remove(kRemoved);
  const v1::ArchiveDescription now = Describe();
  EXPECT_EQ(now.history_size(), 0);
  ASSERT_EQ(now.redacted_states_size(), 1);
  EXPECT_EQ(now.redacted_states(0).uuid(), before_.uuid());
  v1::DocumentName first_empty = Id("");
  first_empty.set_occurrence(0);
  v1::DocumentName of_type = Id("");
  of_type.add_record_types("withdrawn");
  for (const std::string& uuid : {std::string(), now.uuid(), before_.uuid()}) {
    SCOPED_TRACE(uuid);
    for (const v1::DocumentName& name :
         {Ordinal(kRemoved), first_empty, of_type}) {
      EXPECT_EQ(Read(RequestOf(name, uuid)), "DOCUMENT_WITHDRAWN");
      grpc::ClientContext context;
      const auto stream = stub().ReadStream(&context, RequestOf(name, uuid));
      v1::ReadStreamResponse response;
      EXPECT_FALSE(stream->Read(&response));
      EXPECT_EQ(ReasonIn(stream->Finish()), "DOCUMENT_WITHDRAWN");
    }
    EXPECT_EQ(Read(RequestOf(Id(id), uuid)), "DOCUMENT_NOT_FOUND");
    EXPECT_EQ(Read(RequestOf(Ordinal(4), uuid)), documents_[4].text);
    EXPECT_EQ(Read(RequestOf(Id(documents_[5].id), uuid)), documents_[5].text);
  }
  // A list still has it.
  v1::ListDocumentsRequest request;
  request.set_archive("docs");
  request.set_first_ordinal(kRemoved);
  request.set_page_size(1);
  v1::ListDocumentsResponse page;
  grpc::ClientContext context;
  ASSERT_TRUE(stub().ListDocuments(&context, request, &page).ok());
  ASSERT_EQ(page.documents_size(), 1);
  EXPECT_EQ(page.documents(0).ordinal(), kRemoved);
  EXPECT_EQ(page.documents(0).id(), "");
  EXPECT_EQ(page.documents(0).record_type(), "withdrawn");
  // Columns do not have it.
  request.mutable_columns()->set_ids(true);
  grpc::ClientContext column_context;
  ASSERT_TRUE(stub().ListDocuments(&column_context, request, &page).ok());
  ASSERT_EQ(page.columns().document_count(), 1U);
  EXPECT_EQ(page.columns().ids().text(), documents_[kRemoved + 1].id);
  EXPECT_EQ(LoadLittleEndian<uint64_t>(
                AsBytes(page.columns().ordinals().numbers()).data()),
            kRemoved + 1);
}

// A document was removed if it has neither an id nor attributes.
TEST_F(ServerRedactionTest, WhatDamageHidesCountsAsRemoved) {
  Start();
  Remove(kRemoved);
  const std::string file = absl::StrCat(archive_path(), "/segment-00000001");
  // Flips the last bit that damages an index.
  const auto damage = [&](const std::string& name) {
    const ArchiveOpenOptions options = {.without_damaged_indexes = true};
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    const auto flip = [&](int64_t from_end) {
      bytes.seekg(-from_end, std::ios::end);
      const int byte = bytes.get();
      bytes.seekp(-from_end, std::ios::end);
      bytes.put(static_cast<char>(byte ^ 1));
      bytes.flush();
    };
    for (int64_t i = 1;; ++i) {
      flip(i);
      const auto opened = Archive::Open(archive_path(), options);
      if (opened.ok() && std::ranges::any_of((*opened)->index_damages(),
                                             [&](const absl::Status& found) {
                                               return absl::StrContains(
                                                   found.message(), name);
                                             })) {
        return;
      }
      flip(i);
    }
  };
  for (const std::string name :
       {"record types", "document ids", "capture time"}) {
    SCOPED_TRACE(name);
    StopServer();
    damage(name);
    ServerOptions options;
    options.archives = {{"docs", archive_path()}};
    options.skip_broken = true;
    StartServer(options);
    EXPECT_EQ(Read(RequestOf(Ordinal(kRemoved), "")), "DOCUMENT_WITHDRAWN");
    const bool is_hidden = name == "capture time";
    EXPECT_EQ(Read(RequestOf(Ordinal(4), "")),
              is_hidden ? "DOCUMENT_WITHDRAWN" : documents_[4].text);
    v1::ListDocumentsRequest request;
    request.set_archive("docs");
    request.set_first_ordinal(kRemoved);
    request.set_page_size(2);
    v1::ListDocumentsResponse page;
    grpc::ClientContext context;
    ASSERT_TRUE(stub().ListDocuments(&context, request, &page).ok());
    EXPECT_EQ(page.documents(0).record_type(), "withdrawn");
    EXPECT_EQ(page.documents(1).record_type(), is_hidden ? "withdrawn" : "");
    request.mutable_columns()->set_record_types(true);
    request.set_page_size(1);
    grpc::ClientContext column_context;
    ASSERT_TRUE(stub().ListDocuments(&column_context, request, &page).ok());
    const uint64_t first =
        page.columns().document_count() == 0
            ? documents_.size()
            : LoadLittleEndian<uint64_t>(
                  AsBytes(page.columns().ordinals().numbers()).data());
    EXPECT_EQ(first > kRemoved + 1, is_hidden) << first;
  }
}

// A record of a crawl can have any type.
TEST_F(ServerRedactionTest, ARecordWithThatTypeIsRead) {
  WriteArchive(archive_path(), {{.id = "http://example.org/",
                                 .text = "record",
                                 .record_type = "withdrawn"}});
  StartServer();
  EXPECT_EQ(Read(RequestOf(Ordinal(0), "")), "record");
}

TEST_F(ServerRedactionTest, ReadersOfTheStateBeforeContinue) {
  Start();
  v1::ListDocumentsRequest list;
  list.set_archive("docs");
  list.set_page_size(2);
  list.set_first_ordinal(0);
  v1::ListDocumentsResponse page;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub().ListDocuments(&context, list, &page).ok());
    list.set_page_token(page.next_page_token());
    list.set_page_size(1000);
  }
  v1::ScanRequest scan;
  scan.set_archive("docs");
  std::string text;
  {
    grpc::ClientContext context;
    const auto stream = stub().Scan(&context, scan);
    v1::ScanResponse part;
    ASSERT_TRUE(stream->Read(&part));
    text = part.data();
    scan.set_resume_token(part.resume_token());
    context.TryCancel();
    stream->Finish();
  }
  grpc::ClientContext batch_context;
  const auto batch = stub().BatchRead(&batch_context);
  v1::BatchReadRequest items;
  items.set_archive("docs");
  *items.add_items()->mutable_document() = Ordinal(1);
  v1::BatchReadResponse results;
  ASSERT_TRUE(batch->Write(items));
  ASSERT_TRUE(batch->Read(&results));
  const uint64_t late = documents_.size() - 2;
  Remove(late);
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub().ListDocuments(&context, list, &page).ok());
    EXPECT_EQ(page.documents_size(), static_cast<int>(documents_.size()) - 2);
    EXPECT_EQ(page.documents(static_cast<int>(late) - 2).id(), "");
  }
  {
    grpc::ClientContext context;
    const auto stream = stub().Scan(&context, scan);
    v1::ScanResponse part;
    while (stream->Read(&part)) {
      text += part.data();
    }
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(text == Zeroed(), true);
  }
  items.clear_items();
  *items.add_items()->mutable_document() = Ordinal(late);
  ASSERT_TRUE(batch->Write(items));
  ASSERT_TRUE(batch->Read(&results));
  EXPECT_EQ(results.results(0).status().reason(), v1::DOCUMENT_WITHDRAWN);
  EXPECT_EQ(results.results(0).data(), "");
  items.clear_items();
  *items.add_items()->mutable_document() = Ordinal(late + 1);
  ASSERT_TRUE(batch->Write(items));
  batch->WritesDone();
  ASSERT_TRUE(batch->Read(&results));
  EXPECT_EQ(results.results(0).data(), documents_[late + 1].text);
  EXPECT_TRUE(batch->Finish().ok());
}

TEST_F(ServerRedactionTest, CallsThatReadTheOldContentsGetNoRemovedText) {
  Start();
  documents_.push_back(
      {.id = "large", .text = std::string(size_t{48} << 20, 'x')});
  WriteArchive(archive_path(), documents_);
  Reload();

  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::ReadStreamResponse>> stream;
    std::string text;
  };

  std::vector<std::unique_ptr<Call>> calls;
  // A document, and a range with it.
  for (const bool is_document : {true, false}) {
    calls.push_back(std::make_unique<Call>());
    Call& call = *calls.back();
    v1::ReadRequest request = Request("");
    if (is_document) {
      *request.mutable_document() = Id("large");
    } else {
      request.mutable_range()->set_size_bytes(Describe().size_bytes());
    }
    call.stream = stub().ReadStream(&call.context, request);
    v1::ReadStreamResponse response;
    ASSERT_TRUE(call.stream->Read(&response));
    call.text = response.data();
  }
  const std::string all = Concatenate(documents_);
  Remove(documents_.size() - 1);
  for (const auto& call : calls) {
    v1::ReadStreamResponse response;
    while (call->stream->Read(&response)) {
      call->text += response.data();
    }
  }
  EXPECT_EQ(ReasonIn(calls[0]->stream->Finish()), "DOCUMENT_WITHDRAWN");
  EXPECT_LT(calls[0]->text.size(), size_t{48} << 20);
  EXPECT_TRUE(calls[1]->stream->Finish().ok());
  ASSERT_EQ(calls[1]->text.size(), all.size());
  EXPECT_EQ(calls[1]->text.back(), '\0');
}

TEST_F(ServerRedactionTest, TheHashOfZerosNamesWhatWasRemoved) {
  Start();
  v1::ReadRequest range = Request(before_.uuid());
  constexpr size_t kSize = 1000000;
  range.mutable_range()->set_size_bytes(kSize);
  EXPECT_EQ(Read(range) == Zeroed().substr(0, kSize), true);
  EXPECT_FALSE(response_.has_zeros_hash());
  Remove(kRemoved);
  EXPECT_EQ(Read(range) == Zeroed().substr(0, kSize), true);
  ASSERT_TRUE(response_.has_zeros_hash());
  const uint64_t first_hash = response_.zeros_hash();
  const std::string middle = Describe().uuid();
  Remove(kRemoved + 2);
  EXPECT_EQ(Read(range) == Zeroed().substr(0, kSize), true);
  EXPECT_TRUE(response_.has_zeros_hash());
  EXPECT_NE(response_.zeros_hash(), first_hash);
  EXPECT_EQ(Describe().redacted_states_size(), 2);
  range.set_archive_uuid(middle);
  EXPECT_EQ(Read(range) == Zeroed().substr(0, kSize), true);
  EXPECT_TRUE(response_.has_zeros_hash());
  // In the present state that is how it is.
  range.set_archive_uuid(Describe().uuid());
  EXPECT_EQ(Read(range) == Zeroed().substr(0, kSize), true);
  EXPECT_FALSE(response_.has_zeros_hash());
}

TEST_F(ServerRedactionTest, ReadersWithTheOldDictionaryGetTheNewOne) {
  Start("rlz");
  v1::ReadRequest request = RequestOf(Ordinal(4), before_.uuid());
  request.add_accepted_encodings(v1::WIRE_ENCODING_STORED);
  Read(request);
  ASSERT_EQ(response_.encoding(), v1::WIRE_ENCODING_STORED);
  const uint64_t old_hash = response_.details().table_hash();
  Remove(kRemoved);
  Read(request);
  ASSERT_EQ(response_.encoding(), v1::WIRE_ENCODING_STORED);
  const uint64_t new_hash = response_.details().table_hash();
  EXPECT_NE(new_hash, old_hash);
  EXPECT_EQ(Dictionary(FormatChecksum(old_hash)), "DICTIONARY_NOT_FOUND");
  EXPECT_EQ(Checksum64(AsBytes(Dictionary(FormatChecksum(new_hash)))),
            new_hash);
}

// Another archive has the dictionary with the removed text.
TEST_F(ServerRedactionTest, TheOldDictionaryIsWithheldFromOthersWithIt) {
  documents_ = MakeDocuments(20, 7);
  WriteArchive(archive_path(), documents_, "rlz");
  const std::string other = directory() + "/other.quire";
  std::filesystem::copy(archive_path(), other);
  ServerOptions options;
  options.archives = {{"docs", archive_path()}, {"other", other}};
  StartServer(options);
  const std::string hash = Describe().dictionary_hash();
  EXPECT_NE(Dictionary(hash), "DOCUMENT_WITHDRAWN");
  EXPECT_THAT(Remove(kRemoved),
              Contains(HasSubstr("1 other archive, such as other")));
  EXPECT_EQ(Dictionary(hash), "DOCUMENT_WITHDRAWN");
  const std::string present = Describe().dictionary_hash();
  EXPECT_NE(present, hash);
  EXPECT_EQ(FormatChecksum(Checksum64(AsBytes(Dictionary(present)))), present);
}

}  // namespace
}  // namespace quire
