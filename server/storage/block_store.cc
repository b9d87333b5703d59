// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/block_store.h"

#include <utility>

#include "codecs/base/status_macros.h"
#include "server/storage/device.h"
#include "server/storage/device_block_store.h"
#include "server/storage/model/drive_presets.h"
#include "server/storage/modelled_device.h"

namespace quire {

absl::StatusOr<std::unique_ptr<BlockStore>> BlockStore::Create(
    const BlockStoreOptions& options) {
  // The store keeps it, for drives that are added when `options` are gone.
  const DeviceFactory open_engine =
      [engine = options.engine,
       depth = options.device_depth](Device::Done done) {
        return OpenDevice(engine, depth, std::move(done));
      };
  if (options.device_model.empty()) {
    return DeviceBlockStore::Create(options, open_engine);
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<DriveModel> drive,
                         MakeDriveModel(options.device_model));
  BlockStoreOptions modelled = options;
  modelled.drives = {{.name = "modelled",
                      .kind = drive->rotational() ? DriveKind::kRotational
                                                  : DriveKind::kSolidState,
                      .has_priorities = drive->has_priorities()}};
  return DeviceBlockStore::Create(
      modelled, [&](Device::Done done) -> absl::StatusOr<OpenedDevice> {
        OpenedDevice opened;
        QUIRE_ASSIGN_OR_RETURN(
            opened.device,
            ModelledDevice::Open(std::move(drive), options.device_model,
                                 open_engine, std::move(done)));
        return opened;
      });
}

}  // namespace quire
