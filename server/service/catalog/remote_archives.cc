// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/remote_archives.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/small_file.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/segment_format.h"

namespace quire {
namespace {

constexpr char kTagsFileName[] = "ETAGS";
constexpr uint64_t kTagsFileSizeBytesMax = uint64_t{256} << 20;
// A serialised symbol table has a few kilobytes.
constexpr uint64_t kSymbolTableFileSizeBytesMax = 1 << 20;
constexpr size_t kShownNameSizeMax = 40;

std::string Join(absl::string_view directory, absl::string_view name) {
  return absl::StrCat(directory, "/", name);
}

// The sections of a segment and what follows them, without the data of a
// container, which are read part by part.
KeptParts KeptOf(const ManifestSegment& segment) {
  uint64_t end =
      kTrailerSizeBytes + segment.sections.size() * kSectionEntrySizeBytes;
  KeptParts kept(segment.file_size_bytes -
                 std::min(segment.file_size_bytes, end));
  for (auto section = segment.sections.rbegin();
       section != segment.sections.rend(); ++section) {
    const uint64_t begin =
        kept.from - std::min(kept.from, section->stored_size_bytes);
    if (section->type == static_cast<uint32_t>(SectionType::kContainerData)) {
      kept.hole_begin = begin;
      kept.hole_end = kept.from;
    }
    kept.from = begin;
  }
  return kept;
}

// True if all chunks that are kept are there.
bool AllKeptPresent(const ChunkCache& cache, CachedFile& file) {
  return std::ranges::all_of(
      file.map.KeptRanges(),
      [&](const ChunkRange& range) { return cache.AllPresent(file, range); });
}

// True if the end of a copy is that of the segment.
bool HasFooter(const CachedFile& file, const ManifestSegment& segment) {
  const uint64_t footer_size_bytes =
      kTrailerSizeBytes + segment.sections.size() * kSectionEntrySizeBytes;
  if (footer_size_bytes > segment.file_size_bytes) {
    return false;
  }
  std::string bytes(footer_size_bytes, '\0');
  if (!ReadExactly(file.fd.get(), segment.file_size_bytes - footer_size_bytes,
                   AsMutableBytes(bytes), file.path)
           .ok()) {
    return false;
  }
  const auto footer = ParseSegmentFooter(
      AsBytes(bytes), segment.file_size_bytes, segment.number);
  return footer.ok() && footer->checksum == segment.footer_checksum;
}

// Space of a file on the disk; 0 if there is none.
uint64_t FileSpaceBytes(const std::string& path) {
  constexpr uint64_t kPageSizeBytes = 4096;
  std::error_code error;
  const uintmax_t size_bytes = std::filesystem::file_size(path, error);
  return error ? 0
               : (size_bytes + kPageSizeBytes - 1) / kPageSizeBytes *
                     kPageSizeBytes;
}

}  // namespace

std::string FormatObjectTags(const ObjectTags& tags) {
  std::string text;
  for (const auto& [name, tag] : tags) {
    absl::StrAppend(&text, name, " ", tag, "\n");
  }
  return text;
}

ObjectTags ParseObjectTags(absl::string_view text) {
  ObjectTags tags;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t space = line.find(' ');
    if (space == absl::string_view::npos) {
      continue;
    }
    const absl::string_view name = line.substr(0, space);
    const absl::string_view tag = line.substr(space + 1);
    const bool is_printable =
        !tag.empty() && std::all_of(tag.begin(), tag.end(), [](char c) {
          return c == ' ' || absl::ascii_isgraph(static_cast<unsigned char>(c));
        });
    if (is_printable && IsArchiveFileName(name)) {
      tags[std::string(name)] = std::string(tag);
    }
  }
  return tags;
}

absl::StatusOr<std::unique_ptr<RemoteArchives>> RemoteArchives::Open(
    const RemoteStoreOptions& options, DeviceEngine engine,
    RemoteStore::Report report) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<RemoteStore> store,
                         RemoteStore::Open(options, engine, std::move(report)));
  return std::unique_ptr<RemoteArchives>(
      new RemoteArchives(std::move(store), options.stale_max));
}

