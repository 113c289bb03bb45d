// The cache of compiled kernels: shared objects in a folder that belongs to the user. A file is named by the first
// bytes of its key and ends with a seal, a SHA-256 digest of key and object, so that damaged files and files of another
// key are ignored.
#ifndef NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_KERNEL_CACHE_H
#define NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_KERNEL_CACHE_H

#include <limits.h>
#include <nettle/sha2.h>
#include <stdbool.h>

enum { CACHE_PROBLEM_BYTES = 160 };

typedef struct KernelCache {
  char folder[PATH_MAX];
  char entry[PATH_MAX]; // the path of the key's file
  uint8_t key[SHA256_DIGEST_SIZE];
} KernelCache;

// Finds the cache's folder, creating it if necessary, and sets the entry's path. The folder must belong to the user,
// and nobody else may have permission to write to it. False: the folder cannot be used; `problem` says why.
bool cache_open(KernelCache *c, const uint8_t key[SHA256_DIGEST_SIZE], char problem[CACHE_PROBLEM_BYTES]);

// Opens the key's entry and returns its file descriptor; -1: no entry with a valid seal. Never blocks, even if the
// entry's path is a pipe or device.
int cache_find(const KernelCache *c);

// Removes an entry with a valid seal that cannot be loaded.
void cache_drop(const KernelCache *c);

// Seals an object and renames it to the entry's path, replacing any file or empty folder there. The object must be in
// the same file system as the cache. Then removes the least recently used entries until the cache has at most 512 MiB.
// False: errno says why.
bool cache_store(const KernelCache *c, const char *object);

#endif
