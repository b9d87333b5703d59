// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests that answers and archives stay within their limits for all names,
// attributes and reloads.
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/monotonic_time.h"
#include "codecs/base/mutex.h"
#include "server/archive/archive_writer.h"
#include "server/service/limits/admission.h"
#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

using ::testing::Each;
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
    // All different, as the archive stores equal strings once.
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
    // Includes the token of the next page, but no further document.
    EXPECT_LE(response.ByteSizeLong(), (1u << 20) + 100);
    ASSERT_GT(response.documents_size(), 0);
    for (const v1::Document& document : response.documents()) {
      EXPECT_EQ(document.ordinal(), next_ordinal++);
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(next_ordinal, static_cast<uint64_t>(kDocumentCount));
}

// Documents whose descriptions are far longer than the requested data.
class LongIdsTest : public ServerTest {
 protected:
  static constexpr uint64_t kDocumentCount = 5;
  static constexpr uint64_t kIdSizeBytes = 65'000;
  // Limit of stock clients.
  static constexpr uint64_t kMessageSizeBytesMax = 4 << 20;

  LongIdsTest() {
    std::vector<TestDocument> documents = MakeDocuments(kDocumentCount, 7);
    for (uint64_t i = 0; i < kDocumentCount; ++i) {
      documents[i].id = absl::StrCat(i, std::string(kIdSizeBytes, 'x'));
      documents[i].text.resize(1'000'000, 'y');
    }
    WriteArchive(archive_path(), documents);
    ServerOptions options;
    options.metrics_address = "127.0.0.1:0";
    StartServer(options);
  }

  static v1::BatchReadRequest Items(uint64_t count, uint64_t size_bytes) {
    v1::BatchReadRequest request;
    request.set_archive("docs");
    for (uint64_t tag = 0; tag < count; ++tag) {
      v1::BatchItem& item = *request.add_items();
      item.set_tag(tag);
      v1::DocumentName& name = *item.mutable_document();
      name.set_ordinal(tag % kDocumentCount);
      name.mutable_range()->set_offset(0);
      name.mutable_range()->set_size_bytes(size_bytes);
    }
    return request;
  }
};

