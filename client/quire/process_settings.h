// SPDX-License-Identifier: Apache-2.0
//
// Settings for main() of programs with the client library.
#ifndef QUIRE_CLIENT_QUIRE_PROCESS_SETTINGS_H_
#define QUIRE_CLIENT_QUIRE_PROCESS_SETTINGS_H_

namespace quire {

// Applies settings of the whole process that speed up large reads. Freed
// message memory is kept for later messages, up to 32 MiB (by default messages
// always get new pages, which shows in profiles of scans). The locks of gRPC
// skip abseil's deadlock detection. Call it first in main(): not thread-safe.
void PrepareReadingProcess();

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PROCESS_SETTINGS_H_
