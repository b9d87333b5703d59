// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests the rate limits of one client across its connections, and that others
// do not suffer.
#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

#include "server/service/security/access_rules.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/sanitized.h"

namespace quire {
namespace {

constexpr char kArchive[] = "docs";

// Returns a stub that shares no connection.
std::unique_ptr<v1::Archive::Stub> NewConnection(const Server& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::Archive::NewStub(grpc::CreateCustomChannel(
      server.address(), grpc::InsecureChannelCredentials(), arguments));
}

class ServerQuotaTest : public ServerTest {
 protected:
  static void Identify(const std::string& id, grpc::ClientContext& context) {
    context.AddMetadata("authorization",
                        absl::StrCat("Bearer ", id, ".secret"));
  }

  // Rules for an identity with Identify(); `quota` begins with a blank.
  static std::string LineOf(const std::string& id, const std::string& quota) {
    const Sha256 digest = Sha256Of("secret");
    return absl::StrCat(
        "token ", id, " sha256=",
        absl::BytesToHexString(
            {reinterpret_cast<const char*>(digest.data()), digest.size()}),
        " archives=* rights=read", quota, "\n");
  }

  // A short read by the client with that token.
  static grpc::Status Read(v1::Archive::Stub& stub, const std::string& id) {
    grpc::ClientContext context;
    Identify(id, context);
    v1::ReadRequest request;
    request.set_archive(kArchive);
    request.mutable_range()->set_size_bytes(100);
    v1::ReadResponse response;
    return stub.Read(&context, request, &response);
  }
};

TEST_F(ServerQuotaTest, OneWithManyConnectionsTakesNothingFromOthers) {
  constexpr int kConnections = 25;
  constexpr int kCallsPerSecond = 20;
  constexpr int kHonestCalls = 100;
  // Many more calls than it may make.
  constexpr int kRefusedMin = Fewer(1'000);
  std::ofstream(directory() + "/access")
      << LineOf("greedy", absl::StrCat(" calls=", kCallsPerSecond))
      << LineOf("honest", absl::StrCat(" calls=", kHonestCalls));
  WriteArchive(archive_path(), MakeDocuments(10, 1));
  ServerOptions options;
  options.access_path = directory() + "/access";
  StartServer(options);
  std::atomic<bool> honest_ended{false};
  std::atomic<int> served{0};
  std::atomic<int> refused{0};
  std::atomic<int> failed{0};
  const absl::Time began = absl::Now();
  {
    std::vector<std::jthread> greedy;
    greedy.reserve(kConnections);
    for (int i = 0; i < kConnections; ++i) {
      greedy.emplace_back([&] {
        const auto connection = NewConnection(server());
        while (!honest_ended || refused < kRefusedMin) {
          const grpc::Status status = Read(*connection, "greedy");
          ++(status.ok()                            ? served
             : ReasonIn(status) == "QUOTA_EXCEEDED" ? refused
                                                    : failed);
        }
      });
    }
    const auto connection = NewConnection(server());
    for (int i = 0; i < kHonestCalls; ++i) {
      const grpc::Status status = Read(*connection, "honest");
      EXPECT_TRUE(status.ok()) << status.error_message();
    }
    honest_ended = true;
  }
  // The quota of the elapsed time, and one saved second.
  const double seconds = absl::ToDoubleSeconds(absl::Now() - began);
  EXPECT_LE(served, kCallsPerSecond * (seconds + 1) + 1);
  EXPECT_GE(served, 1);
  EXPECT_EQ(failed, 0);
}

TEST_F(ServerQuotaTest, WithoutIdentitiesAQuotaIsOfAnAddress) {
  WriteArchive(archive_path(), MakeDocuments(10, 1));
  ServerOptions options;
  options.default_quota.streams = 1;
  StartServer(options);
  grpc::ClientContext first_context;
  auto first = stub().BatchRead(&first_context);
  v1::BatchReadRequest request;
  request.set_archive(kArchive);
  request.add_items()->mutable_range()->set_size_bytes(10);
  v1::BatchReadResponse response;
  ASSERT_TRUE(first->Write(request));
  ASSERT_TRUE(first->Read(&response));
  const auto other_connection = NewConnection(server());
  grpc::ClientContext second_context;
  auto second = other_connection->BatchRead(&second_context);
  EXPECT_FALSE(second->Read(&response));
  EXPECT_EQ(ReasonIn(second->Finish()), "QUOTA_EXCEEDED");
  first->WritesDone();
  EXPECT_TRUE(first->Finish().ok());
}

TEST_F(ServerQuotaTest, AnIdentityKeepsTheDefaultsThatItsLineDoesNotSet) {
  std::ofstream(directory() + "/access")
      << LineOf("bounded", " bytes=1GiB") << LineOf("free", " streams=none");
  WriteArchive(archive_path(), MakeDocuments(10, 1));
  ServerOptions options;
  options.access_path = directory() + "/access";
  options.default_quota.streams = 1;
  StartServer(options);
  v1::BatchReadRequest request;
  request.set_archive(kArchive);
  request.add_items()->mutable_range()->set_size_bytes(10);
  v1::BatchReadResponse response;
  for (const bool is_free : {false, true}) {
    grpc::ClientContext first_context;
    Identify(is_free ? "free" : "bounded", first_context);
    const auto first = stub().BatchRead(&first_context);
    ASSERT_TRUE(first->Write(request));
    ASSERT_TRUE(first->Read(&response));
    grpc::ClientContext second_context;
    Identify(is_free ? "free" : "bounded", second_context);
    const auto second = stub().BatchRead(&second_context);
    second->WritesDone();
    EXPECT_EQ(ReasonIn(second->Finish()), is_free ? "" : "QUOTA_EXCEEDED");
    first->WritesDone();
    EXPECT_TRUE(first->Finish().ok());
  }
}

TEST_F(ServerQuotaTest, ListsAndDescriptionsCountAsBytes) {
  WriteArchive(archive_path(), MakeDocuments(10, 1));
  const auto ask = [this](auto method, auto request, auto response) {
    request.set_archive(kArchive);
    ServerOptions options;
    // An answer is paid for over minutes.
    options.default_quota.bytes_per_second = 1;
    StartServer(options);
    for (const bool is_first : {true, false}) {
      grpc::ClientContext context;
      const grpc::Status status =
          (stub().*method)(&context, request, &response);
      EXPECT_EQ(ReasonIn(status), is_first ? "" : "QUOTA_EXCEEDED");
      if (is_first) {
        EXPECT_TRUE(status.ok()) << status.error_message();
        EXPECT_GT(response.ByteSizeLong(), 100U);
      }
    }
    StopServer();
  };
  ask(&v1::Archive::Stub::ListDocuments, v1::ListDocumentsRequest(),
      v1::ListDocumentsResponse());
  ask(&v1::Archive::Stub::GetArchive, v1::GetArchiveRequest(),
      v1::GetArchiveResponse());
}

TEST_F(ServerQuotaTest, EndsAStreamThatReadsMoreThanItMay) {
  // Many times the amount that the quota allows at once.
  WriteArchive(archive_path(), MakeDocuments(400, 1));
  ServerOptions options;
  options.default_quota.bytes_per_second = 1'000;
  StartServer(options);
  grpc::ClientContext context;
  v1::ScanRequest request;
  request.set_archive(kArchive);
  const auto stream = stub().Scan(&context, request);
  v1::ScanResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(ReasonIn(stream->Finish()), "QUOTA_EXCEEDED");
}

}  // namespace
}  // namespace quire
