// SPDX-License-Identifier: Apache-2.0
#include "client/http/bodies/page_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "absl/strings/str_cat.h"

#include "client/http/bodies/file_reads.h"

namespace quire {
namespace {

constexpr size_t kKeptPagesMax = 1024;

// The directory is not named: clients see the message.
absl::Status SpoolFault(absl::string_view action, int error) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "the gateway cannot ", action,
      " in --spool-dir: ", std::generic_category().message(error)));
}

}  // namespace

absl::StatusOr<std::string> SpooledPage::Read(uint64_t offset,
                                              size_t size_bytes) {
  const size_t size =
      static_cast<size_t>(std::min<uint64_t>(size_bytes, size_bytes_ - offset));
  std::string bytes;
  const int error = ReadFileAt(file_.get(), offset, size, bytes);
  if (error != 0 || bytes.empty()) {
    return absl::DataLossError(absl::StrCat(
        "a decoded page cannot be read from disk: ",
        error != 0 ? std::generic_category().message(error)
                   : absl::StrCat("its file ends before byte ", offset)));
  }
  return bytes;
}

absl::StatusOr<std::shared_ptr<SpooledPage>> PageSpool::Create() {
  std::string path = absl::StrCat(directory_, "/quire-page-XXXXXX");
  UniqueFd file(mkostemp(path.data(), O_CLOEXEC));
  if (!file.is_open()) {
    return SpoolFault("create a file", errno);
  }
  unlink(path.c_str());
  return std::make_shared<SpooledPage>(std::move(file), &budget_);
}

absl::Status PageSpool::Append(SpooledPage& page, ByteView bytes) {
  const uint64_t size_bytes = page.size_bytes_ + bytes.size();
  while (!page.charge_.TryResize(size_bytes)) {
    if (!DropOldest()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "decoded pages fill --spool-size, ", budget_.limit_bytes(),
          " bytes; try again later, or read the record"));
    }
  }
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        pwrite(page.file_.get(), bytes.data() + done, bytes.size() - done,
               static_cast<off_t>(page.size_bytes_ + done));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return SpoolFault("write a page", count < 0 ? errno : ENOSPC);
    }
    done += static_cast<size_t>(count);
  }
  page.size_bytes_ = size_bytes;
  return absl::OkStatus();
}

void PageSpool::Keep(absl::string_view etag,
                     std::shared_ptr<SpooledPage> page) {
  std::shared_ptr<SpooledPage> dropped;
  MutexLock lock(&mutex_);
  kept_.push_front({std::string(etag), std::move(page)});
  if (kept_.size() > kKeptPagesMax) {
    dropped = std::move(kept_.back().page);
    kept_.pop_back();
  }
}

std::shared_ptr<SpooledPage> PageSpool::Find(absl::string_view etag) {
  MutexLock lock(&mutex_);
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const KeptPage& kept) {
        return absl::string_view(kept.etag.data(), kept.etag.size()) == etag;
      });
  if (found == kept_.end()) {
    return nullptr;
  }
  kept_.splice(kept_.begin(), kept_, found);
  return found->page;
}

bool PageSpool::DropOldest() {
  std::shared_ptr<SpooledPage> dropped;
  MutexLock lock(&mutex_);
  if (kept_.empty()) {
    return false;
  }
  dropped = std::move(kept_.back().page);
  kept_.pop_back();
  return true;
}

}  // namespace quire
