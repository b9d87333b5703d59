// SPDX-License-Identifier: GPL-3.0-or-later
//
// The archives of a server: one table with an entry for each.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_CATALOG_H_
#define QUIRE_SERVER_SERVICE_CATALOG_CATALOG_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/mutex.h"
#include "server/archive/files/file_io.h"
#include "server/service/catalog/archive_argument.h"
#include "server/service/catalog/archive_traffic.h"
#include "server/service/catalog/served_archive.h"
#include "server/service/catalog/shared_parts.h"

namespace quire {

// Time to the next attempt in RetryInfo. Most archives are opened in less.
inline constexpr absl::Duration kOpeningRetryDelay = absl::Milliseconds(500);
// The same for an archive that could not be opened. Proxies send the next
// attempt to another server; here a refusal costs one look-up.
inline constexpr absl::Duration kBrokenRetryDelay = absl::Milliseconds(100);

// Archives whose traffic is counted separately; the others share one count.
inline constexpr size_t kTrafficArchivesMax = 1000;
// Name of that count; no archive can have it.
inline constexpr char kOtherArchives[] = "(others)";

// Some names of archives, for a message.
struct NameSample {
  // In order; at most kSampledNamesMax.
  std::vector<std::string> names;
  // True if there may be others.
  bool has_more = false;
};

inline constexpr size_t kSampledNamesMax = 5;
// Number of names considered for a sample, which any client can request.
inline constexpr size_t kConsideredNamesMax = 100;

// Returns NOT_FOUND (ARCHIVE_NOT_FOUND), with `others` in its message.
absl::Status NoSuchArchive(absl::string_view name, const NameSample& others);

// The time for which an archive is to be open.
enum class Wanted {
  // From the start on. It is never closed for the memory of others.
  kAlways,
  // From the first call for it until others need its memory: an archive of
  // --archives-list.
  kOnUse,
  // No longer: the entry goes as soon as no attempt runs.
  kLeaving,
};

// Progress of opening an archive, or another version of it while one is served.
enum class Attempt {
  kNone,
  // A call has asked for it.
  kQueued,
  // The same, and its memory was not free.
  kWaiting,
  // A thread holds its Opening.
  kRunning,
};

// An entry says what is served under a name, what is wanted, and what is done
// about it. Events, and what they change; in all other states they have no
// effect:
//
//   Add()             any state                       wanted; a failure delays
//                                                     no attempt any more; at
//                                                     another place, what is
//                                                     served on use is closed
//   Find()            on use, not served, no attempt, queued
//                     no failure that delays it
//   Begin(kOpen)      queued, waiting                 running
//   Begin(kReplace)   always; on use, served          running
//   Begin(kTidy)      on use, not served, no attempt  running
//   Opening::Wait()   running                         waiting
//   Opening::Fail()   running                         no attempt, failed
//   Opening::Close()  running                         the same, and not served
//   ~Opening()        running                         no attempt
//   Publish()         any state                       served, not failed
//   CloseOne()        on use, served, no attempt      not served
//   RemoveAllBut()    any state                       leaving; then no entry
//
// Calls keep the archive that they started with: none of these events takes it
// from them. An archive that is wanted always, is not served, and failed is not
// listed; calls that name it get UNAVAILABLE.
//
// Thread-safe. A look-up copies one pointer.
class Catalog {
 public:
  using Clock = std::chrono::steady_clock;
  using TimeSource = std::function<Clock::time_point()>;
  using Description = std::shared_ptr<const v1::ArchiveDescription>;
  using ByName =
      std::map<std::string, std::shared_ptr<const ServedArchive>, std::less<>>;
  using TrafficByName =
      std::map<std::string, std::shared_ptr<ArchiveTraffic>, std::less<>>;

  // Time from the end of an opening in which an archive that no call has used
  // stays open: its callers retry within it (kOpeningRetryDelay).
  static constexpr std::chrono::seconds kUnusedTimeMin{2};
  // Times to the next attempt after the first failed opening, and after many.
  static constexpr std::chrono::seconds kRetryDelayMin{1};
  static constexpr std::chrono::seconds kRetryDelayMax{60};

