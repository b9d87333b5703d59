// SPDX-License-Identifier: Apache-2.0
#include "codecs/choose/compression_cost.h"

#include <algorithm>
#include <cmath>

namespace quire {
namespace {

double Seconds(const Transfer& transfer, double ratio) {
  return transfer.size_bytes == 0
             ? 0
             : transfer.size_bytes / (transfer.bytes_per_second * ratio);
}

double Seconds(double size_bytes, double bytes_per_second) {
  return size_bytes == 0 ? 0 : size_bytes / bytes_per_second;
}

// Of raw bytes; the unit's own rate does not rise with compression, as in the
// paper, where it is that of its network.
double UnitBytesPerSecond(const StorageUnit& unit, const CodecFigures& codec) {
  return std::min(unit.bytes_per_second,
                  unit.core_count * codec.encode_bytes_per_second);
}

}  // namespace

double HardwareCompressedSeconds(const Workload& workload, double network_ratio,
                                 double storage_ratio) {
  return workload.compute_seconds + Seconds(workload.network, network_ratio) +
         Seconds(workload.storage, storage_ratio);
}

double CompressedSeconds(const Workload& workload, double network_ratio,
                         double storage_ratio, const CodecFigures& codec,
                         double encoded_bytes, double decoded_bytes) {
  return HardwareCompressedSeconds(workload, network_ratio, storage_ratio) +
         Seconds(encoded_bytes, codec.encode_bytes_per_second) +
         Seconds(decoded_bytes, codec.decode_bytes_per_second);
}

double PathBytesPerSecond(double client, double network, double server) {
  return std::min({client, network, server});
}

double LinkBytesPerSecond(double link_bytes_per_second,
                          const CodecFigures& codec, uint32_t core_count) {
  return std::min(link_bytes_per_second * codec.ratio,
                  core_count * codec.encode_bytes_per_second);
}

StoragePurchase BuyFewestUnits(const StorageUnit& unit,
                               const CodecFigures& codec, double size_bytes) {
  const double units =
      std::ceil(size_bytes / (codec.ratio * unit.capacity_bytes));
  return {.unit_count = static_cast<uint64_t>(units),
          .price = units * (unit.base_price + unit.drives_price +
                            unit.compression_price),
          .bytes_per_second = units * UnitBytesPerSecond(unit, codec)};
}

StoragePurchase BuyFewestDrives(const StorageUnit& unit,
                                const CodecFigures& codec, double size_bytes,
                                uint64_t unit_count) {
  const auto units = static_cast<double>(unit_count);
  const double full_units = size_bytes / (codec.ratio * unit.capacity_bytes);
  return {.unit_count = unit_count,
          .price = units * (unit.base_price + unit.compression_price) +
                   full_units * unit.drives_price,
          .bytes_per_second = units * UnitBytesPerSecond(unit, codec)};
}

}  // namespace quire
