// SPDX-License-Identifier: GPL-3.0-or-later
//
// Opens archives into the catalog: all of them after the start, changed ones on
// a reload, listed ones on first use.
#ifndef QUIRE_SERVER_SERVICE_ARCHIVE_LOADER_H_
#define QUIRE_SERVER_SERVICE_ARCHIVE_LOADER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
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

// Thread-compatible, except Stop() and OpenListed().
class ArchiveLoader {
 public:
  // `catalog`, `store`, and `withdrawals` and `remote`, which may be null, must
  // outlive it.
  ArchiveLoader(const ServerOptions& options, const MemoryPlan& plan,
                std::vector<PlannedArchive> planned,
                const std::vector<PlannedListed>& listed, Catalog& catalog,
                BlockStore& store, WithdrawalFile* withdrawals,
                RemoteArchives* remote);

  // Called when an archive of that name begins or ceases to be served. May be
  // called on any thread.
  using ServingChanged =
      std::function<void(const std::string& name, bool is_serving)>;

  // Opens all archives, several at a time, within the plan's memory for
  // archives, and publishes each when it is open. Archives that cannot be
  // opened are added to `broken`, in no order, and are not in the catalog.
  // Blocks on I/O.
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
  // With `manifests_only`, an archive whose MANIFEST is the same file counts as
  // unchanged and has no line.
  std::vector<LogLine> Reload(const std::vector<ArchiveArgument>& wanted,
                              const std::vector<std::string>& kept,
                              const ServingChanged& changed,
                              const std::function<void(bool)>& ended,
                              bool manifests_only = false);

  enum class ListedOutcome {
    kOpened,
    // It is open already, or no longer in the list.
    kNothingToDo,
    // Its memory is free when calls that read other archives have ended.
    kLater,
  };

  // Opens an archive that is in the catalog's list, and publishes it. Others
  // are closed if it needs their memory. Blocks on I/O. Thread-safe, also
  // during a reload. REQUIRES: OpenAll() has returned; no two at a time for one
  // archive.
  // Errors: those of Archive::Open(), RemoteArchives::PrepareIndexes() and
  //         ArchiveSpace::ReserveListed(); Cancelled  it left the list.
  absl::StatusOr<ListedOutcome> OpenListed(
      const std::shared_ptr<ListedArchive>& listed)
      ABSL_LOCKS_EXCLUDED(claims_mutex_);

  // Sets which archives that are not open may have withdrawn documents: to be
  // called when the rules were read again. Thread-safe.
  void MarkWithdrawals() ABSL_LOCKS_EXCLUDED(marks_mutex_);

  // Listed archives that were closed. Thread-safe.
  uint64_t closed_count() const { return space_.closed_count(); }

