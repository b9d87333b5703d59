// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/call_access.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "codecs/base/archive_name.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/filter.h"
#include "server/archive/capture_scan.h"
#include "server/service/base/service_error.h"

namespace quire {
namespace {

// absl::ToUnixMicros(absl::InfiniteFuture()).
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

v1::ArchiveDescription DescribeClosed(const Catalog::Shown& shown) {
  v1::ArchiveDescription description = *shown.known;
  description.set_state(shown.state);
  return description;
}

}  // namespace

CallAccess::CallAccess(Catalog& catalog, const AccessControl* control,
                       const grpc::CallbackServerContext& context,
                       absl::string_view peer)
    : catalog_(catalog), control_(control) {
  if (control_ == nullptr) {
    return;
  }
  // Read before the rules: a change in between is noticed later.
  generation_ = control_->generation();
  absl::StatusOr<std::shared_ptr<const AccessIdentity>> identity =
      control_->Authenticate(
          CredentialsIn(context, peer, control_->pairs_tokens()), expired_);
  if (identity.ok()) {
    identity_ = *std::move(identity);
    expiry_us_ = absl::ToUnixMicros(identity_->expiry);
  } else {
    status_ = identity.status();
  }
}

const std::string& CallAccess::identity() const {
  return identity_ == nullptr ? expired_ : identity_->name;
}

std::string CallAccess::asked() const {
  MutexLock lock(&mutex_);
  return asked_;
}

void CallAccess::NoteAsked(absl::string_view name) {
  MutexLock lock(&mutex_);
  if (asked_.empty()) {
    asked_ = std::string(name.substr(0, kArchiveNameSizeMax));
  }
}

bool CallAccess::May(const AccessIdentity* identity, Right right,
                     absl::string_view name) const {
  return control_ == nullptr || (identity != nullptr && identity->Has(right) &&
                                 identity->Covers(name));
}

absl::Status CallAccess::NotFoundFor(const AccessIdentity* identity,
                                     absl::string_view name) const {
  return NoSuchArchive(name,
                       catalog_.SampleNames([&](const std::string& other) {
                         return May(identity, Right::kList, other);
                       }));
}

absl::Status CallAccess::CheckRead(const AccessIdentity* identity,
                                   absl::string_view name) const {
  if (May(identity, Right::kRead, name)) {
    return absl::OkStatus();
  }
  return May(identity, Right::kList, name) && catalog_.Show(name).has_value()
             ? ServiceError(
                   absl::StatusCode::kPermissionDenied, v1::READ_NOT_PERMITTED,
                   absl::StrCat(
                       "archive \"", name,
                       "\" may be listed with these credentials, but not read"),
                   {{"archive", std::string(name)}})
             : NotFoundFor(identity, name);
}

absl::StatusOr<std::shared_ptr<const ServedArchive>> CallAccess::FindToRead(
    absl::string_view name) {
  NoteAsked(name);
  QUIRE_RETURN_IF_ERROR(status_);
  if (control_ != nullptr) {
    QUIRE_RETURN_IF_ERROR(CheckRead(identity_.get(), name));
  }
  absl::StatusOr<std::shared_ptr<const ServedArchive>> found =
      catalog_.Find(name);
  if (control_ != nullptr && absl::IsNotFound(found.status())) {
    return NotFoundFor(identity_.get(), name);
  }
  if (found.ok()) {
    Reading(**found);
  }
  return found;
}

absl::StatusOr<v1::ArchiveDescription> CallAccess::Describe(
    absl::string_view name) {
  NoteAsked(name);
  QUIRE_RETURN_IF_ERROR(status_);
  if (May(identity_.get(), Right::kList, name) ||
      May(identity_.get(), Right::kRead, name)) {
    if (const auto shown = catalog_.Show(name); shown.has_value()) {
      if (shown->served != nullptr) {
        traffic_ = shown->served->traffic;
        return shown->served->description;
      }
      // The present size and history of one that is opened on use are known
      // once it is open, and nothing of one that cannot be opened.
      return shown->wanted == Wanted::kOnUse ||
                     shown->state == v1::ARCHIVE_STATE_UNSPECIFIED
                 ? absl::StatusOr<v1::ArchiveDescription>(
                       catalog_.Await(shown->name))
                 : DescribeClosed(*shown);
    }
  }
  return NotFoundFor(identity_.get(), name);
}

absl::StatusOr<v1::ArchiveDescription> CallAccess::DescribeFully(
    absl::string_view name) {
  QUIRE_ASSIGN_OR_RETURN(v1::ArchiveDescription description, Describe(name));
  // The archive may have been replaced in between: the uuid tells.
  if (const auto served = catalog_.FindOpen(name);
      served != nullptr && served->archive->info().uuid == description.uuid()) {
    AddHistory(served->archive->info(), description);
    for (const FieldColumn& column : served->archive->fields()) {
      v1::FieldDescription& field = *description.add_fields();
      field.set_name(column.name);
      field.set_type(static_cast<v1::FieldType>(column.type));
    }
    const ArchiveInfo& info = served->archive->info();
    const CaptureIndexing indexing =
        IndexingOf(*served->archive, info.document_count);
    if (indexing.capture_count > 0) {
      description.set_capture_count(indexing.capture_count);
    }
  }
  return description;
}

absl::Status CallAccess::Visit(
    Right right,
    absl::FunctionRef<void(const v1::ArchiveDescription&,
                           const std::shared_ptr<const ServedArchive>&)>
        visit) {
  QUIRE_RETURN_IF_ERROR(status_);
  catalog_.Visit([&](const Catalog::Shown& shown) {
    if (!May(identity_.get(), right, shown.name)) {
      return;
    }
    if (shown.served != nullptr) {
      visit(shown.served->description, shown.served);
    } else {
      visit(DescribeClosed(shown), nullptr);
    }
  });
  return absl::OkStatus();
}

void CallAccess::Reading(const ServedArchive& archive) {
  // Set only once: a batch may be sending when it looks up its archive again.
  if (traffic_ == nullptr) {
    traffic_ = archive.traffic;
  }
  if (control_ != nullptr) {
    MutexLock lock(&mutex_);
    reading_ = archive.name;
  }
}

absl::Status CallAccess::CheckAgain() {
  if (control_ == nullptr || identity_ == nullptr) {
    return absl::OkStatus();
  }
  const uint64_t generation = control_->generation();
  if (generation == generation_.load(std::memory_order_acquire)) {
    const int64_t expiry_us = expiry_us_.load(std::memory_order_relaxed);
    if (expiry_us == kNever || absl::ToUnixMicros(absl::Now()) < expiry_us) {
      return absl::OkStatus();
    }
  }
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<const AccessIdentity> now,
                         control_->Refresh(*identity_));
  std::string reading;
  {
    MutexLock lock(&mutex_);
    reading = reading_;
  }
  if (!reading.empty()) {
    QUIRE_RETURN_IF_ERROR(CheckRead(now.get(), reading));
  }
  MutexLock lock(&mutex_);
  // Another thread may have checked newer rules.
  if (generation >= generation_.load(std::memory_order_relaxed)) {
    expiry_us_.store(absl::ToUnixMicros(now->expiry),
                     std::memory_order_relaxed);
    generation_.store(generation, std::memory_order_release);
  }
  return absl::OkStatus();
}

}  // namespace quire
