// SPDX-License-Identifier: GPL-3.0-or-later
//
// The archives that a server holds, by name, and their replacement while calls
// are under way.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_CATALOG_H_
#define QUIRE_SERVER_SERVICE_CATALOG_CATALOG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "codecs/base/mutex.h"
#include "server/archive/archive.h"
#include "server/service/catalog/archive_block_decoder.h"
#include "server/service/catalog/archive_traffic.h"
#include "server/service/catalog/decode_workspaces.h"
#include "server/service/catalog/wire_table.h"
#include "server/storage/block_store.h"
#include "server/storage/device/file_placement.h"

namespace quire {

// What is decoded of a block in partitions that is not cached. A block of one
// partition is always decoded whole.
enum class RangeDecode {
  // What takes the least work: the partitions that the read touches, but all
  // where a client reads on through the block and each read costs the drive
  // much time (read/answer_read.h).
  kAuto,
  // All of it, also into the cache: for reads that come back to the same
  // blocks.
  kWhole,
  // The partitions that the read touches.
  kPartition,
};

// One archive as it is served. Immutable once it is published, but for the
// average and the traffic.
struct ServedArchive {
  std::string name;
  std::shared_ptr<const Archive> archive;
  // For BlockKey, of blocks as text and as they are stored: new at every
  // opening.
  uint64_t source_id = 0;
  uint64_t stored_source_id = 0;
  // These two read blocks of `archive` and keep it alive.
  std::shared_ptr<const BlockDecoder> decoder;
  std::shared_ptr<const BlockDecoder> stored_reader;
  RangeDecode range_decode = RangeDecode::kAuto;
  // Of `decoder`, as MakeTextDecoder() says.
  std::shared_ptr<const MovingAverage> part_time_per_mib;
  // Of the segments' files; null for a segment without blocks.
  std::vector<std::shared_ptr<const FilePlacement>> placements;
  // Null if the archive has no symbol table.
  std::shared_ptr<const WireTable> wire_table;
  v1::ArchiveDescription description;
  // Of all archives that were served under the name, one after the other.
  // Null until the archive is published.
  std::shared_ptr<ArchiveTraffic> traffic;
};

inline constexpr size_t kArchiveNameSizeMax = 128;

// An archive to serve: "NAME=PATH", or "PATH" alone, whose name is then the
// last part of the path without ".quire".
struct ArchiveArgument {
  std::string name;
  std::string path;
};

// Errors: InvalidArgument  empty path, or a name that is not 1 to 128 of
//                          [A-Za-z0-9._-].
absl::StatusOr<ArchiveArgument> ParseArchiveArgument(absl::string_view text);

// What one look into a directory of archives found.
struct DirectoryArchives {
  // By name.
  std::vector<ArchiveArgument> archives;
  // st_dev of the directory: another one if something was mounted there, or
  // unmounted.
  uint64_t device = 0;
};

// The archives in a directory: each directory in it, or symbolic link
// to one, that holds a MANIFEST or is named *.quire. Those that begin with a
// dot, and what writers have not finished (*.partial), are none. Blocks on I/O.
// Errors: NotFound, PermissionDenied, Unavailable  as the system says.
//         InvalidArgument  as ParseArchiveArgument(), or two of one name.
absl::StatusOr<DirectoryArchives> FindArchives(const std::string& directory);

// Errors: InvalidArgument  two have the same name.
absl::Status CheckNamesDiffer(const std::vector<ArchiveArgument>& arguments);

// What clients are told of an archive.
v1::ArchiveDescription DescribeArchive(const std::string& name,
                                       const ArchiveInfo& info,
                                       v1::ArchiveState state);

// Opens an archive for serving, to be decoded in `workspaces`. `report_damage`
// may be empty. Blocks on I/O.
// Errors: as Archive::Open().
absl::StatusOr<std::shared_ptr<ServedArchive>> OpenServedArchive(
    const ArchiveArgument& argument,
    std::shared_ptr<DecodeWorkspaces> workspaces, DamageReporter report_damage,
    const ArchiveOpenOptions& options = {},
    RangeDecode range_decode = RangeDecode::kAuto);

// UNAVAILABLE (ARCHIVE_OPENING), with a RetryInfo.
absl::Status StillOpening(const std::string& name);

// Archives whose traffic is counted apart; that of others is counted together.
inline constexpr size_t kTrafficArchivesMax = 1000;
// What stands for them; no archive can have that name.
inline constexpr char kOtherArchives[] = "(others)";

// Some names of archives, for a message.
struct NameSample {
  // In order; at most kSampledNamesMax.
  std::vector<std::string> names;
  // True if there may be others.
  bool has_more = false;
};

inline constexpr size_t kSampledNamesMax = 5;
// Names that are considered for a sample: any client can ask for one.
inline constexpr size_t kConsideredNamesMax = 100;

// NOT_FOUND (ARCHIVE_NOT_FOUND); names `others`.
absl::Status NoSuchArchive(absl::string_view name, const NameSample& others);

// Errors: FailedPrecondition (ARCHIVE_STATE_UNKNOWN): the archive does not have
//         the contents `uuid`, which `field` of a request names.
absl::Status CheckContents(const Archive& archive, absl::string_view name,
                           absl::string_view uuid, absl::string_view field);

// Archives that are open, and those that are named already but still being
// opened; none is both. Thread-safe. Get() is a pointer copy; calls keep the
// snapshot they started with, so that a reload never pulls an archive away from
// under them.
class Catalog {
 public:
  using ByName =
      std::map<std::string, std::shared_ptr<const ServedArchive>, std::less<>>;

