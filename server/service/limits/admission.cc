// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/admission.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/service/base/service_error.h"

namespace quire {
namespace {

// Upper bound on the delay of ending a wait, also for answers that become old.
constexpr std::chrono::milliseconds kTimerStep{25};

}  // namespace

uint64_t ClientIdOf(absl::string_view client) {
  return Checksum64(AsBytes(client));
}

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    Release();
    admission_ = std::exchange(other.admission_, nullptr);
    client_ = std::move(other.client_);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
    use_ = other.use_;
    fresh_id_ = std::exchange(other.fresh_id_, 0);
  }
  return *this;
}

absl::Status Admission::Ticket::Grow(uint64_t size_bytes) {
  absl::Status claimed = admission_->Claim(client_, size_bytes, use_);
  if (claimed.ok()) {
    size_bytes_ += size_bytes;
  }
  return claimed;
}

bool Admission::Ticket::TryGrow(uint64_t size_bytes) {
  MutexLock lock(&admission_->mutex_);
  if (!admission_->TryClaim(client_, size_bytes,
                            admission_->total_max_bytes_ / 2,
                            admission_->client_max_bytes_ / 2)) {
    return false;
  }
  size_bytes_ += size_bytes;
  return true;
}

void Admission::Ticket::Fit(uint64_t least_bytes, uint64_t size_bytes) {
  Calls calls;
  {
    MutexLock lock(&admission_->mutex_);
    admission_->Fit(*this, least_bytes, size_bytes);
    admission_->GiveTurns(calls);
  }
  Run(calls);
}

void Admission::Fit(Ticket& ticket, uint64_t least_bytes, uint64_t size_bytes) {
  const uint64_t room_bytes = total_max_bytes_ / 2;
  const int64_t leeway_bytes = LeewayOf(ticket.client_, room_bytes);
  if (leeway_bytes < 0) {
    const uint64_t surplus_bytes =
        ticket.size_bytes_ - std::min(ticket.size_bytes_, least_bytes);
    const uint64_t given_bytes =
        std::min(surplus_bytes, static_cast<uint64_t>(-leeway_bytes));
    ReturnLocked(ticket.client_, given_bytes);
    ticket.size_bytes_ -= given_bytes;
    return;
  }
  const uint64_t more_bytes =
      std::min(size_bytes - std::min(size_bytes, ticket.size_bytes_),
               static_cast<uint64_t>(leeway_bytes));
  if (TryClaim(ticket.client_, more_bytes, room_bytes, client_max_bytes_ / 2)) {
    ticket.size_bytes_ += more_bytes;
  }
}

void Admission::Ticket::Shrink(uint64_t size_bytes) {
  admission_->Return(client_, size_bytes);
  size_bytes_ -= size_bytes;
}

absl::Status Admission::Ticket::Resize(uint64_t size_bytes) {
  if (size_bytes > size_bytes_) {
    return Grow(size_bytes - size_bytes_);
  }
  if (size_bytes < size_bytes_) {
    Shrink(size_bytes_ - size_bytes);
  }
  return absl::OkStatus();
}

void Admission::Ticket::Release() {
  if (admission_ != nullptr) {
    admission_->Return(client_, size_bytes_, fresh_id_);
    admission_ = nullptr;
    size_bytes_ = 0;
    fresh_id_ = 0;
  }
}

absl::StatusOr<Admission::Ticket> Admission::Admit(absl::string_view client,
                                                   uint64_t size_bytes,
                                                   Use use) {
  absl::Status claimed = Claim(client, size_bytes, use);
  if (!claimed.ok()) {
    return claimed;
  }
  return Ticket(this, std::string(client), size_bytes, use);
}

