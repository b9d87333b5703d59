// SPDX-License-Identifier: GPL-3.0-or-later
//
// The archives as one call may see them. Calls get at archives through this
// alone, so that none can forget to ask whether its client may.
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
  // Finds out who calls. `control` is null if everyone may do everything. All
  // must outlive this, but `context` need only be there now.
  CallAccess(const Catalog& catalog, const AccessControl* control,
             const grpc::CallbackServerContext& context);

  // OK: the client is known, or need not be.
  // Errors: Unauthenticated (CREDENTIALS_REJECTED).
  const absl::Status& status() const { return status_; }

  // Makes status() an error: the client may do nothing at present.
  // REQUIRES: nothing else was called yet.
  void Refuse(absl::Status status) { status_ = std::move(status); }

  // What the client's rules say; `otherwise` where they say nothing.
  Quota quota(const Quota& otherwise) const {
    return identity_ != nullptr && identity_->quota.is_set() ? identity_->quota
                                                             : otherwise;
  }

  // The archive that was asked for first, shortened to what a name may have.
  std::string asked() const ABSL_LOCKS_EXCLUDED(mutex_);

  // "token:ID" or "certificate:NAME", also of a token that has expired; empty
  // where everyone may do everything, or the client is not known.
  std::string identity() const;

  // The client showed the right token too late.
  bool has_expired() const { return !expired_.empty(); }

  // An archive to read, or to describe.
  // Errors: Unauthenticated   as status().
  //         NotFound          no such archive, or one that the client has no
  //                           right to at all: they look the same.
  //         PermissionDenied  (READ_NOT_PERMITTED) it may only list it.
  //         Unavailable       (ARCHIVE_OPENING).
  absl::StatusOr<std::shared_ptr<const ServedArchive>> FindToRead(
      absl::string_view name);
  absl::StatusOr<v1::ArchiveDescription> Describe(absl::string_view name);

  // FindToRead() of the archive and the contents that `request` names.
  // Errors: also FailedPrecondition (ARCHIVE_STATE_UNKNOWN).
  template <typename Request>
  absl::StatusOr<std::shared_ptr<const ServedArchive>> FindContents(
      const Request& request) {
    auto found = FindToRead(request.archive());
    if (found.ok() && request.has_archive_uuid()) {
      QUIRE_RETURN_IF_ERROR(CheckContents(*(*found)->archive, request.archive(),
                                          request.archive_uuid(),
                                          "archive_uuid"));
    }
    return found;
  }

  // Of all that the client has the right to, by name.
  // Errors: as status().
  absl::Status Visit(
      Right right,
      absl::FunctionRef<void(const v1::ArchiveDescription&,
                             const std::shared_ptr<const ServedArchive>&)>
          visit);

  // Notes that the call reads that archive, which it found by Visit().
  void Reading(const ServedArchive& archive);

  // Of the first archive that the call read or described; null if there is
  // none.
  // REQUIRES: the first function that looks for an archive has returned.
  ArchiveTraffic* traffic() const { return traffic_.get(); }

  // Whether the client may still do what it began: the rules may have changed,
  // and its identity may have expired. Costs next to nothing otherwise.
  // Errors: Unauthenticated, and NotFound or PermissionDenied for what it
  //         reads.
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

  const Catalog& catalog_;
  const AccessControl* const control_;
  // Null if all is allowed, or `status_` is not OK. Not changed later: what
  // counts then is in the rules that are in force.
  std::shared_ptr<const AccessIdentity> identity_;
  absl::Status status_;
  // The name of an identity that has expired.
  std::string expired_;
  std::atomic<uint64_t> generation_ = 0;
  mutable Mutex mutex_;
  std::string asked_ ABSL_GUARDED_BY(mutex_);
  // What the call reads; a call reads one archive.
  std::string reading_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ArchiveTraffic> traffic_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CALLS_CALL_ACCESS_H_
