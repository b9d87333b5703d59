// SPDX-License-Identifier: GPL-3.0-or-later
//
// The archives that one call may see. Calls reach archives only through this
// class, so that none can omit the check of its client's rights.
#ifndef QUIRE_SERVER_SERVICE_CALLS_CALL_ACCESS_H_
#define QUIRE_SERVER_SERVICE_CALLS_CALL_ACCESS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"

#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "server/service/catalog/catalog.h"
#include "server/service/security/access_control.h"

namespace quire {

// Thread-safe.
class CallAccess {
 public:
  // Identifies the client. `control` is null if everyone may do everything.
  // `catalog` and `control` must outlive this; `context` and `peer`, which is
  // context.peer(), are used only here.
  CallAccess(Catalog& catalog, const AccessControl* control,
             const grpc::CallbackServerContext& context,
             absl::string_view peer);

  // OK if the client is known or need not be.
  // Errors: Unauthenticated (CREDENTIALS_REJECTED).
  const absl::Status& status() const { return status_; }

  // Makes status() an error: the client may do nothing at present.
  // REQUIRES: no other function has been called.
  void Refuse(absl::Status status) { status_ = std::move(status); }

  // Returns the quota of the client's rules, with `defaults` for limits that
  // they do not set.
  Quota quota(const Quota& defaults) const {
    return identity_ == nullptr ? defaults
                                : identity_->quota.WithDefaults(defaults);
  }

  // Returns the first archive that was asked for, truncated to the length limit
  // of names.
  std::string asked() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns "token:ID" or "certificate:NAME", also for an expired token; empty
  // if everyone may do everything or the client is not known.
  const std::string& identity() const;

  // True if the client showed a valid token that has expired.
  bool has_expired() const { return !expired_.empty(); }

  // Finds an archive to read or to describe.
  // Errors: Unauthenticated   as status().
  //         NotFound          no such archive, or the client has no right to it
  //                           at all: the errors are equal.
  //         PermissionDenied  (READ_NOT_PERMITTED) the client may only list it.
  //         Unavailable       (ARCHIVE_BROKEN) it could not be opened;
  //                           (ARCHIVE_OPENING), to describe only for an
  //                           archive that is opened on first use.
  absl::StatusOr<std::shared_ptr<const ServedArchive>> FindToRead(
      absl::string_view name);
  absl::StatusOr<v1::ArchiveDescription> Describe(absl::string_view name);
  // Describe() with the history.
  absl::StatusOr<v1::ArchiveDescription> DescribeFully(absl::string_view name);

  // FindToRead() of the archive, in the state that `request` names, by default
  // the newest.
  // Errors: also FailedPrecondition (ARCHIVE_STATE_UNKNOWN).
  template <typename Request>
  absl::StatusOr<ServedContents> FindContents(const Request& request) {
    auto found = FindToRead(request.archive());
    if (!found.ok()) {
      return found.status();
    }
    ServedContents contents(*std::move(found));
    if (request.has_archive_uuid()) {
      QUIRE_ASSIGN_OR_RETURN(
          contents.view, FindState(*contents.view.archive, request.archive(),
                                   request.archive_uuid(), "archive_uuid"));
    }
    return contents;
  }

  // Visits all archives that the client has `right` to, by name.
  // Errors: as status().
  absl::Status Visit(
      Right right,
      absl::FunctionRef<void(const v1::ArchiveDescription&,
                             const std::shared_ptr<const ServedArchive>&)>
          visit);

  // Lets an archive be opened that Visit() found, and that is not open.
  // Returns UNAVAILABLE (ARCHIVE_OPENING or ARCHIVE_BROKEN).
  absl::Status Await(const std::string& name) { return catalog_.Await(name); }

  // True if an archive, of any rights, has the part or may have it, and has
  // withdrawn documents or may have some once it is open.
  bool MayHaveWithdrawn(SharedPart part, absl::string_view hash) const {
    return catalog_.MayHaveWithdrawn(part, hash);
  }

  // Records that the call reads `archive`, which Visit() found.
  void Reading(const ServedArchive& archive);

  // Returns the counters of the first archive that the call read or described;
  // null if there is none.
  // REQUIRES: the first function that looks for an archive has returned.
  ArchiveTraffic* traffic() const { return traffic_.get(); }

  // Checks whether the client may continue: the rules may have changed, or its
  // identity may have expired. Costs almost nothing if neither changed.
  // Errors: Unauthenticated, and NotFound or PermissionDenied for the archive
  //         that the call reads.
  absl::Status CheckAgain();

 private:
  bool May(const AccessIdentity* identity, Right right,
           absl::string_view name) const;
  // Errors: NotFound, PermissionDenied.
  absl::Status CheckRead(const AccessIdentity* identity,
                         absl::string_view name) const;
  void NoteAsked(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status NotFoundFor(const AccessIdentity* identity,
                           absl::string_view name) const;

  Catalog& catalog_;
  const AccessControl* const control_;
  // Null if all is allowed, or `status_` is not OK. Never changed: later checks
  // use the rules in force.
  std::shared_ptr<const AccessIdentity> identity_;
  absl::Status status_;
  // Name of an expired identity.
  std::string expired_;
  // Generation of the rules that were last checked.
  std::atomic<uint64_t> generation_ = 0;
  // Expiry of the identity by these rules, in microseconds since 1970. Stored
  // before the generation, so that a thread that loads the new generation loads
  // no older expiry.
  std::atomic<int64_t> expiry_us_ = 0;
  mutable Mutex mutex_;
  std::string asked_ ABSL_GUARDED_BY(mutex_);
  // Archive that the call reads; a call reads one archive.
  std::string reading_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ArchiveTraffic> traffic_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_CALL_ACCESS_H_
