// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/bucket_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/mutex.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr uint64_t kPartCountMax = 10'000;
constexpr int kListPagesMax = 10;
// Size of the requests that read objects: answers are held in memory.
constexpr uint64_t kReadSizeBytes = 4 << 20;
constexpr uint64_t kMiB = 1 << 20;

// Fills `out` from byte `offset` on.
absl::Status ReadFully(int fd, uint64_t offset, std::string& out,
                       const std::string& file) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t size = pread(fd, out.data() + done, out.size() - done,
                               static_cast<off_t>(offset + done));
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size <= 0) {
      return absl::UnavailableError(
          absl::StrCat(file, ": cannot be read at byte ", offset + done, ": ",
                       size == 0 ? "it ends there"
                                 : std::generic_category().message(errno)));
    }
    done += static_cast<size_t>(size);
  }
  return absl::OkStatus();
}

}  // namespace

// Parts of one upload. Shared by its threads.
struct BucketWriter::Parts {
  Parts(int opened, uint64_t file_size_bytes, uint64_t of_part_bytes,
        const std::string& name)
      : fd(opened),
        size_bytes(file_size_bytes),
        part_size_bytes(of_part_bytes),
        file(name) {}

  const int fd;
  const uint64_t size_bytes;
  const uint64_t part_size_bytes;
  const std::string& file;

  uint64_t count() const {
    return (size_bytes + part_size_bytes - 1) / part_size_bytes;
  }

  Mutex mutex;
  uint64_t next ABSL_GUARDED_BY(mutex) = 0;
  absl::Status status ABSL_GUARDED_BY(mutex);
  std::vector<std::string> etags ABSL_GUARDED_BY(mutex);
};

absl::StatusOr<std::optional<BucketWriter::Found>> BucketWriter::Find(
    const std::string& object) {
  const absl::StatusOr<BucketAnswer> answer = client_.Send(
      address_, {.method = "HEAD", .path = address_.PathOf(object)});
  if (absl::IsNotFound(answer.status())) {
    return std::optional<Found>();
  }
  QUIRE_RETURN_IF_ERROR(answer.status());
  if (!answer->head.content_length.has_value()) {
    return absl::UnavailableError(
        absl::StrCat(address_.UrlOf(object),
                     ": the store answered without the size of the object"));
  }
  return std::optional<Found>(
      Found{.size_bytes = *answer->head.content_length,
            .etag = answer->head.etag,
            .last_modified = answer->head.last_modified});
}

absl::StatusOr<std::string> BucketWriter::ReadEnd(const std::string& object,
                                                  const Found& found,
                                                  uint64_t size_bytes) {
  std::string bytes;
  while (bytes.size() < size_bytes) {
    const uint64_t first = found.size_bytes - size_bytes + bytes.size();
    const ContentRange range = {
        .first = first,
        .last = std::min(first + kReadSizeBytes, found.size_bytes) - 1,
        .object_size = found.size_bytes};
    QUIRE_ASSIGN_OR_RETURN(
        const BucketAnswer answer,
        client_.Send(address_,
                     {.path = address_.PathOf(object),
                      .headers = {{"Range", absl::StrCat("bytes=", range.first,
                                                         "-", range.last)}}}));
    QUIRE_RETURN_IF_ERROR(
        CheckAnswerHead(answer.head, {.range = range, .etag = found.etag}));
    if (answer.body.size() != range.last - range.first + 1) {
      return absl::UnavailableError(absl::StrCat(
          address_.UrlOf(object), ": the store answered ", answer.body.size(),
          " bytes, expected ", range.last - range.first + 1));
    }
    bytes += answer.body;
  }
  return bytes;
}

