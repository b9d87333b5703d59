/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into programs (LD_PRELOAD), makes their reads and writes fail as
 * specified by the file that FAULTY_IO names:
 *
 *   read N    each Nth pread() fails with EIO
 *   write     each write() and pwrite() to a regular file fails with ENOSPC
 *
 * Otherwise, or without the file, nothing fails. io_uring is not affected.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_uint read_count;

/* Returns the text of the file, "" if none. Bypasses the functions below. */
static void read_control(char* text, size_t size) {
  text[0] = '\0';
  const char* path = getenv("FAULTY_IO");
  if (path == NULL) {
    return;
  }
  const int saved = errno;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    const long got = syscall(SYS_read, fd, text, size - 1);
    text[got > 0 ? got : 0] = '\0';
    close(fd);
  }
  errno = saved;
}

static int read_fails(void) {
  char text[32];
  read_control(text, sizeof(text));
  unsigned every = 0;
  return sscanf(text, "read %u", &every) == 1 && every > 0 &&
         atomic_fetch_add(&read_count, 1) % every == 0;
}

static int write_fails(int fd) {
  char text[32];
  struct stat status;
  read_control(text, sizeof(text));
  return strncmp(text, "write", 5) == 0 && fstat(fd, &status) == 0 &&
         S_ISREG(status.st_mode);
}

ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  if (read_fails()) {
    errno = EIO;
    return -1;
  }
  return syscall(SYS_pread64, fd, data, size, offset);
}

ssize_t pread64(int fd, void* data, size_t size, off64_t offset) {
  return pread(fd, data, size, offset);
}

ssize_t write(int fd, const void* data, size_t size) {
  if (write_fails(fd)) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_write, fd, data, size);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  if (write_fails(fd)) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_pwrite64, fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return pwrite(fd, data, size, offset);
}
