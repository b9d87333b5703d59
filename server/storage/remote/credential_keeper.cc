// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/credential_keeper.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace quire {
namespace {

// Before the expiry: the advisory period of botocore.
constexpr absl::Duration kRenewalTime = absl::Minutes(15);
constexpr absl::Duration kRenewalPauseMin = absl::Seconds(1);
constexpr absl::Duration kRenewalPauseMax = absl::Seconds(30);
// A changed clock of the machine is noticed within this time.
constexpr absl::Duration kClockInterval = absl::Seconds(30);

std::string Until(absl::Time expiry) {
  return expiry == absl::InfiniteFuture()
             ? ""
             : absl::StrCat(", until ",
                            absl::FormatTime(absl::RFC3339_sec, expiry,
                                             absl::UTCTimeZone()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CredentialKeeper>> CredentialKeeper::Start(
    Options options) {
  std::unique_ptr<CredentialKeeper> keeper(
      new CredentialKeeper(std::move(options)));
  try {
    keeper->thread_ = std::thread([k = keeper.get()] {
      pthread_setname_np(pthread_self(), "quire-creds");
      // OpenSSL writes to sockets that the peer has closed.
      sigset_t pipe_signal;
      sigemptyset(&pipe_signal);
      sigaddset(&pipe_signal, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
      k->Run();
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread for credentials: ", error.what()));
  }
  return keeper;
}

CredentialKeeper::~CredentialKeeper() {
  Stop();
}

void CredentialKeeper::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

std::shared_ptr<const StoreCredentials> CredentialKeeper::Current() const {
  MutexLock lock(&mutex_);
  return current_;
}

absl::Status CredentialKeeper::last_error() const {
  MutexLock lock(&mutex_);
  return error_;
}

uint64_t CredentialKeeper::failure_count() const {
  MutexLock lock(&mutex_);
  return failure_count_;
}

void CredentialKeeper::Ask(std::shared_ptr<const StoreCredentials> refused,
                           std::function<void()> done) {
  MutexLock lock(&mutex_);
  waiters_.push_back({.refused = std::move(refused), .done = std::move(done)});
  changed_.NotifyAll();
}

absl::Status CredentialKeeper::Reload(std::chrono::milliseconds time_max) {
  const auto end = std::chrono::steady_clock::now() + time_max;
  MutexLock lock(&mutex_);
  if (begun_count_ == 0) {
    return absl::OkStatus();
  }
  // One that has begun may have read the files before they changed.
  const uint64_t wanted = begun_count_ + 1;
  is_reload_wanted_ = true;
  changed_.NotifyAll();
  while (answer_count_ < wanted && !stopping_) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) {
      return absl::DeadlineExceededError(
          "no answer yet; it will be taken when it comes");
    }
    changed_.WaitFor(&mutex_, left);
  }
  return error_;
}

absl::Time CredentialKeeper::NextTime(absl::Time now, absl::Time expiry) {
  const absl::Duration left = expiry - now;
  if (left > kRenewalTime + kRenewalPauseMax) {
    return expiry - kRenewalTime;
  }
  return now + (left <= absl::ZeroDuration()
                    ? kRenewalPauseMax
                    : std::clamp(left / 4, kRenewalPauseMin, kRenewalPauseMax));
}

bool CredentialKeeper::IsDue() const {
  return is_reload_wanted_ || absl::Now() >= next_time_;
}

void CredentialKeeper::TakeAnswered(std::vector<Waiter>& answered) {
  const bool is_pausing =
      answer_count_ > 0 && !was_local_ &&
      std::chrono::steady_clock::now() - last_answer_time_ < options_.pause;
  std::vector<Waiter> asking;
  for (Waiter& waiter : waiters_) {
    const bool has_new =
        current_ != nullptr &&
        (waiter.refused == nullptr || !current_->HasKeysOf(*waiter.refused));
    (is_pausing || has_new ? answered : asking).push_back(std::move(waiter));
  }
  waiters_ = std::move(asking);
}

void CredentialKeeper::WaitForWork() {
  while (!stopping_ && waiters_.empty() && !IsDue()) {
    if (next_time_ == absl::InfiniteFuture()) {
      changed_.Wait(&mutex_);
    } else {
      changed_.WaitFor(&mutex_, absl::ToChronoNanoseconds(std::min(
                                    next_time_ - absl::Now(), kClockInterval)));
    }
  }
}

std::string CredentialKeeper::Take(CredentialFinding finding) {
  ++answer_count_;
  last_answer_time_ = std::chrono::steady_clock::now();
  was_local_ = finding.is_local;
  const bool is_signed = current_ != nullptr && current_->is_set();
  // A service that is not reachable looks like none.
  if (finding.credentials.ok() && !finding.credentials->is_set() && is_signed &&
      !is_current_local_) {
    finding.credentials = absl::UnavailableError(
        absl::StrCat(current_->source, ": gives none any more",
                     finding.credentials->source.empty() ? "" : ": ",
                     finding.credentials->source));
  }
  const bool has_failed_before = !error_.ok();
  error_ = finding.credentials.status();
  if (!error_.ok()) {
    next_time_ =
        current_ != nullptr && current_->expiry < absl::InfiniteFuture()
            ? NextTime(absl::Now(), current_->expiry)
            : absl::InfiniteFuture();
    failure_count_ += stopping_ ? 0 : 1;
    return has_failed_before || stopping_
               ? ""
               : absl::StrCat(
                     "no new credentials for object stores: ", error_.message(),
                     is_signed ? absl::StrCat("; those of ", current_->source,
                                              " stay in force",
                                              Until(current_->expiry))
                               : "");
  }
  auto found =
      std::make_shared<const StoreCredentials>(*std::move(finding.credentials));
  const bool is_news = has_failed_before || current_ == nullptr ||
                       current_->source != found->source;
  current_ = std::move(found);
  is_current_local_ = finding.is_local;
  next_time_ = current_->expiry < absl::InfiniteFuture()
                   ? NextTime(absl::Now(), current_->expiry)
                   : absl::InfiniteFuture();
  if (!is_news) {
    return "";
  }
  return current_->is_set()
             ? absl::StrCat("credentials for object stores: ", current_->source,
                            Until(current_->expiry))
             : absl::StrCat(
                   "no credentials for object stores, requests are "
                   "not signed",
                   current_->source.empty() ? "" : ": ", current_->source);
}

void CredentialKeeper::Run() {
  while (true) {
    std::vector<Waiter> answered;
    std::vector<Waiter> asking;
    bool is_asking = false;
    {
      MutexLock lock(&mutex_);
      WaitForWork();
      if (stopping_) {
        return;
      }
      TakeAnswered(answered);
      is_asking = !waiters_.empty() || IsDue();
      if (is_asking) {
        is_reload_wanted_ = false;
        ++begun_count_;
        asking.swap(waiters_);
      }
    }
    for (const Waiter& waiter : answered) {
      waiter.done();
    }
    if (!is_asking) {
      continue;
    }
    CredentialFinding finding = options_.find(stopping_);
    std::string line;
    bool is_failure = false;
    {
      MutexLock lock(&mutex_);
      line = Take(std::move(finding));
      is_failure = !error_.ok();
      changed_.NotifyAll();
    }
    if (!line.empty() && options_.notice) {
      options_.notice(is_failure, line);
    }
    for (const Waiter& waiter : asking) {
      waiter.done();
    }
  }
}

}  // namespace quire