absl::StatusOr<std::vector<BucketWriter::Listed>> BucketWriter::List(
    const std::string& start) {
  std::vector<Listed> all;
  const std::string prefix = address_.KeyOf(start);
  std::string token;
  size_t page_count = 0;
  do {
    HttpQuery query = {{"list-type", "2"}, {"prefix", prefix}};
    if (!token.empty()) {
      query.emplace_back("continuation-token", token);
    }
    QUIRE_ASSIGN_OR_RETURN(
        const XmlElement list,
        client_.SendForXml(address_,
                           {.path = absl::StrCat(address_.bucket_path, "/"),
                            .query = std::move(query)},
                           "ListBucketResult"));
    for (const XmlElement& element : list.children) {
      const std::string key = element.TextOf("Key");
      if (element.name != "Contents" || !absl::StartsWith(key, prefix)) {
        continue;
      }
      Listed found = {.object = key.substr(address_.key_prefix.size())};
      const std::string time = element.TextOf("LastModified");
      if (!absl::ParseTime(absl::RFC3339_full, time, &found.last_modified,
                           nullptr)) {
        return absl::UnavailableError(absl::StrCat(
            address_.drive, "/", key, ": the store listed it with the time \"",
            PrintableText(time), "\", expected one as 2026-01-31T12:00:00Z"));
      }
      all.push_back(std::move(found));
    }
    token = list.TextOf("NextContinuationToken");
    if (all.size() > kListedObjectsMax || ++page_count > kListedObjectsMax) {
      return absl::ResourceExhaustedError(absl::StrCat(
          address_.drive, "/", prefix, ": has more than ", kListedObjectsMax,
          " objects; delete those that are not needed"));
    }
  } while (!token.empty());
  return all;
}

absl::StatusOr<std::string> BucketWriter::Put(const std::string& object,
                                              absl::string_view bytes,
                                              const Condition& condition) {
  BucketRequest request = {
      .method = "PUT", .path = address_.PathOf(object), .body = bytes};
  if (condition.is_new) {
    request.headers.emplace_back("If-None-Match", "*");
  } else if (!condition.etag.empty()) {
    request.headers.emplace_back("If-Match", condition.etag);
  }
  QUIRE_ASSIGN_OR_RETURN(const BucketAnswer answer,
                         client_.Send(address_, request));
  return answer.head.etag;
}

absl::Status BucketWriter::Upload(const std::string& object, int fd,
                                  uint64_t size_bytes,
                                  const std::string& file) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Unfinished> unfinished,
                         ListUnfinished(object));
  for (const Unfinished& each : unfinished) {
    QUIRE_RETURN_IF_ERROR(Remove(address_.PathOf(object), each.id));
    ++removed_count_;
  }
  if (size_bytes <= options_.part_size_bytes) {
    std::string bytes(size_bytes, '\0');
    QUIRE_RETURN_IF_ERROR(ReadFully(fd, 0, bytes, file));
    return Put(object, bytes, {.is_new = true}).status();
  }
  const uint64_t least_mib =
      ((size_bytes + kPartCountMax - 1) / kPartCountMax + kMiB - 1) / kMiB;
  Parts parts(fd, size_bytes,
              std::max(options_.part_size_bytes, least_mib * kMiB), file);
  QUIRE_ASSIGN_OR_RETURN(const std::string id, Begin(object));
  absl::Status status = SendParts(object, id, parts);
  if (status.ok()) {
    status = Complete(object, id, parts);
  }
  if (!status.ok() && !absl::IsCancelled(status)) {
    // The next upload of the object removes it if this fails.
    (void)Remove(address_.PathOf(object), id);
  }
  return status;
}

absl::StatusOr<std::string> BucketWriter::Begin(const std::string& object) {
  QUIRE_ASSIGN_OR_RETURN(const XmlElement begun,
                         client_.SendForXml(address_,
                                            {.method = "POST",
                                             .path = address_.PathOf(object),
                                             .query = {{"uploads", ""}}},
                                            "InitiateMultipartUploadResult"));
  std::string id = begun.TextOf("UploadId");
  if (id.empty()) {
    return absl::UnavailableError(
        absl::StrCat(address_.UrlOf(object),
                     ": the store began an upload without an id for it"));
  }
  return id;
}

absl::Status BucketWriter::SendParts(const std::string& object,
                                     const std::string& id, Parts& parts) {
  {
    MutexLock lock(&parts.mutex);
    parts.etags.resize(parts.count());
  }
  std::vector<std::thread> threads;
  const uint64_t thread_count =
      std::min<uint64_t>(kUploadThreads, parts.count());
  for (uint64_t i = 1; i < thread_count; ++i) {
    try {
      threads.emplace_back([&] { SendSome(object, id, parts); });
    } catch (const std::system_error&) {
      // The others send its parts.
      break;
    }
  }
  SendSome(object, id, parts);
  for (std::thread& thread : threads) {
    thread.join();
  }
  MutexLock lock(&parts.mutex);
  return parts.status;
}

