// The cache of compiled kernels: files in a folder of the user's, each named by a part of its key and sealed with a
// digest of key and object, so that what is damaged or belongs to another key is as good as absent.
#ifndef NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_KERNEL_CACHE_H
#define NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_KERNEL_CACHE_H

#include <limits.h>
#include <nettle/sha2.h>
#include <stdbool.h>

enum { CACHE_PROBLEM_BYTES = 160 };

typedef struct KernelCache {
  char folder[PATH_MAX];
  char entry[PATH_MAX]; // of the key
  uint8_t key[SHA256_DIGEST_SIZE];
} KernelCache;

// Finds the folder, which is made if need be and must be the user's alone. False: the folder is not to be used, and
// `problem` says why.
bool cache_open(KernelCache *c, const uint8_t key[SHA256_DIGEST_SIZE], char problem[CACHE_PROBLEM_BYTES]);

// A descriptor of the key's entry when that is sound, else -1. Does not wait, whatever lies there.
int cache_find(const KernelCache *c);

// Removes an entry that is sealed and of no use all the same.
void cache_drop(const KernelCache *c);

// Seals an object, whose file is in the same file system, and puts it in the place of the entry or
// of whatever lies there, but for a folder that is not empty. Then drops the entries that were not used for the longest
// time, until all take at most 512 MiB. False: errno says why.
bool cache_keep(const KernelCache *c, const char *object);

#endif
