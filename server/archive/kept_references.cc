// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/kept_references.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/surt/surt_key.h"
#include "server/archive/captures/capture_cursor.h"
#include "server/archive/captures/capture_digest.h"
#include "server/archive/document_cursor.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

constexpr char kRevisit[] = "revisit";
constexpr size_t kShownIdBytesMax = 200;
// Captures or documents between two calls of `check`.
constexpr uint64_t kChecked = 4096;
// An entry of a hash table at its usual load.
constexpr uint64_t kDigestBytes = 64;

bool HasRevisits(const Archive& archive) {
  for (uint32_t i = 0; i < archive.info().segment_count; ++i) {
    const SegmentReader& segment = archive.ReaderOf(i);
    if (segment.container().captures.capture_count > 0 &&
        segment.documents().HasRecordType(kRevisit)) {
      return true;
    }
  }
  return false;
}

// Payloads of captures that go, by digest.
class RemovedPayloads {
 public:
  struct Payload {
    uint64_t revisit_count = 0;
    bool is_kept = false;
  };

  void Add(const std::string& digest) {
    if (const std::optional<Sha1> sha1 = ParseSha1Digest(digest);
        sha1.has_value()) {
      sha1s_.try_emplace(*sha1);
    } else if (!digest.empty()) {
      texts_.try_emplace(digest);
    }
  }

  // Null: not one of them.
  Payload* Find(const std::string& digest) {
    if (const std::optional<Sha1> sha1 = ParseSha1Digest(digest);
        sha1.has_value()) {
      const auto found = sha1s_.find(*sha1);
      return found == sha1s_.end() ? nullptr : &found->second;
    }
    const auto found = texts_.find(digest);
    return found == texts_.end() ? nullptr : &found->second;
  }

  bool is_empty() const { return sha1s_.empty() && texts_.empty(); }

  uint64_t CountWithoutPayload() const {
    uint64_t count = 0;
    for (const auto& [sha1, payload] : sha1s_) {
      count += payload.is_kept ? 0 : payload.revisit_count;
    }
    for (const auto& [text, payload] : texts_) {
      count += payload.is_kept ? 0 : payload.revisit_count;
    }
    return count;
  }

 private:
  absl::flat_hash_map<Sha1, Payload> sha1s_;
  absl::flat_hash_map<std::string, Payload> texts_;
};

// Calls `visit` with each capture of the archive that has a digest.
absl::Status VisitDigests(
    const Archive& archive, const ReferenceSearch& search,
    absl::FunctionRef<absl::Status(DocumentOrdinal, const std::string&)>
        visit) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < archive.info().segment_count; ++i) {
    const SegmentReader& segment = archive.ReaderOf(i);
    const SegmentCaptures& captures = segment.container().captures;
    if (captures.capture_count == 0) {
      continue;
    }
    const uint64_t first = archive.FirstOrdinal(i);
    const auto visit_capture = [&](const SegmentCapture& capture) {
      absl::Status status;
      if (search.check && ++count % kChecked == 0) {
        status = search.check();
      }
      return !status.ok() || capture.digest.empty()
                 ? status
                 : visit({first + capture.ordinal}, capture.digest);
    };
    QUIRE_RETURN_IF_ERROR(InFile(
        segment.file(),
        VisitCaptures(captures, SegmentPartLoader(archive, i, search.load),
                      visit_capture)));
  }
  return absl::OkStatus();
}

void AddName(const std::string& id, std::vector<std::string>& names) {
  if (names.size() < KeptReferences::kNamesMax) {
    names.push_back(id);
  }
}