TEST_F(LongIdsTest, BatchMessagesCountDescriptions) {
  constexpr uint64_t kItemCount = 300;
  // Empty ranges; and ranges just short of closing a message, followed by much
  // longer ones.
  for (const uint64_t size_bytes : {0u, 500'000u}) {
    grpc::ClientContext context;
    const auto call = stub().BatchRead(&context);
    v1::BatchReadRequest request = Items(kItemCount, size_bytes);
    for (int i = 0; i < request.items_size(); i += 2) {
      if (size_bytes > 0) {
        v1::BatchItem& item = *request.mutable_items(i);
        item.mutable_range()->set_offset(static_cast<uint64_t>(i));
        item.mutable_range()->set_size_bytes(1'800'000);
      }
    }
    if (size_bytes > 0) {
      request.mutable_items()->DeleteSubrange(40, request.items_size() - 40);
    }
    ASSERT_TRUE(call->Write(request));
    ASSERT_TRUE(call->WritesDone());
    std::vector<int> answers(static_cast<size_t>(request.items_size()));
    v1::BatchReadResponse response;
    while (call->Read(&response)) {
      EXPECT_LE(response.ByteSizeLong(), kMessageSizeBytesMax);
      for (const v1::BatchResult& result : response.results()) {
        ++answers.at(result.tag());
        EXPECT_FALSE(result.has_status()) << result.status().message();
        if (request.items(static_cast<int>(result.tag())).has_document()) {
          EXPECT_EQ(result.document().ordinal(), result.tag() % kDocumentCount);
          EXPECT_EQ(result.document().id().size(), kIdSizeBytes + 1);
        }
      }
    }
    const grpc::Status status = call->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_THAT(answers, Each(1));
  }
}

TEST_F(LongIdsTest, DescriptionsOfAnswersInFlightAreCounted) {
  constexpr uint64_t kItemCount = 100;
  const auto in_flight_bytes = [&] {
    const std::string page = HttpGet(server().metrics_address(), "/metrics");
    const std::string name = "\nquire_in_flight_bytes ";
    const size_t at = page.find(name);
    return at == std::string::npos
               ? 0.0
               : std::strtod(page.c_str() + at + name.size(), nullptr);
  };
  grpc::ClientContext context;
  const auto call = stub().BatchRead(&context);
  ASSERT_TRUE(call->Write(Items(kItemCount, 0)));
  // The client does not read: at least the descriptions of the first message,
  // which is larger than the flow control window, wait.
  constexpr double kFirstMessageBytes = 512 << 10;
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  while (in_flight_bytes() < kFirstMessageBytes && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_GE(in_flight_bytes(), kFirstMessageBytes);
  ASSERT_TRUE(call->WritesDone());
  uint64_t answer_count = 0;
  v1::BatchReadResponse response;
  while (call->Read(&response)) {
    answer_count += static_cast<uint64_t>(response.results_size());
  }
  EXPECT_TRUE(call->Finish().ok());
  EXPECT_EQ(answer_count, kItemCount);
  // All bytes are returned.
  while (in_flight_bytes() > 0 && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(in_flight_bytes(), 0);
}

TEST_F(LongIdsTest, ReadsAndStreamsDescribeTheirDocument) {
  v1::ReadRequest request;
  request.set_archive("docs");
  request.mutable_document()->set_ordinal(3);
  const std::string id = absl::StrCat(3, std::string(kIdSizeBytes, 'x'));
  {
    grpc::ClientContext context;
    v1::ReadResponse response;
    ASSERT_TRUE(stub().Read(&context, request, &response).ok());
    EXPECT_EQ(response.document().id(), id);
    EXPECT_EQ(response.data().size(), 1'000'000u);
  }
  grpc::ClientContext context;
  const auto call = stub().ReadStream(&context, request);
  v1::ReadStreamResponse response;
  uint64_t size_bytes = 0;
  while (call->Read(&response)) {
    EXPECT_EQ(response.has_document(), size_bytes == 0);
    if (response.has_document()) {
      EXPECT_EQ(response.document().id(), id);
    }
    size_bytes += response.data().size();
  }
  EXPECT_TRUE(call->Finish().ok());
  EXPECT_EQ(size_bytes, 1'000'000u);
}

// A client that knows only gRPC's own limit, 4 MiB, gets every answer.
TEST_F(ServerBoundsTest, NoAnswerIsTooLargeForAStockClient) {
  constexpr size_t kAttributeSize = 65'535;
  std::string noise(10 << 20, '\0');
  std::mt19937_64 random(5);
  for (char& byte : noise) {
    byte = static_cast<char>(random());
  }
  ArchiveWriterOptions options;
  options.codec = *ParseCodecSpec("zstd");
  options.block_size_bytes = kBlockSizeBytesMax;
  const auto context = std::make_shared<CodecContext>();
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto writer,
      ArchiveWriter::Create(archive_path(), options, context));
  QUIRE_ASSERT_OK(
      writer->AddDocument({.id = std::string(kAttributeSize, 'i'),
                           .size_bytes = noise.size(),
                           .record_type = std::string(kAttributeSize, 'r'),
                           .media_type = std::string(kAttributeSize, 'm')}));
  for (size_t at = 0; at < noise.size(); at += kBlockSizeBytesMax) {
    QUIRE_ASSERT_OK(writer->AppendBlock(
        AsBytes(noise).subspan(at, kBlockSizeBytesMax), {}));
  }
  QUIRE_ASSERT_OK(writer->Commit());
  StartServer();
  grpc::ClientContext list_context;
  v1::ListArchivesResponse list;
  ASSERT_TRUE(stub().ListArchives(&list_context, {}, &list).ok());
  const uint64_t size_bytes_max = list.limits().read_size_bytes_max();
  for (const v1::WireEncoding encoding :
       {v1::WIRE_ENCODING_IDENTITY, v1::WIRE_ENCODING_STORED}) {
    v1::DocumentName name;
    name.set_ordinal(0);
    // Touches one more block at either end.
    name.mutable_range()->set_offset(kBlockSizeBytesMax - 1);
    name.mutable_range()->set_size_bytes(size_bytes_max);

    grpc::ClientContext read_context;
    v1::ReadRequest request;
    request.set_archive("docs");
    request.add_accepted_encodings(encoding);
    *request.mutable_document() = name;
    v1::ReadResponse response;
    const grpc::Status read = stub().Read(&read_context, request, &response);
    EXPECT_TRUE(read.ok()) << read.error_message();
    EXPECT_EQ(response.encoding(), encoding);

    grpc::ClientContext batch_context;
    const auto batch = stub().BatchRead(&batch_context);
    v1::BatchReadRequest items;
    items.set_archive("docs");
    items.add_accepted_encodings(encoding);
    for (int i = 0; i < 3; ++i) {
      *items.add_items()->mutable_document() = name;
    }
    ASSERT_TRUE(batch->Write(items));
    batch->WritesDone();
    v1::BatchReadResponse answers;
    int answer_count = 0;
    while (batch->Read(&answers)) {
      answer_count += answers.results_size();
      for (const v1::BatchResult& result : answers.results()) {
        EXPECT_FALSE(result.has_status()) << result.status().message();
      }
    }
    const grpc::Status ended = batch->Finish();
    EXPECT_TRUE(ended.ok()) << ended.error_message();
    EXPECT_EQ(answer_count, 3);
  }
  // The error for a larger one says what to do.
  grpc::ClientContext large_context;
  v1::ReadRequest request;
  request.set_archive("docs");
  request.mutable_document()->set_ordinal(0);
  v1::ReadResponse response;
  const grpc::Status refused = stub().Read(&large_context, request, &response);
  EXPECT_EQ(ReasonIn(refused), "LIMIT_EXCEEDED");
  EXPECT_THAT(refused.error_message(), HasSubstr("use ReadStream"));
}

TEST_F(ServerBoundsTest, NamesThatAreCutKeepTheReasonReadable) {
  WriteArchive(archive_path(), MakeDocuments(2, 1));
  StartServer();
  v1::GetArchiveRequest request;
  // The limit cuts the last letter, which has two bytes.
  request.set_archive(absl::StrCat(std::string(127, 'a'), "\u00e9"));
  grpc::ClientContext context;
  v1::GetArchiveResponse response;
  const grpc::Status status = stub().GetArchive(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonIn(status), "ARCHIVE_NOT_FOUND");
  EXPECT_THAT(status.error_message(), HasSubstr("aaa\\xc3\" here"));
}

class ServerReloadTest : public ServerTest {
 protected:
  // Nearly all of the archive's memory is the dictionary.
  void WriteDictionaryOf(char letter) {
    WriteDictionary(archive_path(), std::string(kDictionarySizeBytes, letter));
  }

  static void WriteDictionary(const std::string& path, std::string dictionary) {
    ArchiveWriterOptions options{.codec = ParseCodecSpec("rlz").value(),
                                 .replace = true};
    const auto context = std::make_shared<CodecContext>(
        CodecContext{.dictionary = std::move(dictionary)});
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                               ArchiveWriter::Create(path, options, context));
    QUIRE_ASSERT_OK(writer->AddDocument({.id = "a", .size_bytes = 1}));
    QUIRE_ASSERT_OK(writer->AppendBlock(AsBytes("a"), {}));
    QUIRE_ASSERT_OK(writer->Commit());
  }

  // Serves it with memory for one more, and the smallest cache.
  void StartWithoutSpareMemory() {
    ServerOptions options;
    options.memory_bytes =
        LeastMemoryBytes({archive_path()}, /*can_reload=*/true);
    StartServer(options);
  }

  // Reloads until the old archive is replaced, and returns the message: the
  // server releases a call asynchronously.
  std::string ReloadAtLast() {
    std::string line;
    const absl::Time give_up = absl::Now() + absl::Seconds(60);
    do {
      absl::SleepFor(absl::Milliseconds(5));
      line = Reload()[0];
    } while (absl::StrContains(line, "stays unchanged") &&
             absl::Now() < give_up);
    return line;
  }

  // Reads the first message of the server's dictionary.
  std::unique_ptr<grpc::ClientReader<v1::GetDictionaryResponse>>
  StartDictionary(grpc::ClientContext& context) {
    grpc::ClientContext list_context;
    v1::ListArchivesResponse list;
    EXPECT_TRUE(stub().ListArchives(&list_context, {}, &list).ok());
    v1::GetDictionaryRequest request;
    request.set_hash(list.archives(0).dictionary_hash());
    // Otherwise flow control might pass all of it to a client that does not
    // read.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    const auto stub = v1::Archive::NewStub(grpc::CreateCustomChannel(
        server().address(), grpc::InsecureChannelCredentials(), arguments));
    auto reader = stub->GetDictionary(&context, request);
    v1::GetDictionaryResponse response;
    EXPECT_TRUE(reader->Read(&response));
    return reader;
  }

  static constexpr uint64_t kDictionarySizeBytes = 4 << 20;
};

