// Reads the limits from /proc and /sys. A missing file, or the limit "max", means no limit.
//
// The memory usage of a control group includes its page cache. The kernel reclaims the inactive part of the cache
// before it kills processes, so that part counts as available.
#include "frontend/api/available_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LINE_BYTES = 8192 };

static uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static FILE *file_of(const char *root, const char *folder, const char *name) {
  char path[PATH_BYTES];
  int length = snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
  return length > 0 && length < PATH_BYTES ? fopen(path, "re") : NULL;
}

// Reads the number after `key` at the beginning of a line; key "" reads the first line. False: no such line or no
// number.
static bool read_number(const char *root, const char *folder, const char *name, const char *key, uint64_t *number) {
  char line[LINE_BYTES];
  bool is_found = false;
  FILE *file = file_of(root, folder, name);
  if (!file) return false;
  while (!is_found && fgets(line, sizeof line, file)) {
    if (strncmp(line, key, strlen(key)) != 0) continue;
    const char *text = line + strlen(key);
    char *end;
    *number = strtoull(text, &end, 10);
    is_found = end > text;
  }
  fclose(file);
  return is_found;
}

static uint64_t machine_memory(const char *root) {
  uint64_t kib;
  if (read_number(root, "/proc", "meminfo", "MemAvailable:", &kib)) return kib * 1024;
  const long pages = sysconf(_SC_PHYS_PAGES), nbytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && nbytes > 0 ? (uint64_t)pages * (uint64_t)nbytes : UINT64_MAX;
}

typedef struct GroupFiles { // file names of one version of control groups
  const char *mount;
  const char *limits[2]; // limits[1] NULL: only one limit
  const char *used, *inactive;
} GroupFiles;

static const GroupFiles version_1 = {
    "/sys/fs/cgroup/memory", {"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes", "total_inactive_file "};
static const GroupFiles version_2 = {
    "/sys/fs/cgroup", {"memory.max", "memory.high"}, "memory.current", "inactive_file "};

static uint64_t left_in_group(const char *root, const GroupFiles *files, const char *folder) {
  uint64_t limit = UINT64_MAX, number, used = 0, inactive = 0;
  for (int i = 0; i < 2 && files->limits[i]; i++)
    if (read_number(root, folder, files->limits[i], "", &number)) limit = smaller(limit, number);
  if (limit == UINT64_MAX) return limit;
  read_number(root, folder, files->used, "", &used);
  read_number(root, folder, "memory.stat", files->inactive, &inactive);
  used -= smaller(inactive, used);
  return limit - smaller(used, limit);
}

// The least over the group and its ancestors. In a container the path may be the host's; then only the mount itself
// exists.
static uint64_t left_in_groups(const char *root, const GroupFiles *files, const char *path) {
  char folder[PATH_BYTES];
  const size_t mount = strlen(files->mount);
  uint64_t left = UINT64_MAX;
  if (snprintf(folder, sizeof folder, "%s%s", files->mount, path) >= PATH_BYTES) folder[mount] = 0;
  for (;;) {
    left = smaller(left, left_in_group(root, files, folder));
    char *slash = strrchr(folder, '/');
    if (!slash || slash < folder + mount) return left;
    *slash = 0;
  }
}

// Lines such as 0::/user.slice (version 2) and 4:memory:/user.slice or 4:cpu,memory:/user.slice (version 1).
static uint64_t left_in_line(const char *root, char *line) {
  line[strcspn(line, "\n")] = 0;
  char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
  if (!path) return UINT64_MAX;
  *controllers++ = *path++ = 0;
  if (!*controllers) return left_in_groups(root, &version_2, path);
  for (char *rest = controllers, *name; (name = strsep(&rest, ","));)
    if (strcmp(name, "memory") == 0) return left_in_groups(root, &version_1, path);
  return UINT64_MAX;
}

static uint64_t control_group_memory(const char *root) {
  char line[LINE_BYTES];
  uint64_t left = UINT64_MAX;
  FILE *file = file_of(root, "/proc/self", "cgroup");
  while (file && fgets(line, sizeof line, file)) left = smaller(left, left_in_line(root, line));
  if (file) fclose(file);
  return left;
}

static uint64_t left_of_limit(const char *root, const struct rlimit *limit, const char *used_key) {
  uint64_t kib = 0;
  if (limit->rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  if (!read_number(root, "/proc/self", "status", used_key, &kib)) kib = 0;
  return limit->rlim_cur - smaller(kib * 1024, limit->rlim_cur);
}

static uint64_t process_memory(const char *root) {
  struct rlimit space, data;
  uint64_t left = UINT64_MAX;
  if (getrlimit(RLIMIT_AS, &space) == 0) left = left_of_limit(root, &space, "VmSize:");
  if (getrlimit(RLIMIT_DATA, &data) == 0) left = smaller(left, left_of_limit(root, &data, "VmData:"));
  return left;
}

uint64_t available_memory(const char *root) {
  return smaller(smaller(machine_memory(root), control_group_memory(root)), process_memory(root));
}
