// SPDX-License-Identifier: Apache-2.0
#include "client/cli/answer_order.h"

#include <string>
#include <utility>

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

uint64_t SizeOf(const BatchAnswer& answer) {
  return answer.result.ok() ? answer.result->data.size() : 0;
}

}  // namespace

AnswerOrder::AnswerOrder(const AnswerOrderOptions& options, Sink sink,
                         ReadAlone read_alone)
    : options_(options),
      sink_(std::move(sink)),
      read_alone_(std::move(read_alone)) {}

bool AnswerOrder::has_room() const {
  if (!options_.ordered || asked_.size() < options_.asked_count_min) {
    return true;
  }
  if (asked_.size() >= options_.asked_count_max || answered_count_ == 0) {
    return false;
  }
  const uint64_t mean_size_bytes = answered_size_bytes_ / answered_count_ + 1;
  return asked_.size() * mean_size_bytes <=
         options_.memory_size_bytes_max + SpoolRoomBytes();
}

uint64_t AnswerOrder::Ask(const ReadTarget& target) {
  if (options_.ordered) {
    asked_.emplace(asked_count_, target);
  }
  return asked_count_++;
}

absl::Status AnswerOrder::Take(BatchAnswer answer) {
  if (!options_.ordered) {
    return sink_(std::move(answer));
  }
  const uint64_t number = answer.tag;
  if (read_alone_numbers_.erase(number) != 0) {
    return absl::OkStatus();
  }
  const uint64_t size_bytes = SizeOf(answer);
  ++answered_count_;
  answered_size_bytes_ += size_bytes;
  Waiting waiting{.answer = std::move(answer)};
  const bool is_full =
      waiting_size_bytes_ + size_bytes > options_.memory_size_bytes_max;
  if (number == next_ || !is_full || !Spool(waiting)) {
    waiting_size_bytes_ += size_bytes;
  }
  waiting_.emplace(number, std::move(waiting));
  return PassOn();
}

bool AnswerOrder::Spool(Waiting& waiting) {
  if (!waiting.answer.result.ok() ||
      SizeOf(waiting.answer) +
              (spool_ == nullptr ? 0 : spool_->held_size_bytes()) >
          SpoolRoomBytes()) {
    return false;
  }
  if (spool_ == nullptr) {
    absl::StatusOr<std::unique_ptr<AnswerSpool>> spool = AnswerSpool::Open();
    if (!spool.ok()) {
      spool_failed_ = true;
      return false;
    }
    spool_ = *std::move(spool);
  }
  std::string& data = waiting.answer.result->data;
  const absl::StatusOr<AnswerSpool::Place> place =
      spool_->Put({data.data(), data.size()});
  if (!place.ok()) {
    // It goes on without, as where there never was space.
    spool_failed_ = true;
    return false;
  }
  waiting.place = *place;
  // An assignment would keep the memory.
  std::string().swap(data);
  ++spooled_count_;
  return true;
}

uint64_t AnswerOrder::SpoolRoomBytes() const {
  return spool_failed_ ? 0 : options_.spool_size_bytes_max;
}

absl::Status AnswerOrder::PassOn() {
  for (;;) {
    const auto first = waiting_.begin();
    if (first == waiting_.end()) {
      return absl::OkStatus();
    }
    if (first->first == next_) {
      Waiting waiting = std::move(first->second);
      waiting_.erase(first);
      if (waiting.place.has_value()) {
        QUIRE_ASSIGN_OR_RETURN(waiting.answer.result->data,
                               spool_->Take(*waiting.place));
      } else {
        waiting_size_bytes_ -= SizeOf(waiting.answer);
      }
      QUIRE_RETURN_IF_ERROR(Emit(std::move(waiting.answer)));
      continue;
    }
    if (waiting_size_bytes_ <= options_.memory_size_bytes_max) {
      return absl::OkStatus();
    }
    BatchAnswer alone{.tag = next_, .target = asked_.at(next_)};
    alone.result = read_alone_(alone.target);
    read_alone_numbers_.insert(next_);
    ++alone_count_;
    QUIRE_RETURN_IF_ERROR(Emit(std::move(alone)));
  }
}

absl::Status AnswerOrder::Emit(BatchAnswer answer) {
  asked_.erase(next_++);
  return sink_(std::move(answer));
}

}  // namespace quire
