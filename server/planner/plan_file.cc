// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/plan_file.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "codecs/rlz/dictionary_builder.h"
#include "server/archive/files/small_file.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kPlanVersion = 2;
// Has no speeds of codecs.
constexpr uint64_t kPlanVersionMin = 1;
// A plan has some 50 KB.
constexpr size_t kPlanSizeBytesMax = size_t{16} << 20;

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, "; give a file that quired plan --json has written"));
}

// A whole number of the object that is `min` to `max`.
absl::StatusOr<uint64_t> Number(const Json& object, absl::string_view name,
                                uint64_t max, uint64_t min = 0) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) {
    return Invalid(
        absl::StrCat("a plan must have a whole number \"", name,
                     "\" here, and this one has ",
                     found == object.end() ? "none" : "another value"));
  }
  const auto value = found->get<uint64_t>();
  if (value > max) {
    return Invalid(absl::StrCat("\"", name, "\" of a plan must be at most ",
                                max, ", got ", value));
  }
  if (value < min) {
    return Invalid(absl::StrCat("\"", name, "\" of a plan must be at least ",
                                min, ", got ", value));
  }
  return value;
}

absl::StatusOr<RecommendedArchive> ParseCell(const Json& cell) {
  if (!cell.is_object() || !cell.contains("codec") ||
      !cell["codec"].is_string()) {
    return Invalid("the recommended cell of the plan names no codec");
  }
  RecommendedArchive planned;
  planned.codec = cell["codec"].get<std::string>();
  QUIRE_ASSIGN_OR_RETURN(const CodecSpec spec, ParseCodecSpec(planned.codec));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t block_size,
                         Number(cell, "block_size_bytes", kBlockSizeBytesMax));
  planned.block_size_bytes = static_cast<uint32_t>(block_size);
  QUIRE_ASSIGN_OR_RETURN(
      planned.dictionary_size_bytes,
      Number(cell, "dictionary_size_bytes", kDictionarySizeBytesMax));
  const CodecInfo& info = *FindCodec(spec.id);
  if (info.needs_dictionary != (planned.dictionary_size_bytes != 0)) {
    return Invalid(
        absl::StrCat("the plan has codec ", info.name, " with a dictionary of ",
                     FormatByteSizeExact(planned.dictionary_size_bytes)));
  }
  return planned;
}

absl::StatusOr<AutoSpeed> ParseSpeed(const Json& speeds,
                                     const std::string& codec) {
  const auto found = speeds.find(codec);
  if (found == speeds.end() || !found->is_object()) {
    return Invalid(
        absl::StrCat("\"codec_speeds\" of the plan has no codec ", codec));
  }
  const auto read = [&](absl::string_view name) -> absl::StatusOr<uint64_t> {
    const absl::StatusOr<uint64_t> speed =
        Number(*found, name, AutoSpeed::kMax, AutoSpeed::kMin);
    return speed.ok()
               ? speed
               : absl::Status(speed.status().code(),
                              absl::StrCat("\"codec_speeds\", codec ", codec,
                                           ": ", speed.status().message()));
  };
  AutoSpeed speed;
  QUIRE_ASSIGN_OR_RETURN(speed.encode, read("encode_bytes_per_second"));
  QUIRE_ASSIGN_OR_RETURN(speed.decode, read("decode_bytes_per_second"));
  return speed;
}

absl::StatusOr<PlannedSpeeds> ParseSpeeds(const Json& plan) {
  const auto speeds = plan.find("codec_speeds");
  if (speeds == plan.end() || !speeds->is_object()) {
    return Invalid("the plan has no object \"codec_speeds\"");
  }
  PlannedSpeeds planned;
  for (const AutoObjective objective : kAutoObjectives) {
    for (const AutoMember& member : AutoMembers(objective)) {
      const std::string codec = FormatCodecSpec(member.spec);
      QUIRE_ASSIGN_OR_RETURN(planned[codec], ParseSpeed(*speeds, codec));
    }
  }
  return planned;
}

}  // namespace

absl::StatusOr<RecommendedArchive> ParsePlan(absl::string_view json) {
  const Json plan = Json::parse(json.begin(), json.end(), /*cb=*/nullptr,
                                /*allow_exceptions=*/false);
  if (!plan.is_object()) {
    return Invalid("not a JSON object");
  }
  QUIRE_ASSIGN_OR_RETURN(const uint64_t version,
                         Number(plan, "version", UINT64_MAX));
  if (version < kPlanVersionMin || version > kPlanVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("a plan of version ", version, ", this program reads ",
                     kPlanVersionMin, " to ", kPlanVersion, "; plan again"));
  }
  const auto cells = plan.find("cells");
  if (cells == plan.end() || !cells->is_array()) {
    return Invalid("the plan has no list \"cells\"");
  }
  if (!plan.contains("recommended")) {
    return absl::FailedPreconditionError(
        "the plan recommends nothing, as nothing is within its bounds; plan "
        "again with others, or give --codec and --block-size");
  }
  QUIRE_ASSIGN_OR_RETURN(const uint64_t recommended,
                         Number(plan, "recommended", UINT32_MAX));
  if (recommended >= cells->size()) {
    return Invalid(absl::StrCat("the plan recommends cell ", recommended,
                                " of ", cells->size()));
  }
  QUIRE_ASSIGN_OR_RETURN(RecommendedArchive planned,
                         ParseCell((*cells)[recommended]));
  planned.hash = Checksum64(AsBytes(json));
  QUIRE_ASSIGN_OR_RETURN(planned.text_size_bytes,
                         Number(plan, "text_size_bytes", UINT64_MAX / 4));
  if (version > kPlanVersionMin) {
    QUIRE_ASSIGN_OR_RETURN(planned.auto_speeds, ParseSpeeds(plan));
  }
  return planned;
}

absl::StatusOr<RecommendedArchive> ReadPlanFile(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string json,
                         ReadSmallFile(path, kPlanSizeBytesMax));
  absl::StatusOr<RecommendedArchive> planned = ParsePlan(json);
  if (!planned.ok()) {
    return absl::Status(planned.status().code(),
                        absl::StrCat(path, ": ", planned.status().message()));
  }
  return planned;
}

absl::Status CheckPlanFits(const RecommendedArchive& planned,
                           uint64_t text_size_bytes) {
  const uint64_t planned_bytes = planned.text_size_bytes;
  if (text_size_bytes / 2 <= planned_bytes &&
      planned_bytes / 2 <= text_size_bytes) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the plan was made for ", FormatByteSize(planned_bytes),
      " of text, and there are ", FormatByteSize(text_size_bytes),
      "; plan again, or give --codec, --block-size and --dictionary-size "
      "instead of --plan"));
}

}  // namespace quire