  // Makes the above end soon, now and in future. Thread-safe.
  void Stop();

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
      const ArchiveArgument& argument, const ServedArchive* previous,
      const std::atomic<bool>& cancel, OpeningHelpers* helpers);
  // Publishes an archive, without its withdrawn documents, and removes local
  // copies of files that it no longer has.
  absl::Status Publish(const ArchiveArgument& argument,
                       std::shared_ptr<ServedArchive> served);
  // Withdraws documents that were removed from the archive `name`, which is
  // served now as `fresh` with `contents`, from its earlier contents that calls
  // still read.
  void WithdrawRemoved(const std::string& name, const Archive& contents,
                       const std::weak_ptr<const ServedArchive>& fresh)
      ABSL_LOCKS_EXCLUDED(earlier_mutex_);
  // Opens an archive that the catalog does not have yet; `outline` is its plan.
  absl::Status OpenPlanned(const PlannedArchive& planned,
                           OpeningHelpers* helpers);
  // Returns the change as the end of a sentence; empty if there is none.
  absl::StatusOr<std::string> ReloadOne(const ArchiveArgument& argument);
  // Removes all archives that should not be served; returns a line for each.
  std::vector<LogLine> RemoveOthers(const std::vector<ArchiveArgument>& wanted,
                                    const std::vector<std::string>& kept,
                                    const ServingChanged& changed);
  // Makes the list that of `wanted`, and removes archives that are no longer in
  // it. Archives that stay keep their entries, and are not examined.
  std::vector<LogLine> ReloadList(const std::vector<ArchiveArgument>& wanted,
                                  const ServingChanged& changed);
  // Notes contents that are not open, whose parts are withheld if rules of
  // withdrawal apply to the archive's name: those whose manifest was read, or
  // that of a manifest that cannot be read. Listed archives are in the list, or
  // will be. Thread-safe.
  void NoteUnopened(const ArchiveArgument& argument, const ArchiveInfo& info)
      ABSL_LOCKS_EXCLUDED(marks_mutex_);
  void NoteUnread(const ArchiveArgument& argument, bool is_awaited = false)
      ABSL_LOCKS_EXCLUDED(marks_mutex_);
  // REQUIRES: there are rules.
  void SetParts(const ArchiveArgument& argument, SharedParts parts,
                bool is_awaited = false) ABSL_LOCKS_EXCLUDED(marks_mutex_);
  // Keeps withholding the parts of the open contents of an archive, if they
  // have withdrawn documents, as long as rules apply to its name: they are to
  // be replaced.
  void NoteReplaced(const std::string& name) ABSL_LOCKS_EXCLUDED(marks_mutex_);
  // The same, and for the contents that it may have: the archive is to be
  // removed.
  void NoteRemoved(const std::string& name) ABSL_LOCKS_EXCLUDED(marks_mutex_);
  void NoteFormerParts(const std::string& name, const SharedParts& parts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(marks_mutex_);
  // Withholds the dictionary that an archive had before documents were removed
  // for good. Returns the end of a sentence about other archives that have it,
  // or nothing.
  std::string WithholdDictionary(const ServedArchive& before,
                                 const std::string& present_hash);
  // Forgets unopened contents of archives that are not to be served.
  void ForgetOthers(const std::vector<ArchiveArgument>& wanted,
                    const std::vector<std::string>& kept);
  // Moves those to which rules of withdrawal apply to the front: no archive
  // that shares their parts is to be open before these parts are known.
  std::vector<ArchiveArgument> InOrderOfOpening(
      std::vector<ArchiveArgument> wanted) const;
  // Brings the manifest of an archive in an object store here; no effect for
  // others.
  absl::Status PrepareRemoteOutline(const ArchiveArgument& argument);
  // Archive::ReadOutline() whose result is noted, also if it fails.
  absl::StatusOr<ArchiveOutline> ReadAndNoteOutline(
      const ArchiveArgument& argument, const Archive* shared);
  // Returns an entry for an archive that becomes listed.
  std::shared_ptr<ListedArchive> NewListed(const ArchiveArgument& argument,
                                           const ArchiveOutline* outline);
  // OpenOne() with helpers for segments, which take at most `helper_bytes`.
  absl::StatusOr<std::shared_ptr<ServedArchive>> OpenWithHelpers(
      const ArchiveArgument& argument, const ServedArchive* previous,
      const std::atomic<bool>& cancel, uint64_t helper_bytes);
  // Errors: FailedPrecondition  there is no object store.
  absl::Status CheckHasStore(const ArchiveArgument& argument) const;
  // Brings a listed archive in an object store here. If the cache has no space
  // for its indexes, the copies of closed archives are removed.
  absl::Status PrepareListedCopy(const ListedArchive& listed);
  // Removes the copies of the closed archive in an object store that was used
  // least recently. False if there is none.
  bool RemoveOldCopy(const ArchiveArgument& wanted);

  // Held by the thread that changes a listed archive: it is opened or reloaded
  // by one at a time.
  class Claim {
   public:
    // Waits until no other thread holds it.
    Claim(ArchiveLoader& loader, std::string name);
    // Null if another thread holds it.
    static std::unique_ptr<Claim> Try(ArchiveLoader& loader, std::string name);
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    struct IsHeld {};

    Claim(ArchiveLoader& loader, std::string name, IsHeld /*held*/)
        : loader_(loader), name_(std::move(name)) {}

    ArchiveLoader& loader_;
    const std::string name_;
  };

  const ServerOptions options_;
  const MemoryPlan plan_;
  const std::vector<PlannedArchive> planned_;
  const std::shared_ptr<DecodeWorkspaces> workspaces_;
  const std::shared_ptr<WireEncoders> wire_encoders_ =
      std::make_shared<WireEncoders>();
  Catalog& catalog_;
  BlockStore& store_;
  WithdrawalFile* const withdrawals_;
  RemoteArchives* const remote_;
  std::atomic<bool> stop_ = false;
  // Memory of archives that turned out larger than planned.
  std::atomic<uint64_t> unplanned_bytes_ = 0;
  ArchiveSpace space_;
  // Held from looking up rules for a name to marking it, so that no mark is of
  // rules that were replaced.
  Mutex marks_mutex_;
  Mutex earlier_mutex_;
  // Contents that were published under a name, and are served or read.
  std::map<std::string, std::vector<std::weak_ptr<const ServedArchive>>>
      earlier_ ABSL_GUARDED_BY(earlier_mutex_);
  Mutex claims_mutex_;
  CondVar claim_ended_;
  // Names of archives.
  std::set<std::string> claims_ ABSL_GUARDED_BY(claims_mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ARCHIVE_LOADER_H_
