// SPDX-License-Identifier: GPL-3.0-or-later
//
// The server as a whole: archives, storage, gRPC services, metrics.
#ifndef QUIRE_SERVER_SERVICE_SERVER_H_
#define QUIRE_SERVER_SERVICE_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "server/service/base/log_line.h"
#include "server/service/server_options.h"

namespace quire {

// How many of the archives are open.
struct OpeningProgress {
  size_t open_count = 0;
  size_t archive_count = 0;
};

// Thread-safe.
class Server {
 public:
  // Looks at the archives and listens: it answers calls, but those for archives
  // get UNAVAILABLE (ARCHIVE_OPENING) until OpenArchives() has opened them.
  // Blocks on a little I/O for each archive.
  // Errors: InvalidArgument     two archives of one name, or none at all and no
  //                             directory of archives.
  //         FailedPrecondition  the memory does not suffice, an address is in
  //                             use or malformed, the engine does not work, the
  //                             certificate, its key or the rules of access
  //                             are of no use.
  //         those of Archive::Open(), with the path of each archive that fails.
  static absl::StatusOr<std::unique_ptr<Server>> Listen(
      const ServerOptions& options);

  // All that would keep Listen() from listening with these options, in the
  // order in which it looks, but for addresses that are in use, the engine and
  // the access log. Warnings go to options.say. Blocks on a little I/O for each
  // archive.
  static std::vector<absl::Status> Check(const ServerOptions& options);

  // Listen() and OpenArchives().
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerOptions& options);

  // Ends what Shutdown() has not.
  virtual ~Server() = default;

  // Where it listens, with the port it got: "127.0.0.1:7420".
  virtual const std::string& address() const = 0;
  // Empty if there are no metrics.
  virtual const std::string& metrics_address() const = 0;
  // Opens all archives, several at a time, and serves each as soon as it is
  // open (health SERVING; of the server, when all are). To be called once.
  // Blocks on I/O. Errors: those of Archive::Open(), with the path of each
  // archive that fails; the others are open and served then. Cancelled
  // Shutdown() was called.
  virtual absl::Status OpenArchives() = 0;

  virtual OpeningProgress opening_progress() const = 0;

  // What it holds in RAM and in what it reads, for the log.
  virtual std::string Description() const = 0;

  // Applies new rules of access, certificate and quota, and reopens the access
  // log. After that, as it may take long, removes archives that are not among
  // `changes`, opens those that are new there, and those whose files have
  // changed, which replace the old ones. Calls in flight keep what they started
  // with, but their rights are checked again. What cannot
  // be opened, or does not fit, stays as it was. Returns what happened, in
  // lines for the log; blocks on I/O.
  virtual std::vector<LogLine> Reload(const ServerChanges& changes) = 0;

  // Calls `answered`, on another thread, when the server has answered a call to
  // itself that came by the socket that clients come by; never if it does not,
  // or was shut down. What `answered` refers to must last as long as the
  // process.
  virtual void CheckAlive(std::function<void()> answered) = 0;

  // Tells load balancers and probes to send no clients here (health
  // NOT_SERVING, not ready), and goes on answering. Cannot be undone. Returns
  // at once. REQUIRES: OpenArchives() has returned.
  virtual void Withdraw() = 0;

  // Lets OpenArchives() and Reload() end early and waits for that; then refuses
  // new calls (UNAVAILABLE, DRAINING; health NOT_SERVING), waits for
  // those under way until `timeout` has passed, then cancels them.
  virtual void Shutdown(absl::Duration timeout) = 0;

  // Ends the wait of Shutdown(), which another thread is in or will call: the
  // calls under way are cancelled.
  virtual void EndDrain() = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SERVER_H_
