/*
 * A disk that misbehaves, for one directory: preloaded into the server (LD_PRELOAD), which calls all of these through libc.
 *   FAULTS_DIR      it and the files in it are meant, no others
 *   FAULTS_CONTROL  8 bytes that the test writes at any time: what goes wrong (int32), and milliseconds (int32)
 *   FAULTS_LOG      every write, truncation, sync, new file and acknowledgement, in their order
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FINE, SLOW_SYNC, FAILING_SYNC, FULL, FAILING_WRITE, READ_ONLY };

static const volatile int32_t fine[2];
static const volatile int32_t *control = fine;
static int record = -1;
static const char *dir;
static size_t dir_length;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name); real; })

__attribute__((constructor)) static void start(void) {
  dir = getenv("FAULTS_DIR");
  dir_length = dir ? strlen(dir) : 0;
  const char *control_path = getenv("FAULTS_CONTROL"), *log_path = getenv("FAULTS_LOG");
  if (control_path) {
    int fd = syscall(SYS_openat, AT_FDCWD, control_path, O_RDONLY | O_CLOEXEC, 0);
    void *page = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) control = page;
    close(fd);
  }
  if (log_path) record = syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static int is_below(const char *path) {
  return dir && strncmp(path, dir, dir_length) == 0 && (path[dir_length] == '/' || path[dir_length] == 0);
}

/* Whether the open file is meant, and its path. */
static int is_meant(int fd, char path[PATH_MAX]) {
  char link[32] = "/proc/self/fd/";
  char digits[12], *end = digits + sizeof digits;
  *--end = 0;
  do *--end = '0' + fd % 10; while (fd /= 10);
  strcat(link, end);
  ssize_t length = dir ? readlink(link, path, PATH_MAX - 1) : -1;
  if (length < 0) return 0;
  path[length] = 0;
  return is_below(path);
}

/* kind, length of path, path, offset, length of data, data */
static void put(char kind, const char *path, uint64_t offset, const void *data, uint32_t length) {
  if (record < 0) return;
  uint16_t path_length = strlen(path);
  char head[3 + PATH_MAX + 12];
  head[0] = kind;
  memcpy(head + 1, &path_length, 2);
  memcpy(head + 3, path, path_length);
  memcpy(head + 3 + path_length, &offset, 8);
  memcpy(head + 11 + path_length, &length, 4);
  pthread_mutex_lock(&lock);
  syscall(SYS_write, record, head, 15 + path_length);
  if (length) syscall(SYS_write, record, data, length);
  pthread_mutex_unlock(&lock);
}

/* Called by the writer of R-03 once a write has been answered. */
void acknowledge(const char *name) { put('A', "", 0, name, strlen(name)); }

static int fails(int error) { errno = error; return 1; }

static int write_fails(int fd, uint64_t end) {
  struct stat file;
  if (control[0] == FAILING_WRITE) return fails(EIO);
  if (control[0] == READ_ONLY) return fails(EROFS);
  return control[0] == FULL && fstat(fd, &file) == 0 && end > (uint64_t)file.st_size && fails(ENOSPC);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
  char path[PATH_MAX];
  if (!is_meant(fd, path)) return REAL(pwrite64)(fd, data, length, offset);
  if (write_fails(fd, offset + length)) return -1;
  ssize_t written = REAL(pwrite64)(fd, data, length, offset);
  if (written > 0) put('W', path, offset, data, written);
  return written;
}

int ftruncate64(int fd, off64_t size) {
  char path[PATH_MAX];
  if (!is_meant(fd, path)) return REAL(ftruncate64)(fd, size);
  if (write_fails(fd, size)) return -1;
  int result = REAL(ftruncate64)(fd, size);
  if (result == 0) put('T', path, size, 0, 0);
  return result;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int sync_with(int (*real)(int), int fd) {
  char path[PATH_MAX];
  if (!is_meant(fd, path)) return real(fd);
  if (control[0] == FAILING_SYNC) return fails(EIO) ? -1 : 0;
  if (control[0] == SLOW_SYNC) {
    struct timespec time = { control[1] / 1000, control[1] % 1000 * 1000000L };
    nanosleep(&time, 0);
  }
  int result = real(fd);
  if (result == 0) put('S', path, 0, 0, 0);
  return result;
}
int fsync(int fd) { return sync_with(REAL(fsync), fd); }
int fdatasync(int fd) { return sync_with(REAL(fdatasync), fd); }

static int open_with(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode) {
  int is_new = (flags & O_CREAT) && access(path, F_OK) != 0;
  if (is_new && is_below(path) && control[0] == READ_ONLY) return fails(EROFS) ? -1 : 0;
  int fd = real(path, flags, mode);
  char full[PATH_MAX];
  if (fd >= 0 && is_new && is_meant(fd, full)) put('C', full, 0, 0, 0);
  return fd;
}
#define OPEN(name) \
  int name(const char *path, int flags, ...) { \
    va_list more; \
    va_start(more, flags); \
    mode_t mode = va_arg(more, mode_t); \
    va_end(more); \
    return open_with(REAL(name), path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
