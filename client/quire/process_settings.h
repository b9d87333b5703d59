// SPDX-License-Identifier: Apache-2.0
//
// For the main() of programs that are made with the client library.
#ifndef QUIRE_CLIENT_QUIRE_PROCESS_SETTINGS_H_
#define QUIRE_CLIENT_QUIRE_PROCESS_SETTINGS_H_

namespace quire {

// Settings of the whole process, which a library must not touch but which are
// good for reading much: memory that messages were received into is kept for
// the next ones, up to 32 MiB more than is in use (by default messages get new
// pages all the time, which shows in profiles of scans), and the locks of gRPC
// do without abseil's search for deadlocks.
// To be called first in main(): not thread-safe.
void PrepareReadingProcess();

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_PROCESS_SETTINGS_H_
