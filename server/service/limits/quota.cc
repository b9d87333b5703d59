// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/quota.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"

namespace quire {
namespace {

constexpr uint64_t kQuotaMax = 1'000'000'000'000'000;
constexpr absl::Duration kWaitMin = absl::Milliseconds(10);

absl::StatusOr<uint64_t> ParseCount(absl::string_view key,
                                    absl::string_view value) {
  if (value == "none") {
    return kUnlimited;
  }
  uint64_t count = 0;
  bool is_good = absl::SimpleAtoi(value, &count);
  if (!is_good && key == "bytes") {
    const absl::StatusOr<uint64_t> size_bytes = ParseByteSize(value);
    is_good = size_bytes.ok();
    count = size_bytes.value_or(0);
  }
  if (!is_good || count == 0 || count > kQuotaMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " must be a number from 1 to 10^15",
                     key == "bytes" ? ", a size like 16MiB" : "",
                     ", or none, got ", QuotedText(value)));
  }
  return count;
}

std::optional<uint64_t> LimitOr(const std::optional<uint64_t>& limit,
                                const std::optional<uint64_t>& otherwise) {
  const std::optional<uint64_t>& chosen = limit.has_value() ? limit : otherwise;
  return chosen == kUnlimited ? std::nullopt : chosen;
}

absl::Status Exceeded(absl::string_view what, absl::Duration wait) {
  return ServiceError(absl::StatusCode::kResourceExhausted, v1::QUOTA_EXCEEDED,
                      what, {}, std::max(wait, kWaitMin));
}

// Fills with `rate` per second and holds as much.
class Bucket {
 public:
  Bucket(std::optional<uint64_t> rate, absl::Time now)
      : rate_(static_cast<double>(rate.value_or(0))), level_(rate_), at_(now) {}

  bool is_bounded() const { return rate_ > 0; }

  bool is_full(absl::Time now) {
    Fill(now);
    return level_ >= rate_;
  }

  void Take(double amount) { level_ -= amount; }

  // Returns the time until it holds `amount`; zero if it does.
  absl::Duration WaitFor(double amount, absl::Time now) {
    if (!is_bounded()) {
      return absl::ZeroDuration();
    }
    Fill(now);
    return level_ >= amount ? absl::ZeroDuration()
                            : absl::Seconds((amount - level_) / rate_);
  }

 private:
  void Fill(absl::Time now) {
    if (now > at_) {
      level_ =
          std::min(rate_, level_ + rate_ * absl::ToDoubleSeconds(now - at_));
    }
    at_ = now;
  }

  double rate_;
  double level_;
  absl::Time at_;
};

}  // namespace

Quota Quota::WithDefaults(const Quota& defaults) const {
  return {
      .calls_per_second = LimitOr(calls_per_second, defaults.calls_per_second),
      .bytes_per_second = LimitOr(bytes_per_second, defaults.bytes_per_second),
      .streams = LimitOr(streams, defaults.streams)};
}

absl::StatusOr<bool> SetQuota(absl::string_view key, absl::string_view value,
                              Quota& quota) {
  std::optional<uint64_t>* field = key == "calls"     ? &quota.calls_per_second
                                   : key == "bytes"   ? &quota.bytes_per_second
                                   : key == "streams" ? &quota.streams
                                                      : nullptr;
  if (field == nullptr) {
    return false;
  }
  QUIRE_ASSIGN_OR_RETURN(*field, ParseCount(key, value));
  return true;
}

absl::StatusOr<Quota> ParseQuota(absl::string_view text) {
  Quota quota;
  std::vector<absl::string_view> keys;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> setting =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    QUIRE_ASSIGN_OR_RETURN(const bool is_known,
                           SetQuota(setting.first, setting.second, quota));
    if (!is_known ||
        std::find(keys.begin(), keys.end(), setting.first) != keys.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a quota must be one or more of calls=N, bytes=SIZE and streams=N, "
          "separated by commas, got ",
          QuotedText(text)));
    }
    keys.push_back(setting.first);
  }
  return quota;
}

struct QuotaBook::Use::Account {
  Account(const Quota& the_quota, absl::Time now)
      : quota(the_quota),
        calls(the_quota.calls_per_second, now),
        bytes(the_quota.bytes_per_second, now) {}