// Dictionaries whose sizes are not powers of two, in the minimum memory of the
// plan: the counted memory must match the plan.
TEST_F(ServerReloadTest, ArchivesOpenInTheMemoryThatWasPlanned) {
  ServerOptions options;
  std::vector<std::string> paths;
  for (const uint64_t size_bytes : {3 * kMiB, 5 * kMiB, 9 * kMiB + 1}) {
    const ArchiveArgument archive = {
        absl::StrCat("n", size_bytes),
        absl::StrCat(directory(), "/", size_bytes, ".quire")};
    ASSERT_NO_FATAL_FAILURE(
        WriteDictionary(archive.path, std::string(size_bytes, 'x')));
    paths.push_back(archive.path);
    options.archives.push_back(archive);
  }
  options.memory_bytes = LeastMemoryBytes(paths, /*can_reload=*/false);
  ListenServer(options);
  QUIRE_EXPECT_OK(server().OpenArchives());
  EXPECT_EQ(server().opening_progress().open_count, 3u);
}

TEST_F(ServerReloadTest, WhatCallsStillReadCountsWhenTheNextOneIsReloaded) {
  WriteDictionaryOf('a');
  StartWithoutSpareMemory();
  grpc::ClientContext context;
  const auto reader = StartDictionary(context);
  WriteDictionaryOf('b');
  EXPECT_THAT(Reload()[0], HasSubstr("replaced"));
  // There is memory for two and a quarter.
  WriteDictionaryOf('c');
  EXPECT_THAT(Reload()[0],
              AllOf(HasSubstr("stays unchanged"),
                    HasSubstr("retry when the calls that read replaced")));
  for (v1::GetDictionaryResponse response; reader->Read(&response);) {
    EXPECT_EQ(response.data().find_first_not_of('a'), std::string::npos);
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_THAT(ReloadAtLast(), HasSubstr("replaced"));
}

TEST_F(ServerReloadTest, SilentBatchesDoNotKeepReplacedArchives) {
  WriteDictionaryOf('a');
  StartWithoutSpareMemory();
  grpc::ClientContext context;
  const auto call = stub().BatchRead(&context);
  v1::BatchReadRequest request;
  request.set_archive("docs");
  request.add_items()->mutable_range()->set_size_bytes(1);
  ASSERT_TRUE(call->Write(request));
  v1::BatchReadResponse response;
  ASSERT_TRUE(call->Read(&response));
  for (const char letter : {'b', 'c', 'd'}) {
    WriteDictionaryOf(letter);
    EXPECT_THAT(ReloadAtLast(), HasSubstr("replaced"));
  }
  call->Write(request);
  EXPECT_FALSE(call->Read(&response));
  const grpc::Status status = call->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonIn(status), "ARCHIVE_REPLACED");
}

