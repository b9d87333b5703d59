// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/recompress.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/byte_size.h"
#include "server/archive/format/archive_format.h"
#include "server/ingest/sources/archive_source.h"

namespace quire {
namespace {

// Returns everything that the blocks depend on.
std::string Parameters(const Archive& archive, const BuildOptions& options) {
  const CodecSpec& codec = options.archive.codec;
  const CodecInfo* const info = FindCodec(codec.id);
  std::string lines = absl::StrCat(
      "archive ", archive.info().uuid, "\nobjective ",
      ObjectiveName(options.objective), "\ncodec ", FormatCodecSpec(codec),
      "\nblock size ", FormatByteSizeExact(options.archive.block_size_bytes),
      "\nsegment size ", FormatByteSizeExact(options.segment_size_bytes),
      "\nreorder ", ReorderModeName(options.reorder), "\ninflate ",
      options.inflate ? "auto" : "off", "\nsymbol table ",
      options.symbol_table ? "yes" : "no", "\n");
  if (options.inflate) {
    absl::StrAppend(&lines, "inflate member size ",
                    FormatByteSizeExact(options.inflate_member_size_bytes_max),
                    "\n");
  }
  absl::StrAppend(&lines, "partition size ",
                  FormatByteSizeExact(codec.partition_size_bytes), "\n");
  if (info != nullptr && info->needs_dictionary) {
    absl::StrAppend(&lines, "dictionary size ",
                    options.dictionary_size_bytes.has_value()
                        ? FormatByteSizeExact(*options.dictionary_size_bytes)
                        : "auto",
                    "\ndictionary method ",
                    options.dictionary_method == DictionaryMethod::kUniform
                        ? "uniform"
                        : "coverage",
                    "\n");
  }
  return lines;
}

}  // namespace

absl::StatusOr<BuildSummary> RecompressArchive(
    const std::string& path, const std::shared_ptr<const Archive>& archive,
    BuildOptions options) {
  const ArchiveInfo& info = archive->info();
  if (!info.unknown_part.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        archive->path(), ": ", info.unknown_part,
        " that this program does not know and would leave out: use a newer "
        "one"));
  }
  options.input_size_bytes_max = info.size_bytes;
  options.resume.parameters = Parameters(*archive, options);
  options.resume.unread_input_count = info.unread_input_count;
  options.resume.unread_inputs = info.unread_inputs;
  if (info.block_size_bytes == options.archive.block_size_bytes) {
    options.resume.copied = archive.get();
  }
  if (options.symbol_table && !archive->has_layout() &&
      options.reorder == ReorderMode::kOff) {
    options.resume.symbol_table = std::string(AsText(archive->symbol_table()));
  }
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<ArchiveSource>(archive, options.threads));
  return BuildArchive(path, sources, options);
}

}  // namespace quire