  using OpeningByName =
      std::map<std::string, v1::ArchiveDescription, std::less<>>;

  explicit Catalog(ByName archives, OpeningByName opening = {})
      : archives_(std::make_shared<const ByName>(std::move(archives))),
        opening_(std::make_shared<const OpeningByName>(std::move(opening))) {}

  // Those that are open.
  std::shared_ptr<const ByName> Get() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Those that are being opened. Whoever wants both asks for these first: an
  // archive that was opened in between is then in both.
  std::shared_ptr<const OpeningByName> GetOpening() const
      ABSL_LOCKS_EXCLUDED(mutex_);

  using TrafficByName =
      std::map<std::string, std::shared_ptr<ArchiveTraffic>, std::less<>>;

  // Of all that are open, kOtherArchives among them if they are many.
  TrafficByName GetTraffic() const ABSL_LOCKS_EXCLUDED(write_mutex_);

  // Puts an archive in its place, among those that are open. What was there
  // before lives on while calls read it; its traffic is gone on with.
  // REQUIRES: nobody else uses `archive`.
  void Publish(std::shared_ptr<ServedArchive> archive)
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);

  // Takes an archive away, open or not, and its traffic; if there is none of
  // that name, does nothing. It lives on while calls read it.
  void Remove(const std::string& name)
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);

  // Archives, open or not.
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);
  // True for a name of an archive, open or not.
  bool Contains(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The first names that `is_shown` is true of, among the first
  // kConsideredNamesMax: the time is bounded, however many archives there are.
  NameSample SampleNames(absl::FunctionRef<bool(const std::string&)> is_shown)
      const ABSL_LOCKS_EXCLUDED(mutex_);

  // Errors: NotFound (ARCHIVE_NOT_FOUND); names some of those that there are.
  //         Unavailable (ARCHIVE_OPENING).
  absl::StatusOr<std::shared_ptr<const ServedArchive>> Find(
      absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::shared_ptr<ArchiveTraffic> TrafficOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  void Replace(std::shared_ptr<const ByName> archives,
               std::shared_ptr<const OpeningByName> opening)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Snapshot {
    std::shared_ptr<const ByName> open;
    std::shared_ptr<const OpeningByName> opening;
  };

  // Both of one moment.
  Snapshot GetBoth() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Held by one that publishes, from the copy of what there is to its
  // replacement; readers do not wait for it.
  mutable Mutex write_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  TrafficByName traffic_ ABSL_GUARDED_BY(write_mutex_);
  mutable Mutex mutex_;
  std::shared_ptr<const ByName> archives_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const OpeningByName> opening_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_CATALOG_H_
