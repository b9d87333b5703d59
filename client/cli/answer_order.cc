// SPDX-License-Identifier: Apache-2.0
#include "client/cli/answer_order.h"

#include <string>
#include <utility>

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

uint64_t SizeOf(const v1::Document& document) {
  return sizeof(v1::Document) + document.id().size() +
         document.media_type().size() + document.record_type().size();
}

uint64_t SizeOf(const PayloadOrigin& origin) {
  uint64_t size_bytes = sizeof(PayloadOrigin) + SizeOf(origin.document) +
                        origin.unresolved.size();
  if (origin.revisit.has_value()) {
    size_bytes += SizeOf(*origin.revisit);
  }
  if (origin.warc.has_value()) {
    for (const std::string* text :
         {&origin.warc->type, &origin.warc->target_uri,
          &origin.warc->refers_to_target_uri, &origin.warc->date,
          &origin.warc->refers_to_date, &origin.warc->payload_digest,
          &origin.warc->truncated, &origin.warc->content_type}) {
      size_bytes += text->size();
    }
  }
  if (origin.http.has_value()) {
    size_bytes += origin.http->content_type.size();
  }
  return size_bytes;
}

uint64_t SizeOf(const ItemAnswer& answer) {
  if (!answer.result.ok()) {
    return 0;
  }
  uint64_t size_bytes = answer.result->data.size();
  if (answer.result->document.has_value()) {
    size_bytes += SizeOf(*answer.result->document);
  }
  if (answer.origin.has_value()) {
    size_bytes += SizeOf(*answer.origin);
  }
  return size_bytes;
}

}  // namespace

AnswerOrder::AnswerOrder(const AnswerOrderOptions& options, Sink sink,
                         ReadSeparately read)
    : options_(options), sink_(std::move(sink)), read_(std::move(read)) {}

bool AnswerOrder::has_room() const {
  if (!options_.ordered || in_flight_.size() < options_.in_flight_min) {
    return true;
  }
  if (in_flight_.size() >= options_.in_flight_max || answered_count_ == 0) {
    return false;
  }
  const uint64_t mean_size_bytes = answered_size_bytes_ / answered_count_ + 1;
  return in_flight_.size() * mean_size_bytes <= options_.memory_size_bytes_max;
}

uint64_t AnswerOrder::Ask(const ReadTarget& target) {
  if (options_.ordered) {
    in_flight_.emplace(asked_count_, target);
  }
  return asked_count_++;
}

absl::Status AnswerOrder::Take(ItemAnswer answer) {
  if (!options_.ordered) {
    return sink_(std::move(answer));
  }
  const uint64_t number = answer.tag;
  if (read_separately_.erase(number) != 0) {
    return absl::OkStatus();
  }
  const uint64_t size_bytes = SizeOf(answer);
  ++answered_count_;
  answered_size_bytes_ += size_bytes;
  waiting_size_bytes_ += size_bytes;
  waiting_.emplace(number, std::move(answer));
  return PassOn();
}

absl::Status AnswerOrder::PassOn() {
  for (;;) {
    const auto first = waiting_.begin();
    if (first == waiting_.end()) {
      return absl::OkStatus();
    }
    if (first->first == next_) {
      ItemAnswer answer = std::move(first->second);
      waiting_.erase(first);
      waiting_size_bytes_ -= SizeOf(answer);
      QUIRE_RETURN_IF_ERROR(Emit(std::move(answer)));
      continue;
    }
    if (waiting_size_bytes_ <= options_.memory_size_bytes_max) {
      return absl::OkStatus();
    }
    ItemAnswer missing = read_(next_, in_flight_.at(next_));
    read_separately_.insert(next_);
    ++separate_count_;
    QUIRE_RETURN_IF_ERROR(Emit(std::move(missing)));
  }
}

absl::Status AnswerOrder::Emit(ItemAnswer answer) {
  in_flight_.erase(next_++);
  return sink_(std::move(answer));
}

}  // namespace quire