  Mutex mutex;
  // Quota of the latest call: the rules may have changed.
  Quota quota ABSL_GUARDED_BY(mutex);
  Bucket calls ABSL_GUARDED_BY(mutex);
  Bucket bytes ABSL_GUARDED_BY(mutex);
  uint64_t stream_count ABSL_GUARDED_BY(mutex) = 0;
};

QuotaBook::Use& QuotaBook::Use::operator=(Use&& other) noexcept {
  if (this != &other) {
    End();
    book_ = other.book_;
    account_ = std::move(other.account_);
    is_stream_ = other.is_stream_;
  }
  return *this;
}

void QuotaBook::Use::End() {
  if (account_ != nullptr && is_stream_) {
    MutexLock lock(&account_->mutex);
    --account_->stream_count;
  }
  account_.reset();
}

void QuotaBook::Use::Sent(uint64_t size_bytes) {
  if (account_ != nullptr) {
    MutexLock lock(&account_->mutex);
    if (account_->bytes.is_bounded()) {
      account_->bytes.Take(static_cast<double>(size_bytes));
    }
  }
}

absl::Status QuotaBook::Use::Check() const {
  if (account_ == nullptr) {
    return absl::OkStatus();
  }
  MutexLock lock(&account_->mutex);
  const absl::Duration wait = account_->bytes.WaitFor(0, book_->clock_());
  return wait <= absl::Seconds(1)
             ? absl::OkStatus()
             : Exceeded("this client exceeds its limit on bytes per second",
                        wait);
}

absl::StatusOr<QuotaBook::Use> QuotaBook::Begin(const std::string& client,
                                                const Quota& quota,
                                                bool is_stream) {
  Use use;
  if (!quota.is_set()) {
    return use;
  }
  {
    MutexLock lock(&mutex_);
    if (accounts_.size() >= looked_for_at_) {
      ForgetIdle();
    }
    std::shared_ptr<Use::Account>& account = accounts_[client];
    if (account == nullptr) {
      account = std::make_shared<Use::Account>(quota, clock_());
    }
    use.account_ = account;
  }
  use.book_ = this;
  Use::Account& account = *use.account_;
  MutexLock lock(&account.mutex);
  // Under the lock: otherwise simultaneous calls would each credit the same
  // time.
  const absl::Time now = clock_();
  if (account.quota.calls_per_second != quota.calls_per_second) {
    account.calls = Bucket(quota.calls_per_second, now);
  }
  if (account.quota.bytes_per_second != quota.bytes_per_second) {
    account.bytes = Bucket(quota.bytes_per_second, now);
  }
  account.quota = quota;
  if (const absl::Duration wait = account.calls.WaitFor(1, now);
      wait > absl::ZeroDuration()) {
    return Exceeded(
        absl::StrCat("this client may make ", *quota.calls_per_second,
                     " calls per second, and has made more"),
        wait);
  }
  if (const absl::Duration wait = account.bytes.WaitFor(0, now);
      wait > absl::ZeroDuration()) {
    return Exceeded(
        absl::StrCat("this client may read ", *quota.bytes_per_second,
                     " bytes per second, and has read more"),
        wait);
  }
  if (is_stream && quota.streams.has_value() &&
      account.stream_count >= *quota.streams) {
    return Exceeded(
        absl::StrCat("this client may have ", *quota.streams,
                     " streams at a time, and has them; end one, or retry"),
        absl::Seconds(1));
  }
  if (account.calls.is_bounded()) {
    account.calls.Take(1);
  }
  if (is_stream) {
    ++account.stream_count;
    use.is_stream_ = true;
  }
  return use;
}

void QuotaBook::ForgetIdle() {
  absl::erase_if(accounts_, [this](const auto& entry) {
    Use::Account& account = *entry.second;
    // No call uses it, and none can start using it meanwhile.
    if (entry.second.use_count() > 1) {
      return false;
    }
    MutexLock lock(&account.mutex);
    const absl::Time now = clock_();
    return account.calls.is_full(now) && account.bytes.is_full(now);
  });
  looked_for_at_ = std::max<size_t>(64, 2 * accounts_.size());
}

size_t QuotaBook::size() const {
  MutexLock lock(&mutex_);
  return accounts_.size();
}

}  // namespace quire
