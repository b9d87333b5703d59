// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes are counted; those within bounds take no more memory than the
// bounds allow.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"

#include "proto/message_bounds.h"
#include "proto/quire/v1/archive.pb.h"

namespace {

constexpr uint64_t kFieldsMax = 100;
// Upper bound on memory per field, far above any.
constexpr uint64_t kFieldSizeBytesMax = 512;

void Check(google::protobuf::Message&& message, const uint8_t* data,
           size_t size) {
  // Small pieces, as in long messages.
  google::protobuf::io::ArrayInputStream in(data, static_cast<int>(size), 13);
  const quire::BoundsCheck check = quire::CheckBounds(
      in, {.fields_max = kFieldsMax}, *message.GetDescriptor());
  if (check == quire::BoundsCheck::kWithin &&
      message.ParseFromArray(data, static_cast<int>(size)) &&
      message.SpaceUsedLong() > 2 * size + kFieldsMax * kFieldSizeBytesMax) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Check(quire::v1::BatchReadRequest(), data, size);
  Check(quire::v1::BatchReadResponse(), data, size);
  Check(quire::v1::ListArchivesResponse(), data, size);
  return 0;
}
