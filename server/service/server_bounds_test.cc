// SPDX-License-Identifier: GPL-3.0-or-later
//
// That answers and archives stay within their bounds whatever names, attributes
// and reloads come.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/archive/archive_writer.h"
#include "server/service/server_fixture.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

using ServerBoundsTest = ServerTest;

TEST_F(ServerBoundsTest, PagesEndEarlyWhereMediaTypesAreLong) {
  constexpr int kDocumentCount = 100;
  ArchiveWriterOptions options;
  QUIRE_ASSERT_OK_AND_ASSIGN(options.codec, ParseCodecSpec("copy"));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto writer,
      ArchiveWriter::Create(archive_path(), options, nullptr));
  for (int i = 0; i < kDocumentCount; ++i) {
    // All different, or they would be one string to the archive.
    const std::string media_type =
        absl::StrCat("text/", i, "-", std::string(60'000, 'x'));
    QUIRE_ASSERT_OK(
        writer->AddDocument({.id = "page", .media_type = media_type}));
  }
  QUIRE_ASSERT_OK(writer->Commit());
  StartServer();
  v1::ListDocumentsRequest request;
  request.set_archive("docs");
  request.set_page_size(kDocumentCount);
  uint64_t next_ordinal = 0;
  do {
    grpc::ClientContext context;
    v1::ListDocumentsResponse response;
    const grpc::Status status =
        stub().ListDocuments(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_LT(response.ByteSizeLong(), 2'000'000u);
    ASSERT_GT(response.documents_size(), 0);
    for (const v1::Document& document : response.documents()) {
      EXPECT_EQ(document.ordinal(), next_ordinal++);
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(next_ordinal, static_cast<uint64_t>(kDocumentCount));
}

TEST_F(ServerBoundsTest, NamesThatAreCutKeepTheReasonReadable) {
  WriteArchive(archive_path(), MakeDocuments(2, 1));
  StartServer();
  v1::GetArchiveRequest request;
  // The cut goes through the last letter, which takes two bytes.
  request.set_archive(std::string(127, 'a') + "\u00e9");
  grpc::ClientContext context;
  v1::GetArchiveResponse response;
  const grpc::Status status = stub().GetArchive(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonIn(status), "ARCHIVE_NOT_FOUND");
  EXPECT_THAT(status.error_message(), HasSubstr("aaa\\xc3\" here"));
}

TEST_F(ServerBoundsTest, WhatCallsStillReadCountsWhenTheNextOneIsReloaded) {
  // Nearly all of its memory is the dictionary.
  const auto write = [&](char letter) {
    ArchiveWriterOptions options{.codec = ParseCodecSpec("rlz").value(),
                                 .replace = true};
    const auto context = std::make_shared<CodecContext>(
        CodecContext{.dictionary = std::string(4 << 20, letter)});
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto writer,
        ArchiveWriter::Create(archive_path(), options, context));
    QUIRE_ASSERT_OK(writer->AddDocument({.id = "a", .size_bytes = 1}));
    QUIRE_ASSERT_OK(writer->AppendBlock(AsBytes("a"), {}));
    QUIRE_ASSERT_OK(writer->Commit());
  };
  write('a');
  StartServer();
  grpc::ClientContext context;
  const auto call = stub().BatchRead(&context);
  v1::BatchReadRequest request;
  request.set_archive("docs");
  request.add_items()->mutable_range()->set_size_bytes(1);
  ASSERT_TRUE(call->Write(request));
  v1::BatchReadResponse response;
  ASSERT_TRUE(call->Read(&response));
  write('b');
  EXPECT_THAT(server().Reload()[0], HasSubstr("replaced"));
  // There is room for two and a quarter.
  write('c');
  EXPECT_THAT(server().Reload()[0],
              AllOf(HasSubstr("stays as it was"),
                    HasSubstr("try again when the calls have ended")));
  EXPECT_TRUE(call->WritesDone());
  EXPECT_FALSE(call->Read(&response));
  EXPECT_TRUE(call->Finish().ok());
  // The server lets go of the call in its own time.
  std::string line;
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  do {
    absl::SleepFor(absl::Milliseconds(5));
    line = server().Reload()[0];
  } while (absl::StrContains(line, "stays as it was") && absl::Now() < give_up);
  EXPECT_THAT(line, HasSubstr("replaced"));
}

}  // namespace
}  // namespace quire