absl::StatusOr<Admission::Ticket> Admission::AdmitWindow(
    absl::string_view client, uint64_t least_bytes, uint64_t start_bytes) {
  absl::StatusOr<Ticket> ticket = Admit(client, least_bytes, Use::kStream);
  if (ticket.ok() && start_bytes > least_bytes) {
    MutexLock lock(&mutex_);
    const uint64_t room_bytes = total_max_bytes_ / 8;
    const int64_t leeway_bytes = LeewayOf(client, room_bytes);
    const uint64_t more_bytes =
        std::min(start_bytes - least_bytes,
                 static_cast<uint64_t>(std::max(int64_t{0}, leeway_bytes)));
    if (TryClaim(client, more_bytes, room_bytes, client_max_bytes_ / 2)) {
      ticket->size_bytes_ += more_bytes;
    }
  }
  return ticket;
}

absl::Status Admission::Claim(absl::string_view client, uint64_t size_bytes,
                              Use use) {
  const uint64_t client_bytes_max =
      use == Use::kStream ? client_streams_max_bytes_ : client_max_bytes_;
  QUIRE_RETURN_IF_ERROR(CheckShare(size_bytes, client_bytes_max));
  const uint64_t room_bytes = use == Use::kStream
                                  ? total_max_bytes_ - total_max_bytes_ / 4
                                  : total_max_bytes_;
  MutexLock lock(&mutex_);
  return TryClaim(client, size_bytes, room_bytes, client_bytes_max)
             ? absl::OkStatus()
             : Refuse(client, size_bytes, client_bytes_max);
}

absl::Status Admission::Refuse(absl::string_view client, uint64_t size_bytes,
                               uint64_t client_bytes_max) {
  const bool client_is_full =
      client_bytes_max - std::min(client_bytes_max, HeldBy(client)) <
      size_bytes;
  ++rejected_count_;
  return ServiceError(
      absl::StatusCode::kResourceExhausted, v1::SERVER_BUSY,
      client_is_full
          ? "this client has too many bytes of answers in flight; read them or "
            "retry later"
          : "the server has too many bytes of answers in flight; retry later",
      {}, pacer_.Refuse(client, size_bytes, returned_bytes_, clock_()));
}

absl::Status Admission::CheckShare(uint64_t size_bytes,
                                   uint64_t client_bytes_max) {
  if (size_bytes <= client_bytes_max) {
    return absl::OkStatus();
  }
  return ServiceError(
      absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
      absl::StrCat("the answer needs ", size_bytes,
                   " bytes in memory and a client may hold ", client_bytes_max,
                   "; ask for less at a time"),
      {{"limit", "client_in_flight_size_bytes_max"}});
}

std::optional<absl::StatusOr<Admission::Ticket>> Admission::AdmitInTurn(
    absl::string_view client, uint64_t size_bytes, uint64_t waiting_bytes,
    Admitted admitted, TurnId& id) {
  QUIRE_RETURN_IF_ERROR(CheckShare(size_bytes, client_max_bytes_));
  Calls calls;
  {
    MutexLock lock(&mutex_);
    const absl::Time now = clock_();
    fresh_.NoteCall(ClientIdOf(client), now);
    if (IsNext(client, now) && HasShare(client, size_bytes, now) &&
        TryClaim(client, size_bytes, total_max_bytes_, client_max_bytes_)) {
      return Ticket(this, std::string(client), size_bytes, Use::kSingleAnswer,
                    fresh_.Begin(ClientIdOf(client), size_bytes, now));
    }
    if (!HasRoomInLine(client, waiting_bytes)) {
      return Refuse(client, size_bytes, client_max_bytes_);
    }
    id = StandInLine(client, size_bytes, waiting_bytes, std::move(admitted));
    // The others may all wait for their own share: it is the first line then.
    GiveTurns(calls);
  }
  Run(calls);
  return std::nullopt;
}

bool Admission::HasShare(absl::string_view client, uint64_t size_bytes,
                         absl::Time now) {
  return HeldBy(client) <= client_max_bytes_ - size_bytes &&
         fresh_.MayBegin(ClientIdOf(client), size_bytes, now);
}

