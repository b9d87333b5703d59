// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/source_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

std::optional<SourceRow> ParseRow(const std::string& line) {
  const size_t first_tab = line.find('\t');
  const size_t second_tab = first_tab == std::string::npos
                                ? first_tab
                                : line.find('\t', first_tab + 1);
  if (second_tab == std::string::npos) {
    return std::nullopt;
  }
  SourceRow row;
  const absl::string_view text = line;
  if (!absl::SimpleAtoi(text.substr(0, first_tab), &row.offset) ||
      !absl::SimpleAtoi(text.substr(first_tab + 1, second_tab - first_tab - 1),
                        &row.size_bytes)) {
    return std::nullopt;
  }
  row.id = line.substr(second_tab + 1);
  return row;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SourceText>> SourceText::Open(
    const std::string& text_path, const std::string& index_path) {
  const int fd = open(text_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::NotFoundError(absl::StrCat(text_path, ": ", ErrnoText(errno)));
  }
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return absl::NotFoundError(absl::StrCat(text_path, ": not a plain file"));
  }
  std::unique_ptr<SourceText> source(
      new SourceText(text_path, fd, static_cast<uint64_t>(info.st_size)));
  if (!index_path.empty()) {
    QUIRE_RETURN_IF_ERROR(source->ReadIndex(index_path));
  }
  return source;
}

SourceText::~SourceText() {
  close(fd_);
}

absl::Status SourceText::ReadIndex(const std::string& index_path) {
  std::ifstream in(index_path, std::ios::binary);
  if (!in) {
    return absl::NotFoundError(absl::StrCat(index_path, ": cannot be opened"));
  }
  std::string line;
  while (std::getline(in, line)) {
    std::optional<SourceRow> row = ParseRow(line);
    if (!row.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(index_path, ": line ", documents_.size() + 1,
                       " is not OFFSET<tab>SIZE<tab>ID"));
    }
    if (row->offset > size_bytes_ ||
        row->size_bytes > size_bytes_ - row->offset) {
      return absl::InvalidArgumentError(
          absl::StrCat(index_path, ": line ", documents_.size() + 1,
                       " reaches past the end of ", path_, ", which has ",
                       size_bytes_, " bytes"));
    }
    documents_.push_back(*std::move(row));
  }
  return absl::OkStatus();
}

absl::Status SourceText::Read(uint64_t offset, MutableByteView out) const {
  if (offset > size_bytes_ || out.size() > size_bytes_ - offset) {
    return absl::OutOfRangeError(absl::StrCat(path_, ": has ", size_bytes_,
                                              " bytes, asked for ", out.size(),
                                              " at ", offset));
  }
  for (size_t done = 0; done < out.size();) {
    const ssize_t got = pread(fd_, out.data() + done, out.size() - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return absl::UnavailableError(absl::StrCat(
          path_, ": ", got < 0 ? ErrnoText(errno) : "has become shorter"));
    }
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SourceText::Matches(uint64_t offset,
                                         absl::string_view bytes) const {
  if (offset > size_bytes_ || bytes.size() > size_bytes_ - offset) {
    return false;
  }
  std::array<uint8_t, 64 << 10> buffer;
  for (size_t done = 0; done < bytes.size();) {
    const MutableByteView piece = MutableByteView(buffer).first(
        std::min(buffer.size(), bytes.size() - done));
    QUIRE_RETURN_IF_ERROR(Read(offset + done, piece));
    if (std::memcmp(piece.data(), bytes.data() + done, piece.size()) != 0) {
      return false;
    }
    done += piece.size();
  }
  return true;
}

}  // namespace quire
