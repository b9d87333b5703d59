// SPDX-License-Identifier: GPL-3.0-or-later
//
// Opens archives into the catalog: those wanted always after the start, changed
// ones on a reload, those wanted on use when a call asks for them.
#ifndef QUIRE_SERVER_SERVICE_ARCHIVE_LOADER_H_
#define QUIRE_SERVER_SERVICE_ARCHIVE_LOADER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/service/archive_outlines.h"
#include "server/service/archive_space.h"
#include "server/service/base/log_line.h"
#include "server/service/catalog/catalog.h"
#include "server/service/catalog/remote_archives.h"
#include "server/service/limits/memory_plan.h"
#include "server/service/server_options.h"
#include "server/service/withdrawal_file.h"
#include "server/storage/block_store.h"

namespace quire {

// The archives that a reload examines.
enum class Examined {
  // All those wanted, after others were removed.
  kAll,
  // The same, but an archive whose MANIFEST is the same file counts as
  // unchanged, and those of the list stay.
  kManifests,
  // Those in object stores that are open from a stale copy (RemoteArchives), or
  // wanted always and not open. Others stay, also if they are not wanted.
  kUnconfirmed,
};

// Thread-compatible, except Stop() and OpenOnUse().
class ArchiveLoader {
 public:
  // Adds the planned archives to the catalog.
  // `catalog`, which nothing uses yet, `store`, and `withdrawals` and `remote`,
  // which may be null, must outlive it.
  ArchiveLoader(const ServerOptions& options, const MemoryPlan& plan,
                std::vector<PlannedArchive> planned, Catalog& catalog,
                BlockStore& store, WithdrawalFile* withdrawals,
                RemoteArchives* remote);

  // Called when an archive of that name begins or ceases to be served. May be
  // called on any thread.
  using ServingChanged =
      std::function<void(const std::string& name, bool is_serving)>;

  // Opens all planned archives, several at a time, within the plan's memory for
  // archives, and publishes each when it is open. Those that cannot be opened
  // are added to `broken`, in no order. Blocks on I/O.
  // Errors: Cancelled          Stop() was called.
  //         ResourceExhausted  no memory.
  absl::Status OpenAll(const ServingChanged& changed,
                       std::vector<BrokenArchive>& broken);

  // Serves exactly `wanted` and the archives named in `kept` from now on.
  // Archives in `kept` are not examined. Removes all others, checks `wanted`,
  // and opens those that are new or whose files have changed, one by one. The
  // cache shrinks before an archive is refused for lack of memory, and grows
  // again when there is space. Calls `ended` with the outcome of each change.
  // Returns a line for each archive, or one for many unchanged ones. Blocks on
  // I/O. REQUIRES: the names of `wanted` differ.
  // Unless all are examined, unchanged archives have no line.
  std::vector<LogLine> Reload(const std::vector<ArchiveArgument>& wanted,
                              const std::vector<std::string>& kept,
                              const ServingChanged& changed,
                              const std::function<void(bool)>& ended,
                              Examined examined = Examined::kAll);

  struct Outcome {
    bool is_open = false;
    // Its memory is free when calls that read other archives have ended.
    bool is_waiting = false;
    // Why it cannot be opened, and the time to the next attempt.
    absl::Status reason = absl::OkStatus();
    Catalog::Clock::duration delay{};
  };

  // Opens an archive that a call has asked for, and publishes it. Others are
  // closed if it needs their memory. No effect if no call asks for it any more.
  // Blocks on I/O. Thread-safe, also during a reload.
  // REQUIRES: OpenAll() has returned.
  Outcome OpenOnUse(const std::string& name);

  // Makes the above end soon, now and in future. Thread-safe.
  void Stop();

  // As ArchiveSpace::LendToConnections(). Thread-safe.
  bool LendToConnections(uint64_t bytes) {
    return space_.LendToConnections(bytes);
  }

