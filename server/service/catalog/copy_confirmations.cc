// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/copy_confirmations.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

#include "codecs/base/monotonic_time.h"
#include "codecs/base/unique_fd.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/small_file.h"

namespace quire {
namespace {

constexpr uint64_t kFileSizeBytesMax = 100;
// The time of a confirmation is written this often at most.
constexpr absl::Duration kWriteInterval = absl::Minutes(1);
// A confirmation that is later than now by more than this was written with
// another clock: its age is not known.
constexpr absl::Duration kClockErrorMax = absl::Minutes(1);
// Less than the interval of retries.
constexpr absl::Duration kSilenceTime = absl::Seconds(4);

std::string FormatAge(absl::Duration age) {
  return absl::FormatDuration(absl::Trunc(age, absl::Seconds(1)));
}

std::string FileIn(const std::string& path) {
  return absl::StrCat(path, "/", kConfirmedFileName);
}

// Finds the age of a confirmation by an earlier process.
// Errors: Unavailable  the reason.
absl::StatusOr<absl::Duration> ReadAge(const std::string& path,
                                       uint64_t manifest_checksum) {
  const auto text = ReadSmallFile(FileIn(path), kFileSizeBytesMax);
  const std::optional<absl::Time> confirmed =
      text.ok() ? ParseConfirmation(*text, manifest_checksum) : std::nullopt;
  if (!confirmed.has_value()) {
    return absl::UnavailableError("was not confirmed by the store");
  }
  const absl::Duration age = absl::Now() - *confirmed;
  if (age < -kClockErrorMax) {
    return absl::UnavailableError(
        absl::StrCat("was confirmed by the store at ",
                     absl::FormatTime(*confirmed, absl::UTCTimeZone()),
                     ", which is in the future: check this machine's clock"));
  }
  return std::max(age, absl::ZeroDuration());
}

}  // namespace

std::string FormatConfirmation(absl::Time time, uint64_t manifest_checksum) {
  return absl::StrFormat("%d %016x\n", absl::ToUnixSeconds(time),
                         manifest_checksum);
}

std::optional<absl::Time> ParseConfirmation(absl::string_view text,
                                            uint64_t manifest_checksum) {
  int64_t seconds = 0;
  const size_t space = text.find(' ');
  if (space == absl::string_view::npos ||
      !absl::SimpleAtoi(text.substr(0, space), &seconds)) {
    return std::nullopt;
  }
  const absl::Time time = absl::FromUnixSeconds(seconds);
  return text == FormatConfirmation(time, manifest_checksum)
             ? std::optional(time)
             : std::nullopt;
}

void CopyConfirmations::Confirm(const std::string& path,
                                uint64_t manifest_checksum) {
  const absl::Time now = MonotonicNow();
  {
    MutexLock lock(&mutex_);
    Entry& entry = entries_[path];
    stale_count_ -= entry.stale_reason.has_value() ? 1 : 0;
    entry.stale_reason.reset();
    entry.confirmed_at = now;
    if (!are_wanted() ||
        now < entry.written_at + std::min(kWriteInterval, stale_max_ / 10)) {
      return;
    }
    entry.written_at = now;
  }
  if (!ReplaceFile(path, kConfirmedFileName,
                   FormatConfirmation(absl::Now(), manifest_checksum))
           .ok()) {
    // To a later process the copy seems older than it is.
    MutexLock lock(&mutex_);
    entries_[path].written_at = absl::InfinitePast();
  }
}

void CopyConfirmations::Deny(const std::string& path) {
  Forget(path);
  // Text that was removed must not come back.
  if (unlink(FileIn(path).c_str()) == 0) {
    const UniqueFd directory(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    SyncDirectory(directory.get(), path).IgnoreError();
  }
}

absl::Status CopyConfirmations::CheckAge(absl::Duration age) const {
  return age <= stale_max_
             ? absl::OkStatus()
             : absl::UnavailableError(absl::StrCat(
                   "was last confirmed by the store ", FormatAge(age),
                   " ago, more than --store-stale-max ",
                   absl::FormatDuration(stale_max_)));
}

absl::Status CopyConfirmations::Check(const std::string& path,
                                      uint64_t manifest_checksum) {
  absl::Time confirmed_at = absl::InfinitePast();
  {
    MutexLock lock(&mutex_);
    confirmed_at = entries_[path].confirmed_at;
  }
  if (confirmed_at == absl::InfinitePast()) {
    const absl::StatusOr<absl::Duration> age = ReadAge(path, manifest_checksum);
    if (!age.ok()) {
      return age.status();
    }
    // From now on the system's clock may be set.
    confirmed_at = MonotonicNow() - *age;
    MutexLock lock(&mutex_);
    entries_[path].confirmed_at = confirmed_at;
  }
  return CheckAge(MonotonicNow() - confirmed_at);
}

void CopyConfirmations::SetStale(const std::string& path,
                                 absl::string_view reason) {
  MutexLock lock(&mutex_);
  Entry& entry = entries_[path];
  stale_count_ += entry.stale_reason.has_value() ? 0 : 1;
  entry.stale_reason = std::string(reason);
}

std::optional<CopyConfirmations::StaleCopy> CopyConfirmations::FindStale(
    const std::string& path) const {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(path);
  return found == entries_.end() || !found->second.stale_reason.has_value()
             ? std::nullopt
             : std::optional(
                   StaleCopy{.age = MonotonicNow() - found->second.confirmed_at,
                             .reason = *found->second.stale_reason});
}

absl::Status CopyConfirmations::CheckStale(const std::string& path) const {
  const std::optional<StaleCopy> stale = FindStale(path);
  return stale.has_value()
             ? CheckAge(stale->age)
             : absl::UnavailableError(
                   "is not confirmed by the store, which has answered");
}

size_t CopyConfirmations::stale_count() const {
  MutexLock lock(&mutex_);
  return stale_count_;
}

void CopyConfirmations::Forget(const std::string& path) {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(path);
  if (found != entries_.end()) {
    stale_count_ -= found->second.stale_reason.has_value() ? 1 : 0;
    entries_.erase(found);
  }
}

void CopyConfirmations::NoteSilence(const std::string& store,
                                    const absl::Status& error) {
  MutexLock lock(&mutex_);
  if (error.ok()) {
    silences_.erase(store);
  } else {
    silences_.insert_or_assign(store, std::pair(MonotonicNow(), error));
  }
}

std::optional<absl::Status> CopyConfirmations::RecentSilence(
    const std::string& store) const {
  MutexLock lock(&mutex_);
  const auto found = silences_.find(store);
  return found != silences_.end() &&
                 MonotonicNow() < found->second.first + kSilenceTime
             ? std::optional(found->second.second)
             : std::nullopt;
}

}  // namespace quire
