// SPDX-License-Identifier: Apache-2.0
//
// Bytes of known, constant size, parts of which answers send.
#ifndef QUIRE_CLIENT_HTTP_BODIES_BYTE_STORE_H_
#define QUIRE_CLIENT_HTTP_BODIES_BYTE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

// Bytes behind an answer: a document, a payload, a spooled page. Answers share
// it, and may read it after the request that opened it. Thread-safe.
class ByteStore {
 public:
  virtual ~ByteStore() = default;

  // Never changes. Does not block.
  virtual uint64_t size_bytes() const = 0;

  // Returns 1 to `size_bytes` bytes from `offset` on. Blocks.
  // REQUIRES: offset < size_bytes(), size_bytes > 0.
  // Errors: those of calls and of files. The bytes that were returned before
  //         stay valid.
  virtual absl::StatusOr<std::string> Read(uint64_t offset,
                                           size_t size_bytes) = 0;
};

// Several stores put end to end, such as a header and a body. Owns them. A
// Read() returns bytes of one of them, and takes time linear in their number.
class JoinedBytes final : public ByteStore {
 public:
  // Parts may be empty. REQUIRES: none is null; their sizes sum up to less than
  // 2^63.
  explicit JoinedBytes(std::vector<std::shared_ptr<ByteStore>> parts)
      : parts_(std::move(parts)) {
    for (const std::shared_ptr<ByteStore>& part : parts_) {
      size_bytes_ += part->size_bytes();
    }
  }

  uint64_t size_bytes() const override { return size_bytes_; }

  absl::StatusOr<std::string> Read(uint64_t offset,
                                   size_t size_bytes) override {
    size_t index = 0;
    while (offset >= parts_[index]->size_bytes()) {
      offset -= parts_[index++]->size_bytes();
    }
    const uint64_t left = parts_[index]->size_bytes() - offset;
    return parts_[index]->Read(
        offset, left < size_bytes ? static_cast<size_t>(left) : size_bytes);
  }

 private:
  const std::vector<std::shared_ptr<ByteStore>> parts_;
  uint64_t size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_BODIES_BYTE_STORE_H_