 private:
  // Brings the indexes of an archive in an object store here, and opens it.
  // Once more if they were damaged, or if the archive was replaced meanwhile.
  absl::StatusOr<std::shared_ptr<ServedArchive>> OpenRemote(
      const ArchiveArgument& argument, ArchiveOpenOptions options,
      const ServedArchive* previous);
  // Adds the drives of an archive to the store.
  absl::Status AddDrives(const ServedArchive& served);
  // Opens an archive without publishing it. `helpers` is as in
  // ArchiveOpenOptions.
  absl::StatusOr<std::shared_ptr<ServedArchive>> OpenOne(
      const Catalog::Opening& opening, OpeningHelpers* helpers);
  // Publishes an archive, without its withdrawn documents, and removes local
  // copies of files that it no longer has.
  absl::Status Publish(const Catalog::Opening& opening,
                       std::shared_ptr<ServedArchive> served);
  // Withdraws documents that were removed from the archive `name`, which is
  // served now with `contents`, from its earlier contents that calls still
  // read.
  void WithdrawRemoved(const std::string& name, const Archive& contents);
  // Opens an archive of which nothing is served yet.
  absl::Status OpenPlanned(const PlannedArchive& planned,
                           OpeningHelpers* helpers);
  // Opens an archive in the space of `reservation`, and publishes it: the only
  // way into the catalog.
  absl::StatusOr<std::shared_ptr<const Archive>> OpenAndPublish(
      const Catalog::Opening& opening, ArchiveSpace::Reservation& reservation,
      OpeningHelpers* helpers);
  // The same with helpers for segments, which take at most `helper_bytes`.
  absl::StatusOr<std::shared_ptr<const Archive>> OpenAlone(
      const Catalog::Opening& opening, ArchiveSpace::Reservation& reservation,
      uint64_t helper_bytes);
  // True if a reload need not look at an archive.
  bool IsSettled(const ArchiveArgument& argument, const ServedArchive* served,
                 Examined examined) const;
  // Returns the change as the end of a sentence; empty if there is none. Closes
  // what is served from a stale copy that may not be any longer.
  absl::StatusOr<std::string> ReloadOne(const ArchiveArgument& argument,
                                        bool is_retry);
  absl::StatusOr<std::string> Replace(const Catalog::Opening& opening);
  // Withholds the dictionary that an archive had before documents were removed
  // for good. Returns the end of a sentence about other archives that have it,
  // or nothing.
  std::string WithholdDictionary(const ServedArchive& before,
                                 const std::string& present_hash);
  // Removes all archives that should not be served; returns lines about them.
  // Archives that are wanted on use stay if `always_only`.
  std::vector<LogLine> RemoveOthers(const std::vector<ArchiveArgument>& wanted,
                                    const std::vector<std::string>& kept,
                                    bool always_only,
                                    const ServingChanged& changed);
  // Adds an archive to the catalog. If it is new and wanted on use, its files
  // are examined: returns true, or the error.
  absl::StatusOr<bool> AddEntry(const ArchiveArgument& argument);
  // Adds all that are wanted, except those on use if `always_only`, and lines
  // about new ones.
  void AddEntries(const std::vector<ArchiveArgument>& wanted, bool always_only,
                  const ServingChanged& changed, std::vector<LogLine>& lines);
  // Returns what is known of an archive before it is opened. Looks for parts
  // that it may share if its outline could not be read.
  Catalog::Known KnownOf(const ArchiveArgument& argument,
                         const ArchiveOutline* outline) const;
  // Notes the parts of contents that are at the place of an archive and are not
  // open, or whose manifest cannot be read: they are withheld if rules of
  // withdrawal apply to its name. Thread-safe.
  void NoteUnread(const ArchiveArgument& argument);
  // Moves those to which rules of withdrawal apply to the front: no archive
  // that shares their parts is to be open before these parts are known.
  std::vector<ArchiveArgument> InOrderOfOpening(
      std::vector<ArchiveArgument> wanted) const;
  // Brings the manifest of an archive in an object store here; no effect for
  // others. What is open need not become stale.
  absl::Status PrepareRemoteOutline(const ArchiveArgument& argument,
                                    MayBeStale may_be_stale);
  MayBeStale MayBeStaleNow(const std::string& name) const;
  // Names an archive that was opened from a stale copy.
  void LogStale(const ArchiveArgument& argument) const;
  // Archive::ReadOutline() whose result is noted, also if it fails.
  absl::StatusOr<ArchiveOutline> ReadAndNoteOutline(
      const Catalog::Opening& opening);
  // Returns false if the memory is not free yet.
  absl::StatusOr<bool> OpenWanted(const Catalog::Opening& opening);
  // Errors: FailedPrecondition  there is no object store.
  absl::Status CheckHasStore(const ArchiveArgument& argument) const;

  const ServerOptions options_;
  const MemoryPlan plan_;
  // To be opened by OpenAll().
  std::vector<PlannedArchive> planned_;
  const std::shared_ptr<DecodeWorkspaces> workspaces_;
  const std::shared_ptr<WireEncoders> wire_encoders_ =
      std::make_shared<WireEncoders>();
  Catalog& catalog_;
  BlockStore& store_;
  WithdrawalFile* const withdrawals_;
  RemoteArchives* const remote_;
  std::atomic<bool> stop_ = false;
  ArchiveSpace space_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ARCHIVE_LOADER_H_
