// SPDX-License-Identifier: Apache-2.0
//
// Bytes for tests of code that must not read or write beyond their ends.
#ifndef QUIRE_TESTING_BASE_GUARDED_BYTES_H_
#define QUIRE_TESTING_BASE_GUARDED_BYTES_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"

namespace quire {

// Bytes that begin or end at a page that cannot be accessed. A read
// or write beyond that side ends the test, in every build and not only under
// AddressSanitizer, which the optimised code that is released never meets.
// Thread-compatible.
class GuardedBytes {
 public:
  enum class Side { kBegin, kEnd };

  // `size` zeros, of which `side` is next to the page that cannot be accessed.
  // Ends the process if the system gives no memory.
  explicit GuardedBytes(size_t size, Side side = Side::kEnd) {
    // One page without access on each side of the pages of the bytes.
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t inner = (size + page - 1) / page * page;
    mapping_size_ = inner + 2 * page;
    mapping_ = mmap(nullptr, mapping_size_, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    QUIRE_CHECK(mapping_ != MAP_FAILED);
    uint8_t* const begin = static_cast<uint8_t*>(mapping_) + page;
    QUIRE_CHECK(inner <= 0 ||
                mprotect(begin, inner, PROT_READ | PROT_WRITE) == 0);
    bytes_ = {side == Side::kBegin ? begin : begin + inner - size, size};
  }

  // A copy of `bytes`.
  explicit GuardedBytes(ByteView bytes, Side side = Side::kEnd)
      : GuardedBytes(bytes.size(), side) {
    std::ranges::copy(bytes, bytes_.begin());
  }

  // Views of the bytes must not be used after this.
  ~GuardedBytes() { munmap(mapping_, mapping_size_); }

  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  // Returns the bytes, which stay valid and writable as long as this object.
  MutableByteView bytes() const { return bytes_; }

 private:
  void* mapping_ = nullptr;
  size_t mapping_size_ = 0;
  MutableByteView bytes_;
};

}  // namespace quire

#endif  // QUIRE_TESTING_BASE_GUARDED_BYTES_H_
