// SPDX-License-Identifier: Apache-2.0
#include "client/quire/wire_encoding.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace quire {

absl::string_view EncodingChoiceName(EncodingChoice choice) {
  switch (choice) {
    case EncodingChoice::kIdentity:
      return "identity";
    case EncodingChoice::kFsst:
      return "fsst";
    case EncodingChoice::kStored:
      return "stored";
    case EncodingChoice::kAuto:
      break;
  }
  return "auto";
}

absl::StatusOr<EncodingChoice> ParseEncodingChoice(absl::string_view text) {
  for (const EncodingChoice choice :
       {EncodingChoice::kIdentity, EncodingChoice::kFsst,
        EncodingChoice::kStored, EncodingChoice::kAuto}) {
    if (text == EncodingChoiceName(choice)) {
      return choice;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "' is no encoding; there are identity, fsst, stored and "
                   "auto"));
}

absl::string_view AnswerEncodingName(AnswerEncoding encoding) {
  switch (encoding) {
    case AnswerEncoding::kIdentity:
      return "identity";
    case AnswerEncoding::kFsst:
      return "fsst";
    case AnswerEncoding::kStored:
      break;
  }
  return "stored";
}

v1::WireEncoding ToProto(AnswerEncoding encoding) {
  switch (encoding) {
    case AnswerEncoding::kIdentity:
      return v1::WIRE_ENCODING_IDENTITY;
    case AnswerEncoding::kFsst:
      return v1::WIRE_ENCODING_FSST;
    case AnswerEncoding::kStored:
      break;
  }
  return v1::WIRE_ENCODING_STORED;
}

WireTraffic WireStats::Total() const {
  WireTraffic total;
  for (const WireTraffic& part : traffic) {
    total.answer_count += part.answer_count;
    total.wire_size_bytes += part.wire_size_bytes;
    total.decoded_size_bytes += part.decoded_size_bytes;
    total.decode_ns += part.decode_ns;
  }
  return total;
}

}  // namespace quire