bool Admission::IsNext(absl::string_view client, absl::Time now) {
  if (lines_.empty()) {
    return true;
  }
  // After GiveTurns() the first line waits for bytes of others, or each line
  // for its own share.
  const Line& first = lines_.front();
  const uint64_t size_bytes =
      waiters_.find(first.turns.front())->second.size_bytes;
  return !line_of_client_.contains(client) &&
         !HasShare(first.client, size_bytes, now);
}

bool Admission::HasRoomInLine(absl::string_view client,
                              uint64_t waiting_bytes) const {
  const auto line = line_of_client_.find(client);
  const bool has_line = line != line_of_client_.end();
  const size_t own_count = has_line ? line->second->turns.size() : 0;
  const uint64_t own_bytes = has_line ? line->second->waiting_bytes : 0;
  const uint64_t free_bytes = kWaitingBytesMax - waiting_bytes_;
  return own_count < kWaitingAnswersMax - waiters_.size() &&
         own_bytes <= free_bytes && waiting_bytes <= free_bytes - own_bytes;
}

Admission::TurnId Admission::StandInLine(absl::string_view client,
                                         uint64_t size_bytes,
                                         uint64_t waiting_bytes,
                                         Admitted admitted) {
  const auto [found, is_first] =
      line_of_client_.try_emplace(client, lines_.end());
  if (is_first) {
    found->second = lines_.insert(
        lines_.end(),
        {.client = std::string(client), .turns = {}, .waiting_bytes = 0});
  }
  const TurnId id = ++last_turn_;
  found->second->turns.push_back(id);
  found->second->waiting_bytes += waiting_bytes;
  waiting_bytes_ += waiting_bytes;
  waiters_.emplace(id, Waiter{.line = found->second,
                              .size_bytes = size_bytes,
                              .waiting_bytes = waiting_bytes,
                              .due = clock_() + kTurnWaitMax,
                              .admitted = std::move(admitted)});
  timer_changed_.NotifyAll();
  return id;
}

Admission::Admitted Admission::TakeOut(
    std::map<TurnId, Waiter>::iterator waiter) {
  Admitted admitted = std::move(waiter->second.admitted);
  waiting_bytes_ -= waiter->second.waiting_bytes;
  const std::list<Line>::iterator line = waiter->second.line;
  line->waiting_bytes -= waiter->second.waiting_bytes;
  std::erase(line->turns, waiter->first);
  if (line->turns.empty()) {
    line_of_client_.erase(line->client);
    lines_.erase(line);
  }
  waiters_.erase(waiter);
  return admitted;
}

void Admission::GiveTurns(Calls& calls) {
  size_t passed_over_count = 0;
  const absl::Time now = lines_.empty() ? absl::Time() : clock_();
  while (passed_over_count < lines_.size()) {
    const std::string client = lines_.front().client;
    const auto first = waiters_.find(lines_.front().turns.front());
    const uint64_t size_bytes = first->second.size_bytes;
    const bool has_share = HasShare(client, size_bytes, now);
    if (has_share &&
        !TryClaim(client, size_bytes, total_max_bytes_, client_max_bytes_)) {
      return;
    }
    lines_.splice(lines_.end(), lines_, lines_.begin());
    if (!has_share) {
      ++passed_over_count;
      continue;
    }
    passed_over_count = 0;
    const FreshAnswers::Id fresh_id =
        fresh_.Begin(ClientIdOf(client), size_bytes, now);
    calls.emplace_back([this, client, size_bytes, fresh_id,
                        admitted = TakeOut(first)] {
      admitted(Ticket(this, client, size_bytes, Use::kSingleAnswer, fresh_id));
    });
  }
}

void Admission::Withdraw(TurnId id) {
  Calls calls;
  {
    MutexLock lock(&mutex_);
    const auto waiter = waiters_.find(id);
    if (waiter == waiters_.end()) {
      return;
    }
    calls.emplace_back([admitted = TakeOut(waiter)] {
      admitted(ServiceError(absl::StatusCode::kCancelled, v1::CALL_CANCELLED,
                            "the call was cancelled"));
    });
    // It may have blocked others.
    GiveTurns(calls);
  }
  Run(calls);
}

