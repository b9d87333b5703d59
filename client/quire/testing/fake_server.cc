// SPDX-License-Identifier: Apache-2.0
#include "client/quire/testing/fake_server.h"

#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

#include "client/quire/testing/fake_service.h"

namespace quire {

FakeServer::FakeServer() = default;

std::unique_ptr<FakeServer> FakeServer::Start(
    const FakeSettings& settings,
    const std::map<std::string, FakeArchive>& archives) {
  std::unique_ptr<FakeServer> fake(new FakeServer());
  fake->service_ = std::make_unique<Service>(settings, archives);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(settings.listen, grpc::InsecureServerCredentials(),
                           &port);
  // Two servers on one port would share its calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.RegisterService(fake->service_.get());
  fake->server_ = builder.BuildAndStart();
  if (fake->server_ == nullptr) {
    return nullptr;
  }
  fake->address_ = absl::StartsWith(settings.listen, "unix:")
                       ? settings.listen
                       : absl::StrCat("127.0.0.1:", port);
  return fake;
}

FakeServer::~FakeServer() {
  if (server_ != nullptr) {
    service_->Release();
    server_->Shutdown(std::chrono::system_clock::now());
  }
}

void FakeServer::SetFaults(const FakeFaults& faults) {
  service_->SetFaults(faults);
}

void FakeServer::Reload(const std::map<std::string, FakeArchive>& archives) {
  service_->Reload(archives);
}

void FakeServer::Release() {
  service_->Release();
}

int FakeServer::CallCount(const std::string& method) const {
  return service_->CallCount(method);
}

int FakeServer::LargestBatchMessage() const {
  return service_->LargestBatchMessage();
}

std::vector<std::string> FakeServer::TraceParents() const {
  return service_->TraceParents();
}

std::vector<std::string> FakeServer::Attempts() const {
  return service_->Attempts();
}

std::vector<std::string> FakeServer::ArchiveHeaders() const {
  return service_->ArchiveHeaders();
}

}  // namespace quire