absl::Status FindRevisits(const Archive& archive, const ReferenceSearch& search,
                          KeptReferences& found) {
  RemovedPayloads removed;
  QUIRE_RETURN_IF_ERROR(VisitDigests(
      archive, search,
      [&](DocumentOrdinal ordinal, const std::string& digest) -> absl::Status {
        if (search.is_removed(ordinal)) {
          QUIRE_ASSIGN_OR_RETURN(const Document document,
                                 archive.GetDocument(ordinal));
          if (document.record_type != kRevisit) {
            removed.Add(digest);
          }
        }
        return absl::OkStatus();
      }));
  if (removed.is_empty()) {
    return absl::OkStatus();
  }
  QUIRE_RETURN_IF_ERROR(VisitDigests(
      archive, search,
      [&](DocumentOrdinal ordinal, const std::string& digest) -> absl::Status {
        RemovedPayloads::Payload* const payload = removed.Find(digest);
        if (payload == nullptr || search.is_removed(ordinal)) {
          return absl::OkStatus();
        }
        QUIRE_ASSIGN_OR_RETURN(const Document document,
                               archive.GetDocument(ordinal));
        if (document.record_type != kRevisit) {
          payload->is_kept = true;
          return absl::OkStatus();
        }
        ++payload->revisit_count;
        ++found.revisit_count;
        AddName(document.id, found.revisits);
        return absl::OkStatus();
      }));
  found.without_payload_count = removed.CountWithoutPayload();
  return absl::OkStatus();
}

absl::Status FindUnlocated(const Archive& archive,
                           const ReferenceSearch& search,
                           KeptReferences& found) {
  DocumentCursor document(archive);
  for (uint32_t i = 0; i < archive.info().segment_count; ++i) {
    const DocumentIndex& documents = archive.ReaderOf(i).documents();
    if (!documents.HasRecordType("metadata") &&
        !documents.HasRecordType("conversion")) {
      continue;
    }
    const uint64_t first = archive.FirstOrdinal(i);
    for (uint64_t k = 0; k < documents.count(); ++k) {
      if (search.check && k % kChecked == 0) {
        QUIRE_RETURN_IF_ERROR(search.check());
      }
      document.MoveTo({first + k});
      const absl::string_view type = document.RecordType();
      if ((type != "metadata" && type != "conversion") ||
          search.is_removed({first + k}) ||
          !SurtHostOfId(document.Id()).empty()) {
        continue;
      }
      ++found.unlocated_count;
      AddName(std::string(document.Id()), found.unlocated);
    }
  }
  return absl::OkStatus();
}

std::string NamesText(const std::vector<std::string>& names, uint64_t count) {
  return absl::StrCat(
      absl::StrJoin(names, ", ",
                    [](std::string* out, const std::string& id) {
                      absl::StrAppend(out, QuotedText(id, kShownIdBytesMax));
                    }),
      count > names.size() ? ", ..." : "");
}

}  // namespace

absl::StatusOr<KeptReferences> FindKeptReferences(
    const Archive& archive, const ReferenceSearch& search) {
  KeptReferences found;
  if (HasRevisits(archive)) {
    QUIRE_RETURN_IF_ERROR(FindRevisits(archive, search, found));
  }
  if (search.with_unlocated) {
    QUIRE_RETURN_IF_ERROR(FindUnlocated(archive, search, found));
  }
  return found;
}

uint64_t EstimateReferencesBytes(const Archive& archive,
                                 uint64_t removed_count) {
  return HasRevisits(archive)
             ? removed_count * kDigestBytes + CaptureCache::kSizeBytesMax
             : 0;
}

std::vector<std::string> DescribeReferences(const KeptReferences& references) {
  std::vector<std::string> sentences;
  if (!references.failure.empty()) {
    sentences.push_back(
        absl::StrCat("records that stay and refer to documents that go are not "
                     "known: ",
                     references.failure));
  }
  if (references.revisit_count > 0) {
    sentences.push_back(absl::StrCat(
        FormatCounted(references.revisit_count, "revisit stays that has",
                      "revisits stay that have"),
        " the digest of a document that goes, ",
        FormatCount(references.without_payload_count),
        " of them without another document that has the payload: ",
        NamesText(references.revisits, references.revisit_count)));
  }
  if (references.unlocated_count > 0) {
    sentences.push_back(absl::StrCat(
        FormatCounted(references.unlocated_count, "record stays",
                      "records stay"),
        " of the type metadata or conversion whose id has no host, and may "
        "refer to a document that goes: ",
        NamesText(references.unlocated, references.unlocated_count)));
  }
  return sentences;
}

}  // namespace quire
