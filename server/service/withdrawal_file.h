// SPDX-License-Identifier: GPL-3.0-or-later
//
// The file of `quired serve --withdrawn`: documents that clients must not get.
//
// One rule per line; empty lines and lines that begin with # are skipped:
//
//   rule      = ARCHIVES selection action
//   selection = "id" VALUE | "prefix" VALUE | "where" FILTER | SHORT
//   action    = "exclude" | "block"
//
// ARCHIVES is a glob over names of archives, with * and ?. The word that
// follows names the kind of the selection, which extends to the last word of
// the line. The first rule that matches a document decides.
//
// VALUE is an id, or the start of ids; it may contain blanks, \\ for a
// backslash, and \xNN for any byte. More than one blank before or after VALUE
// may be part of it or not, so both are meant. ID<TAB>@N, as quire ls prints
// one of several documents of an id, means all documents of the id.
//
// FILTER is one of codecs/filter/filter.h. It selects single documents: others
// of their ids stay. An archive that it does not fit, or whose fields cannot be
// read, is not served, or has all documents withheld if it is open already.
//
// SHORT is a short form of a filter (codecs/filter/short_rule.h), such as
// "domain news.test 2019..2021" or "digest sha1:...". It begins with its kind:
// host, domain, status, digest or time.
#ifndef QUIRE_SERVER_SERVICE_WITHDRAWAL_FILE_H_
#define QUIRE_SERVER_SERVICE_WITHDRAWAL_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/mutex.h"
#include "server/archive/archive_part.h"
#include "server/archive/field_reader.h"
#include "server/service/base/log_line.h"
#include "server/service/catalog/catalog.h"
#include "server/service/catalog/withdrawn_documents.h"

namespace quire {

// A line of the file.
struct WithdrawalLine {
  // From 1 on.
  uint64_t number = 0;
  std::string archive_glob;
  WithdrawalRule rule;
  // Another value of the same rule: an id or a prefix with the blanks around
  // it, if there are some.
  std::optional<std::string> value_with_blanks;
  // VALUE was ID<TAB>@N.
  bool has_occurrence = false;
};

// Errors: InvalidArgument  a line is malformed; "line N: " and the error.
absl::StatusOr<std::vector<WithdrawalLine>> ParseWithdrawals(
    absl::string_view text);

// Services for rules with filters.
struct WithdrawalServices {
  // Returns what reads the fields of an archive, and may block.
  std::function<ArchivePartLoader(
      const std::shared_ptr<const ServedArchive>& archive)>
      fields_of = {};
  // Reserves memory, in bytes, as long as the result lives.
  // Errors: FailedPrecondition  there is none.
  std::function<absl::StatusOr<std::shared_ptr<void>>(uint64_t bytes)> reserve =
      {};
  // Ends all matching with Cancelled once true; may be null.
  const std::atomic<bool>* cancel = nullptr;
};

// The rules in force, and their effect on archives. Thread-safe.
class WithdrawalFile {
 public:
  // Result of a reload.
  struct Reloaded {
    // For the log.
    std::string text = {};
    // A sentence for each archive that is open and could not be matched: all of
    // its documents are blocked.
    std::vector<std::string> withheld = {};
  };

  // Reads the file, of at most 16 MiB. Blocks on I/O.
  // Errors: FailedPrecondition  it cannot be read, or as ParseWithdrawals();
  //                             names file and line.
  static absl::StatusOr<std::unique_ptr<WithdrawalFile>> Open(
      const std::string& path);

  // Sets the services; without them, fields are read from files by pread, and
  // no memory is reserved. Call it before other threads use the file.
  void SetServices(WithdrawalServices services) {
    services_ = std::move(services);
  }

  // Returns the memory of the rules in force, with a copy for each of the
  // archives, twice, as a reload holds the old and the new ones. Without the
  // documents that they match.
  uint64_t PlannedBytes(std::span<const std::string> archive_names) const
      ABSL_LOCKS_EXCLUDED(lines_mutex_);