absl::Status RemoteArchives::SetPath(const RemoteStoreOptions& options,
                                     ArchiveArgument& argument) {
  QUIRE_ASSIGN_OR_RETURN(
      const StoreAddress address,
      ParseStoreAddress(argument.url, options.endpoint, options.region));
  // The endpoint is part of the identity, the archive's name here is not.
  std::string origin = absl::StrCat(address.origin, address.base_path);
  if (!address.manifest_directory.empty()) {
    absl::StrAppend(&origin, "/", address.manifest_directory);
  }
  argument.path = Join(
      options.cache_directory,
      absl::StrFormat("%s-%016x", argument.name.substr(0, kShownNameSizeMax),
                      Checksum64(AsBytes(origin))));
  return absl::OkStatus();
}

RemoteArchives::State& RemoteArchives::StateOf(
    const ArchiveArgument& argument) {
  MutexLock lock(&mutex_);
  std::unique_ptr<State>& state = states_[argument.path];
  if (state == nullptr) {
    state = std::make_unique<State>();
  }
  return *state;
}

absl::StatusOr<std::optional<RemoteStore::Object>>
RemoteArchives::ReadNewManifest(const ArchiveArgument& argument, State& state,
                                const std::atomic<bool>* cancel) {
  const std::string path = Join(argument.path, kManifestFileName);
  const auto local = ReadSmallFile(path, kManifestFileSizeBytesMax);
  auto parsed = local.ok() ? ParseManifest(AsBytes(*local))
                           : absl::StatusOr<Manifest>(local.status());
  QUIRE_ASSIGN_OR_RETURN(
      std::optional<RemoteStore::Object> object,
      store_->ReadObject(state.address, kManifestFileName,
                         parsed.ok() ? state.tags[kManifestFileName] : "",
                         kManifestFileSizeBytesMax, cancel));
  if (parsed.ok()) {
    state.manifest_checksum = Checksum64(AsBytes(*local));
  }
  if (!object.has_value()) {
    state.manifest = *std::move(parsed);
    return object;
  }
  if (parsed.ok() && object->bytes == *local) {
    state.tags[kManifestFileName] = object->etag;
    object.reset();
  } else {
    confirmations_.Deny(argument.path);
    parsed = ParseManifest(AsBytes(object->bytes));
    QUIRE_RETURN_IF_ERROR(
        InFile(Join(argument.url, kManifestFileName), parsed.status()));
  }
  state.manifest = *std::move(parsed);
  return object;
}

absl::StatusOr<CachedFilePtr> RemoteArchives::OpenCopy(
    const ArchiveArgument& argument, const State& state,
    const std::string& name, uint64_t size_bytes, const KeptParts& kept) {
  const std::string path = Join(argument.path, name);
  QUIRE_ASSIGN_OR_RETURN(CachedFilePtr file,
                         store_->cache().OpenFile(path, size_bytes, kept));
  if (file->is_stale) {
    return ReplaceCopy(file, state, kept);
  }
  if (file->address == nullptr) {
    file->address = state.address;
    file->object = name;
    // An empty copy may be one of another object than that of the tag.
    if (const auto tag = state.tags.find(name);
        tag != state.tags.end() && !store_->cache().IsEmpty(*file)) {
      file->etag = tag->second;
    }
  }
  return file;
}

absl::StatusOr<CachedFilePtr> RemoteArchives::ReplaceCopy(
    const CachedFilePtr& old, const State& state, const KeptParts& kept) {
  // An archive that is served may still read it: RemoveUnnamed() retires it.
  if (unlink(old->path.c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, old->path, "remove");
  }
  QUIRE_ASSIGN_OR_RETURN(
      CachedFilePtr file,
      store_->cache().OpenFile(old->path, old->map.size_bytes(), kept));
  file->address = state.address;
  file->object = old->object;
  return file;
}

absl::StatusOr<CachedFilePtr> RemoteArchives::OpenSegment(
    const ArchiveArgument& argument, const State& state,
    const ManifestSegment& segment) {
  const std::string name = SegmentFileName(segment.number);
  const KeptParts kept = KeptOf(segment);
  QUIRE_ASSIGN_OR_RETURN(
      CachedFilePtr file,
      OpenCopy(argument, state, name, segment.file_size_bytes, kept));
  const ChunkCache& cache = store_->cache();
  const bool is_known = std::find(state.files.begin(), state.files.end(),
                                  file) != state.files.end();
  const bool is_whole = AllKeptPresent(cache, *file);
  if (is_whole ? HasFooter(*file, segment) : is_known || cache.IsEmpty(*file)) {
    return file;
  }
  // Another segment's, or an opening was interrupted: nothing tells what it is.
  return ReplaceCopy(file, state, kept);
}

