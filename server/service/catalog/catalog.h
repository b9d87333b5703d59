// SPDX-License-Identifier: GPL-3.0-or-later
//
// The archives of a server, by name, and their replacement while calls are in
// flight.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_CATALOG_H_
#define QUIRE_SERVER_SERVICE_CATALOG_CATALOG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/mutex.h"
#include "server/archive/archive.h"
#include "server/service/catalog/archive_block_decoder.h"
#include "server/service/catalog/archive_traffic.h"
#include "server/service/catalog/decode_workspaces.h"
#include "server/service/catalog/shared_parts.h"
#include "server/service/catalog/wire_encoders.h"
#include "server/service/catalog/wire_table.h"
#include "server/service/catalog/withdrawn_documents.h"
#include "server/storage/block_store.h"
#include "server/storage/device/file_placement.h"

namespace quire {

class ListedArchive;

// Partitions decoded for a read of a block that is not cached. A block of one
// partition is always decoded whole.
enum class RangeDecode {
  // Least work: the partitions that the read touches; the whole block if a
  // client reads through it and each read costs much drive time
  // (read/answer_read.h).
  kAuto,
  // The whole block, also into the cache: for repeated reads of the same
  // blocks.
  kWhole,
  // The partitions that the read touches.
  kPartition,
};

// One served archive. Immutable once published, except the average and the
// traffic.
struct ServedArchive {
  std::string name;
  // NeighbourhoodOf() it.
  std::string neighbourhood;
  std::shared_ptr<const Archive> archive;
  // New at every opening, except that of a listed archive whose files are the
  // same as at the last one.
  uint64_t opening_id = 0;

  // Sources of BlockKey, of the blocks of a segment as text, as stored, and of
  // those that are checked and never cached. A segment that an archive takes
  // from the one before has the same, so its cached blocks stay.
  uint64_t SourceId(uint32_t segment_index) const {
    return 3 * archive->OpenedSegmentId(segment_index);
  }

  uint64_t StoredSourceId(uint32_t segment_index) const {
    return SourceId(segment_index) + 1;
  }

  uint64_t ScrubSourceId(uint32_t segment_index) const {
    return SourceId(segment_index) + 2;
  }

  // These two read blocks of `archive` and keep it alive.
  std::shared_ptr<const BlockDecoder> decoder;
  std::shared_ptr<const BlockDecoder> stored_reader;
  RangeDecode range_decode = RangeDecode::kAuto;
  // CPU time of `decoder`; see MakeTextDecoder().
  std::shared_ptr<const MovingAverage> part_time_per_mib;
  // Placements of the segment files; null for a segment without blocks.
  std::vector<std::shared_ptr<const FilePlacement>> placements;
  // Null if the archive has no symbol table.
  std::shared_ptr<const WireTable> wire_table;
  // Shared with other archives.
  std::shared_ptr<WireEncoders> wire_encoders;
  // Documents that clients must not get. Changes while calls read the archive.
  // While there are any, its answers are in identity, without its dictionary
  // and symbol table.
  std::shared_ptr<WithdrawalInForce> withdrawal =
      std::make_shared<WithdrawalInForce>();
  v1::ArchiveDescription description;
  // Traffic of all archives served under the name, one after the other. Null
  // until the archive is published.
  std::shared_ptr<ArchiveTraffic> traffic;
  // Null unless it may be closed, and opened again on first use.
  std::shared_ptr<ListedArchive> listed;
};

// An archive to serve: "NAME=PATH", or "PATH", whose name is then the last part
// of the path without ".quire".
struct ArchiveArgument {
  std::string name;
  // A directory; of an archive in an object store, that of its local copies.
  std::string path;
  // Set for an archive in an object store: "s3://BUCKET/PREFIX" or
  // "https://HOST/PATH". ParseArchiveArgument() then leaves `path` empty.
  std::string url = {};
  // Opened on first use; otherwise at the start.
  bool is_listed = false;
};

// Finds the placement of an open segment file. Blocks on I/O.
using FilePlacer = std::function<FilePlacement(int fd)>;

// Errors: InvalidArgument  empty path, or a name that is not 1 to 128 of
//                          [A-Za-z0-9._-], or "." or "..".
absl::StatusOr<ArchiveArgument> ParseArchiveArgument(absl::string_view text);

// Result of scanning a directory of archives.
struct DirectoryArchives {
  // By name.
  std::vector<ArchiveArgument> archives;
  // st_dev of the directory: it changes when a file system is mounted or
  // unmounted there.
  uint64_t device = 0;
};

// Returns the archives in a directory: each directory in it, or symbolic link
// to one, that has a MANIFEST or is named *.quire. Skips names that begin with
// a dot and unfinished archives (*.partial). Blocks on I/O.
// Errors: NotFound, PermissionDenied, Unavailable  from the system.
//         InvalidArgument  as ParseArchiveArgument(), or two of one name.
absl::StatusOr<DirectoryArchives> FindArchives(const std::string& directory);

// An archive in one of its states. Views both.
struct ServedView {
  // NOLINTNEXTLINE(google-explicit-constructor): a state is an archive.
  ServedView(const ServedArchive& whole)
      : served(&whole), view(*whole.archive) {}

