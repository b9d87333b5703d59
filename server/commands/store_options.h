// SPDX-License-Identifier: GPL-3.0-or-later
//
// Options of object stores, shared by the subcommands that reach them.
#ifndef QUIRE_SERVER_COMMANDS_STORE_OPTIONS_H_
#define QUIRE_SERVER_COMMANDS_STORE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"

#include "server/storage/remote/remote_store.h"

namespace quire {

// The options of object stores, as written. Empty: not given.
struct StoreArguments {
  std::string endpoint;
  std::string region;
  // DIR:SIZE.
  std::string cache;
  std::string ca;
  uint64_t chunk_bytes = RemoteStoreOptions().chunk_size_bytes;
  uint32_t requests = RemoteStoreOptions().requests_max;
};

// `cache` describes --store-cache. `arguments` must outlive `subcommand`.
void AddStoreOptions(CLI::App& subcommand, StoreArguments& arguments,
                     const std::string& cache);

// Leaves directory and limit of the cache unset without --store-cache.
// Errors: InvalidArgument  for the usage error.
absl::StatusOr<RemoteStoreOptions> MakeStoreOptions(
    const StoreArguments& arguments);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_STORE_OPTIONS_H_