void BucketWriter::SendSome(const std::string& object, const std::string& id,
                            Parts& parts) {
  std::string bytes;
  while (true) {
    uint64_t index = 0;
    {
      MutexLock lock(&parts.mutex);
      if (!parts.status.ok() || parts.next == parts.count()) {
        return;
      }
      index = parts.next++;
    }
    const uint64_t offset = index * parts.part_size_bytes;
    bytes.resize(std::min(parts.part_size_bytes, parts.size_bytes - offset));
    absl::Status status = ReadFully(parts.fd, offset, bytes, parts.file);
    std::string etag;
    if (status.ok()) {
      const absl::StatusOr<BucketAnswer> answer = client_.Send(
          address_,
          {.method = "PUT",
           .path = address_.PathOf(object),
           .query = {{"partNumber", absl::StrCat(index + 1)}, {"uploadId", id}},
           .body = bytes});
      status = answer.status();
      etag = answer.ok() ? answer->head.etag : "";
      if (status.ok() && etag.empty()) {
        status = absl::UnavailableError(absl::StrCat(
            address_.UrlOf(object), ": the store took a part without an ETag"));
      }
    }
    MutexLock lock(&parts.mutex);
    parts.status.Update(status);
    parts.etags[index] = std::move(etag);
  }
}

absl::Status BucketWriter::Complete(const std::string& object,
                                    const std::string& id, Parts& parts) {
  std::string body = "<CompleteMultipartUpload>";
  {
    MutexLock lock(&parts.mutex);
    for (size_t i = 0; i < parts.etags.size(); ++i) {
      absl::StrAppend(&body, "<Part><PartNumber>", i + 1, "</PartNumber><ETag>",
                      EscapeXml(parts.etags[i]), "</ETag></Part>");
    }
  }
  absl::StrAppend(&body, "</CompleteMultipartUpload>");
  const absl::StatusOr<XmlElement> completed =
      client_.SendForXml(address_,
                         {.method = "POST",
                          .path = address_.PathOf(object),
                          .query = {{"uploadId", id}},
                          .headers = {{"If-None-Match", "*"}},
                          .body = body},
                         "CompleteMultipartUploadResult");
  if (absl::IsNotFound(completed.status())) {
    // The answer of an earlier try was lost, or another writer removed the
    // upload and put an object of its own: the caller compares.
    QUIRE_ASSIGN_OR_RETURN(const std::optional<Found> found, Find(object));
    if (found.has_value()) {
      return absl::AbortedError(completed.status().message());
    }
  }
  return completed.status();
}

absl::Status BucketWriter::Remove(const std::string& path,
                                  const std::string& id) {
  const absl::Status status =
      client_
          .Send(address_,
                {.method = "DELETE", .path = path, .query = {{"uploadId", id}}})
          .status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status BucketWriter::Delete(const std::string& object) {
  const absl::Status status =
      client_
          .Send(address_, {.method = "DELETE", .path = address_.PathOf(object)})
          .status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::vector<BucketWriter::Unfinished>>
BucketWriter::ListUnfinished(const std::string& object) {
  std::vector<Unfinished> all;
  const std::string prefix = address_.KeyOf(object);
  std::string key_marker;
  std::string id_marker;
  for (int page = 0; page < kListPagesMax; ++page) {
    HttpQuery query = {{"uploads", ""}, {"prefix", prefix}};
    if (!key_marker.empty()) {
      query.emplace_back("key-marker", key_marker);
      query.emplace_back("upload-id-marker", id_marker);
    }
    QUIRE_ASSIGN_OR_RETURN(
        const XmlElement list,
        client_.SendForXml(address_,
                           {.path = absl::StrCat(address_.bucket_path, "/"),
                            .query = std::move(query)},
                           "ListMultipartUploadsResult"));
    for (const XmlElement& element : list.children) {
      Unfinished found = {.key = element.TextOf("Key"),
                          .id = element.TextOf("UploadId")};
      if (element.name == "Upload" && !found.id.empty() &&
          (object.empty() ? absl::StartsWith(found.key, prefix)
                          : found.key == prefix)) {
        all.push_back(std::move(found));
      }
    }
    key_marker = list.TextOf("NextKeyMarker");
    id_marker = list.TextOf("NextUploadIdMarker");
    if (list.TextOf("IsTruncated") != "true" || key_marker.empty()) {
      break;
    }
  }
  return all;
}

}  // namespace quire
