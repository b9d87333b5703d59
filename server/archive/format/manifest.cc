// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/manifest.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/manifest.pb.h"
#include "server/archive/format/manifest_check.h"
#include "server/archive/format/segment_format.h"

namespace quire {
namespace {

namespace pb = ::quire::archive::v1;

constexpr size_t kHeaderSizeBytes = 16;
constexpr size_t kChecksumSizeBytes = 8;

template <typename T>
void AppendInteger(T value, std::string& out) {
  uint8_t bytes[sizeof(T)];
  StoreLittleEndian(value, bytes);
  out.append(AsText(bytes).data(), sizeof(T));
}

std::string FormatUuid(const Manifest::Uuid& uuid) {
  const std::string hex = absl::BytesToHexString(AsText(uuid));
  const absl::string_view digits = hex;
  return absl::StrCat(digits.substr(0, 8), "-", digits.substr(8, 4), "-",
                      digits.substr(12, 4), "-", digits.substr(16, 4), "-",
                      digits.substr(20));
}

ManifestSegment FromProto(const pb::Segment& message) {
  ManifestSegment segment;
  segment.number = message.number();
  segment.file_size_bytes = message.file_size_bytes();
  segment.block_count = message.block_count();
  segment.document_count = message.document_count();
  segment.size_bytes = message.size_bytes();
  segment.id_size_bytes = message.id_size_bytes();
  segment.footer_checksum = message.footer_checksum();
  for (const pb::Section& section : message.sections()) {
    segment.sections.push_back(
        {section.type(), section.size_bytes(), section.stored_size_bytes()});
  }
  segment.stored_text_size_bytes = message.stored_text_size_bytes();
  segment.run_count = message.run_count();
  segment.codec_level = message.codec_level();
  segment.span_count = message.span_count();
  segment.derived_id_count = message.derived_id_count();
  return segment;
}

void ToProto(const ManifestSegment& segment, pb::Segment& message) {
  message.set_number(segment.number);
  message.set_file_size_bytes(segment.file_size_bytes);
  message.set_block_count(segment.block_count);
  message.set_document_count(segment.document_count);
  message.set_size_bytes(segment.size_bytes);
  message.set_id_size_bytes(segment.id_size_bytes);
  message.set_footer_checksum(segment.footer_checksum);
  for (const ManifestSection& section : segment.sections) {
    pb::Section& to = *message.add_sections();
    to.set_type(section.type);
    to.set_size_bytes(section.size_bytes);
    to.set_stored_size_bytes(section.stored_size_bytes);
  }
  message.set_stored_text_size_bytes(segment.stored_text_size_bytes);
  message.set_run_count(segment.run_count);
  message.set_codec_level(segment.codec_level);
  message.set_span_count(segment.span_count);
  message.set_derived_id_count(segment.derived_id_count);
}

void AddRefused(uint32_t reason, const FoundMembers::Refused& refused,
                pb::FoundMembers& message) {
  if (refused.count > 0) {
    pb::RefusedMembers& to = *message.add_refused();
    to.set_reason(reason);
    to.set_count(refused.count);
    to.set_size_bytes(refused.size_bytes);
  }
}

void ToProto(const FoundMembers& found, pb::FoundMembers& message) {
  message.set_container(static_cast<uint32_t>(found.container));
  message.set_count(found.count);
  message.set_size_bytes(found.size_bytes);
  message.set_text_size_bytes(found.text_size_bytes);
  message.set_inflated_count(found.inflated.count);
  message.set_inflated_size_bytes(found.inflated.size_bytes);
  message.set_inflated_stored_size_bytes(found.inflated.stored_size_bytes);
  for (uint32_t reason = 0; reason < found.refused.size(); ++reason) {
    AddRefused(reason, found.refused[reason], message);
  }
}

FoundMembers FromProto(const pb::FoundMembers& message) {
  FoundMembers found;
  found.container = static_cast<DeflateContainer>(message.container());
  found.count = message.count();
  found.size_bytes = message.size_bytes();
  found.text_size_bytes = message.text_size_bytes();
  found.inflated = {message.inflated_count(), message.inflated_size_bytes(),
                    message.inflated_stored_size_bytes()};
  for (const pb::RefusedMembers& refused : message.refused()) {
    if (refused.reason() < found.refused.size()) {
      found.refused[refused.reason()] = {refused.count(), refused.size_bytes()};
    }
  }
  return found;
}

// Drops containers and reasons of later versions.
absl::Status TakeFoundMembers(const pb::Manifest& message, Manifest& manifest) {
  std::optional<uint32_t> previous;
  manifest.has_recipes = message.has_recipes();
  for (const pb::FoundMembers& from : message.found_members()) {
    if (previous.has_value() && from.container() <= *previous) {
      return Damaged(
          absl::StrCat("found members of container ", from.container(),
                       " come after those of container ", *previous));
    }
    previous = from.container();
    if (*previous < kDeflateContainerCount) {
      manifest.found_members.push_back(FromProto(from));
    }
  }
  return absl::OkStatus();
}

absl::Status TakeUuid(const std::string& bytes, Manifest::Uuid& uuid) {
  if (bytes.size() != uuid.size()) {
    return Damaged(
        absl::StrCat("the uuid has ", bytes.size(), " bytes, expected 16"));
  }
  std::ranges::copy(AsBytes(bytes), uuid.begin());
  return absl::OkStatus();
}

// `what` names the list of states.
absl::Status TakeStates(
    const google::protobuf::RepeatedPtrField<pb::State>& states,
    absl::string_view what, std::vector<ManifestState>& taken) {
  if (states.size() > static_cast<int>(kHistoryCountMax)) {
    return Damaged(absl::StrCat(what, " of ", states.size(),
                                " states, expected at most ",
                                kHistoryCountMax));
  }
  for (const pb::State& from : states) {
    ManifestState& state = taken.emplace_back();
    QUIRE_RETURN_IF_ERROR(TakeUuid(from.uuid(), state.uuid));
    state.size_bytes = from.size_bytes();
    state.document_count = from.document_count();
  }
  return absl::OkStatus();
}

void AddStates(const std::vector<ManifestState>& states,
               google::protobuf::RepeatedPtrField<pb::State>& added) {
  for (const ManifestState& state : states) {
    pb::State& to = *added.Add();
    to.set_uuid(state.uuid.data(), state.uuid.size());
    to.set_size_bytes(state.size_bytes);
    to.set_document_count(state.document_count);
  }
}

std::vector<ArchiveState> DescribeStates(
    const std::vector<ManifestState>& states) {
  std::vector<ArchiveState> described;
  described.reserve(states.size());
  for (const ManifestState& state : states) {
    described.push_back(
        {FormatUuid(state.uuid), state.size_bytes, state.document_count});
  }
  return described;
}

// Returns the protobuf message in the file.
absl::StatusOr<ByteView> TakePayload(ByteView file) {
  QUIRE_RETURN_IF_ERROR(CheckMagicAndVersion(file, kManifestMagic, "manifest"));
  if (file.size() < kHeaderSizeBytes + kChecksumSizeBytes) {
    return Damaged(absl::StrCat("only ", file.size(), " bytes long"));
  }
  const uint32_t payload_size_bytes =
      LoadLittleEndian<uint32_t>(file.data() + 12);
  const size_t checked_size_bytes = file.size() - kChecksumSizeBytes;
  if (checked_size_bytes - kHeaderSizeBytes != payload_size_bytes) {
    return Damaged(absl::StrCat(
        file.size(), " bytes long, expected ",
        uint64_t{payload_size_bytes} + kHeaderSizeBytes + kChecksumSizeBytes));
  }
  const uint64_t expected =
      LoadLittleEndian<uint64_t>(file.data() + checked_size_bytes);
  const uint64_t found = Checksum64(file.first(checked_size_bytes));
  if (found != expected) {
    return ChecksumMismatch("manifest checksum", found, expected);
  }
  return file.subspan(kHeaderSizeBytes, payload_size_bytes);
}

}  // namespace

bool ManifestSegment::HasEqualBlocks(uint32_t block_size_bytes) const {
  return span_count <= 2 &&
         block_count == stored_text_size_bytes / block_size_bytes +
                            (stored_text_size_bytes % block_size_bytes != 0);
}

Manifest::Uuid Manifest::DeriveUuid() const {
  const CodecInfo* const info = FindCodec(codec.id);
  // Other codecs can be read without the table.
  const bool uses_table =
      symbol_table.has_value() && info != nullptr && info->needs_symbol_table;
  std::string facts;
  AppendInteger(kFormatVersion, facts);
  AppendInteger(static_cast<uint32_t>(codec.id), facts);
  AppendInteger(block_size_bytes, facts);
  AppendInteger(codec.partition_size_bytes, facts);
  AppendInteger(dictionary.has_value() ? dictionary->hash : 0, facts);
  AppendInteger(dictionary.has_value() ? dictionary->size_bytes : 0, facts);
  AppendInteger(uses_table ? symbol_table->hash : 0, facts);
  for (const ManifestSegment& segment : segments) {
    AppendInteger(segment.number, facts);
    AppendInteger(segment.footer_checksum, facts);
  }
  Uuid result;
  StoreLittleEndian(Checksum64(AsBytes(facts), 0), result.data());
  StoreLittleEndian(Checksum64(AsBytes(facts), 1), result.data() + 8);
  // RFC 9562, section 5.8.
  result[6] = static_cast<uint8_t>((result[6] & 0x0F) | 0x80);
  result[8] = static_cast<uint8_t>((result[8] & 0x3F) | 0x80);
  return result;
}

Manifest Manifest::WithoutDocuments() const {
  Manifest empty;
  empty.codec = codec;
  empty.block_size_bytes = block_size_bytes;
  empty.block_size_bytes_max = block_size_bytes;
  empty.next_segment_number = next_segment_number;
  empty.writer = writer;
  empty.choice = choice;
  empty.dictionary = dictionary;
  empty.symbol_table = symbol_table;
  empty.uuid = empty.DeriveUuid();
  return empty;
}

ArchiveInfo Manifest::Describe(uint64_t manifest_file_size_bytes) const {
  ArchiveInfo info;
  info.uuid = FormatUuid(uuid);
  info.format_version = kFormatVersion;
  info.codec = codec;
  info.block_size_bytes = block_size_bytes;
  info.block_size_bytes_max = block_size_bytes_max;
  info.slices_per_mib_max = slices_per_mib_max;
  info.writer = writer;
  info.choice = choice;
  if (has_unknown_fields) {
    info.unknown_part = "the manifest has fields";
  }
  info.stored_size_bytes = manifest_file_size_bytes;
  info.segment_count = static_cast<uint32_t>(segments.size());
  info.unread_input_count = unread_input_count;
  info.unread_inputs = unread_inputs;
  info.members = members;
  info.found_members = found_members;
  info.has_recipes = has_recipes;
  for (const ManifestSegment& segment : segments) {
    info.size_bytes += segment.size_bytes;
    info.stored_text_size_bytes += segment.stored_text_size_bytes;
    info.run_count += segment.run_count;
    info.has_layout |= segment.has_layout();
    info.has_varying_blocks |= !segment.HasEqualBlocks(block_size_bytes);
    for (const ManifestSection& section : segment.sections) {
      if (info.unknown_part.empty() && !IsKnownSectionType(section.type)) {
        info.unknown_part =
            absl::StrCat("segment ", segment.number, " has a section of type ",
                         section.type);
      }
    }
    info.stored_size_bytes += segment.file_size_bytes;
    info.block_count += segment.block_count;
    info.document_count += segment.document_count;
  }
  info.history = DescribeStates(history);
  info.redacted_states = DescribeStates(redacted_states);
  if (dictionary.has_value()) {
    info.stored_size_bytes += dictionary->file_size_bytes;
    info.dictionary_size_bytes = dictionary->size_bytes;
    info.dictionary_stored_size_bytes = dictionary->file_size_bytes;
    info.dictionary_hash = FormatChecksum(dictionary->hash);
  }
  if (symbol_table.has_value()) {
    info.stored_size_bytes +=
        kSymbolTableOverheadBytes + symbol_table->size_bytes;
    info.symbol_table_size_bytes = symbol_table->size_bytes;
    info.symbol_table_hash = FormatChecksum(symbol_table->hash);
  }
  return info;
}

std::string EncodeManifest(const Manifest& manifest) {
  pb::Manifest message;
  message.set_uuid(manifest.uuid.data(), manifest.uuid.size());
  message.set_codec_id(static_cast<uint32_t>(manifest.codec.id));
  message.set_block_size_bytes(manifest.block_size_bytes);
  message.set_partition_size_bytes(manifest.codec.partition_size_bytes);
  message.set_block_size_bytes_max(manifest.block_size_bytes_max);
  message.set_slices_per_mib_max(manifest.slices_per_mib_max);
  message.set_next_segment_number(manifest.next_segment_number);
  message.set_writer(manifest.writer);
  message.set_choice(manifest.choice);
  AddStates(manifest.history, *message.mutable_history());
  AddStates(manifest.redacted_states, *message.mutable_redacted_states());
  if (manifest.dictionary.has_value()) {
    pb::Dictionary& dictionary = *message.mutable_dictionary();
    dictionary.set_hash(manifest.dictionary->hash);
    dictionary.set_size_bytes(manifest.dictionary->size_bytes);
    dictionary.set_file_size_bytes(manifest.dictionary->file_size_bytes);
  }
  if (manifest.symbol_table.has_value()) {
    pb::SymbolTable& symbol_table = *message.mutable_symbol_table();
    symbol_table.set_hash(manifest.symbol_table->hash);
    symbol_table.set_size_bytes(manifest.symbol_table->size_bytes);
  }
  for (const ManifestSegment& segment : manifest.segments) {
    ToProto(segment, *message.add_segments());
  }
  if (const CodecInfo* const codec = FindCodec(manifest.codec.id);
      codec != nullptr && manifest.segments.empty() &&
      manifest.codec.level != DefaultCodecSpec(*codec).level) {
    message.set_codec_level(manifest.codec.level);
  }
  message.set_unread_input_count(manifest.unread_input_count);
  for (const std::string& unread : manifest.unread_inputs) {
    if (message.unread_inputs_size() < static_cast<int>(kUnreadInputsMax)) {
      message.add_unread_inputs(unread.substr(0, kUnreadInputSizeBytesMax));
    }
  }
  for (const MemberBlocks& member : manifest.members) {
    pb::Member& to = *message.add_members();
    to.set_codec_id(static_cast<uint32_t>(member.codec));
    to.set_block_count(member.block_count);
    to.set_size_bytes(member.size_bytes);
    to.set_stored_size_bytes(member.stored_size_bytes);
  }
  message.set_has_recipes(manifest.has_recipes);
  for (const FoundMembers& found : manifest.found_members) {
    ToProto(found, *message.add_found_members());
  }
  const std::string payload = message.SerializeAsString();
  std::string file(AsText(kManifestMagic));
  AppendInteger(kFormatVersion, file);
  AppendInteger(static_cast<uint32_t>(payload.size()), file);
  file.append(payload);
  AppendInteger(Checksum64(AsBytes(file)), file);
  return file;
}

absl::StatusOr<Manifest> ParseManifest(ByteView file) {
  QUIRE_ASSIGN_OR_RETURN(const ByteView payload, TakePayload(file));
  pb::Manifest message;
  if (!message.ParseFromArray(payload.data(),
                              static_cast<int>(payload.size()))) {
    return Damaged("the message does not parse");
  }
  for (const std::string& feature : message.required_features()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the archive needs the feature \"",
                     absl::CEscape(feature.substr(0, 64)),
                     "\", which this program does not know: use a newer one"));
  }
  Manifest manifest;
  const size_t message_size_bytes = message.ByteSizeLong();
  message.DiscardUnknownFields();
  manifest.has_unknown_fields = message.ByteSizeLong() != message_size_bytes;
  QUIRE_RETURN_IF_ERROR(TakeUuid(message.uuid(), manifest.uuid));
  QUIRE_RETURN_IF_ERROR(
      TakeStates(message.history(), "a history", manifest.history));
  QUIRE_RETURN_IF_ERROR(TakeStates(message.redacted_states(),
                                   "a list of redacted states",
                                   manifest.redacted_states));
  manifest.codec = {.id = static_cast<CodecId>(message.codec_id()),
                    .partition_size_bytes = message.partition_size_bytes()};
  manifest.block_size_bytes = message.block_size_bytes();
  manifest.block_size_bytes_max = message.block_size_bytes_max();
  manifest.slices_per_mib_max = message.slices_per_mib_max();
  manifest.next_segment_number = message.next_segment_number();
  manifest.writer = message.writer().substr(0, kWriterSizeBytesMax);
  manifest.choice = message.choice().substr(0, kChoiceSizeBytesMax);
  if (message.has_dictionary()) {
    manifest.dictionary = {message.dictionary().hash(),
                           message.dictionary().size_bytes(),
                           message.dictionary().file_size_bytes()};
  }
  if (message.has_symbol_table()) {
    manifest.symbol_table = {message.symbol_table().hash(),
                             message.symbol_table().size_bytes()};
  }
  for (const pb::Segment& segment : message.segments()) {
    manifest.segments.push_back(FromProto(segment));
  }
  if (!manifest.segments.empty()) {
    manifest.codec.level = manifest.segments.back().codec_level;
  } else if (const CodecInfo* const codec = FindCodec(manifest.codec.id)) {
    manifest.codec.level = message.has_codec_level()
                               ? message.codec_level()
                               : DefaultCodecSpec(*codec).level;
  }
  manifest.unread_input_count = message.unread_input_count();
  for (const std::string& unread : message.unread_inputs()) {
    if (manifest.unread_inputs.size() < kUnreadInputsMax) {
      manifest.unread_inputs.push_back(
          unread.substr(0, kUnreadInputSizeBytesMax));
    }
  }
  if (message.members_size() > kMemberCountMax) {
    return Damaged(absl::StrCat(message.members_size(), " members"));
  }
  for (const pb::Member& member : message.members()) {
    manifest.members.push_back({static_cast<CodecId>(member.codec_id()),
                                member.block_count(), member.size_bytes(),
                                member.stored_size_bytes()});
  }
  QUIRE_RETURN_IF_ERROR(TakeFoundMembers(message, manifest));
  QUIRE_RETURN_IF_ERROR(CheckManifest(manifest));
  return manifest;
}

}  // namespace quire
