// SPDX-License-Identifier: Apache-2.0
//
// A private server for `quire --archive PATH`, shared with all processes of the
// user that open the same archive, also by open() of the Python package, whose
// quire_archive/private_server.py is the same in Python.
// server/commands/private_clients.h describes how they share it.
#ifndef QUIRE_CLIENT_CLI_PRIVATE_SERVER_H_
#define QUIRE_CLIENT_CLI_PRIVATE_SERVER_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

#include "codecs/base/unique_fd.h"

namespace quire {

// A share of a server, which ends with its last share. Movable.
// Thread-compatible.
class PrivateServer {
 public:
  // Joins the server of an archive, a directory or a URL of a store, or starts
  // it. Blocks until it answers.
  // Errors: InvalidArgument     quired refuses its command line.
  //         FailedPrecondition  there is no quired, or it failed, with its
  //                             message; or no directory for a socket.
  // REQUIRES: no other thread has been started.
  static absl::StatusOr<PrivateServer> Join(const std::string& archive);

  // Address for a client.
  const std::string& address() const { return address_; }

  // Name of the archive on the server.
  const std::string& archive_name() const { return archive_name_; }

 private:
  PrivateServer(std::string address, std::string archive_name, UniqueFd share)
      : address_(std::move(address)),
        archive_name_(std::move(archive_name)),
        share_(std::move(share)) {}

  std::string address_;
  std::string archive_name_;
  // The FIFO DIR/clients, open for writing.
  UniqueFd share_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_PRIVATE_SERVER_H_