  // REQUIRES: `state` is of that archive.
  ServedView(const ServedArchive& whole, const ArchiveView& state)
      : served(&whole), view(state) {}

  const ServedArchive* served;
  ArchiveView view;
};

// Errors: InvalidArgument  two have the same name.
absl::Status CheckNamesDiffer(const std::vector<ArchiveArgument>& arguments);

// Returns the description of an archive for clients, without its history.
v1::ArchiveDescription DescribeArchive(const std::string& name,
                                       const ArchiveInfo& info,
                                       v1::ArchiveState state);

// Adds the earlier states of an archive, redacted ones included, to its
// description.
void AddHistory(const ArchiveInfo& info, v1::ArchiveDescription& description);

// Opens an archive for serving, to be decoded in `workspaces` and encoded for
// answers by `encoders`, neither of which is null. `report_damage`
// may be empty. Takes from `previous`, which may be null, what both have
// (ArchiveOpenOptions::shared). Blocks on I/O.
// Errors: as Archive::Open().
absl::StatusOr<std::shared_ptr<ServedArchive>> OpenServedArchive(
    const ArchiveArgument& argument,
    std::shared_ptr<DecodeWorkspaces> workspaces,
    std::shared_ptr<WireEncoders> encoders, DamageReporter report_damage,
    ArchiveOpenOptions options = {},
    RangeDecode range_decode = RangeDecode::kAuto,
    const ServedArchive* previous = nullptr,
    const FilePlacer& place_file = PlaceFile);

// Time to the next attempt in RetryInfo. Most archives are opened in less.
inline constexpr absl::Duration kOpeningRetryDelay = absl::Milliseconds(500);

// Returns UNAVAILABLE (ARCHIVE_OPENING), with a RetryInfo.
absl::Status StillOpening(const std::string& name);

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

// Returns the archive in the state `uuid`, which `field` of a request names.
// Errors: FailedPrecondition (ARCHIVE_STATE_UNKNOWN): it has no such state.
absl::StatusOr<ArchiveView> FindState(const Archive& archive,
                                      absl::string_view name,
                                      absl::string_view uuid,
                                      absl::string_view field);

// Open archives, named ones that are still being opened, and listed ones, which
// are opened on first use. None is both of the first two; a listed one may also
// be open. Thread-safe. Get() copies a pointer. Calls keep the snapshot that
// they started with, so that a reload never removes an archive that they use.
class Catalog {
 public:
  using ByName =
      std::map<std::string, std::shared_ptr<const ServedArchive>, std::less<>>;

  using OpeningByName =
      std::map<std::string, v1::ArchiveDescription, std::less<>>;

  using ListedByName =
      std::map<std::string, std::shared_ptr<ListedArchive>, std::less<>>;

  // A named archive whose contents are being opened or cannot be opened, while
  // other ones may be open under its name.
  struct Unopened {
    std::string neighbourhood;
    SharedParts parts;
    // Rules of withdrawal apply to its name.
    bool may_withdraw = false;
    // An object store was asked for its manifest: until then it may have any
    // parts.
    bool is_awaited = false;
  };

  using UnopenedByName =
      std::map<std::string, std::shared_ptr<const Unopened>, std::less<>>;

  // Queues a listed archive to be opened. Called on the threads of calls, which
  // it must not block, without a lock.
  using Demand = std::function<void(std::shared_ptr<ListedArchive>)>;

  explicit Catalog(ByName archives, OpeningByName opening = {})
      : archives_(std::make_shared<const ByName>(std::move(archives))),
        opening_(std::make_shared<const OpeningByName>(std::move(opening))) {}

  // REQUIRES: no other thread uses the catalog yet.
  void SetDemand(Demand demand) { demand_ = std::move(demand); }

  // Returns the open archives.
  std::shared_ptr<const ByName> Get() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the archives being opened. To get both, call this first: an archive
  // that is opened in between is then in both.
  std::shared_ptr<const OpeningByName> GetOpening() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the listed archives, open or not. To get open ones, too, call this
  // first: an archive that is opened in between is then in both.
  std::shared_ptr<const ListedByName> GetListed() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Replaces the list. Open archives stay open.
  void SetListed(ListedByName listed) ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);

