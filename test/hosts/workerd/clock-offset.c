/*
 * A library to preload. It adds an offset to the wall clock of the process: the number of milliseconds in the
 * first 8 bytes of the file CLOCK_OFFSET_FILE, also when that changes. The monotonic clock stays as it is.
 * libfaketime does not suit workerd, which hangs at its start when the library looks up the real functions.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_ms;

__attribute__((constructor)) static void map_offset(void) {
  const char *path = getenv("CLOCK_OFFSET_FILE");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *map = mmap(NULL, sizeof *offset_ms, PROT_READ, MAP_SHARED, file, 0);
  if (map != MAP_FAILED) offset_ms = map;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = syscall(SYS_clock_gettime, clock, time);
  if (result != 0 || !offset_ms) return result;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    int64_t ns = time->tv_sec * INT64_C(1000000000) + time->tv_nsec + *offset_ms * INT64_C(1000000);
    time->tv_sec = ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
  }
  return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}
