// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compares the archives of one text in two orders, by encoding samples.
#ifndef QUIRE_SERVER_INGEST_ORDER_TRIAL_H_
#define QUIRE_SERVER_INGEST_ORDER_TRIAL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"
#include "server/ingest/build_options.h"
#include "server/ingest/text/reordered_text.h"

namespace quire {

// One order of a text, and the size of its archive without the blocks.
struct OrderCandidate {
  // Which text of `text` is encoded.
  enum class Order {
    // All text, as the documents have it.
    kDocuments,
    // The stored text, if it is that of the documents without duplicates.
    kDuplicatesOmitted,
    // The stored text, if text moved.
    kMoved,
  };

  // Outlives the comparison.
  const ReorderedText* text = nullptr;
  Order order = Order::kDocuments;
  std::shared_ptr<const CodecContext> context = nullptr;
  // Size of dictionary and layout in the archive.
  double other_bytes = 0;
};

struct OrderComparison {
  // True if the changed archive is smaller by the part that was asked for.
  bool is_smaller = false;
  // Estimated sizes of both archives, in bytes.
  double plain_bytes = 0;
  double changed_bytes = 0;
  // Text of the samples, in bytes of the documents.
  uint64_t sampled_bytes = 0;
};

// Compares the archive of `changed` with that of `plain`; `gain_min` is the
// part of it that the change must save. Encodes windows of some blocks, at
// regular intervals: the same text in both orders if `changed` omits
// duplicates, otherwise as much of each. Begins with up to 16 MiB of text and
// takes four times as many windows until the difference is twice its standard
// error. After 64 MiB, or all text, the change is smaller if it is by one. The
// blocks of a trial are encoded with TrialCodec(), on `options.threads`
// threads, and members are not inflated. Memory: one codec with its index at a
// time. Deterministic. Errors: those of MakePayloadCodec(), ParallelEncoder and
// ReadStoredText();
//         Cancelled  `options.cancel` became true.
absl::StatusOr<OrderComparison> CompareOrders(const BuildOptions& options,
                                              const OrderCandidate& plain,
                                              const OrderCandidate& changed,
                                              double gain_min);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_ORDER_TRIAL_H_
