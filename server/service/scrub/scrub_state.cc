// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/scrub/scrub_state.h"

#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/small_file.h"

namespace quire {
namespace {

constexpr absl::string_view kFirstLine = "quire-scrub 2";
constexpr absl::string_view kFirstLineOfVersion1 = "quire-scrub 1";
constexpr char kFileName[] = "scrub";
constexpr size_t kFieldCount = 8;
constexpr size_t kFieldCountOfVersion1 = 6;
constexpr absl::string_view kNoSegment = "-";

bool ParsePosition(absl::string_view number, absl::string_view next_block,
                   ScrubProgress& progress) {
  return (number == kNoSegment ||
          absl::SimpleAtoi(number, &progress.segment_number.emplace())) &&
         absl::SimpleAtoi(next_block, &progress.segment_next_block);
}

}  // namespace

std::string EncodeScrubState(const ScrubState& state) {
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const auto& [name, progress] : state) {
    absl::StrAppend(&text, name, " ", progress.uuid, " ", progress.next_block,
                    " ", progress.damaged_count, " ",
                    progress.last_damaged_count, " ", progress.completed_at_s,
                    " ");
    if (progress.segment_number.has_value()) {
      absl::StrAppend(&text, *progress.segment_number);
    } else {
      absl::StrAppend(&text, kNoSegment);
    }
    absl::StrAppend(&text, " ", progress.segment_next_block, "\n");
  }
  return text;
}

absl::StatusOr<ScrubState> ParseScrubState(absl::string_view text) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  const bool is_version_1 = lines.front() == kFirstLineOfVersion1;
  if (lines.size() < 2 || !(is_version_1 || lines.front() == kFirstLine) ||
      !lines.back().empty()) {
    return absl::DataLossError("is not a state of scrubbing, or truncated");
  }
  ScrubState state;
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    const std::vector<absl::string_view> fields = absl::StrSplit(lines[i], ' ');
    ScrubProgress progress;
    if (fields.size() != (is_version_1 ? kFieldCountOfVersion1 : kFieldCount) ||
        fields[0].empty() ||
        !absl::SimpleAtoi(fields[2], &progress.next_block) ||
        !absl::SimpleAtoi(fields[3], &progress.damaged_count) ||
        !absl::SimpleAtoi(fields[4], &progress.last_damaged_count) ||
        !absl::SimpleAtoi(fields[5], &progress.completed_at_s) ||
        (!is_version_1 && !ParsePosition(fields[6], fields[7], progress))) {
      return absl::DataLossError(
          absl::StrCat("line ", i + 1, " is not the state of an archive"));
    }
    progress.uuid = std::string(fields[1]);
    state[std::string(fields[0])] = std::move(progress);
  }
  return state;
}

absl::StatusOr<ScrubState> ReadScrubState(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kFileName);
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    return ScrubState();
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string text,
                         ReadSmallFile(path, kScrubStateSizeBytesMax));
  auto state = ParseScrubState(text);
  if (!state.ok()) {
    return absl::DataLossError(
        absl::StrCat(path, ": ", state.status().message(), "; remove it"));
  }
  return state;
}

absl::Status WriteScrubState(const std::string& directory,
                             const ScrubState& state) {
  return ReplaceFile(directory, kFileName, EncodeScrubState(state));
}

}  // namespace quire
