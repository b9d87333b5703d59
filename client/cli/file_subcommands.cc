// SPDX-License-Identifier: Apache-2.0
#include "client/cli/file_subcommands.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/cli/byte_span_text.h"
#include "client/cli/shown_text.h"
#include "client/quire/client.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr char kLongLine[] = "%15s  %-64s  %s";

std::string JsonFile(const v1::DepositedFile& file) {
  std::string json = absl::StrCat("{", JsonBytes("path", file.path()));
  if (!file.has_size_bytes()) {
    return json + ",\"withdrawn\":true}\n";
  }
  return absl::StrCat(json, ",\"size_bytes\":", file.size_bytes(),
                      ",\"sha256\":\"", absl::BytesToHexString(file.sha256()),
                      "\",\"repeated_size_bytes\":", file.repeated_size_bytes(),
                      ",\"text_offset\":", file.text_range().offset(),
                      ",\"text_size_bytes\":", file.text_range().size_bytes(),
                      "}\n");
}

absl::Status PrintFile(CliRun& run, const v1::DepositedFile& file) {
  const CliSettings& settings = run.settings();
  if (settings.json) {
    return run.output().Write(JsonFile(file));
  }
  std::string line =
      run.output().is_terminal() ? PrintableText(file.path()) : file.path();
  if (settings.long_listing) {
    line = absl::StrFormat(
        kLongLine,
        file.has_size_bytes() ? absl::StrCat(file.size_bytes()) : "withdrawn",
        file.has_sha256() ? absl::BytesToHexString(file.sha256()) : "-", line);
  }
  line += settings.null_separated ? '\0' : '\n';
  return run.output().Write(line);
}

absl::Status GetFile(CliRun& run, const std::string& path,
                     const std::optional<ByteSpan>& part) {
  return run.client().ReadFile(
      run.settings().archive, path, part,
      [&](const v1::DepositedFile& file) {
        run.progress().SetTotal(part.has_value() ? part->size_bytes
                                                 : file.size_bytes());
        return absl::OkStatus();
      },
      [&run](uint64_t, ByteView data) {
        run.progress().Add(data.size(), 0);
        return run.WriteData(data);
      },
      run.read_options());
}

}  // namespace

absl::Status ListFiles(CliRun& run) {
  const CliSettings& settings = run.settings();
  uint64_t count = 0;
  const auto print = [&](const v1::DepositedFile& file) -> absl::Status {
    if (count++ == 0 && settings.long_listing && !settings.json) {
      QUIRE_RETURN_IF_ERROR(run.output().Write(absl::StrCat(
          absl::StrFormat(kLongLine, "SIZE", "SHA-256", "PATH"),
          settings.null_separated ? absl::string_view("\0", 1) : "\n")));
    }
    return PrintFile(run, file);
  };
  QUIRE_RETURN_IF_ERROR(run.client().ListFiles(
      settings.archive, settings.prefix, print, run.read_options()));
  if (count > 0) {
    return absl::OkStatus();
  }
  if (!settings.prefix.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no deposited file of ", QuotedText(settings.archive),
        " has a path that starts with ", QuotedText(settings.prefix)));
  }
  run.Note("the archive has no deposited files");
  return absl::OkStatus();
}

absl::Status GetFiles(CliRun& run) {
  const CliSettings& settings = run.settings();
  if (settings.json) {
    return absl::InvalidArgumentError(
        "get --file prints the bytes themselves and has no --json; ls --files "
        "--json describes files");
  }
  std::optional<ByteSpan> part;
  if (settings.part.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(part, ParsePart(*settings.part));
  }
  for (const std::string& path : settings.files) {
    const absl::Status status = GetFile(run, path, part);
    if (IsClosedOutput(status) || absl::IsFailedPrecondition(status)) {
      return status;
    }
    if (!status.ok()) {
      run.Complain(absl::StrCat("file ", QuotedText(path)), status);
    }
    // Each further one would wait as long.
    if (run.unreachable()) {
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace quire
