// A private folder for one run of the compiler: the source, the object, and the compiler's own temporary files.
#ifndef NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_WORK_FOLDER_H
#define NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_WORK_FOLDER_H

#include "ir/support/unfinished.h"

#include <limits.h>

typedef struct WorkFolder {
  char path[PATH_MAX];
  int lock; // held as long as its process lives
  Unfinished unfinished;
} WorkFolder;

// Makes a folder ngrad-….tmp in `parent`, and removes those there that killed runs of this user left. False: errno says
// why; nothing is to be closed then.
bool work_folder_open(WorkFolder *w, const char *parent);
void work_folder_close(WorkFolder *w); // removes it with all that is in it

// Whether its file system has no place for another object, as a compiler's failure does not say.
bool work_folder_is_full(const WorkFolder *w);

#endif