// The memory suffices for one more, as each old one is freed before the next.
TEST_F(ServerReloadTest, ManyArchivesAreReplacedAtOnce) {
  ServerOptions options;
  std::vector<std::string> paths;
  const auto write = [&](char letter) {
    for (const std::string& path : paths) {
      WriteDictionary(path, std::string(2 * kMiB, letter));
    }
  };
  for (int i = 0; i < 5; ++i) {
    paths.push_back(absl::StrCat(directory(), "/n", i, ".quire"));
    options.archives.push_back({absl::StrCat("n", i), paths.back()});
  }
  ASSERT_NO_FATAL_FAILURE(write('a'));
  options.memory_bytes = LeastMemoryBytes(paths, /*can_reload=*/true);
  StartServer(options);
  ASSERT_NO_FATAL_FAILURE(write('b'));
  EXPECT_THAT(Reload(), Each(HasSubstr(": replaced, 1 document")));
}

TEST_F(ServerReloadTest, TheCacheMakesSpaceForANewArchive) {
  WriteArchive(archive_path(), MakeDocuments(60, 5));
  ServerOptions options;
  options.metrics_address = "127.0.0.1:0";
  const uint64_t least_bytes =
      LeastMemoryBytes({archive_path()}, /*can_reload=*/true);
  options.memory_bytes = least_bytes + 40 * kMiB;
  StartServer(options);
  const auto cache_capacity = [this] {
    const std::string metrics = HttpGet(server().metrics_address(), "/metrics");
    const std::string name = "\nquire_cache_capacity_bytes ";
    return std::stod(metrics.substr(metrics.find(name) + name.size()));
  };
  const double before = cache_capacity();
  ASSERT_GT(before, 20 * kMiB);
  // More than the memory reserved for reloading, then more than the total.
  const ArchiveArgument large = {"large", directory() + "/large.quire"};
  const ArchiveArgument larger = {"larger", directory() + "/larger.quire"};
  ASSERT_NO_FATAL_FAILURE(
      WriteDictionary(large.path, std::string(10 * kMiB, 'x')));
  ASSERT_NO_FATAL_FAILURE(
      WriteDictionary(larger.path, std::string(30 * kMiB, 'x')));
  const std::vector<ArchiveArgument> docs = changes_.archives;
  changes_.archives.push_back(large);
  EXPECT_THAT(Reload(),
              ::testing::Contains("archive large: added, 1 document"));
  EXPECT_LT(cache_capacity(), before - 8 * kMiB);
  EXPECT_GT(cache_capacity(), 8 * kMiB);
  changes_.archives.push_back(larger);
  EXPECT_THAT(Reload(),
              ::testing::Contains(AllOf(HasSubstr("archive larger is left out"),
                                        HasSubstr("more --memory"))));
  changes_.archives = docs;
  Reload();
  EXPECT_EQ(cache_capacity(), before);
}

