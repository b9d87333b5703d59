// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/input_failures.h"

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {
namespace {

uint64_t KeyOf(size_t source_index, absl::string_view text) {
  return Checksum64(AsBytes(text), source_index);
}

bool IsOfTheInput(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnavailable:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool InputFailures::Tolerate(size_t source_index, const absl::Status& status,
                             absl::string_view more) {
  if (!IsOfTheInput(status)) {
    return false;
  }
  Add(KeyOf(source_index, status.message()),
      absl::StrCat(status.message(), more));
  return true;
}

bool InputFailures::TolerateDocument(size_t source_index,
                                     absl::string_view place,
                                     const absl::Status& status,
                                     absl::string_view more) {
  if (!IsOfTheInput(status)) {
    return false;
  }
  Add(KeyOf(source_index, place), absl::StrCat(status.message(), more));
  return true;
}

bool InputFailures::HasFailed(size_t source_index,
                              absl::string_view text) const {
  return known_.contains(KeyOf(source_index, text));
}

void InputFailures::Add(uint64_t key, const std::string& message) {
  if (!known_.insert(key).second) {
    return;
  }
  if (messages_.size() < kKeptMessageCount) {
    messages_.push_back(message);
  }
  if (on_failure_) {
    on_failure_(message);
  }
}

}  // namespace quire
