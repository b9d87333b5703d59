// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as the head of deposited files, and as a page of items.
// Accepted ones must be the same after they are written again, and members must
// be reproduced within their bounds.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/deflate/deflate_encoder.h"
#include "server/archive/deposits/deposit_directory.h"
#include "server/archive/deposits/deposit_page.h"

namespace quire {
namespace {

constexpr uint64_t kTextSizeBytes = 4000;
constexpr uint64_t kDataSizeBytes = 1 << 20;

uint64_t EndOf(uint64_t offset) {
  return offset / 40 * 40 + 40;
}

void ParseHead(ByteView bytes) {
  const auto deposits =
      SegmentDeposits::Parse(bytes, kTextSizeBytes, kDataSizeBytes);
  if (!deposits.ok()) {
    return;
  }
  QUIRE_CHECK(deposits->Encode() == AsText(bytes));
  // What SegmentContainer::EstimateBytes() allows for twice.
  QUIRE_CHECK(deposits->MemoryBytes() <= 512 + 48 * bytes.size());
}

void ParsePage(ByteView bytes, const DepositTotals& totals) {
  const auto page = DepositPage::Parse(bytes, totals, 100, EndOf);
  if (!page.ok()) {
    return;
  }
  DepositTotals found;
  DeflateEncoder encoder;
  const std::vector<uint8_t> text(kTextSizeBytes, 'x');
  for (const DepositItem& item : page->items()) {
    found.Add(item);
    if (item.kind == DepositItem::Kind::kMember &&
        item.text_size_bytes <= text.size()) {
      std::vector<uint8_t> member(item.size_bytes);
      ByteView left = ByteView(text).first(item.text_size_bytes);
      RecreateDepositMember(
          item, page->headers()[item.header],
          [&left]() -> absl::StatusOr<ByteView> {
            return std::exchange(left, ByteView());
          },
          encoder, member)
          .IgnoreError();
    }
  }
  QUIRE_CHECK(found == totals);
  const std::string again =
      EncodeDepositPage(page->items(), page->headers(), 100, EndOf);
  QUIRE_CHECK(DepositPage::Parse(AsBytes(again), totals, 100, EndOf)
                  .value()
                  .items()
                  .size() == page->items().size());
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire;  // NOLINT(google-build-using-namespace)
  if (size < 4) {
    return 0;
  }
  const ByteView bytes(data + 4, size - 4);
  if (data[0] % 2 == 0) {
    ParseHead(bytes);
  } else {
    ParsePage(bytes, {.size_bytes = uint64_t{data[1]} * 8,
                      .text_size_bytes = uint64_t{data[2]} * 8,
                      .literal_size_bytes = data[3]});
  }
  return 0;
}