  // `now` must be thread-safe.
  explicit Catalog(TimeSource now = Clock::now) : now_(std::move(now)) {}

  // Takes an archive that a call has asked for, to be opened. Called on the
  // threads of calls, which it must not block, without a lock.
  using Demand = std::function<void(const ArchiveArgument&)>;

  // REQUIRES: no other thread uses the catalog yet.
  void SetDemand(Demand demand) { demand_ = std::move(demand); }

  // True if rules of withdrawal apply to the name. Must be thread-safe. Called
  // without a lock.
  using HasRules = std::function<bool(absl::string_view name)>;

  // REQUIRES: no other thread uses the catalog yet.
  void SetRules(HasRules has_rules) { has_rules_ = std::move(has_rules); }

  // Description and parts of an archive before it is opened, as far as known.
  struct Known {
    v1::ArchiveDescription description = {};
    SharedParts parts = {};
  };

  // True if there is an entry for the archive at its place.
  bool Has(const ArchiveArgument& argument) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds an archive that is wanted from now on, or changes how and where it is
  // wanted. `known` is ignored if Has().
  // Waits for the end of an opening at another place, which it cancels.
  // REQUIRES: one thread at a time calls this and RemoveAllBut().
  void Add(const ArchiveArgument& argument, Known known)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes all other archives, and their traffic. Cancels their openings, and
  // waits for their ends. Calls `stays` under a lock. Returns those removed.
  std::vector<ArchiveArgument> RemoveAllBut(
      absl::FunctionRef<bool(const ArchiveArgument&)> stays)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The right to change what is served under one name, and its local copy: one
  // thread at a time has it. Its destructor ends the attempt.
  class Opening {
   public:
    Opening(Opening&& other) noexcept
        : catalog_(std::exchange(other.catalog_, nullptr)),
          argument_(std::move(other.argument_)),
          is_cancelled_(std::move(other.is_cancelled_)),
          previous_(std::move(other.previous_)) {}

    Opening& operator=(Opening&&) = delete;

    ~Opening() {
      if (catalog_ != nullptr) {
        catalog_->End(argument_.name, Attempt::kNone);
      }
    }

    const ArchiveArgument& argument() const { return argument_; }

    // Set when the archive is to leave, or the server stops.
    const std::atomic<bool>& is_cancelled() const { return *is_cancelled_; }

    // The archive that is served, or was served last and is still read. May be
    // null.
    const std::shared_ptr<const ServedArchive>& previous() const {
      return previous_;
    }

    // Ends the attempt: its memory is not free yet.
    void Wait() {
      std::exchange(catalog_, nullptr)->End(argument_.name, Attempt::kWaiting);
    }

    // Ends the attempt, and delays the next one of a call, by a time that it
    // returns.
    Clock::duration Fail() {
      return std::exchange(catalog_, nullptr)
          ->EndFailed(argument_.name, /*is_closed=*/false);
    }

    // The same, and serves nothing any more.
    void Close() {
      std::exchange(catalog_, nullptr)
          ->EndFailed(argument_.name, /*is_closed=*/true);
    }

   private:
    friend class Catalog;

    Opening(Catalog* catalog, ArchiveArgument argument,
            std::shared_ptr<const std::atomic<bool>> is_cancelled,
            std::shared_ptr<const ServedArchive> previous)
        : catalog_(catalog),
          argument_(std::move(argument)),
          is_cancelled_(std::move(is_cancelled)),
          previous_(std::move(previous)) {}

    // Null once moved from or ended.
    Catalog* catalog_;
    ArchiveArgument argument_;
    std::shared_ptr<const std::atomic<bool>> is_cancelled_;
    std::shared_ptr<const ServedArchive> previous_;
  };

  enum class Purpose {
    // To open an archive that a call has asked for.
    kOpen,
    // To open an archive that is wanted always, or a new version of one that is
    // served. Waits until no other thread has its Opening.
    kReplace,
    // To remove the local copy of an archive that no call asks for.
    kTidy,
  };

