// SPDX-License-Identifier: Apache-2.0
//
// Reads of a file at an offset.
#ifndef QUIRE_CLIENT_HTTP_BODIES_FILE_READS_H_
#define QUIRE_CLIENT_HTTP_BODIES_FILE_READS_H_

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

namespace quire {

// Appends up to `size_bytes` bytes from `offset` on to `bytes`; fewer only at
// the end of the file. Returns 0 or errno. Thread-safe.
inline int ReadFileAt(int fd, uint64_t offset, size_t size_bytes,
                      std::string& bytes) {
  const size_t begin = bytes.size();
  bytes.resize(begin + size_bytes);
  size_t done = 0;
  while (done < size_bytes) {
    const ssize_t count =
        pread(fd, bytes.data() + begin + done, size_bytes - done,
              static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      bytes.resize(begin);
      return errno;
    }
    if (count == 0) {
      break;
    }
    done += static_cast<size_t>(count);
  }
  bytes.resize(begin + done);
  return 0;
}

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_BODIES_FILE_READS_H_