  // Notes contents that are not open, until an archive of their name is
  // published or they are forgotten.
  void NoteUnopened(const std::string& name, Unopened unopened)
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);
  // Notes parts of contents that are no longer at the path of an archive, or
  // whose archive is removed, and that may have withdrawn documents: others may
  // still have these parts.
  void NoteFormer(const std::string& name, const SharedParts& parts)
      ABSL_LOCKS_EXCLUDED(former_mutex_);
  // Notes for which of these names rules of withdrawal apply.
  void MarkFormer(absl::FunctionRef<bool(const std::string& name)> withdraws)
      ABSL_LOCKS_EXCLUDED(former_mutex_);
  // Notes parts of contents from which documents were removed for good, so that
  // no rule need withdraw them.
  void NoteRedacted(const SharedParts& parts)
      ABSL_LOCKS_EXCLUDED(former_mutex_);
  // Sets Unopened::may_withdraw of those that `withdrawing` names, and clears
  // that of others.
  void MarkUnopened(const std::set<std::string>& withdrawing)
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);
  void ForgetUnopened(const std::string& name)
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);
  // Call this before Get() and GetListed(), to see contents that are opened in
  // between in both.
  std::shared_ptr<const UnopenedByName> GetUnopened() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // True if an archive, open or not, has the part or may have it, and has
  // withdrawn documents or may have some once it is open.
  bool MayHaveWithdrawn(SharedPart part, absl::string_view hash) const
      ABSL_LOCKS_EXCLUDED(mutex_, former_mutex_);

  using TrafficByName =
      std::map<std::string, std::shared_ptr<ArchiveTraffic>, std::less<>>;

  // Returns the traffic of all open archives, with kOtherArchives if there are
  // many.
  TrafficByName GetTraffic() const ABSL_LOCKS_EXCLUDED(write_mutex_);

  // Publishes an open archive. A previous one of its name stays valid while
  // calls read it; its traffic counters carry over.
  // REQUIRES: no other thread uses `archive`.
  void Publish(std::shared_ptr<ServedArchive> archive)
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);

  // Removes an archive, open or not, and its traffic; no effect if there is
  // none of that name. It stays valid while calls read it.
  void Remove(const std::string& name)
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);

  // Closes an open archive, which stays in the list, with its traffic. It stays
  // valid while calls read it.
  void Close(const std::string& name) ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);

  // Returns the number of archives, without listed ones that are not open.
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);
  // True for a name of an archive, open, listed or neither.
  bool Contains(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the first names for which `is_shown` is true, among the first
  // kConsideredNamesMax: the time is bounded, however many archives there are.
  NameSample SampleNames(absl::FunctionRef<bool(const std::string&)> is_shown)
      const ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets a listed archive that is closed be opened.
  // Errors: NotFound (ARCHIVE_NOT_FOUND); names some existing archives.
  //         Unavailable (ARCHIVE_OPENING).
  absl::StatusOr<std::shared_ptr<const ServedArchive>> Find(
      absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns an open archive, or null. Does not open it, and does not count as
  // its use.
  std::shared_ptr<const ServedArchive> FindOpen(absl::string_view name) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Find() of an archive whose description was found.
  // Returns UNAVAILABLE (ARCHIVE_OPENING), also if it has just been opened.
  absl::Status Await(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::shared_ptr<ArchiveTraffic> TrafficOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void Replace(std::shared_ptr<const ByName> archives,
               std::shared_ptr<const OpeningByName> opening)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetUnopened(std::shared_ptr<const UnopenedByName> unopened)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets the archive be opened.
  absl::Status Demanded(const std::shared_ptr<ListedArchive>& listed) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  struct Snapshot {
    std::shared_ptr<const ByName> open;
    std::shared_ptr<const OpeningByName> opening;
    std::shared_ptr<const ListedByName> listed;
  };

  // Returns all, of the same moment.
  Snapshot GetAll() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Held by a publisher from copying the maps to replacing them. Readers do not
  // wait for it.
  mutable Mutex write_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  TrafficByName traffic_ ABSL_GUARDED_BY(write_mutex_);
  mutable Mutex mutex_;
  std::shared_ptr<const ByName> archives_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const OpeningByName> opening_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const ListedByName> listed_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<const ListedByName>();
  std::shared_ptr<const UnopenedByName> unopened_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<const UnopenedByName>();
  Demand demand_;

  // Parts of former contents.
  struct Former {
    SharedParts parts;
    bool may_withdraw = false;
  };

  // Separate, as they may be many.
  mutable Mutex former_mutex_;
  std::map<std::string, Former> former_ ABSL_GUARDED_BY(former_mutex_);
  SharedParts redacted_ ABSL_GUARDED_BY(former_mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_CATALOG_H_
