// SPDX-License-Identifier: GPL-3.0-or-later
//
// A file on its way into an archive, next to the documents that its text is
// stored as.
#ifndef QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSIT_DRAFT_H_
#define QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSIT_DRAFT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "server/archive/deposits/deposit_directory.h"
#include "server/archive/deposits/deposit_page.h"

namespace quire {

// Items of a file in order, from which consecutive parts are taken for the
// segments that get its documents. Takes 32 bytes for each item.
// Thread-compatible.
class DepositDraft {
 public:
  // Reads bytes of the file, or of the rest that is drafted, from its offset
  // on.
  using ReadBytes =
      std::function<absl::Status(uint64_t offset, MutableByteView out)>;

  struct File {
    std::string path;
    uint64_t size_bytes = 0;
    DepositDigest digest = {};
    // kWithdrawn: of the items only the text counts.
    DepositState state = DepositState::kKept;
    // False: the rest of a file, whose start stays in an earlier segment.
    bool begins = true;
    std::vector<DepositItem> items = {};
    // DepositItem::header is an index in these.
    std::vector<DepositHeader> headers = {};
    ReadBytes read = {};
  };

  explicit DepositDraft(File file);

  const std::string& path() const { return file_.path; }

  const File& file() const { return file_; }

  // Sums over all items.
  const DepositTotals& totals() const { return totals_; }

  // The file is not kept: parts taken from now on have no items.
  void Abandon() { file_.state = DepositState::kAbandoned; }

  DepositState state() const { return file_.state; }

  // Consecutive items, and the offset of the first in the bytes that read()
  // takes.
  struct Part {
    bool begins = false;
    bool ends = false;
    uint64_t offset = 0;
    std::vector<DepositItem> items = {};
  };

  // Takes the next items, which have `text_size_bytes` of text together, and
  // those without text that follow. A member whose text is longer becomes
  // literals. Abandons the file if less text is left.
  Part Take(uint64_t text_size_bytes);

  const DepositHeader& header(const DepositItem& item) const {
    return file_.headers[item.header];
  }

  // Errors: those of the file.
  absl::Status Read(uint64_t offset, MutableByteView out) const {
    return file_.read(offset, out);
  }

 private:
  // Takes the part of an item with this much text. REQUIRES: less than its
  // text.
  bool Split(uint64_t text_size_bytes, std::vector<DepositItem>& items);

  File file_;
  DepositTotals totals_;
  // The next item, of which parts may be gone, and its offset.
  size_t next_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_DEPOSITS_DEPOSIT_DRAFT_H_
