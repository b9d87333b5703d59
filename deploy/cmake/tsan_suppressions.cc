// SPDX-License-Identifier: Apache-2.0
//
// Debian's gRPC, protobuf and abseil are built without ThreadSanitizer: it does
// not see the locks and atomic counters inside them, and reports races for data
// that they pass between threads. This suppresses their accesses; all accesses
// of our own code, under our own locks, are checked. Linked into all tests of a
// build with ThreadSanitizer.

// ThreadSanitizer looks for it.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __tsan_default_suppressions();

extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgpr.so\n"
         "called_from_lib:libupb.so\n"
         "called_from_lib:libprotobuf.so\n"
         "called_from_lib:libabsl_status.so\n"
         "called_from_lib:libabsl_cord.so\n"
         "called_from_lib:libabsl_cord_internal.so\n"
         "called_from_lib:libabsl_strings.so\n"
         "called_from_lib:libabsl_time.so\n"
         "called_from_lib:libabsl_time_zone.so\n"
         "called_from_lib:libabsl_graphcycles_internal.so\n"
         // The inlined ends of the same functions.
         "race:CopyCordToString\n"
         "race:google::protobuf::\n"
         "race:~Status\n"
         "race:grpc_core::\n";
}