absl::Status RemoteArchives::ReadSymbolTable(const ArchiveArgument& argument,
                                             State& state,
                                             const std::atomic<bool>* cancel) {
  if (!state.manifest.symbol_table.has_value()) {
    return absl::OkStatus();
  }
  const std::string name =
      SymbolTableFileName(state.manifest.symbol_table->hash);
  if (FileSpaceBytes(Join(argument.path, name)) > 0) {
    return absl::OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(
      const std::optional<RemoteStore::Object> object,
      store_->ReadObject(state.address, name, "", kSymbolTableFileSizeBytesMax,
                         cancel));
  // There was no condition.
  return ReplaceFile(argument.path, name,
                     object.has_value() ? object->bytes : "");
}

absl::Status RemoteArchives::FillKept(const std::vector<CachedFilePtr>& files,
                                      State& state,
                                      const std::atomic<bool>* cancel) {
  std::vector<RemoteStore::Part> parts;
  for (const CachedFilePtr& file : files) {
    for (const ChunkRange& range : file->map.KeptRanges()) {
      parts.push_back({.file = file, .range = range});
    }
  }
  const absl::Status status = store_->FillChunks(parts, cancel);
  if (absl::IsResourceExhausted(status)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        state.address->url, ": ", status.message(),
        " for its indexes, which are never evicted; give --store-cache "
        "more"));
  }
  QUIRE_RETURN_IF_ERROR(status);
  for (const CachedFilePtr& file : files) {
    state.tags[file->object] = file->etag;
  }
  return absl::OkStatus();
}

absl::Status RemoteArchives::WriteTags(const ArchiveArgument& argument,
                                       const State& state) {
  const std::string text = FormatObjectTags(state.tags);
  const auto written =
      ReadSmallFile(Join(argument.path, kTagsFileName), kTagsFileSizeBytesMax);
  if (written.ok() && *written == text) {
    return absl::OkStatus();
  }
  return ReplaceFile(argument.path, kTagsFileName, text);
}

absl::Status RemoteArchives::BeginState(const ArchiveArgument& argument,
                                        State& state) {
  if (state.address == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(const StoreAddress address,
                           store_->ParseAddress(argument.url));
    state.address = std::make_shared<const StoreAddress>(address);
    const auto tags = ReadSmallFile(Join(argument.path, kTagsFileName),
                                    kTagsFileSizeBytesMax);
    state.tags = ParseObjectTags(tags.ok() ? *tags : "");
  }
  return absl::OkStatus();
}

bool RemoteArchives::AdoptCopy(const ArchiveArgument& argument) {
  std::error_code ignored;
  if (!std::filesystem::exists(Join(argument.path, kTagsFileName), ignored)) {
    return false;
  }
  State& state = StateOf(argument);
  const auto adopt = [&]() -> absl::Status {
    QUIRE_RETURN_IF_ERROR(BeginState(argument, state));
    QUIRE_ASSIGN_OR_RETURN(const std::string local,
                           ReadSmallFile(Join(argument.path, kManifestFileName),
                                         kManifestFileSizeBytesMax));
    QUIRE_ASSIGN_OR_RETURN(state.manifest, ParseManifest(AsBytes(local)));
    if (state.manifest.dictionary.has_value()) {
      const auto& dictionary = *state.manifest.dictionary;
      QUIRE_ASSIGN_OR_RETURN(
          CachedFilePtr file,
          OpenCopy(argument, state, DictionaryFileName(dictionary.hash),
                   dictionary.file_size_bytes, 0));
      state.files.push_back(std::move(file));
    }
    for (const ManifestSegment& segment : state.manifest.segments) {
      QUIRE_ASSIGN_OR_RETURN(CachedFilePtr file,
                             OpenSegment(argument, state, segment));
      state.files.push_back(std::move(file));
    }
    return absl::OkStatus();
  };
  if (const absl::Status status = adopt(); !status.ok()) {
    if (!absl::IsUnavailable(status)) {
      RemoveDirectory(argument.path);
    }
    return false;
  }
  CountOthers(argument, state);
  return true;
}

