// SPDX-License-Identifier: GPL-3.0-or-later
//
// Objects in a bucket that a MANIFEST named earlier: kept for a while for
// readers of the old state, then deleted.
#ifndef QUIRE_SERVER_COMMANDS_REPLACED_OBJECTS_H_
#define QUIRE_SERVER_COMMANDS_REPLACED_OBJECTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "server/storage/remote/bucket_client.h"
#include "server/storage/remote/bucket_writer.h"
#include "server/storage/remote/store_address.h"

namespace quire {

// Before a MANIFEST is replaced, a copy of the old one is put as the object
// PREFIX/replaced/TIME-CHECKSUM: a record. Once a record is older than a grace,
// the objects that it names are deleted, and then the record. An object stays
// if the MANIFEST in force, that of a part, or a younger record names it, or if
// it was put after the record. Objects that no record names, such as those of a
// build that has not put its MANIFEST, are never looked at.
// Thread-compatible; blocks.
class ReplacedObjects {
 public:
  // `client` must outlive it. The address may be a part's.
  ReplacedObjects(BucketClient& client, const StoreAddress& address);

  // Returns the names of the objects that a MANIFEST names.
  // Errors: as ParseManifest().
  static absl::StatusOr<std::set<std::string>> NamesIn(
      absl::string_view manifest);

  // Puts a record of the MANIFEST that is to be replaced now. A record of a
  // change that fails afterwards does no harm.
  // Errors: those of BucketWriter::Put().
  absl::Status Record(absl::string_view manifest, absl::Time now);

  struct Report {
    uint64_t deleted_count = 0;
    uint64_t deleted_size_bytes = 0;
    // Objects that stay because parts name them, and one of the parts.
    uint64_t part_count = 0;
    std::string part;
    // Objects and records that could not be deleted; the first reasons.
    uint64_t fault_count = 0;
    std::vector<absl::Status> faults;
  };

  // Deletes what records have named for `grace`. A record whose objects are not
  // all gone stays for the next call.
  // Errors: those of BucketWriter::List() and of reading a MANIFEST that may
  //         name objects: nothing is deleted then.
  absl::StatusOr<Report> DeleteAfter(absl::Duration grace, absl::Time now);

 private:
  using Names = std::set<std::string>;

  // Errors: NotFound; those of BucketWriter::Find() and ParseManifest().
  absl::StatusOr<Names> ReadNames(const std::string& object);
  // Returns what the MANIFESTs of all parts name, and one part for each.
  absl::StatusOr<std::map<std::string, std::string>> NamesOfParts();
  // Deletes what `record` alone names. Errors: the record or the MANIFEST in
  // force cannot be read, or Cancelled; other faults are in the report.
  absl::Status DeleteOf(const BucketWriter::Listed& record, const Names& others,
                        const std::map<std::string, std::string>& parts,
                        Report& report);
  // Deletes an object that was there when a record was put.
  absl::Status DeleteOld(const std::string& object, absl::Time record_time,
                         Report& report);

  // Object of the MANIFEST that is being changed.
  const std::string own_manifest_;
  // Writes below PREFIX, also for a part.
  BucketWriter writer_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_REPLACED_OBJECTS_H_
