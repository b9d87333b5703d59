// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/listed_archive.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "server/service/base/service_error.h"

namespace quire {
namespace {

// A second is doubled at most this often.
constexpr uint32_t kDoublingsMax = 10;

}  // namespace

ListedArchive::ListedArchive(ArchiveArgument argument,
                             v1::ArchiveDescription description,
                             SharedParts parts)
    : argument_(std::move(argument)), parts_(std::move(parts)) {
  description.set_state(v1::ARCHIVE_STATE_CLOSED);
  closed_ =
      std::make_shared<const v1::ArchiveDescription>(std::move(description));
}

ListedArchive::Description ListedArchive::description() const {
  MutexLock lock(&mutex_);
  if (!is_wanted_) {
    return closed_;
  }
  auto opening = std::make_shared<v1::ArchiveDescription>(*closed_);
  opening->set_state(v1::ARCHIVE_STATE_OPENING);
  return opening;
}

SharedParts ListedArchive::parts() const {
  MutexLock lock(&mutex_);
  return parts_;
}

void ListedArchive::SetParts(SharedParts parts) {
  MutexLock lock(&mutex_);
  parts_ = std::move(parts);
}

bool ListedArchive::Want(Clock::time_point now) {
  MutexLock lock(&mutex_);
  if (is_wanted_ || (failure_count_ > 0 && now < retry_at_)) {
    return false;
  }
  is_wanted_ = true;
  return true;
}

std::optional<ListedArchive::Clock::duration> ListedArchive::RetryDelay(
    Clock::time_point now) const {
  MutexLock lock(&mutex_);
  if (is_wanted_ || failure_count_ == 0 || now >= retry_at_) {
    return std::nullopt;
  }
  return retry_at_ - now;
}

bool ListedArchive::has_failed() const {
  MutexLock lock(&mutex_);
  return failure_count_ > 0;
}

void ListedArchive::Opened(const std::shared_ptr<ServedArchive>& served,
                           Clock::time_point now) {
  auto description = std::make_shared<v1::ArchiveDescription>();
  *description = served->description;
  description->set_state(v1::ARCHIVE_STATE_CLOSED);
  Touch(now);
  MutexLock lock(&mutex_);
  // Checks that continue with the files need not begin again.
  if (files_ == served->archive->files()) {
    served->opening_id = opening_id_;
  }
  files_ = served->archive->files();
  opening_id_ = served->opening_id;
  closed_ = std::move(description);
  parts_ = SharedParts(served->archive->info());
  last_ = served;
  opened_at_ = now;
}

void ListedArchive::Published() {
  MutexLock lock(&mutex_);
  failure_count_ = 0;
  is_wanted_ = false;
}

ListedArchive::Clock::duration ListedArchive::Failed(Clock::time_point now) {
  MutexLock lock(&mutex_);
  is_wanted_ = false;
  const std::chrono::seconds delay = std::min<std::chrono::seconds>(
      kRetryDelayMin * (1U << std::min(failure_count_, kDoublingsMax)),
      kRetryDelayMax);
  ++failure_count_;
  retry_at_ = now + delay;
  return delay;
}

void ListedArchive::Cancelled() {
  MutexLock lock(&mutex_);
  is_wanted_ = false;
}

void ListedArchive::Forgive() {
  MutexLock lock(&mutex_);
  retry_at_ = Clock::time_point::min();
}

std::shared_ptr<const ServedArchive> ListedArchive::last() const {
  MutexLock lock(&mutex_);
  return last_.lock();
}

bool ListedArchive::MayClose(Clock::time_point now) const {
  MutexLock lock(&mutex_);
  return used_at() > opened_at_ || now >= opened_at_ + kUnusedTimeMin;
}

absl::Status NotOpenYet(const ListedArchive& archive) {
  const std::string& name = archive.argument().name;
  const auto delay = archive.RetryDelay(ListedArchive::Clock::now());
  if (!delay.has_value()) {
    return StillOpening(name);
  }
  const absl::Duration wait = absl::FromChrono(*delay);
  return ServiceError(
      absl::StatusCode::kUnavailable, v1::ARCHIVE_OPENING,
      absl::StrCat("archive \"", name,
                   "\" could not be opened, and the server's log has the "
                   "reason; it tries again in ",
                   absl::FormatDuration(absl::Ceil(wait, absl::Seconds(1)))),
      {{"archive", name}}, wait);
}

}  // namespace quire
