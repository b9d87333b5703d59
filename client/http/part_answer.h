// SPDX-License-Identifier: Apache-2.0
//
// Answers with the part of a representation that a request selects.
#ifndef QUIRE_CLIENT_HTTP_PART_ANSWER_H_
#define QUIRE_CLIENT_HTTP_PART_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "client/http/bodies/byte_store.h"
#include "client/http/bodies/memory_budget.h"
#include "client/http/request/http_answer.h"

namespace quire {

// Bytes that an answer sends a part of.
struct Representation {
  // Null if `known` has all bytes, or the conditions of the request keep them
  // from being sent.
  std::shared_ptr<ByteStore> bytes = {};
  // Unset only if the conditions keep it from being sent.
  std::optional<uint64_t> size_bytes = {};
  // With its quotes.
  std::string etag = {};
  std::string content_type = {};
  bool refuses_several_ranges = false;
  // Bytes that were read already, and their offset.
  uint64_t known_offset = 0;
  std::string known = {};
};

// Returns the size of the first piece of `size_bytes`, for which `charge`
// suffices then. Thread-safe.
size_t FirstPieceSize(uint64_t size_bytes, const MemoryBudget& budget,
                      MemoryCharge& charge);

// Returns an answer with the part of `representation` that the request selects.
// May block. Thread-safe.
// Errors: as ByteStore::Read().
absl::StatusOr<Answer> AnswerPart(const HttpRequest& request,
                                  Representation representation,
                                  const MemoryBudget& budget,
                                  MemoryCharge& charge);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_PART_ANSWER_H_
