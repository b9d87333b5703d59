// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/grpc_front.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/impl/server_builder_plugin.h"

#include "server/service/listen/listen_address.h"
#include "server/service/reflection/reflected_types.h"

#include "grpc/grpc.h"

namespace quire {
namespace {

constexpr char kServiceName[] = "quire.v1.Archive";
// Requests are small; our client closes a batch message at 1 MiB.
constexpr int kRequestSizeBytesMax = 2 << 20;
// Threads of gRPC that wait for a call each. Only reflection uses them; calls
// over the limit get RESOURCE_EXHAUSTED.
constexpr int kBlockingThreadsMax = 4;
// An idle connection is closed after this time.
constexpr int kConnectionIdleMsMax = 10 * 60 * 1000;
constexpr int kStreamsPerConnectionMax = 256;
// A peer that vanished silently is detected after this time.
constexpr int kKeepaliveMs = 60 * 1000;
constexpr int kKeepaliveTimeoutMs = 20 * 1000;
// From accepting a connection to the end of TLS and HTTP/2's first frames.
constexpr int kHandshakeMsMax = 20 * 1000;

// Disables reflection, which does not authenticate its clients.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}

  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*
                         plugins) override {
    std::erase_if(*plugins, [](const auto& plugin) {
      return plugin->name() == "proto_server_reflection";
    });
  }
};

std::string HealthName(const std::string& archive) {
  return absl::StrCat(kServiceName, "/", archive);
}

void AddAgeArguments(grpc::ServerBuilder& builder,
                     absl::Duration connection_age) {
  if (connection_age != absl::InfiniteDuration()) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                               static_cast<int>(std::clamp<int64_t>(
                                   absl::ToInt64Milliseconds(connection_age), 1,
                                   std::numeric_limits<int>::max())));
  }
}

}  // namespace

GrpcFront::GrpcFront(Options options, grpc::Service& service,
                     ConnectionTable& connections)
    : options_(std::move(options)),
      service_(service),
      connections_(connections) {}

GrpcFront::~GrpcFront() = default;

absl::Status GrpcFront::Start(
    grpc::ResourceQuota& quota,
    const std::shared_ptr<grpc::ServerCredentials>& credentials,
    const std::vector<std::string>& archives) {
  grpc::EnableDefaultHealthCheckService(true);
  DescribeStandardTypes();
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  if (!options_.is_open_to_all) {
    builder.SetOption(std::make_unique<WithoutReflection>());
  }
  absl::StatusOr<std::unique_ptr<ConnectionListener>> listener =
      ConnectionListener::Open(options_.listen_address, connections_);
  if (!listener.ok()) {
    return CannotListen(listener.status().message());
  }
  listener_ = *std::move(listener);
  listener_->Prepare(builder, credentials);
  builder.RegisterService(&service_);
  builder.SetMaxReceiveMessageSize(kRequestSizeBytesMax);
  // gRPC ends connections without calls, then calls, if connections and
  // partly received requests take more than this. Requests that arrive
  // meanwhile come on top.
  builder.SetResourceQuota(quota.SetMaxThreads(kBlockingThreadsMax));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             kHandshakeMsMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             kConnectionIdleMsMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             kStreamsPerConnectionMax);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             kKeepaliveTimeoutMs);
  // A compressed request could grow without bound when decompressed.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  AddAgeArguments(builder, options_.connection_age);
  // Clients may keep connections without calls alive.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10 * 1000);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return CannotListen("gRPC does not start");
  }
  address_ = WithPort(options_.listen_address, listener_->port());
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus("", false);
  health->SetServingStatus(kServiceName, false);
  for (const std::string& name : archives) {
    SetArchiveHealth(name, false);
  }
  return absl::OkStatus();
}

absl::Status GrpcFront::AcceptClients() {
  const absl::Status begun = listener_->Serve(*server_);
  is_reachable_ = begun.ok();
  return absl::IsFailedPrecondition(begun) ? CannotListen(begun.message())
                                           : begun;
}

void GrpcFront::SetArchiveHealth(const std::string& name, bool is_serving) {
  if (options_.is_open_to_all) {
    server_->GetHealthCheckService()->SetServingStatus(HealthName(name),
                                                       is_serving);
  }
}

void GrpcFront::SetServing() {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus(kServiceName, true);
  health->SetServingStatus("", true);
}

void GrpcFront::EndHealth() {
  server_->GetHealthCheckService()->Shutdown();
}

void GrpcFront::EndCalls(absl::Duration timeout) {
  server_->Shutdown(absl::ToChronoTime(absl::Now() + timeout));
  server_->Wait();
}

void GrpcFront::CancelCalls() {
  grpc_server_cancel_all_calls(server_->c_server());
}

absl::Status GrpcFront::CannotListen(absl::string_view why) const {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot listen on ", options_.listen_address, ": ", why,
                   "; choose another address with --listen"));
}

}  // namespace quire
