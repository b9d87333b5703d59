// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a server is started with, and what may change while it runs.
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

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SERVER_OPTIONS_H_
