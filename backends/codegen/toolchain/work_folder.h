// A private folder for one run of the compiler: the source, the object, and the compiler's own temporary files.
#ifndef NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_WORK_FOLDER_H
#define NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_WORK_FOLDER_H

#include "ir/support/unfinished.h"

#include <limits.h>

typedef struct WorkFolder {
  char path[PATH_MAX];
  int lock; // descriptor of the folder, locked until the process ends
  Unfinished unfinished;
} WorkFolder;

// Creates a folder ngrad-….tmp in `parent`, and removes folders that killed processes of this user left there. False:
// errno says why, and work_folder_close must not be called.
bool work_folder_open(WorkFolder *w, const char *parent);
void work_folder_close(WorkFolder *w); // removes the folder with its contents

// Whether the folder's file system is full. A failed compiler's exit status does not say so.
bool work_folder_is_full(const WorkFolder *w);

#endif
