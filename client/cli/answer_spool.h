// SPDX-License-Identifier: Apache-2.0
//
// Answers that wait on disk for their turn.
#ifndef QUIRE_CLIENT_CLI_ANSWER_SPOOL_H_
#define QUIRE_CLIENT_CLI_ANSWER_SPOOL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

// A file without a name, which is gone when the spool is, even after a crash.
// It grows and shrinks by whole pages; what an answer leaves becomes a hole
// where the file system knows holes, and comes back with the last answer
// elsewhere. Calls block on the disk. Thread-compatible.
class AnswerSpool {
 public:
  // Where Take() finds what Put() was given. Good for the spool that gave it.
  struct Place {
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
  };

  // In $TMPDIR, else in /var/tmp: /tmp is often memory.
  // Errors: FailedPrecondition, naming the directory and the system's reason.
  static absl::StatusOr<std::unique_ptr<AnswerSpool>> Open();

  ~AnswerSpool();
  AnswerSpool(const AnswerSpool&) = delete;
  AnswerSpool& operator=(const AnswerSpool&) = delete;

  // Errors: FailedPrecondition, such as a full disk; nothing was kept, and what
  // was kept before is still there.
  absl::StatusOr<Place> Put(absl::string_view bytes);

  // Gives back what is there, and its space on disk. Once for each place.
  // Errors: FailedPrecondition  the system's, or the file was cut short by
  //                             somebody else; the place keeps its space.
  absl::StatusOr<std::string> Take(const Place& place);

  // The space taken on disk, in bytes.
  uint64_t held_size_bytes() const { return held_size_bytes_; }

 private:
  explicit AnswerSpool(int fd) : fd_(fd) {}

  const int fd_;
  uint64_t end_ = 0;
  uint64_t held_size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_ANSWER_SPOOL_H_
