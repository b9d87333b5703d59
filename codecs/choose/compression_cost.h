// SPDX-License-Identifier: Apache-2.0
//
// What compression saves and costs in a system of processors, links and disks:
// the model of section 2 of "Data Compression for Climate Data" (Kuhn, Kunkel,
// Ludwig). Its equation 3 is in wire_cost.h.
//
// Sizes are bytes, speeds bytes per second, times seconds, prices euro; a ratio
// is raw size over stored size, more than 0, as in the paper. Thread-safe: pure
// functions.
#ifndef QUIRE_CODECS_CHOOSE_COMPRESSION_COST_H_
#define QUIRE_CODECS_CHOOSE_COMPRESSION_COST_H_

#include <cstdint>

namespace quire {

// A codec as measured: a row of the paper's Table 2. Speeds are of one core,
// in raw bytes.
struct CodecFigures {
  double encode_bytes_per_second = 0;
  double decode_bytes_per_second = 0;
  double ratio = 1;
};

// One phase of a program that moves data. No bytes take no time.
struct Transfer {
  double size_bytes = 0;
  double bytes_per_second = 0;
};

// A program of three phases: it computes, communicates, reads or writes.
struct Workload {
  double compute_seconds = 0;
  Transfer network = {};
  Transfer storage = {};
};

// Equation 1: both transfers are compressed by hardware that hides the work.
// With ratios of 1 it is the time without compression.
double HardwareCompressedSeconds(const Workload& workload, double network_ratio,
                                 double storage_ratio);

// Equation 2: processors compress `encoded_bytes` and decompress
// `decoded_bytes` besides.
double CompressedSeconds(const Workload& workload, double network_ratio,
                         double storage_ratio, const CodecFigures& codec,
                         double encoded_bytes, double decoded_bytes);

// Equation 4: what client, network and server let through together.
double PathBytesPerSecond(double client, double network, double server);

// Raw bytes per second through a link whose senders compress on `core_count`
// cores (section 2.2.2).
double LinkBytesPerSecond(double link_bytes_per_second,
                          const CodecFigures& codec, uint32_t core_count);

// One unit that storage is bought in: servers with their drives.
struct StorageUnit {
  double base_price = 0;
  double drives_price = 0;
  double compression_price = 0;
  double capacity_bytes = 0;
  double bytes_per_second = 0;
  // Cores that are bought for compression.
  uint32_t core_count = 0;
};

struct StoragePurchase {
  uint64_t unit_count = 0;
  double price = 0;
  double bytes_per_second = 0;
};

// Scenario S1 of section 2.2.3: as few full units as hold `size_bytes`.
StoragePurchase BuyFewestUnits(const StorageUnit& unit,
                               const CodecFigures& codec, double size_bytes);

// Scenario S2: `unit_count` units share the drives that hold `size_bytes`.
StoragePurchase BuyFewestDrives(const StorageUnit& unit,
                                const CodecFigures& codec, double size_bytes,
                                uint64_t unit_count);

}  // namespace quire

#endif  // QUIRE_CODECS_CHOOSE_COMPRESSION_COST_H_
