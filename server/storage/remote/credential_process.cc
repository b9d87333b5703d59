// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/credential_process.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/child_process.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kOutputSizeBytesMax = size_t{64} << 10;
// Looks for a cancellation this often.
constexpr int kPollMs = 50;

// Reads all that is there. Returns false at the end, or if `text` has more than
// `size_bytes_max` bytes.
bool ReadAvailable(int fd, std::string& text, size_t size_bytes_max) {
  std::array<char, 4096> part;
  while (text.size() <= size_bytes_max) {
    const ssize_t got = read(fd, part.data(), part.size());
    if (got <= 0) {
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    text.append(part.data(), static_cast<size_t>(got));
  }
  return false;
}

}  // namespace

absl::StatusOr<std::string> RunCredentialProcess(
    const std::vector<std::string>& arguments,
    std::chrono::milliseconds time_max, const std::atomic<bool>& cancel) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ChildProcess> child,
                         ChildProcess::Start(arguments));
  const auto end = std::chrono::steady_clock::now() + time_max;
  std::string text;
  bool is_out_open = true;
  while (true) {
    // Looked for first: what it has written is there then.
    const bool has_ended = child->HasEnded();
    is_out_open = is_out_open &&
                  ReadAvailable(child->out_fd(), text, kOutputSizeBytesMax);
    child->ReadErrors();
    if (text.size() > kOutputSizeBytesMax) {
      return absl::FailedPreconditionError(absl::StrCat(
          "writes more than ", kOutputSizeBytesMax, " bytes to stdout"));
    }
    // Its own children may have the pipes open for longer.
    if (has_ended) {
      break;
    }
    if (cancel) {
      return absl::CancelledError("the server stops");
    }
    if (std::chrono::steady_clock::now() >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat("does not end within ", time_max.count() / 1000, " s"));
    }
    child->Wait(is_out_open, kPollMs);
  }
  QUIRE_RETURN_IF_ERROR(child->CheckEnd());
  return text;
}

}  // namespace quire
