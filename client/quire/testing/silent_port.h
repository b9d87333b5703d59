// SPDX-License-Identifier: Apache-2.0
//
// For tests: a place where no one listens.
#ifndef QUIRE_CLIENT_QUIRE_TESTING_SILENT_PORT_H_
#define QUIRE_CLIENT_QUIRE_TESTING_SILENT_PORT_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace quire {

// A port of the loopback that refuses connections. As long as this lives no one
// else gets it, as might happen to one that a server has just given up.
// Thread-compatible.
class SilentPort {
 public:
  SilentPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    // Bound, but not listened to.
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size),
              0);
    number_ = std::to_string(ntohs(address.sin_port));
  }

  ~SilentPort() { close(fd_); }

  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  // Such as "40123".
  const std::string& number() const { return number_; }

  // Such as "127.0.0.1:40123".
  std::string address() const { return "127.0.0.1:" + number_; }

 private:
  const int fd_;
  std::string number_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_TESTING_SILENT_PORT_H_
