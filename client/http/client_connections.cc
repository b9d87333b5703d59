// SPDX-License-Identifier: Apache-2.0
#include "client/http/client_connections.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

void SendRefusal(int fd, Refusal refusal) {
  const std::string text = absl::StrCat(
      "HTTP/1.1 ",
      refusal == Refusal::kAddressConnections ? "429 Too Many Requests"
                                              : "503 Service Unavailable",
      "\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  static_cast<void>(
      send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace

std::optional<Refusal> ClientConnections::Admit(ClientConnection& connection) {
  if (connection.is_admin) {
    return admin_connection_count_ < kAdminConnectionsMax
               ? std::nullopt
               : std::optional<Refusal>(Refusal::kConnections);
  }
  if (connection_count_ >= limits_.connections_max) {
    return Refusal::kConnections;
  }
  const auto found = address_counts_.find(connection.address);
  if (found != address_counts_.end() &&
      found->second >= limits_.address_connections_max) {
    return Refusal::kAddressConnections;
  }
  if (!connection.charge.TryResize(limits_.size_bytes)) {
    return Refusal::kMemory;
  }
  return std::nullopt;
}

bool ClientConnections::Add(int fd, std::string address, bool is_admin) {
  auto connection = std::make_unique<ClientConnection>();
  connection->fd = fd;
  connection->address = std::move(address);
  connection->is_admin = is_admin;
  connection->charge = MemoryCharge(budget_);
  connection->header_deadline =
      std::chrono::steady_clock::now() +
      absl::ToChronoNanoseconds(limits_.header_timeout);
  MutexLock lock(&mutex_);
  if (const std::optional<Refusal> refusal = Admit(*connection)) {
    metrics_->CountRefusal(*refusal);
    SendRefusal(fd, *refusal);
    close(fd);
    return false;
  }
  if (is_admin) {
    ++admin_connection_count_;
  } else {
    ++connection_count_;
    ++address_counts_[connection->address];
  }
  metrics_->AddConnections(1);
  connections_[fd] = std::move(connection);
  return true;
}

void ClientConnections::Forget(int fd) {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(fd);
  if (found == connections_.end()) {
    return;
  }
  const ClientConnection& connection = *found->second;
  if (connection.is_admin) {
    --admin_connection_count_;
  } else {
    --connection_count_;
    const auto count = address_counts_.find(connection.address);
    if (--count->second == 0) {
      address_counts_.erase(count);
    }
  }
  metrics_->AddConnections(-1);
  connections_.erase(found);
}

ClientConnection* ClientConnections::Find(int fd) {
  MutexLock lock(&mutex_);
  return connections_.at(fd).get();
}

void ClientConnections::BeginRequest(ClientConnection& connection) {
  MutexLock lock(&mutex_);
  connection.has_request = true;
}

void ClientConnections::EndRequest(ClientConnection& connection) {
  MutexLock lock(&mutex_);
  connection.has_request = false;
  connection.header_deadline =
      std::chrono::steady_clock::now() +
      absl::ToChronoNanoseconds(limits_.header_timeout);
}

void ClientConnections::Sweep(bool closes_idle) {
  const auto now = std::chrono::steady_clock::now();
  MutexLock lock(&mutex_);
  for (auto& [fd, connection] : connections_) {
    if (connection->has_request) {
      continue;
    }
    if (closes_idle && !connection->is_admin) {
      shutdown(fd, SHUT_RDWR);
    } else if (now >= connection->header_deadline) {
      metrics_->CountRefusal(Refusal::kHeaderTimeout);
      shutdown(fd, SHUT_RDWR);
      // Once.
      connection->header_deadline =
          std::chrono::steady_clock::time_point::max();
    }
  }
}

void ClientConnections::CutAll() {
  MutexLock lock(&mutex_);
  for (const auto& [fd, connection] : connections_) {
    shutdown(fd, SHUT_RDWR);
  }
}

}  // namespace quire
