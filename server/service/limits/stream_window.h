// SPDX-License-Identifier: GPL-3.0-or-later
//
// How far a stream reads ahead of its client, and what memory it has for that.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_STREAM_WINDOW_H_
#define QUIRE_SERVER_SERVICE_LIMITS_STREAM_WINDOW_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/service/limits/admission.h"

namespace quire {

// The memory of one stream's answers, from before they are fetched until gRPC
// has sent them. It begins with what the stream cannot do without, or a little
// more while there is plenty, and doubles each time its client has taken a
// whole window and waited for more, as far as Admission thinks fair; when that
// changes its mind, the window narrows as answers are sent. A stream whose
// client stops reading keeps what it has: never more than it has proved to use
// twice over.
// What is taken never exceeds what Admission counts, and a window is never
// below what it must be at least, so that a stream that was admitted gets to
// its end without another byte. Thread-compatible.
class StreamWindow {
 public:
  struct Sizes {
    // The largest answer there is to be.
    uint64_t least_bytes = 0;
    uint64_t start_bytes = 0;
    uint64_t most_bytes = 0;
  };

  // One without memory.
  StreamWindow() = default;

  // REQUIRES: sizes.least_bytes > 0. `start_bytes` and `most_bytes` count as
  // no less than it.
  // Errors: as Admission::Admit(), for the least.
  static absl::StatusOr<StreamWindow> Open(Admission& admission,
                                           absl::string_view client,
                                           Sizes sizes);

  bool is_open() const { return sizes_.least_bytes > 0; }

  // Some of it is taken.
  bool is_in_use() const { return used_bytes_ > 0; }

  // Makes sure of space for answers of so many bytes from now on.
  // Errors: as Admission::Admit(); the window is then as before.
  absl::Status Raise(uint64_t least_bytes);

  // Takes space for an answer. False if there is none until GiveBack().
  bool TryTake(uint64_t size_bytes);

  // An answer turned out to need so many bytes less than were taken for it.
  // REQUIRES: they were taken.
  void TakeLess(uint64_t size_bytes) { used_bytes_ -= size_bytes; }

  // An answer of so many bytes, as taken, has been sent.
  void GiveBack(uint64_t size_bytes);

  // What one message should take at most: half of the window, so that one can
  // be read while another is sent, or all of it once it is as wide as it gets.
  uint64_t message_size_bytes() const;

  uint64_t size_bytes() const { return ticket_.size_bytes(); }

 private:
  Sizes sizes_;
  Admission::Ticket ticket_;
  uint64_t used_bytes_ = 0;
  // Since it was last widened.
  uint64_t sent_bytes_ = 0;
  bool was_full_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_STREAM_WINDOW_H_
