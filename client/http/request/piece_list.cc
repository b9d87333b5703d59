// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/piece_list.h"

#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"

#include "client/http/bodies/file_directory.h"
#include "client/http/request/request_target.h"
#include "codecs/base/archive_name.h"
#include "codecs/base/json_text.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

constexpr size_t kPiecesMax = 64;
constexpr uint64_t kPieceSizeMax = uint64_t{1} << 53;

absl::Status Fault(absl::string_view text) {
  return absl::FailedPreconditionError(
      absl::StrCat("the description of the pieces: ", text));
}

// Error unless `object` is an object that has these members and no others.
absl::Status CheckMembers(const Json& object, absl::string_view what,
                          std::initializer_list<const char*> names) {
  if (!object.is_object()) {
    return Fault(absl::StrCat(what, " must be an object"));
  }
  for (const char* name : names) {
    if (!object.contains(name)) {
      return Fault(absl::StrCat(what, " has no \"", name, "\""));
    }
  }
  if (object.size() != names.size()) {
    return Fault(absl::StrCat(what, " has ", object.size(),
                              " members, expected ", names.size()));
  }
  return absl::OkStatus();
}

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

absl::StatusOr<Piece> ParsePiece(const Json& value) {
  const bool is_space = value.is_object() && value.contains("space");
  const char* const kind = is_space ? "space" : "file";
  QUIRE_RETURN_IF_ERROR(CheckMembers(value, "a piece", {kind, "size_bytes"}));
  Piece piece;
  if (is_space) {
    if (value["space"] != true) {
      return Fault("\"space\" must be true");
    }
  } else {
    piece.file = TextOf(value["file"]);
    if (!IsFileName({piece.file.data(), piece.file.size()})) {
      return Fault(absl::StrCat(
          "\"file\" must be the name of a file in the same directory, got ",
          QuotedText({piece.file.data(), piece.file.size()})));
    }
  }
  const Json& size = value["size_bytes"];
  if (!size.is_number_unsigned() || size.get<uint64_t>() > kPieceSizeMax) {
    return Fault("\"size_bytes\" must be an integer from 0 to 2^53");
  }
  piece.size_bytes = size.get<uint64_t>();
  return piece;
}

}  // namespace

absl::StatusOr<PieceList> ParsePieceList(absl::string_view json) {
  if (json.size() > kPieceListSizeBytesMax) {
    return Fault(absl::StrCat("it has ", json.size(), " bytes, at most ",
                              kPieceListSizeBytesMax, " are read"));
  }
  const Json root = Json::parse(json.begin(), json.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (root.is_discarded()) {
    return Fault("it is not JSON");
  }
  QUIRE_RETURN_IF_ERROR(
      CheckMembers(root, "it", {"format", "archive", "uuid", "pieces"}));
  if (root["format"] != 1) {
    return Fault("\"format\" must be 1; others need another quire-http");
  }
  PieceList list{.archive = TextOf(root["archive"]),
                 .uuid = TextOf(root["uuid"]),
                 .pieces = {}};
  if (!IsArchiveName({list.archive.data(), list.archive.size()})) {
    return Fault("\"archive\" must be the name of an archive");
  }
  if (!IsArchiveUuid({list.uuid.data(), list.uuid.size()})) {
    return Fault("\"uuid\" must be the uuid of the archive");
  }
  const Json& pieces = root["pieces"];
  if (!pieces.is_array() || pieces.empty() || pieces.size() > kPiecesMax) {
    return Fault(
        absl::StrCat("\"pieces\" must be a list of 1 to ", kPiecesMax));
  }
  for (const Json& value : pieces) {
    QUIRE_ASSIGN_OR_RETURN(Piece piece, ParsePiece(value));
    list.pieces.push_back(std::move(piece));
  }
  return list;
}

}  // namespace quire
