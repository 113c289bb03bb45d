// A file in a new folder, for tests of what is read and written. make_folder and remove_folder are a group's set-up and
// tear-down; a test that leaves anything else in the folder fails the group.
#ifndef NGRAD_TESTS_UNIT_FILE_IN_FOLDER_H
#define NGRAD_TESTS_UNIT_FILE_IN_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/ngrad-test-XXXXXX", path[64];

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/a.npz", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

#endif
