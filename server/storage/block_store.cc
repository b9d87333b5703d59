// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/block_store.h"

#include <utility>

#include "server/storage/device.h"
#include "server/storage/device_block_store.h"

namespace quire {

absl::StatusOr<std::unique_ptr<BlockStore>> BlockStore::Create(
    const BlockStoreOptions& options) {
  return DeviceBlockStore::Create(options, [&options](Device::Done done) {
    return OpenDevice(options.engine, options.device_depth, std::move(done));
  });
}

}  // namespace quire
