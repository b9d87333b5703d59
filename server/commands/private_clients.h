// SPDX-License-Identifier: GPL-3.0-or-later
//
// The processes that share a private server, `quired serve --private DIR`: it
// starts in the background and ends with the last of them, however that ends.
//
// DIR has the mode 0700. The flock of DIR/lock orders starts, joins and the
// end. A client
//   1. creates DIR and DIR/lock, locks it, and begins again if it was removed;
//   2. creates the FIFO DIR/clients, and opens it for writing without blocking;
//   3. if that fails with ENXIO, as no server reads it: opens it for reading,
//      then for writing, and runs quired with DIR/lock as its standard input.
//      quired keeps the lock by it, and exits with 0 once the server answers,
//      else with the server's messages and exit code;
//   4. unlocks DIR/lock, keeps the FIFO open for writing, and calls
//      unix:DIR/socket.
// The server ends when the FIFO has no writer, and holds the lock from before
// its last look until it has removed DIR: no client can join an ending server.
// Clients that another one forked share its descriptor of the FIFO.
#ifndef QUIRE_SERVER_COMMANDS_PRIVATE_CLIENTS_H_
#define QUIRE_SERVER_COMMANDS_PRIVATE_CLIENTS_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/unique_fd.h"

namespace quire {

// Thread-compatible; AreGone() is thread-safe.
class PrivateClients {
 public:
  // Opens DIR, its FIFO, its lock, and DIR/log for messages after the start.
  // Errors: InvalidArgument     DIR is not a directory of this user alone.
  //         FailedPrecondition  no process has the FIFO open for writing.
  //         as ErrnoStatus()
  static absl::StatusOr<std::unique_ptr<PrivateClients>> Open(
      const std::string& directory);

  // Removes DIR unless a client has the FIFO open or holds the lock.
  ~PrivateClients();

  PrivateClients(const PrivateClients&) = delete;
  PrivateClients& operator=(const PrivateClients&) = delete;

  // "unix:DIR/socket".
  std::string listen_address() const;

  // Continues in a child process of its own session. Returns nothing there. In
  // the caller's process, waits until the child has called NoteReady() or has
  // ended, and returns the exit code: 0 or the child's.
  // REQUIRES: no other thread has been started.
  // Errors: Unavailable  the system has no more processes or descriptors.
  absl::StatusOr<std::optional<int>> Detach();

  // Reports that the server answers, and sends further messages of standard
  // error to DIR/log. REQUIRES: Detach() has returned in this process.
  void NoteReady();

  // The FIFO, for poll(): POLLHUP, which needs no request, while it has no
  // writer.
  int fd() const { return clients_.get(); }

  // True if the FIFO has no writer: another may still come.
  bool AreGone() const;

  // Takes the lock and looks again. With kGone the lock is kept to the end.
  enum class LastLook { kGone, kJoined, kLocked };
  LastLook Look();

 private:
  explicit PrivateClients(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  UniqueFd directory_;
  UniqueFd lock_;
  UniqueFd clients_;
  UniqueFd log_;
  // Written to by NoteReady().
  UniqueFd ready_;
  bool is_locked_ = false;
  // False in the process that only waits for the server.
  bool is_server_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_PRIVATE_CLIENTS_H_
