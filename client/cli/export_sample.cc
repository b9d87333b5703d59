// SPDX-License-Identifier: Apache-2.0
#include "client/cli/export_sample.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "client/cli/answer_order.h"
#include "client/cli/document_listing.h"
#include "client/cli/formats/export_format.h"
#include "client/cli/formats/zstd_records.h"
#include "client/cli/item_batch.h"
#include "client/quire/client_status.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// More than fills a dictionary: text that repeats in it is worth more.
constexpr uint64_t kSampleSizeBytes = 16 * kRecordDictionarySizeBytesMax;
// A larger document is most often no text, and would be much of the sample.
constexpr uint64_t kSampledDocumentSizeBytesMax = uint64_t{1} << 20;
// Upper bound on documents of a sample.
constexpr size_t kSampledDocumentsMax = 65'536;

// Keeps documents evenly spread over a listing of unknown length: every one,
// and beyond the bounds only each second, fourth and so on. Thread-compatible.
class SpreadSample {
 public:
  void Add(uint64_t ordinal, uint64_t size_bytes) {
    if (size_bytes == 0 || size_bytes > kSampledDocumentSizeBytesMax ||
        count_++ % step_ != 0) {
      return;
    }
    kept_.push_back({ordinal, size_bytes});
    kept_size_bytes_ += size_bytes;
    while (kept_.size() > kSampledDocumentsMax ||
           (kept_size_bytes_ > kSampleSizeBytes && kept_.size() > 1)) {
      Halve();
    }
  }

  // In an order that is random, and the same for equal samples.
  std::vector<uint64_t> Ordinals() const {
    std::vector<uint64_t> ordinals;
    ordinals.reserve(kept_.size());
    for (const Kept& kept : kept_) {
      ordinals.push_back(kept.ordinal);
    }
    std::minstd_rand random(1);
    for (size_t i = ordinals.size(); i > 1; --i) {
      std::swap(ordinals[i - 1], ordinals[random() % i]);
    }
    return ordinals;
  }

 private:
  struct Kept {
    uint64_t ordinal = 0;
    uint64_t size_bytes = 0;
  };

  void Halve() {
    step_ *= 2;
    kept_size_bytes_ = 0;
    size_t count = 0;
    for (size_t i = 0; i < kept_.size(); i += 2) {
      kept_[count] = kept_[i];
      kept_size_bytes_ += kept_[count++].size_bytes;
    }
    kept_.resize(count);
  }

  std::vector<Kept> kept_;
  uint64_t kept_size_bytes_ = 0;
  uint64_t step_ = 1;
  uint64_t count_ = 0;
};

absl::StatusOr<SpreadSample> ChooseDocuments(CliRun& run,
                                             const ExportScope& scope,
                                             const DocumentFilter& filter) {
  DocumentListing listing(
      run,
      run.client().ListDocuments(run.settings().archive,
                                 {.first_ordinal = scope.since.document_count(),
                                  .archive_uuid = scope.archive.uuid(),
                                  .with_withdrawn = true,
                                  .fields = filter.fields(),
                                  .filter = run.settings().filter.where}),
      filter,
      {.keep_going = run.settings().keep_going,
       .first_ordinal = scope.since.document_count()});
  SpreadSample sample;
  for (;;) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<ListedDocument> listed,
                           listing.Next());
    if (!listed.has_value()) {
      return sample;
    }
    sample.Add(listed->document.ordinal(),
               listed->document.range().size_bytes());
  }
}

}  // namespace

absl::StatusOr<std::string> MakeExportDictionary(CliRun& run,
                                                 const ExportScope& scope,
                                                 const DocumentFilter& filter) {
  QUIRE_ASSIGN_OR_RETURN(const SpreadSample sample,
                         ChooseDocuments(run, scope, filter));
  const std::unique_ptr<ExportFormat> format =
      MakeWarcExport(scope.archive, absl::ToUnixMillis(absl::Now()),
                     run.settings().revisit_duplicates);
  std::vector<std::string> records;
  DocumentWriter writer(*format, nullptr, [&records](ByteView bytes) {
    records.back().append(AsText(bytes).data(), bytes.size());
    return absl::OkStatus();
  });
  TargetItems items(sample.Ordinals());
  QUIRE_RETURN_IF_ERROR(
      ReadItems(run, items, {}, [&](const ItemAnswer& answer) {
        if (!answer.result.ok() || !answer.result->document.has_value()) {
          return EndsRun(answer.result.status()) ? answer.result.status()
                                                 : absl::OkStatus();
        }
        const ByteView text = AsBytes(answer.result->data);
        records.emplace_back();
        writer.Start(*answer.result->document,
                     [text](FileSink sink) { return sink(text); });
        const absl::Status written = writer.Write(text);
        // The export reports a document that is no record.
        if (!written.ok()) {
          records.pop_back();
          return absl::OkStatus();
        }
        return writer.EndDocument();
      }));
  if (run.unreachable()) {
    return absl::UnavailableError("the export is not complete");
  }
  return MakeRecordDictionary(records);
}

}  // namespace quire
