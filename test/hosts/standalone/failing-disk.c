/*
 * A library to preload. It makes the disk fail for one process: the first byte of the file FAILING_DISK_FILE
 * says how, also when it changes. 's': syncs fail. 'f': the disk is full for databases. 'w': for
 * other files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static const volatile char *failure;

__attribute__((constructor)) static void map_failure(void) {
  const char *path = getenv("FAILING_DISK_FILE");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *map = mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
  if (map != MAP_FAILED) failure = map;
  close(file);
}

static int fails(char how, int error) {
  if (!failure || *failure != how) return 0;
  errno = error;
  return 1;
}

int fdatasync(int file) { return fails('s', EIO) ? -1 : (int)syscall(SYS_fdatasync, file); }

int fsync(int file) { return fails('s', EIO) ? -1 : (int)syscall(SYS_fsync, file); }

static int is_file(int file) {
  struct stat status;
  return fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

ssize_t write(int file, const void *bytes, size_t count) {
  return is_file(file) && fails('w', ENOSPC) ? -1 : syscall(SYS_write, file, bytes, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
  return fails('f', ENOSPC) ? -1 : syscall(SYS_pwrite64, file, bytes, count, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
  return pwrite64(file, bytes, count, offset);
}
