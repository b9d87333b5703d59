// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/admission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "server/service/service_error.h"

namespace quire {
namespace {

// Long enough for a full server to have sent something, short enough that a
// client is not idle for long.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);

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

absl::Status Admission::Claim(absl::string_view client, uint64_t size_bytes,
                              Use use) {
  if (size_bytes == 0) {
    // An empty answer: it must not leave an entry of nothing behind.
    return absl::OkStatus();
  }
  if (size_bytes > client_max_bytes_) {
    return ServiceError(
        absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
        absl::StrCat("the answer needs ", size_bytes,
                     " bytes in memory and a client may hold ",
                     client_max_bytes_, "; ask for less at a time"),
        {{"limit", "client_in_flight_size_bytes_max"}});
  }
  const uint64_t room_bytes = use == Use::kStream
                                  ? total_max_bytes_ - total_max_bytes_ / 4
                                  : total_max_bytes_;
  bool client_is_full = false;
  {
    MutexLock lock(&mutex_);
    uint64_t& held_bytes = client_bytes_[client];
    if (room_bytes - std::min(room_bytes, total_bytes_) >= size_bytes &&
        client_max_bytes_ - held_bytes >= size_bytes) {
      total_bytes_ += size_bytes;
      held_bytes += size_bytes;
      return absl::OkStatus();
    }
    client_is_full = client_max_bytes_ - held_bytes < size_bytes;
    if (held_bytes == 0) {
      client_bytes_.erase(client);
    }
    ++rejected_count_;
  }
  return ServiceError(
      absl::StatusCode::kResourceExhausted, v1::SERVER_BUSY,
      client_is_full
          ? "this connection has too many bytes of answers in flight; read "
            "them or retry later"
          : "the server has too many bytes of answers in flight; retry later",
      {}, kRetryAfter);
}

void Admission::Return(absl::string_view client, uint64_t size_bytes) {
  if (size_bytes == 0) {
    return;
  }
  MutexLock lock(&mutex_);
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
