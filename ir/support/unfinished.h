// Temporary files and folders, and running compilers, that must not outlive an interrupted process.
//
// A process that is interrupted (Ctrl-C) calls unfinished_abandon, which kills and removes them. From then on the other
// functions here block forever, so that no other thread creates a new one or reports the loss of an old one.
#ifndef NGRAD_IR_SUPPORT_UNFINISHED_H
#define NGRAD_IR_SUPPORT_UNFINISHED_H

#include <spawn.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct Unfinished Unfinished;
struct Unfinished {
  const char *path; // a file, or a folder with its contents; NULL: none
  pid_t group;      // a process group; 0: none
  pid_t owner;      // the process that created it; a forked child must not remove its parent's
  Unfinished *next, *previous;
};

// Create a new file (returns its descriptor, open for reading and writing, or -1) or a new folder of mode 0700 (returns
// whether it was created), and register it in u. On failure, errno says why and nothing is registered. The caller owns
// u; u and path must live until unfinished_end, which unregisters u and leaves the file where it is.
int unfinished_create_file(Unfinished *u, const char *path, mode_t mode);
bool unfinished_create_folder(Unfinished *u, const char *path);
void unfinished_end(Unfinished *u);

// Starts a program in a process group of its own, with no signal blocked; returns 0 or an errno value. Call
// unfinished_end after the process has ended but before waiting for it: after the wait the system may give its id to
// another process.
int unfinished_spawn(Unfinished *u, const char *program, const posix_spawn_file_actions_t *actions,
                     char *const *arguments, char *const *environment);

// Kills the processes, then removes the files and folders.
void unfinished_abandon(void);

// Removes a file, or a folder with its contents; does not follow links. False when something could not be removed.
bool remove_tree(const char *path);

#endif
