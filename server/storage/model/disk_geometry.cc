// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/model/disk_geometry.h"

#include <algorithm>
#include <cmath>

namespace quire {

DiskLayout::DiskLayout(const DiskGeometry& geometry)
    : geometry_(geometry),
      zone_cylinders_(
          std::max(geometry.cylinder_count / geometry.zone_count, 1U)),
      root_cylinders_(geometry.root_stroke_share * geometry.cylinder_count) {
  const double at_root =
      geometry.settle_ms + geometry.root_ms * std::sqrt(root_cylinders_);
  linear_ms_ = (geometry.full_stroke_ms - at_root) /
               (geometry.cylinder_count - root_cylinders_);
  const double step =
      (geometry.outer_track_size_bytes - geometry.inner_track_size_bytes) /
      std::max(geometry.zone_count - 1, 1U);
  for (uint32_t i = 0; i < geometry.zone_count; ++i) {
    const auto track =
        static_cast<uint64_t>(geometry.outer_track_size_bytes - i * step);
    zones_.push_back({capacity_size_bytes_, track});
    capacity_size_bytes_ +=
        track * geometry.head_count * uint64_t{zone_cylinders_};
  }
}

DiskPlace DiskLayout::Find(uint64_t address) const {
  const auto above = std::upper_bound(
      zones_.begin(), zones_.end(), address,
      [](uint64_t value, const Zone& zone) { return value < zone.start; });
  const auto zone_index = static_cast<uint32_t>(above - zones_.begin() - 1);
  const Zone& zone = zones_[zone_index];
  const uint64_t track = (address - zone.start) / zone.track_size_bytes;
  const uint64_t within = (address - zone.start) % zone.track_size_bytes;
  const uint64_t first_track =
      uint64_t{zone_index} * zone_cylinders_ * geometry_.head_count;
  const auto size = static_cast<double>(zone.track_size_bytes);
  DiskPlace place;
  place.cylinder = zone_index * zone_cylinders_ +
                   static_cast<uint32_t>(track / geometry_.head_count);
  place.head = static_cast<uint32_t>(track % geometry_.head_count);
  place.track_size_bytes = size;
  place.left_size_bytes = static_cast<double>(zone.track_size_bytes - within);
  const double skewed = static_cast<double>(first_track + track) *
                            (geometry_.switch_ms / geometry_.turn_ms) +
                        static_cast<double>(within) / size;
  place.angle = skewed - std::floor(skewed);
  return place;
}

double DiskLayout::SeekMs(const DiskPlace& from, const DiskPlace& to) const {
  if (from.cylinder == to.cylinder) {
    return from.head == to.head ? 0 : geometry_.switch_ms;
  }
  const uint32_t cylinders = std::max(from.cylinder, to.cylinder) -
                             std::min(from.cylinder, to.cylinder);
  const double seek = SeekMs(cylinders);
  return from.head == to.head ? seek : std::max(seek, geometry_.switch_ms);
}

double DiskLayout::SeekMs(uint32_t cylinders) const {
  if (cylinders <= 1) {
    return cylinders * geometry_.next_cylinder_ms;
  }
  const double distance = cylinders;
  const double rooted = std::min(distance, root_cylinders_);
  return geometry_.settle_ms + geometry_.root_ms * std::sqrt(rooted) +
         (distance - rooted) * linear_ms_;
}

double DiskLayout::TransferMs(const DiskPlace& start,
                              uint64_t size_bytes) const {
  const auto size = static_cast<double>(size_bytes);
  const double turns = size / start.track_size_bytes;
  // The transfer crosses the edge of a zone as if the zone continued: tracks
  // differ by 3 %.
  const double changes =
      size <= start.left_size_bytes
          ? 0
          : std::ceil((size - start.left_size_bytes) / start.track_size_bytes);
  return turns * geometry_.turn_ms + changes * geometry_.switch_ms;
}

}  // namespace quire
