// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests many streams that are read at different times. All come from one
// address, which is one client: it has half of the memory for answers.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

#include "codecs/base/byte_size.h"
#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

class ServerStreamsTest : public ServerTest {
 protected:
  ServerStreamsTest() : all_(Concatenate(documents_)) {
    WriteArchive(archive_path(), documents_, "copy");
    ServerOptions options;
    // Little memory: 32 MiB for answers, so that only half a dozen streams can
    // have windows of several MiB.
    options.memory_bytes = 168 * kMiB;
    options.stall_limit = absl::Minutes(30);
    StartServer(options);
    for (int i = 0; i < 8; ++i) {
      grpc::ChannelArguments arguments;
      // Otherwise they would share a connection.
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs_.push_back(v1::Archive::NewStub(grpc::CreateCustomChannel(
          server().address(), grpc::InsecureChannelCredentials(), arguments)));
    }
  }

  struct OpenScan {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::ScanResponse>> reader;
    std::string got;

    bool Next() {
      v1::ScanResponse response;
      const bool is_there = reader->Read(&response);
      got += response.data();
      return is_there;
    }
  };

  // Opens scans, in turn on each connection, and reads one message of each.
  void OpenScans(int count) {
    v1::ScanRequest request;
    request.set_archive("docs");
    for (int i = 0; i < count; ++i) {
      OpenScan& scan = scans_.emplace_back();
      scan.reader =
          stubs_[scans_.size() % stubs_.size()]->Scan(&scan.context, request);
      ASSERT_TRUE(scan.Next())
          << i << ": " << scan.reader->Finish().error_message();
    }
  }

  const std::vector<TestDocument> documents_ = MakeDocuments(150, 31);
  const std::string all_;
  std::vector<std::unique_ptr<v1::Archive::Stub>> stubs_;
  std::deque<OpenScan> scans_;
};

TEST_F(ServerStreamsTest, StreamsThatNobodyReadsKeepNobodyOut) {
  // Three quarters of the client's half fit 768 of one block each.
  OpenScans(500);
  for (uint64_t offset = 0; offset < 2'000'000; offset += 100'000) {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_range()->set_offset(offset);
    request.mutable_range()->set_size_bytes(50'000);
    grpc::ClientContext context;
    v1::ReadResponse response;
    const grpc::Status status = stub().Read(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.data(), all_.substr(offset, 50'000));
  }
  for (OpenScan& scan : scans_) {
    scan.context.TryCancel();
  }
}

TEST_F(ServerStreamsTest, AllGetToTheirEndInWhateverOrderTheyAreRead) {
  OpenScans(60);
  // All of them a little, some to their end, the others afterwards.
  for (int i = 0; i < 3; ++i) {
    for (OpenScan& scan : scans_) {
      ASSERT_TRUE(scan.Next());
    }
  }
  for (const size_t part : std::initializer_list<size_t>{0, 1}) {
    for (size_t i = part; i < scans_.size(); i += 2) {
      while (scans_[i].Next()) {
      }
      EXPECT_TRUE(scans_[i].reader->Finish().ok());
      EXPECT_TRUE(scans_[i].got == all_) << i;
    }
  }
}

TEST_F(ServerStreamsTest, BatchesThatNobodyReadsLeaveRoomForOthers) {
  constexpr int kItems = 400;
  v1::BatchReadRequest request;
  request.set_archive("docs");
  for (uint64_t tag = 0; tag < kItems; ++tag) {
    v1::BatchItem* item = request.add_items();
    item->set_tag(tag);
    item->mutable_range()->set_offset(tag * 5'000);
    item->mutable_range()->set_size_bytes(4'000);
  }
  std::deque<grpc::ClientContext> contexts;
  std::vector<std::unique_ptr<
      grpc::ClientReaderWriter<v1::BatchReadRequest, v1::BatchReadResponse>>>
      batches;
  for (size_t i = 0; i < 10; ++i) {
    batches.push_back(
        stubs_[i % stubs_.size()]->BatchRead(&contexts.emplace_back()));
    ASSERT_TRUE(batches.back()->Write(request));
    ASSERT_TRUE(batches.back()->WritesDone());
  }
  OpenScans(50);
  for (const auto& batch : batches) {
    std::vector<int> answered(kItems);
    for (v1::BatchReadResponse response; batch->Read(&response);) {
      for (const v1::BatchResult& result : response.results()) {
        EXPECT_EQ(result.data(), all_.substr(result.tag() * 5'000, 4'000));
        ++answered[result.tag()];
      }
    }
    EXPECT_TRUE(batch->Finish().ok());
    EXPECT_EQ(answered, std::vector<int>(kItems, 1));
  }
  for (OpenScan& scan : scans_) {
    scan.context.TryCancel();
  }
}

}  // namespace
}  // namespace quire
