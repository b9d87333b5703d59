// SPDX-License-Identifier: Apache-2.0
#include "client/cli/revisit_targets.h"

#include <optional>
#include <string>
#include <utility>

#include "client/cli/capture_choice.h"
#include "client/cli/item_batch.h"
#include "client/quire/payload_search.h"
#include "codecs/base/header_fields.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kRevisitsMax = 10'000;

}  // namespace

absl::Status RevisitTargets::Add(const v1::Document& document,
                                 ByteView record) {
  if (document.ordinal() < is_exported_.size()) {
    is_exported_[document.ordinal()] = true;
  }
  if (document.record_type() != "revisit") {
    return absl::OkStatus();
  }
  if (record.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<v1::Document> target,
                           FindRevisited(run_, document));
    TakeTarget(target);
    return absl::OkStatus();
  }
  const std::optional<size_t> header_size = FindHeaderEnd(record);
  absl::StatusOr<WarcFields> warc = ParseWarcFields(
      AsText(record.first(header_size.value_or(record.size()))));
  if (!warc.ok()) {
    ++unresolved_count_;
    return absl::OkStatus();
  }
  DocumentKey candidate = RevisitReference(document, *warc).FirstCandidate();
  // Its description alone.
  candidate.part = ByteSpan{};
  revisits_.push_back({.document = document,
                       .candidate = std::move(candidate),
                       .warc = *std::move(warc)});
  return revisits_.size() < kRevisitsMax ? absl::OkStatus() : Find();
}

absl::Status RevisitTargets::Find() {
  std::vector<ReadTarget> candidates;
  for (const Revisit& revisit : revisits_) {
    candidates.emplace_back(revisit.candidate);
  }
  TargetItems items(std::move(candidates));
  QUIRE_RETURN_IF_ERROR(
      ReadItems(run_, items, {.ordered = false}, [&](const ItemAnswer& answer) {
        return TakeCandidate(revisits_[answer.tag], answer.result);
      }));
  revisits_.clear();
  return absl::OkStatus();
}

absl::Status RevisitTargets::TakeCandidate(
    const Revisit& revisit, const absl::StatusOr<ReadResult>& candidate) {
  std::optional<v1::Document> target;
  // A date is enough; a digest is in the record.
  if (candidate.ok() && candidate->document.has_value() &&
      !revisit.warc.refers_to_date.empty() &&
      RevisitReference(revisit.document, revisit.warc)
          .Means(*candidate->document, WarcFields())) {
    target = candidate->document;
  } else {
    QUIRE_ASSIGN_OR_RETURN(target, FindRevisited(run_, revisit.document));
  }
  TakeTarget(target);
  return absl::OkStatus();
}

void RevisitTargets::TakeTarget(const std::optional<v1::Document>& target) {
  if (target.has_value() && target->ordinal() < is_target_.size()) {
    is_target_[target->ordinal()] = true;
  } else {
    ++unresolved_count_;
  }
}

std::vector<uint64_t> RevisitTargets::Missing() const {
  std::vector<uint64_t> ordinals;
  for (uint64_t i = 0; i < is_target_.size(); ++i) {
    if (is_target_[i] && !is_exported_[i]) {
      ordinals.push_back(i);
    }
  }
  return ordinals;
}

}  // namespace quire
