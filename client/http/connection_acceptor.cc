// SPDX-License-Identifier: Apache-2.0
#include "client/http/connection_acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Between two calls of on_sweep.
constexpr std::chrono::milliseconds kSweepInterval(100);
// After the system had no descriptor for a connection.
constexpr std::chrono::milliseconds kAcceptPause(100);

}  // namespace

ConnectionAcceptor::~ConnectionAcceptor() {
  Stop();
  if (wake_fd_ >= 0) {
    close(wake_fd_);
  }
}

absl::Status ConnectionAcceptor::Open(const std::string& listen_address,
                                      const std::string& admin_address,
                                      bool accepts_remote) {
  QUIRE_ASSIGN_OR_RETURN(ListenSockets sockets,
                         ListenSockets::Open(listen_address));
  if (!sockets.is_local() && !accepts_remote) {
    return absl::InvalidArgumentError(absl::StrCat(
        listen_address,
        " can be reached from other machines, and HTTP does not encrypt; "
        "listen on 127.0.0.1 or a unix socket, or use --behind-tls if only a "
        "proxy with TLS can connect"));
  }
  listening_.push_back(std::move(sockets));
  if (!admin_address.empty()) {
    QUIRE_ASSIGN_OR_RETURN(ListenSockets admin,
                           ListenSockets::Open(admin_address));
    listening_.push_back(std::move(admin));
  }
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return wake_fd_ < 0
             ? absl::ResourceExhaustedError("the system gives no descriptor")
             : absl::OkStatus();
}

absl::Status ConnectionAcceptor::Start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  try {
    thread_ = std::thread(&ConnectionAcceptor::Run, this);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system gives no thread: ", error.what()));
  }
  return absl::OkStatus();
}

void ConnectionAcceptor::Drain() {
  is_draining_ = true;
  eventfd_write(wake_fd_, 1);
}

void ConnectionAcceptor::Stop() {
  stops_ = true;
  if (wake_fd_ >= 0) {
    eventfd_write(wake_fd_, 1);
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void ConnectionAcceptor::Run() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point next_sweep = Clock::now() + kSweepInterval;
  while (!stops_) {
    // Before connections are closed: clients that connect again go elsewhere.
    const bool is_draining = is_draining_;
    if (is_draining) {
      // Probes are answered until the end.
      listening_[0].Close();
    }
    std::vector<pollfd> polled = {{wake_fd_, POLLIN, 0}};
    std::vector<bool> is_admin = {false};
    for (size_t i = 0; i < listening_.size(); ++i) {
      for (const int fd : listening_[i].fds()) {
        polled.push_back({fd, POLLIN, 0});
        is_admin.push_back(i == 1);
      }
    }
    poll(polled.data(), polled.size(),
         static_cast<int>(kSweepInterval.count()));
    eventfd_t count = 0;
    eventfd_read(wake_fd_, &count);
    for (size_t i = 1; i < polled.size(); ++i) {
      if ((polled[i].revents & POLLIN) != 0) {
        AcceptAll(polled[i].fd, is_admin[i]);
      }
    }
    if (Clock::now() >= next_sweep || is_draining) {
      callbacks_.on_sweep(is_draining);
      next_sweep = Clock::now() + kSweepInterval;
    }
  }
}

void ConnectionAcceptor::AcceptAll(int fd, bool is_admin) {
  constexpr int kAcceptedMax = 64;
  for (int i = 0; i < kAcceptedMax; ++i) {
    AcceptedSocket socket = {.is_admin = is_admin};
    socket.address_size = sizeof(socket.address);
    socket.fd = accept4(fd, reinterpret_cast<sockaddr*>(&socket.address),
                        &socket.address_size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket.fd >= 0) {
      callbacks_.on_accept(socket);
      continue;
    }
    // Without a descriptor the listening socket stays readable: wait, so as not
    // to spin.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
        errno == ENOMEM) {
      std::this_thread::sleep_for(kAcceptPause);
    }
    return;
  }
}

}  // namespace quire