TEST_F(ServerReloadTest, ADictionaryThatIsSentCountsAsMessageAndSerialised) {
  // A hash of 16 digits, its tag and its size.
  constexpr int kRequestSizeBytes = 18;
  WriteDictionaryOf('a');
  ServerOptions options;
  options.metrics_address = "127.0.0.1:0";
  StartServer(options);
  grpc::ClientContext context;
  const auto reader = StartDictionary(context);
  EXPECT_THAT(HttpGet(server().metrics_address(), "/metrics"),
              HasSubstr(absl::StrCat("\nquire_in_flight_bytes ",
                                     (2 << 20) + kRequestSizeBytes)));
  context.TryCancel();
  reader->Finish();
}

// Reads by 64 clients at once in a server with the minimum memory.
class LeastMemoryTest : public ServerTest,
                        public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr int kReaderCount = 64;

  LeastMemoryTest() {
    WriteArchive(archive_path(), documents_, "zstd", "",
                 /*is_reordered=*/GetParam());
    ServerOptions options;
    options.memory_bytes = LeastMemoryBytes({archive_path()}, false);
    StartServer(options);
  }

  // Returns the first error of reads of `size_bytes` at random offsets. A read
  // that has waited for as long as the server lets it is repeated: that is a
  // question of the machine's load.
  grpc::Status ReadAll(uint64_t size_bytes, int count_each) {
    Mutex mutex;
    grpc::Status first_error;
    std::vector<std::thread> readers;
    readers.reserve(kReaderCount);
    for (uint64_t seed = 0; seed < kReaderCount; ++seed) {
      readers.emplace_back([&, seed] {
        std::mt19937_64 random(seed);
        for (int i = 0; i < count_each; ++i) {
          const uint64_t offset = random() % (all_.size() - size_bytes);
          v1::ReadRequest request;
          request.set_archive("docs");
          request.mutable_range()->set_offset(offset);
          request.mutable_range()->set_size_bytes(size_bytes);
          v1::ReadResponse response;
          grpc::Status status;
          bool has_waited = false;
          do {
            const absl::Time begun = MonotonicNow();
            grpc::ClientContext context;
            status = stub().Read(&context, request, &response);
            has_waited = MonotonicNow() - begun >= Admission::kTurnWaitMax;
          } while (has_waited &&
                   status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
          if (status.ok() &&
              response.data() != all_.substr(offset, size_bytes)) {
            status = {grpc::StatusCode::INTERNAL, "wrong text"};
          }
          if (!status.ok()) {
            MutexLock lock(&mutex);
            first_error = first_error.ok() ? status : first_error;
          }
        }
      });
    }
    for (std::thread& reader : readers) {
      reader.join();
    }
    return first_error;
  }

  const std::vector<TestDocument> documents_ = MakeDocuments(300, 19);
  const std::string all_ = Concatenate(documents_);
};

// The longer ones exceed twice the share of one client.
TEST_P(LeastMemoryTest, RefusesNoneOfManyReadsAtOnce) {
  for (const uint64_t size_bytes : {16 * kKiB, 300 * kKiB}) {
    const grpc::Status status = ReadAll(size_bytes, 10);
    EXPECT_TRUE(status.ok()) << size_bytes << ": " << status.error_message();
  }
}

INSTANTIATE_TEST_SUITE_P(StoredAndReordered, LeastMemoryTest,
                         ::testing::Bool());

}  // namespace
}  // namespace quire