void Admission::EndLateTurns() {
  Calls calls;
  {
    MutexLock lock(&mutex_);
    const absl::Time now = clock_();
    while (!waiters_.empty() && waiters_.begin()->second.due <= now) {
      const auto waiter = waiters_.begin();
      const absl::Status status =
          Refuse(waiter->second.line->client, waiter->second.size_bytes,
                 client_max_bytes_);
      calls.emplace_back(
          [status, admitted = TakeOut(waiter)] { admitted(status); });
    }
    GiveTurns(calls);
  }
  Run(calls);
}

void Admission::StartTimer() {
  timer_ = std::thread([this] { RunTimer(); });
}

void Admission::RunTimer() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (waiters_.empty() && !timer_stops_) {
        timer_changed_.Wait(&mutex_);
      }
      if (!timer_stops_) {
        timer_changed_.WaitFor(&mutex_, kTimerStep);
      }
      if (timer_stops_) {
        return;
      }
    }
    EndLateTurns();
  }
}

Admission::~Admission() {
  {
    MutexLock lock(&mutex_);
    timer_stops_ = true;
    timer_changed_.NotifyAll();
  }
  if (timer_.joinable()) {
    timer_.join();
  }
}

void Admission::Run(const Calls& calls) {
  for (const std::function<void()>& call : calls) {
    call();
  }
}

bool Admission::TryClaim(absl::string_view client, uint64_t size_bytes,
                         uint64_t total_bytes_max, uint64_t client_bytes_max) {
  if (size_bytes == 0) {
    // An empty answer: do not leave an empty entry.
    return true;
  }
  if (total_bytes_max - std::min(total_bytes_max, total_bytes_) < size_bytes) {
    return false;
  }
  uint64_t& held_bytes = client_bytes_[client];
  if (client_bytes_max - std::min(client_bytes_max, held_bytes) < size_bytes) {
    if (held_bytes == 0) {
      client_bytes_.erase(client);
    }
    return false;
  }
  total_bytes_ += size_bytes;
  held_bytes += size_bytes;
  return true;
}

// Returns how many bytes the streams of `client` may take until they hold as
// much of `room_bytes` as they leave free; if negative, how many they should
// return.
int64_t Admission::LeewayOf(absl::string_view client,
                            uint64_t room_bytes) const {
  const uint64_t free_bytes = room_bytes - std::min(room_bytes, total_bytes_);
  // Half: bytes that it takes reduce what it leaves free.
  return (static_cast<int64_t>(free_bytes) -
          static_cast<int64_t>(HeldBy(client))) /
         2;
}

uint64_t Admission::HeldBy(absl::string_view client) const {
  const auto held = client_bytes_.find(client);
  return held == client_bytes_.end() ? 0 : held->second;
}

void Admission::Return(absl::string_view client, uint64_t size_bytes,
                       FreshAnswers::Id fresh_id) {
  Calls calls;
  {
    MutexLock lock(&mutex_);
    ReturnLocked(client, size_bytes);
    if (fresh_id != 0) {
      fresh_.End(fresh_id);
    }
    GiveTurns(calls);
  }
  Run(calls);
}

void Admission::ReturnLocked(absl::string_view client, uint64_t size_bytes) {
  if (size_bytes == 0) {
    return;
  }
  returned_bytes_ += size_bytes;
  total_bytes_ -= size_bytes;
  const auto held = client_bytes_.find(client);
  held->second -= size_bytes;
  if (held->second == 0) {
    client_bytes_.erase(held);
  }
}

uint64_t Admission::in_flight_bytes() const {
  MutexLock lock(&mutex_);
  return total_bytes_;
}

size_t Admission::waiting_count() const {
  MutexLock lock(&mutex_);
  return waiters_.size();
}

uint64_t Admission::rejected_count() const {
  MutexLock lock(&mutex_);
  return rejected_count_;
}

}  // namespace quire