bool RemoteArchives::HasCopy(const ArchiveArgument& argument) const {
  MutexLock lock(&mutex_);
  return states_.contains(argument.path);
}

void RemoteArchives::RemoveCopy(const ArchiveArgument& argument) {
  RemoveDirectory(argument.path);
}

size_t RemoteArchives::copy_count() const {
  MutexLock lock(&mutex_);
  return states_.size();
}

absl::Status RemoteArchives::CheckMapsFitAlone(const ArchiveArgument& argument,
                                               const Manifest& manifest) const {
  const ChunkCache& cache = store_->cache();
  uint64_t map_bytes = 0;
  for (const ManifestSegment& segment : manifest.segments) {
    map_bytes += ChunkMap::MemoryBytes(segment.file_size_bytes,
                                       cache.chunk_size_bytes());
    if (map_bytes > cache.map_bytes_max()) {
      return absl::FailedPreconditionError(absl::StrCat(
          argument.url, ": chunk maps of its ", manifest.segments.size(),
          " segments exceed ", FormatByteSize(cache.map_bytes_max()),
          ", the memory for those of all local copies; raise --memory or "
          "--store-chunk"));
    }
  }
  return absl::OkStatus();
}

absl::Status RemoteArchives::PrepareOutline(const ArchiveArgument& argument,
                                            const std::atomic<bool>* cancel,
                                            MayBeStale may_be_stale) {
  QUIRE_RETURN_IF_ERROR(store_->cache().MakeDirectory(argument.path));
  State& state = StateOf(argument);
  QUIRE_RETURN_IF_ERROR(BeginState(argument, state));
  const bool wants_stale =
      may_be_stale == MayBeStale::kYes && confirmations_.are_wanted();
  if (wants_stale) {
    if (const auto silence = confirmations_.RecentSilence(state.address->drive);
        silence.has_value() && UseStaleCopy(argument, state, *silence).ok()) {
      return absl::OkStatus();
    }
  }
  absl::Status status = PrepareFromStore(argument, state, cancel);
  NoteWord(argument, state, status);
  if (wants_stale && StoreWordOf(status) == StoreWord::kSilent) {
    status = UseStaleCopy(argument, state, status);
  }
  return status;
}

absl::Status RemoteArchives::PrepareFromStore(const ArchiveArgument& argument,
                                              State& state,
                                              const std::atomic<bool>* cancel) {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<RemoteStore::Object> new_manifest,
                         ReadNewManifest(argument, state, cancel));
  const Manifest& manifest = state.manifest;
  QUIRE_RETURN_IF_ERROR(CheckMapsFitAlone(argument, manifest));
  std::vector<CachedFilePtr> files;
  if (manifest.dictionary.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(
        CachedFilePtr file,
        OpenCopy(argument, state, DictionaryFileName(manifest.dictionary->hash),
                 manifest.dictionary->file_size_bytes, 0));
    QUIRE_RETURN_IF_ERROR(FillKept({file}, state, cancel));
    files.push_back(std::move(file));
  }
  QUIRE_RETURN_IF_ERROR(ReadSymbolTable(argument, state, cancel));
  for (const ManifestSegment& segment : manifest.segments) {
    QUIRE_ASSIGN_OR_RETURN(CachedFilePtr file,
                           OpenSegment(argument, state, segment));
    files.push_back(std::move(file));
  }
  state.files = std::move(files);
  // Last, as on publishing: what it names is there.
  if (new_manifest.has_value()) {
    // First without its ETag: after a kill between the two renames, that of the
    // old MANIFEST would prove the new one.
    state.tags.erase(kManifestFileName);
    QUIRE_RETURN_IF_ERROR(WriteTags(argument, state));
    QUIRE_RETURN_IF_ERROR(
        ReplaceFile(argument.path, kManifestFileName, new_manifest->bytes));
    state.tags[kManifestFileName] = new_manifest->etag;
    state.manifest_checksum = Checksum64(AsBytes(new_manifest->bytes));
  }
  return absl::OkStatus();
}

