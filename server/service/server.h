// SPDX-License-Identifier: GPL-3.0-or-later
//
// The whole server: archives, storage, gRPC services, metrics.
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

// Number of open archives.
struct OpeningProgress {
  size_t open_count = 0;
  size_t archive_count = 0;
  // Clients can connect.
  bool is_reachable = false;
};

// Thread-safe.
class Server {
 public:
  // Checks the archives and listens. The server answers calls, but calls for
  // archives get UNAVAILABLE (ARCHIVE_OPENING) until OpenArchives() has opened
  // them. With `listen_when_open` it only binds its address. Blocks on a little
  // I/O for each archive.
  // Errors: InvalidArgument     two archives of one name, or none at all and no
  //                             directory of archives.
  //         FailedPrecondition  too little memory, an address that is in use or
  //                             malformed, a failing engine, an unusable
  //                             certificate, key or file of access rules.
  //         those of Archive::Open(), with the path of each archive that fails.
  static absl::StatusOr<std::unique_ptr<Server>> Listen(
      const ServerOptions& options);

  // Returns all errors that Listen() would find in these options, in its order,
  // except addresses in use, the engine and the access log. Warnings go to
  // options.log. Blocks on a little I/O for each archive.
  static std::vector<absl::Status> Check(const ServerOptions& options);

  // Calls Listen() and OpenArchives().
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerOptions& options);

  // Shuts down at once if Shutdown() has not.
  virtual ~Server() = default;

  // Returns the address with the actual port: "127.0.0.1:7420".
  virtual const std::string& address() const = 0;
  // Empty if there are no metrics.
  virtual const std::string& metrics_address() const = 0;
  // Opens all archives, several at a time, and serves each as soon as it is
  // open (health SERVING; for the whole server when all are). Call once. Blocks
  // on I/O.
  // Errors: those of Archive::Open(), with the path of each archive that fails;
  //         the others are then open and served.
  //         Cancelled           Shutdown() was called.
  //         FailedPrecondition  with `listen_when_open`: another process
  //                             listens on the address since.
  virtual absl::Status OpenArchives() = 0;

  virtual OpeningProgress opening_progress() const = 0;

  // Returns the contents of memory and the method of reading, for the log.
  virtual std::string Description() const = 0;

  // Applies new rules of access, certificate and quota, and reopens the access
  // log. Then, as it may take long, removes archives that are not in `changes`,
  // opens new ones, and replaces those whose files have changed. Calls in
  // flight keep their archives, but their rights are checked again. An archive
  // that cannot be opened or does not fit stays unchanged. Returns lines for
  // the log; blocks on I/O.
  virtual std::vector<LogLine> Reload(const ServerChanges& changes) = 0;

  // Reload() of those of `archives` whose MANIFEST is another file than the one
  // that was opened, and of those that are not open; all other archives, files
  // and settings stay. Returns lines about changes and failures.
  virtual std::vector<LogLine> ReloadGrown(
      const std::vector<ArchiveArgument>& archives) = 0;

  // True if RetryUnconfirmed() may have something to do.
  virtual bool HasUnconfirmed() const = 0;

  // Reload() of those of `archives` in object stores that are served from local
  // copies which their stores did not confirm, and of those that could not be
  // opened; all others stay. Returns lines about changes and failures.
  virtual std::vector<LogLine> RetryUnconfirmed(
      const std::vector<ArchiveArgument>& archives) = 0;

  // Calls `answered`, on another thread, once the server has answered a call to
  // itself through the clients' socket; never if it does not answer or was shut
  // down. Objects that `answered` refers to must live as long as the process.
  virtual void CheckAlive(std::function<void()> answered) = 0;

  // Tells load balancers and probes to send no clients here (health
  // NOT_SERVING, not ready), and continues to answer. Cannot be undone. Returns
  // at once. REQUIRES: OpenArchives() has returned.
  virtual void AnnounceShutdown() = 0;

  // Makes OpenArchives() and Reload() end early and waits for that. Then
  // refuses new calls (UNAVAILABLE, DRAINING; health NOT_SERVING), waits for
  // calls in flight until `timeout` has passed, and cancels the rest.
  virtual void Shutdown(absl::Duration timeout) = 0;

  // Ends the wait of Shutdown(), which another thread is in or will call: calls
  // in flight are cancelled.
  virtual void EndDrain() = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SERVER_H_
