// SPDX-License-Identifier: GPL-3.0-or-later
//
// Options of a server, and those that may change while it runs.
#ifndef QUIRE_SERVER_SERVICE_SERVER_OPTIONS_H_
#define QUIRE_SERVER_SERVICE_SERVER_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "server/service/base/log_line.h"
#include "server/service/catalog/catalog.h"
#include "server/service/limits/quota.h"
#include "server/service/logging/call_log.h"
#include "server/service/scrub/scrub_state.h"
#include "server/service/security/tls_files.h"
#include "server/storage/block_store.h"
#include "server/storage/remote/remote_store.h"

namespace quire {

struct ServerOptions {
  std::vector<ArchiveArgument> archives;
  // Directory in which Reload() may find more archives; the present ones are in
  // `archives`, which may then be empty. Memory is reserved for more. Empty: no
  // directory.
  std::string archives_directory;
  // File whose archives are in `archives` with `is_listed`, for messages; it
  // may have none. Empty: no such file.
  std::string archives_list;
  // For archives with a URL: their object store and its local copies. Unset:
  // such archives are refused.
  std::optional<RemoteStoreOptions> store;
  // Skip archives that cannot be opened, with a line in the log, if at least
  // one can. Reload() retries them. Listed ones are retried on use.
  bool skip_broken = false;
  // "HOST:PORT" or "unix:PATH"; port 0 selects a free port. Not encrypted
  // without `tls`.
  std::string listen_address = "127.0.0.1:7420";
  // Refuse connections until OpenArchives() has opened the archives, for
  // proxies that learn from nothing else that a server is not ready.
  bool listen_when_open = false;
  // For HOST:PORT only. The files are checked periodically and on Reload().
  TlsFiles tls;
  absl::Duration tls_check_interval = absl::Seconds(10);
  // File of access rules (access_rules.h), read again on Reload(). Empty:
  // everyone may do everything. With rules, health covers only the whole
  // server, and there is no reflection.
  std::string access_path;
  // File of withdrawn documents (withdrawal_file.h), read again on Reload().
  // Empty: none.
  std::string withdrawn_path;
  // Periodic check of all blocks.
  ScrubOptions scrub;
  // Quota of each identity without one in its rules, or of each address if
  // there are no rules.
  Quota default_quota;
  // "HOST:PORT" for Prometheus and probes (admin_server.h); empty: neither.
  std::string metrics_address;
  // Memory limit of the process; unset: the archives' need and a working cache.
  std::optional<uint64_t> memory_bytes;
  // A client that takes no part of its answer for this time loses the call.
  absl::Duration stall_limit = absl::Seconds(60);
  // A connection without a call since it was accepted is closed after this.
  absl::Duration silence_limit = absl::Minutes(2);
  // A connection of this age, varied by a tenth, gets no new calls: its client
  // reconnects, perhaps to another server; its calls in flight continue.
  // Infinite: never. At least one millisecond.
  absl::Duration connection_age = absl::InfiniteDuration();
  // Affects performance.
  BlockStoreOptions::Engine engine = BlockStoreOptions::Engine::kAuto;
  uint32_t device_depth = 32;
  // Mode of reading blocks past the page cache.
  DirectIo direct_io = DirectIo::kOff;
  // Kind of all drives; unset: the kernel's answer for each.
  std::optional<DriveKind> drive;
  // See BlockStoreOptions::device_model.
  std::string device_model;
  // True if the program is to end, checked periodically while the server waits
  // for an object store before it listens; may be empty.
  std::function<bool()> is_stop_wanted;
  // Called when an object of a remote archive is another one than at its
  // opening: the archive should be checked soon. On a thread of the store,
  // which it must not block; may be empty.
  std::function<void()> check_archives;
  // Receives each damaged block found; may be empty.
  DamageReporter report_damage;
  // Receives lines for the log about events outside of calls; may be empty.
  // Called on any thread.
  LogSink log = DropLogLine;
  // Its `log` is the one above.
  CallLogOptions call_log;
  // For tests: called with the name of each archive before it is opened, on the
  // thread that opens it; may be empty.
  std::function<void(const std::string&)> before_opening;
};

// All settings that may change while the server runs.
struct ServerChanges {
  std::vector<ArchiveArgument> archives;
  // Names of archives that stay unchanged, without a check of their files.
  std::vector<std::string> kept_archives = {};
  Quota default_quota;
  // False if the user's configuration is unusable and these are the earlier
  // values.
  bool is_wanted = true;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SERVER_OPTIONS_H_
