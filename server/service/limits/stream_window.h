// SPDX-License-Identifier: GPL-3.0-or-later
//
// Limits how far a stream reads ahead of its client, and its memory.
#ifndef QUIRE_SERVER_SERVICE_LIMITS_STREAM_WINDOW_H_
#define QUIRE_SERVER_SERVICE_LIMITS_STREAM_WINDOW_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/service/limits/admission.h"

namespace quire {

// The memory of one stream's answers, from before they are fetched until gRPC
// has sent them. It begins with the stream's minimum, or a little more while
// memory is plentiful. It doubles each time the client has taken a whole window
// and waited for more, within Admission's fair share. When the share shrinks,
// the window narrows as answers are sent. A stream whose client stops reading
// keeps its window: at most twice the size that it has proved to use.
// Used bytes never exceed the bytes that Admission counts. A window never falls
// below its minimum, so that an admitted stream can finish without another
// byte. Thread-compatible.
class StreamWindow {
 public:
  struct Sizes {
    // Size of the largest answer.
    uint64_t least_bytes = 0;
    uint64_t start_bytes = 0;
    uint64_t most_bytes = 0;
  };

  // A window without memory.
  StreamWindow() = default;

  // REQUIRES: sizes.least_bytes > 0. `start_bytes` and `most_bytes` count as at
  // least that.
  // Errors: as Admission::Admit(), for the minimum.
  static absl::StatusOr<StreamWindow> Open(Admission& admission,
                                           absl::string_view client,
                                           Sizes sizes);

  bool is_open() const { return sizes_.least_bytes > 0; }

  // True if some of it is taken.
  bool is_in_use() const { return used_bytes_ > 0; }

  // Raises the minimum to answers of `least_bytes` from now on.
  // Errors: as Admission::Admit(); the window is then unchanged.
  absl::Status Raise(uint64_t least_bytes);

  // Takes space for an answer. Returns false if there is none until GiveBack().
  bool TryTake(uint64_t size_bytes);

  // Returns the bytes of a sent answer, as taken.
  void GiveBack(uint64_t size_bytes);

  // Returns the target size of one message: half of the window, so that one can
  // be read while another is sent, or all of it at its widest.
  uint64_t message_size_bytes() const;

  uint64_t size_bytes() const { return ticket_.size_bytes(); }

 private:
  Sizes sizes_;
  Admission::Ticket ticket_;
  uint64_t used_bytes_ = 0;
  // Since the window was last widened.
  uint64_t sent_bytes_ = 0;
  bool was_full_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_LIMITS_STREAM_WINDOW_H_
