// SPDX-License-Identifier: GPL-3.0-or-later
//
// The file of `quired serve --withdrawn`: documents that clients must not get.
//
// One rule per line; empty lines and lines that begin with # are skipped:
//
//   ARCHIVES id|prefix VALUE exclude|block
//
// ARCHIVES is a glob over names of archives, with * and ?. VALUE is an id, or
// the start of ids; it may contain blanks, \\ for a backslash, and \xNN for any
// byte. More than one blank before or after VALUE may be part of it or not, so
// both are meant. The first rule that matches an id decides. ID<TAB>@N, as
// quire ls prints one of several documents of an id, means all documents of the
// id: if some were hidden, the others would have other numbers.
#ifndef QUIRE_SERVER_SERVICE_WITHDRAWAL_FILE_H_
#define QUIRE_SERVER_SERVICE_WITHDRAWAL_FILE_H_

#include <cstddef>
#include <cstdint>
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
  // The same with the blanks around VALUE, if there are some.
  std::optional<WithdrawalRule> rule_with_blanks;
  // VALUE was ID<TAB>@N.
  bool has_occurrence = false;
};

// Errors: InvalidArgument  a line is malformed; "line N: " and the error.
absl::StatusOr<std::vector<WithdrawalLine>> ParseWithdrawals(
    absl::string_view text);

// The rules in force, and their effect on archives. Thread-safe.
class WithdrawalFile {
 public:
  // Reads the file, of at most 16 MiB. Blocks on I/O.
  // Errors: FailedPrecondition  it cannot be read, or as ParseWithdrawals();
  //                             names file and line.
  static absl::StatusOr<std::unique_ptr<WithdrawalFile>> Open(
      const std::string& path);

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
  // it before. Errors: as WithdrawnDocuments::Resolve(); it is then not
  // published.
  absl::Status Publish(std::shared_ptr<ServedArchive> archive, Catalog& catalog)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Withdraws documents of an archive that calls still read, and from whose
  // newer contents they were removed. Errors: as WithdrawnDocuments::Resolve().
  absl::Status WithdrawRemoved(const ServedArchive& archive,
                               std::vector<WithdrawalRule> removed)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the file again, and applies it to all archives that the catalog
  // holds, also to replaced ones that calls still read. An error leaves the old
  // rules in force for all. Returns text for the log. Blocks on I/O.
  // Errors: as Open() and Publish().
  absl::StatusOr<std::string> Reload(const Catalog& catalog)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns what the rules in force withdraw of open archives, a warning if
  // lines name one document of an id and withdraw all, and a warning for each
  // line without effect that a typing error may explain: no archive has a name
  // that it matches, or those are all open and have no withdrawn document. At
  // most kWarningsMax warnings.
  std::vector<LogLine> Describe(const Catalog& catalog) const
      ABSL_LOCKS_EXCLUDED(lines_mutex_);

 private:
  static constexpr size_t kWarningsMax = 10;

  // Immutable.
  using Lines = std::shared_ptr<const std::vector<WithdrawalLine>>;

  WithdrawalFile(std::string path, Lines lines)
      : path_(std::move(path)), lines_(std::move(lines)) {}

  static absl::StatusOr<Lines> Read(const std::string& path);
  static absl::StatusOr<std::shared_ptr<const WithdrawnDocuments>> Match(
      const std::vector<WithdrawalLine>& lines, const ServedArchive& archive);

  Lines lines() const ABSL_LOCKS_EXCLUDED(lines_mutex_) {
    MutexLock lock(&lines_mutex_);
    return lines_;
  }

  const std::string path_;
  // Held while archives are matched and published.
  mutable Mutex mutex_ ABSL_ACQUIRED_BEFORE(lines_mutex_);
  mutable Mutex lines_mutex_;
  Lines lines_ ABSL_GUARDED_BY(lines_mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_WITHDRAWAL_FILE_H_