absl::Status RemoteArchives::PrepareIndexes(const ArchiveArgument& argument,
                                            const std::atomic<bool>* cancel) {
  State& state = StateOf(argument);
  if (absl::Status status = FillKept(state.files, state, cancel);
      !status.ok()) {
    NoteWord(argument, state, status);
    return status;
  }
  QUIRE_RETURN_IF_ERROR(WriteTags(argument, state));
  CountOthers(argument, state);
  return absl::OkStatus();
}

std::optional<absl::Status> RemoteArchives::RecentSilence(
    const ArchiveArgument& argument) {
  State& state = StateOf(argument);
  return BeginState(argument, state).ok()
             ? confirmations_.RecentSilence(state.address->drive)
             : std::nullopt;
}

void RemoteArchives::NoteWord(const ArchiveArgument& argument,
                              const State& state, const absl::Status& outcome) {
  const StoreWord word = StoreWordOf(outcome);
  if (outcome.ok()) {
    confirmations_.Confirm(argument.path, state.manifest_checksum);
  } else if (word == StoreWord::kRefused || absl::IsAborted(outcome)) {
    confirmations_.Deny(argument.path);
  }
  if (outcome.ok() || word != StoreWord::kNone) {
    confirmations_.NoteSilence(state.address->drive, word == StoreWord::kSilent
                                                         ? outcome
                                                         : absl::OkStatus());
  }
}

absl::Status RemoteArchives::OpenWholeCopy(const ArchiveArgument& argument,
                                           State& state) {
  const Manifest& manifest = state.manifest;
  const ChunkCache& cache = store_->cache();
  std::vector<CachedFilePtr> files;
  bool is_whole = true;
  if (manifest.dictionary.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(
        CachedFilePtr file,
        OpenCopy(argument, state, DictionaryFileName(manifest.dictionary->hash),
                 manifest.dictionary->file_size_bytes, 0));
    is_whole = AllKeptPresent(cache, *file);
    files.push_back(std::move(file));
  }
  is_whole =
      is_whole && (!manifest.symbol_table.has_value() ||
                   FileSpaceBytes(Join(
                       argument.path,
                       SymbolTableFileName(manifest.symbol_table->hash))) > 0);
  for (const ManifestSegment& segment : manifest.segments) {
    if (!is_whole) {
      break;
    }
    QUIRE_ASSIGN_OR_RETURN(CachedFilePtr file,
                           OpenSegment(argument, state, segment));
    is_whole = AllKeptPresent(cache, *file);
    files.push_back(std::move(file));
  }
  if (!is_whole) {
    return absl::UnavailableError("is not whole");
  }
  state.files = std::move(files);
  return absl::OkStatus();
}

absl::Status RemoteArchives::UseStaleCopy(const ArchiveArgument& argument,
                                          State& state,
                                          const absl::Status& silence) {
  const auto use = [&]() -> absl::Status {
    const auto manifest = ReadSmallFile(Join(argument.path, kManifestFileName),
                                        kManifestFileSizeBytesMax);
    auto parsed = manifest.ok() ? ParseManifest(AsBytes(*manifest))
                                : absl::StatusOr<Manifest>(manifest.status());
    if (!parsed.ok()) {
      return absl::UnavailableError("is not whole");
    }
    state.manifest = *std::move(parsed);
    state.manifest_checksum = Checksum64(AsBytes(*manifest));
    QUIRE_RETURN_IF_ERROR(
        confirmations_.Check(argument.path, state.manifest_checksum));
    QUIRE_RETURN_IF_ERROR(CheckMapsFitAlone(argument, state.manifest));
    return OpenWholeCopy(argument, state);
  };
  const absl::Status status = use();
  if (status.ok()) {
    confirmations_.SetStale(argument.path, silence.message());
    return status;
  }
  return absl::Status(
      silence.code(),
      absl::StrCat(silence.message(), "; its local copy is not served: it ",
                   status.message()));
}

