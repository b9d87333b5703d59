// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "server/service/service_error.h"

namespace quire {
namespace {

constexpr size_t kNameSizeMax = 128;
constexpr size_t kReportedBlocksMax = 1000;

// Decodes blocks of one archive. Scratch memory is kept in a free list: there
// are never more of them than threads that decoded at the same time.
class ArchiveBlockDecoder : public BlockDecoder {
 public:
  ArchiveBlockDecoder(std::string name, std::shared_ptr<const Archive> archive,
                      DamageReporter report_damage)
      : name_(std::move(name)),
        archive_(std::move(archive)),
        report_damage_(std::move(report_damage)) {}

  absl::Status Decode(BlockAddress block, ByteView stored,
                      MutableByteView raw) const override {
    std::unique_ptr<BlockCodec::Scratch> scratch = TakeScratch();
    absl::Status status = archive_->DecodeBlock(block, stored, raw, *scratch);
    {
      MutexLock lock(&mutex_);
      free_.push_back(std::move(scratch));
    }
    if (absl::IsDataLoss(status) && report_damage_ && IsFirstReport(block)) {
      report_damage_(absl::StrCat(
          "archive ", name_, ": block ", block.block_index, " of segment ",
          block.segment_index, " is damaged: ", status.message()));
    }
    return status;
  }

 private:
  std::unique_ptr<BlockCodec::Scratch> TakeScratch() const
      ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      if (!free_.empty()) {
        std::unique_ptr<BlockCodec::Scratch> scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
      }
    }
    return archive_->codec().NewScratch();
  }

  bool IsFirstReport(BlockAddress block) const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return reported_.size() < kReportedBlocksMax &&
           reported_.emplace(block.segment_index, block.block_index).second;
  }

  const std::string name_;
  const std::shared_ptr<const Archive> archive_;
  const DamageReporter report_damage_;
  mutable Mutex mutex_;
  mutable absl::flat_hash_set<std::pair<uint64_t, uint64_t>> reported_
      ABSL_GUARDED_BY(mutex_);
  mutable std::vector<std::unique_ptr<BlockCodec::Scratch>> free_
      ABSL_GUARDED_BY(mutex_);
};

uint64_t NextSourceId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

v1::ArchiveDescription Describe(const std::string& name,
                                const ArchiveInfo& info) {
  v1::ArchiveDescription description;
  description.set_name(name);
  description.set_uuid(info.uuid);
  description.set_size_bytes(info.size_bytes);
  description.set_stored_size_bytes(info.stored_size_bytes);
  description.set_document_count(info.document_count);
  description.set_block_count(info.block_count);
  description.set_segment_count(info.segment_count);
  description.set_block_size_bytes(info.block_size_bytes);
  if (const CodecInfo* codec = FindCodec(info.codec.id); codec != nullptr) {
    description.set_codec(codec->name.data(), codec->name.size());
  }
  if (!info.dictionary_hash.empty()) {
    description.set_dictionary_hash(info.dictionary_hash);
    description.set_dictionary_size_bytes(info.dictionary_size_bytes);
  }
  return description;
}

// Empty if the folder cannot be read: then nothing is known to be the same.
std::string IdentifyFiles(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error)) {
    struct stat file {};

    if (stat(entry->path().c_str(), &file) != 0) {
      return "";
    }
    files.push_back(absl::StrCat(entry->path().filename().string(), " ",
                                 file.st_dev, " ", file.st_ino, " ",
                                 file.st_size, " ", file.st_mtim.tv_sec, " ",
                                 file.st_mtim.tv_nsec));
  }
  std::ranges::sort(files);
  return error ? "" : absl::StrJoin(files, "\n");
}

bool IsArchiveName(absl::string_view name) {
  if (name.empty() || name.size() > kNameSizeMax) {
    return false;
  }
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' &&
        c != '_' && c != '-') {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<ArchiveArgument> ParseArchiveArgument(absl::string_view text) {
  ArchiveArgument argument;
  const size_t equals = text.find('=');
  // A path may hold '=' too: what stands before it is a name only if it looks
  // like one.
  if (equals != absl::string_view::npos &&
      !absl::StrContains(text.substr(0, equals), '/')) {
    argument.name = std::string(text.substr(0, equals));
    argument.path = std::string(text.substr(equals + 1));
  } else {
    argument.path = std::string(text);
    absl::string_view stem = text;
    while (absl::ConsumeSuffix(&stem, "/")) {
    }
    stem = stem.substr(stem.rfind('/') + 1);
    absl::ConsumeSuffix(&stem, ".quire");
    argument.name = std::string(stem);
  }
  if (argument.path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" names no archive; write PATH or ", "NAME=PATH"));
  }
  if (!IsArchiveName(argument.name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", argument.name, "\" cannot be an archive's name: use 1 to ",
        kNameSizeMax, " letters, digits, dots, underscores and dashes, as in ",
        "NAME=", argument.path));
  }
  return argument;
}

absl::StatusOr<std::shared_ptr<const ServedArchive>> OpenServedArchive(
    const ArchiveArgument& argument, DamageReporter report_damage) {
  // Before the files are opened: what is replaced in between then counts as
  // changed, at worst once too often.
  std::string files_identity = IdentifyFiles(argument.path);
  absl::StatusOr<std::shared_ptr<const Archive>> archive =
      Archive::Open(argument.path);
  if (!archive.ok()) {
    return archive.status();
  }
  auto served = std::make_shared<ServedArchive>();
  served->name = argument.name;
  served->archive = *archive;
  served->files_identity = std::move(files_identity);
  served->source_id = NextSourceId();
  served->decoder = std::make_shared<ArchiveBlockDecoder>(
      argument.name, *archive, std::move(report_damage));
  served->description = Describe(argument.name, (*archive)->info());
  return served;
}

std::shared_ptr<const Catalog::ByName> Catalog::Get() const {
  MutexLock lock(&mutex_);
  return archives_;
}

void Catalog::Publish(ByName archives) {
  auto next = std::make_shared<const ByName>(std::move(archives));
  {
    MutexLock lock(&mutex_);
    archives_.swap(next);
  }
  // The old snapshot, now in `next`, is let go outside of the lock.
}

absl::StatusOr<std::shared_ptr<const ServedArchive>> Catalog::Find(
    absl::string_view name) const {
  const std::shared_ptr<const ByName> archives = Get();
  const auto found = archives->find(std::string(name));
  if (found == archives->end()) {
    return ServiceError(
        absl::StatusCode::kNotFound, v1::ARCHIVE_NOT_FOUND,
        name.empty() ? "the request names no archive"
                     : absl::StrCat("no archive \"", name.substr(0, 128),
                                    "\" here; ListArchives says which are"),
        {{"archive", std::string(name.substr(0, 128))}});
  }
  return found->second;
}

}  // namespace quire
