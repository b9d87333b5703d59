// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/admission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "server/service/base/service_error.h"

namespace quire {
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
  MutexLock lock(&admission_->mutex_);
  const uint64_t room_bytes = admission_->total_max_bytes_ / 2;
  const int64_t leeway_bytes = admission_->LeewayOf(client_, room_bytes);
  if (leeway_bytes < 0) {
    const uint64_t surplus_bytes =
        size_bytes_ - std::min(size_bytes_, least_bytes);
    const uint64_t given_bytes =
        std::min(surplus_bytes, static_cast<uint64_t>(-leeway_bytes));
    admission_->ReturnLocked(client_, given_bytes);
    size_bytes_ -= given_bytes;
    return;
  }
  const uint64_t more_bytes =
      std::min(size_bytes - std::min(size_bytes, size_bytes_),
               static_cast<uint64_t>(leeway_bytes));
  if (admission_->TryClaim(client_, more_bytes, room_bytes,
                           admission_->client_max_bytes_ / 2)) {
    size_bytes_ += more_bytes;
  }
}

void Admission::Ticket::Shrink(uint64_t size_bytes) {
  admission_->Return(client_, size_bytes);
  size_bytes_ -= size_bytes;
}

void Admission::Ticket::Release() {
  if (admission_ != nullptr) {
    admission_->Return(client_, size_bytes_);
    admission_ = nullptr;
    size_bytes_ = 0;
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
  if (size_bytes > client_bytes_max) {
    return ServiceError(
        absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
        absl::StrCat("the answer needs ", size_bytes,
                     " bytes in memory and a client may hold ",
                     client_bytes_max, "; ask for less at a time"),
        {{"limit", "client_in_flight_size_bytes_max"}});
  }
  const uint64_t room_bytes = use == Use::kStream
                                  ? total_max_bytes_ - total_max_bytes_ / 4
                                  : total_max_bytes_;
  bool client_is_full = false;
  absl::Duration retry_after;
  {
    MutexLock lock(&mutex_);
    if (TryClaim(client, size_bytes, room_bytes, client_bytes_max)) {
      return absl::OkStatus();
    }
    client_is_full =
        client_bytes_max - std::min(client_bytes_max, HeldBy(client)) <
        size_bytes;
    ++rejected_count_;
    retry_after = pacer_.Refuse(client, size_bytes, returned_bytes_, clock_());
  }
  return ServiceError(
      absl::StatusCode::kResourceExhausted, v1::SERVER_BUSY,
      client_is_full
          ? "this client has too many bytes of answers in flight; read them or "
            "retry later"
          : "the server has too many bytes of answers in flight; retry later",
      {}, retry_after);
}

bool Admission::TryClaim(absl::string_view client, uint64_t size_bytes,
                         uint64_t total_bytes_max, uint64_t client_bytes_max) {
  if (size_bytes == 0) {
    // An empty answer: it must not leave an entry of nothing behind.
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

// How far `client` is from holding as much of `room_bytes` as it leaves free,
// all its streams together: what it may take, or, below 0, should give back.
int64_t Admission::LeewayOf(absl::string_view client,
                            uint64_t room_bytes) const {
  const uint64_t free_bytes = room_bytes - std::min(room_bytes, total_bytes_);
  // What it takes it no longer leaves.
  return (static_cast<int64_t>(free_bytes) -
          static_cast<int64_t>(HeldBy(client))) /
         2;
}

uint64_t Admission::HeldBy(absl::string_view client) const {
  const auto held = client_bytes_.find(client);
  return held == client_bytes_.end() ? 0 : held->second;
}

void Admission::Return(absl::string_view client, uint64_t size_bytes) {
  MutexLock lock(&mutex_);
  ReturnLocked(client, size_bytes);
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

uint64_t Admission::rejected_count() const {
  MutexLock lock(&mutex_);
  return rejected_count_;
}

}  // namespace quire