uint64_t RemoteArchives::IndexBytes(const ArchiveArgument& argument) {
  const Manifest& manifest = StateOf(argument).manifest;
  const uint64_t chunk_size_bytes = store_->cache().chunk_size_bytes();
  uint64_t bytes = manifest.dictionary.has_value()
                       ? manifest.dictionary->file_size_bytes
                       : 0;
  for (const ManifestSegment& segment : manifest.segments) {
    const KeptParts kept = KeptOf(segment);
    const uint64_t end_from = kept.from / chunk_size_bytes * chunk_size_bytes;
    const uint64_t hole_first =
        (kept.hole_begin + chunk_size_bytes - 1) / chunk_size_bytes;
    const uint64_t hole_end = kept.hole_end / chunk_size_bytes;
    bytes += segment.file_size_bytes - end_from +
             std::min(end_from, chunk_size_bytes) -
             (hole_end - std::min(hole_first, hole_end)) * chunk_size_bytes;
  }
  return bytes;
}

uint64_t RemoteArchives::KeptBytes(const std::string& path) const {
  uint64_t bytes = 0;
  for (const CachedFilePtr& file : store_->cache().FilesBelow(path)) {
    for (const ChunkRange& range : file->map.KeptRanges()) {
      bytes += file->map.SpaceOf(range);
    }
  }
  return bytes;
}

void RemoteArchives::CountOthers(const ArchiveArgument& argument,
                                 State& state) {
  uint64_t other_bytes = 0;
  for (const std::string& name :
       {std::string(kManifestFileName), std::string(kTagsFileName),
        std::string(kConfirmedFileName),
        state.manifest.symbol_table.has_value()
            ? SymbolTableFileName(state.manifest.symbol_table->hash)
            : ""}) {
    other_bytes += name.empty() ? 0 : FileSpaceBytes(Join(argument.path, name));
  }
  store_->cache().AddOtherBytes(static_cast<int64_t>(other_bytes) -
                                static_cast<int64_t>(state.other_bytes));
  state.other_bytes = other_bytes;
}

void RemoteArchives::DropIndexes(const ArchiveArgument& argument) {
  State& state = StateOf(argument);
  for (const CachedFilePtr& file : state.files) {
    for (const ChunkRange& range : file->map.KeptRanges()) {
      store_->cache().Invalidate(*file, range);
    }
  }
  if (state.manifest.symbol_table.has_value()) {
    unlink(Join(argument.path,
                SymbolTableFileName(state.manifest.symbol_table->hash))
               .c_str());
  }
}

void RemoteArchives::RemoveUnnamed(const ArchiveArgument& argument) {
  State& state = StateOf(argument);
  std::set<std::string> names = {kManifestFileName, kTagsFileName,
                                 kConfirmedFileName};
  for (const CachedFilePtr& file : state.files) {
    names.insert(file->object);
  }
  if (state.manifest.symbol_table.has_value()) {
    names.insert(SymbolTableFileName(state.manifest.symbol_table->hash));
  }
  for (const CachedFilePtr& file : store_->cache().FilesBelow(argument.path)) {
    if (std::find(state.files.begin(), state.files.end(), file) ==
        state.files.end()) {
      store_->cache().Retire(file);
    }
  }
  std::error_code error;
  for (std::filesystem::directory_iterator entry(argument.path, error);
       !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    if (!names.contains(entry->path().filename().string())) {
      unlink(entry->path().c_str());
    }
  }
  std::erase_if(state.tags,
                [&](const auto& tag) { return !names.contains(tag.first); });
  // Tags of files that are gone cost nothing until the next opening.
  (void)WriteTags(argument, state);
}

void RemoteArchives::RemoveOthers(const std::vector<ArchiveArgument>& wanted) {
  const std::string& directory = store_->cache().directory();
  std::set<std::string> paths;
  for (const ArchiveArgument& argument : wanted) {
    paths.insert(argument.path);
  }
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error);
       !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    const std::string path = entry->path().string();
    // Only directories that this class wrote.
    std::error_code ignored;
    if (paths.contains(path) || !entry->is_directory(ignored) ||
        !std::filesystem::exists(entry->path() / kTagsFileName, ignored)) {
      continue;
    }
    RemoveDirectory(path);
  }
}

void RemoteArchives::RemoveDirectory(const std::string& path) {
  for (const CachedFilePtr& file : store_->cache().FilesBelow(path)) {
    store_->cache().Retire(file);
  }
  {
    MutexLock lock(&mutex_);
    const auto state = states_.find(path);
    if (state != states_.end()) {
      store_->cache().AddOtherBytes(
          -static_cast<int64_t>(state->second->other_bytes));
      states_.erase(state);
    }
  }
  confirmations_.Forget(path);
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace quire