  // Returns the memory of the rules in force and of the documents that they
  // match in the archives that the catalog holds.
  uint64_t HeldBytes(const Catalog& catalog) const
      ABSL_LOCKS_EXCLUDED(lines_mutex_);

  // True if rules in force name the archive. Does not wait for the others
  // here.
  bool HasRulesFor(absl::string_view archive_name) const
      ABSL_LOCKS_EXCLUDED(lines_mutex_);

  // Publishes an archive after its documents were matched, so that no call sees
  // it before. `cancel`, which may be null, ends the matching. Blocks on I/O.
  // Errors: as WithdrawnDocuments::Resolve(); it is then not published.
  absl::Status Publish(std::shared_ptr<ServedArchive> archive, Catalog& catalog,
                       const std::atomic<bool>* cancel = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Withdraws documents of an archive that calls still read, and from whose
  // newer contents they were removed. Errors: as WithdrawnDocuments::Resolve();
  // all of its documents are then blocked.
  absl::Status WithdrawRemoved(
      const std::shared_ptr<const ServedArchive>& archive,
      std::vector<WithdrawalRule> removed) ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the file again, and applies it to all archives that the catalog
  // holds, also to replaced ones that calls still read, if their rules differ
  // from those before. All documents are blocked of those that cannot be
  // matched. Archives are published before or
  // after it. Blocks on I/O.
  // Errors: as Open(); Cancelled. The old rules stay in force for all.
  absl::StatusOr<Reloaded> Reload(const Catalog& catalog)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns what the rules in force withdraw of open archives, a warning if
  // lines name one document of an id and withdraw all, warnings of records that
  // stay and refer to withdrawn ones, and a warning for each line without
  // effect that a typing error may explain: no archive has a name that it
  // matches, or those are all open and have no withdrawn document. At most
  // kWarningsMax warnings of records, with the number of others, and as many
  // of lines.
  std::vector<LogLine> Describe(const Catalog& catalog) const
      ABSL_LOCKS_EXCLUDED(lines_mutex_);

 private:
  static constexpr size_t kWarningsMax = 10;

  // Immutable.
  using Lines = std::shared_ptr<const std::vector<WithdrawalLine>>;

  WithdrawalFile(std::string path, Lines lines)
      : path_(std::move(path)), lines_(std::move(lines)) {}

  // Withdrawn documents of an archive, and their memory until HeldBytes()
  // counts it.
  struct Matched {
    std::shared_ptr<const WithdrawnDocuments> documents;
    std::shared_ptr<void> reservation = nullptr;
  };

  static absl::StatusOr<Lines> Read(const std::string& path);
  // True if an archive was matched with the `former` rules, and the others are
  // the same for it.
  static bool IsMatchedBy(const ServedArchive& archive,
                          const std::vector<WithdrawalLine>& former,
                          const std::vector<WithdrawalLine>& lines);
  absl::StatusOr<Matched> Match(
      const std::vector<WithdrawalLine>& lines,
      const std::shared_ptr<const ServedArchive>& archive,
      const std::atomic<bool>* cancel) const;

  // Adds warnings of records that stay and refer to withdrawn ones.
  static void AddReferences(const Catalog::ByName& archives,
                            std::vector<LogLine>& said);

  Lines lines() const ABSL_LOCKS_EXCLUDED(lines_mutex_) {
    MutexLock lock(&lines_mutex_);
    return lines_;
  }

  const std::string path_;
  WithdrawalServices services_;
  // Held while archives are published, and while open ones are matched.
  mutable Mutex mutex_ ABSL_ACQUIRED_BEFORE(lines_mutex_);
  mutable Mutex lines_mutex_;
  Lines lines_ ABSL_GUARDED_BY(lines_mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_WITHDRAWAL_FILE_H_
