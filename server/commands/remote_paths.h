// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archives and files in object stores, as local paths: every subcommand that
// reads a path can then read a URL.
#ifndef QUIRE_SERVER_COMMANDS_REMOTE_PATHS_H_
#define QUIRE_SERVER_COMMANDS_REMOTE_PATHS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"
#include "server/archive/files/file_io.h"
#include "server/commands/store_options.h"
#include "server/service/catalog/remote_archives.h"
#include "server/storage/remote/bucket_client.h"

namespace quire {

// Adds the options of object stores to a subcommand that reads and ends.
void AddStoreReadOptions(CLI::App& subcommand, StoreArguments& arguments);

// Brings what a URL names into a new directory, sparsely: reads through
// file_io.h fetch what they need, during the life of this object. The directory
// is removed at the end, also by a signal. What killed processes left next to
// it is removed at the start. Without a URL it does nothing.
// At most one instance at a time in a process. Thread-compatible, except for
// ReadAt().
class RemotePaths : public FileReads {
 public:
  // `cancel` ends waiting for a store; if it is null, SIGINT, SIGTERM and
  // SIGHUP remove the directory and end the process.
  explicit RemotePaths(StoreArguments arguments,
                       const std::atomic<bool>* cancel = nullptr);
  ~RemotePaths() override;
  RemotePaths(const RemotePaths&) = delete;
  RemotePaths& operator=(const RemotePaths&) = delete;

  // Returns the path of a directory that is opened like the archive at a URL;
  // any other path as it is. Blocks.
  // Errors: InvalidArgument  the options, for the usage error.
  //         those of RemoteArchives::PrepareOutline() and PrepareIndexes(), but
  //         DataLoss for a missing file that MANIFEST names.
  absl::StatusOr<std::string> OpenArchive(const std::string& path);

  // Returns the path of a sparse file that is read like the object at a URL, or
  // of an archive there, as OpenArchive(); any other path as it is. Over https
  // an archive must be named *.quire. Blocks.
  // Errors: as OpenArchive(); NotFound  there is neither.
  absl::StatusOr<std::string> OpenInput(const std::string& path);

  // Directory of the copies. REQUIRES: a URL was opened.
  const std::string& directory() const { return directory_; }

  // ETag of the MANIFEST of an archive that was opened; empty for a local one.
  static std::string ManifestTag(const std::string& local_path);

  std::optional<absl::StatusOr<size_t>> ReadAt(int fd, uint64_t offset,
                                               MutableByteView out) override;
  std::optional<FileTime> ModifiedTime(int fd) override;

  // Returns the first failed read of a store; OK if there was none.
  // Thread-safe.
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns a message with URLs in the place of local copies.
  static std::string WithUrls(absl::string_view message);

  // Removes the directory of the current instance, if there is one: for a
  // process that ends without destructors.
  static void RemoveDirectories();

 private:
  // Opens the store, once. Errors: as OpenArchive().
  absl::Status Start();
  absl::Status MakeDirectory(const std::string& parent);
  void WatchSignals();
  void RemoveDirectory() const;

  const StoreArguments arguments_;
  const std::atomic<bool>* const cancel_;
  RemoteStoreOptions options_;
  std::string directory_;
  std::unique_ptr<RemoteArchives> archives_;
  std::unique_ptr<BucketClient> client_;
  // Time of the last change of opened files, by local path; unset if the store
  // does not tell it.
  std::map<std::string, std::optional<int64_t>> modified_;
  // Local path and URL.
  std::vector<std::pair<std::string, std::string>> opened_;
  mutable Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_ = false;
  std::thread watcher_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_REMOTE_PATHS_H_
