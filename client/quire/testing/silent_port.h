// SPDX-License-Identifier: Apache-2.0
//
// A port on which nothing listens; for tests.
#ifndef QUIRE_CLIENT_QUIRE_TESTING_SILENT_PORT_H_
#define QUIRE_CLIENT_QUIRE_TESTING_SILENT_PORT_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace quire {

// A loopback port that refuses connections. Reserved while this object exists,
// unlike a port that a server has just released. Thread-compatible.
class SilentPort {
 public:
  SilentPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    // Bound, but not listening.
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size),
              0);
    number_ = std::to_string(ntohs(address.sin_port));
  }

  ~SilentPort() { close(fd_); }

  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  // For example "40123".
  const std::string& number() const { return number_; }

  // For example "127.0.0.1:40123".
  std::string address() const { return "127.0.0.1:" + number_; }

 private:
  const int fd_;
  std::string number_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_TESTING_SILENT_PORT_H_
