// SPDX-License-Identifier: GPL-3.0-or-later
//
// The server as a whole: archives, storage, gRPC services, metrics.
#ifndef QUIRE_SERVER_SERVICE_SERVER_H_
#define QUIRE_SERVER_SERVICE_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "server/service/base/log_line.h"
#include "server/service/catalog/catalog.h"
#include "server/service/limits/memory_plan.h"
#include "server/service/limits/quota.h"
#include "server/service/logging/call_log.h"
#include "server/service/security/tls_files.h"
#include "server/storage/block_store.h"

namespace quire {

struct ServerOptions {
  std::vector<ArchiveArgument> archives;
  // Where archives are that Reload() may add; they are among the above already.
  // Then there may be none at the start, and memory is kept for more. Empty:
  // there is no such place.
  std::string archives_directory;
  // Archives that cannot be opened are left out, with a line in the log, as
  // long as there is one that can; they are tried again on Reload().
  bool skip_broken = false;
  // "HOST:PORT" or "unix:PATH"; port 0 takes a free one. Not encrypted without
  // `tls`.
  std::string listen_address = "127.0.0.1:7420";
  // For HOST:PORT alone. The files are looked at again from time to time, and
  // on Reload().
  TlsFiles tls;
  absl::Duration tls_check_interval = absl::Seconds(10);
  // A file of rules as access_rules.h has them; read again on Reload(). Empty:
  // everyone may do everything. With it health is of the server alone, and
  // there is no reflection.
  std::string access_path;
  // Of each identity whose rules have none, or of each address where there are
  // no rules.
  Quota default_quota;
  // "HOST:PORT" for Prometheus and probes (admin_server.h); empty: neither.
  std::string metrics_address;
  // Bounds the process; unset: what the archives need and a working cache.
  std::optional<uint64_t> memory_bytes;
  // A client that takes nothing of its answer for so long loses the call.
  absl::Duration stall_limit = absl::Seconds(60);
  // A connection that has had no call since it was accepted is closed after so
  // long.
  absl::Duration silence_limit = absl::Minutes(2);
  // A connection of this age, varied by a tenth, gets no new calls: its client
  // connects anew, perhaps to another server. Infinite: never. At least a
  // millisecond, as the next.
  absl::Duration connection_age = absl::InfiniteDuration();
  // Calls of such a connection are cancelled after this.
  absl::Duration connection_age_grace = absl::InfiniteDuration();
  // Affects performance.
  CacheForm cache_form = CacheForm::kIdentity;
  RangeDecode range_decode = RangeDecode::kAuto;
  uint32_t decode_threads = 0;
  BlockStoreOptions::Engine engine = BlockStoreOptions::Engine::kAuto;
  uint32_t device_depth = 32;
  // Whether blocks are read past the page cache.
  DirectIo direct_io = DirectIo::kOff;
  // What all drives are; unset: what the kernel says of each.
  std::optional<DriveKind> drive;
  // As BlockStoreOptions::device_model.
  std::string device_model;
  // Told of each damaged block that is met; may be empty.
  DamageReporter report_damage;
  // Gets lines for the log about what happens outside of calls; may be empty.
  // Called on any thread.
  SayLine say;
  // Its `say` is the one above.
  CallLogOptions call_log;
  // For tests: called with the name of each archive before it is opened, on the
  // thread that opens it; may be empty.
  std::function<void(const std::string&)> before_opening;
};

// What may change while the server runs, all of it.
struct ServerChanges {
  std::vector<ArchiveArgument> archives;
  // Names of archives that stay as they are, without a look at their files.
  std::vector<std::string> kept_archives = {};
  Quota default_quota;
  // Whether this is what the user wants: not if his configuration is of no use
  // and these are the values from before.
  bool is_wanted = true;
};

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
