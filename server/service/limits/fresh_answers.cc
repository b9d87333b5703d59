// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/fresh_answers.h"

namespace quire {

void FreshAnswers::NoteCall(uint64_t client, absl::Time now) {
  if (last_.has_value() && last_->client == client) {
    last_->time = now;
    return;
  }
  last_of_others_ = last_;
  last_ = Call{.client = client, .time = now};
}

bool FreshAnswers::MayBegin(uint64_t client, uint64_t size_bytes,
                            absl::Time now) {
  EndOld(now);
  const auto fresh = bytes_of_client_.find(client);
  if (fresh == bytes_of_client_.end() ||
      fresh->second + size_bytes <= kBytesMax) {
    return true;
  }
  const std::optional<Call>& other =
      last_.has_value() && last_->client != client ? last_ : last_of_others_;
  return !other.has_value() || now - other->time > kAskingDuration;
}

FreshAnswers::Id FreshAnswers::Begin(uint64_t client, uint64_t size_bytes,
                                     absl::Time now) {
  if (size_bytes > 0) {
    bytes_of_client_[client] += size_bytes;
  }
  answers_.push_back({.client = client,
                      .size_bytes = size_bytes,
                      .until = now + kFreshDuration});
  return first_id_ + answers_.size() - 1;
}

void FreshAnswers::End(Id id) {
  if (id < first_id_) {
    return;
  }
  Answer& answer = answers_[id - first_id_];
  Subtract(answer);
  answer.ended = true;
  while (!answers_.empty() && answers_.front().ended) {
    EndFirst();
  }
}

void FreshAnswers::EndOld(absl::Time now) {
  while (!answers_.empty() && answers_.front().until <= now) {
    if (!answers_.front().ended) {
      Subtract(answers_.front());
    }
    EndFirst();
  }
}

void FreshAnswers::EndFirst() {
  answers_.pop_front();
  ++first_id_;
}

void FreshAnswers::Subtract(const Answer& answer) {
  const auto fresh = bytes_of_client_.find(answer.client);
  if (fresh == bytes_of_client_.end()) {
    // An empty answer.
    return;
  }
  fresh->second -= answer.size_bytes;
  if (fresh->second == 0) {
    bytes_of_client_.erase(fresh);
  }
}

}  // namespace quire