  // Unset in other states than those of the table above.
  std::optional<Opening> Begin(const std::string& name, Purpose purpose)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels all openings, now and in future.
  void CancelOpenings() ABSL_LOCKS_EXCLUDED(mutex_);

  // Serves an archive, whose withdrawn documents are known, under its name. It
  // gets the traffic of that name, and the opening_id of the last one if its
  // files are the same. Without an entry it adds one.
  // REQUIRES: no other thread uses `archive`.
  void Publish(std::shared_ptr<ServedArchive> archive)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Archives to close for the memory of others.
  enum class Victim {
    // Those that no call reads.
    kUnread,
    // Those in object stores that no call reads.
    kUnreadRemote,
    kAny,
  };

  // Closes the archive of this kind that was used least recently, among those
  // that are wanted on use and whose callers had time to come. Returns false if
  // there is none.
  bool CloseOne(Victim kind) ABSL_LOCKS_EXCLUDED(mutex_);

  // Parts of the contents that are served, or of newer ones at their place.
  SharedParts GetParts(const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // No effect without an entry.
  void SetParts(const std::string& name, SharedParts parts)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Notes parts of contents from which documents were removed for good: no rule
  // need withdraw these. Until the end of the process no part of theirs is
  // given away.
  void NoteRedacted(const SharedParts& parts) ABSL_LOCKS_EXCLUDED(mutex_);

  // True if an archive, open or not, has the part or may have it, and has
  // withdrawn documents or may have some once it is open; or if earlier
  // contents under a name had it and them.
  bool MayHaveWithdrawn(SharedPart part, absl::string_view hash) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets an archive be opened that is wanted on use.
  // Errors: NotFound (ARCHIVE_NOT_FOUND); names some existing archives.
  //         Unavailable (ARCHIVE_OPENING, or ARCHIVE_BROKEN if it could not be
  //         opened), with a RetryInfo.
  absl::StatusOr<std::shared_ptr<const ServedArchive>> Find(
      absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);

  // Find() of an archive whose description was found.
  // Returns UNAVAILABLE (ARCHIVE_OPENING or ARCHIVE_BROKEN), also if it has
  // just been opened.
  absl::Status Await(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns an open archive, or null. Does not open it, and does not count as
  // its use.
  std::shared_ptr<const ServedArchive> FindOpen(absl::string_view name) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns all open archives.
  ByName Get() const ABSL_LOCKS_EXCLUDED(mutex_);

  // An archive as clients see it.
  struct Shown {
    std::string name;
    // Null unless it is open.
    std::shared_ptr<const ServedArchive> served;
    // Its description while it is not open.
    Description known;
    // Unspecified: it is wanted always, and could not be opened.
    v1::ArchiveState state = v1::ARCHIVE_STATE_UNSPECIFIED;
    Wanted wanted = Wanted::kAlways;
  };

  std::optional<Shown> Show(absl::string_view name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Visits all archives that are listed, by name, some of them at a time,
  // without a lock.
  void Visit(absl::FunctionRef<void(const Shown&)> visit) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the first names for which `is_shown` is true, among the first
  // kConsideredNamesMax: the time is bounded, however many archives there are.
  NameSample SampleNames(absl::FunctionRef<bool(const std::string&)> is_shown)
      const ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets an archive be opened that is wanted on use, is not open, and need not
  // wait for its next attempt: the first in turn, by name after `last`, which
  // becomes its name. Considers kConsideredNamesMax archives.
  void AskForAnother(std::string& last) ABSL_LOCKS_EXCLUDED(mutex_);

  // An open archive, or one that was open and that calls still read.
  struct Held {
    // Null if only reads of its blocks hold `archive`.
    std::shared_ptr<const ServedArchive> served;
    std::shared_ptr<const Archive> archive;
    bool is_current = false;
    bool is_on_use = false;
  };

  // All that take memory.
  std::vector<Held> GetHeld() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Archives in object stores that are wanted on use and not open, those used
  // least recently first.
  std::vector<ArchiveArgument> GetClosedRemote() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Numbers of archives. Each is open, opening, failed or closed.
  struct Counts {
    uint64_t open = 0;
    uint64_t opening = 0;
    uint64_t failed = 0;
    uint64_t closed = 0;
    // Those wanted on use, which the numbers above include.
    uint64_t on_use = 0;
    uint64_t on_use_open = 0;
    // Calls of CloseOne() that closed one.
    uint64_t closings = 0;
  };

  Counts counts() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the traffic of all archives that are or were open, with
  // kOtherArchives if there are many.
  TrafficByName GetTraffic() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    ArchiveArgument argument;
    Wanted wanted = Wanted::kAlways;
    std::shared_ptr<const ServedArchive> served;
    Attempt attempt = Attempt::kNone;
    // Set while an attempt runs.
    std::shared_ptr<std::atomic<bool>> is_cancelled;
    // Since the last good opening.
    uint32_t failure_count = 0;
    Clock::time_point retry_at;
    Clock::time_point opened_at;
    // Of the last call, if it is wanted on use, or the last opening.
    Clock::time_point used_at;
    // Shown while it is not open.
    Description known;
    SharedParts parts;
    // Served last.
    std::weak_ptr<const ServedArchive> last;
    // Files and id of the last opening.
    std::vector<FileIdentity> files;
    uint64_t opening_id = 0;
  };

  // Archives that were replaced, removed or closed.
  struct Retired {
    std::weak_ptr<const ServedArchive> served;
    std::weak_ptr<const Archive> archive;
  };

  void End(const std::string& name, Attempt attempt)
      ABSL_LOCKS_EXCLUDED(mutex_);
  Clock::duration EndFailed(const std::string& name, bool is_closed)
      ABSL_LOCKS_EXCLUDED(mutex_);
  static v1::ArchiveState StateOf(const Entry& entry);
  static Shown ShowEntry(const std::string& name, const Entry& entry);
  // Adds an entry to the counts, or takes it off before it changes.
  void Count(const Entry& entry, uint64_t by)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetAttempt(Entry& entry, Attempt attempt)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Serves `fresh`, which may be null. Returns what was served, to be released
  // without the lock.
  [[nodiscard]] std::shared_ptr<const ServedArchive> Exchange(
      Entry& entry, std::shared_ptr<const ServedArchive> fresh)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets the parts of contents that are to be opened, or were.
  void SetPartsOf(const std::string& name, Entry& entry, SharedParts parts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps withholding the parts of what an entry serves, with withdrawn
  // documents, and of other contents at its place: they are to be removed, and
  // other archives may have these parts.
  void NoteFormer(const std::string& name, const Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same for what it serves, which is to be replaced.
  void NoteFormerServed(const std::string& name, const Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls visit(name, entry) for some entries after the name `last`, which it
  // moves, under the lock. Returns false after the last entry. Entries may
  // change between calls.
  template <typename VisitEntry>
  bool VisitSome(std::optional<std::string>& last,
                 const VisitEntry& visit) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for all entries by name.
  template <typename VisitEntry>
  void ForEach(const VisitEntry& visit) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<ArchiveTraffic> TrafficOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TimeSource now_;
  Demand demand_;
  HasRules has_rules_;
  mutable Mutex mutex_;
  // An attempt has ended.
  CondVar ended_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
  // Names of entries that serve: few of those wanted on use may be open.
  std::set<std::string, std::less<>> open_ ABSL_GUARDED_BY(mutex_);
  mutable std::vector<Retired> retired_ ABSL_GUARDED_BY(mutex_);
  TrafficByName traffic_ ABSL_GUARDED_BY(mutex_);
  // Parts of earlier contents that had withdrawn documents or may have had
  // some, by the name to which rules apply.
  std::map<std::string, SharedParts, std::less<>> former_
      ABSL_GUARDED_BY(mutex_);
  SharedParts redacted_ ABSL_GUARDED_BY(mutex_);
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_CATALOG_H_
