// What a call has begun and must not leave behind: files and folders under temporary names, and compilers that run.
//
// A process that is told to end (Ctrl-C) takes them back with unfinished_abandon. From then on the other
// functions here wait forever, so that no other thread begins anew or tells of what it lost.
#ifndef NGRAD_IR_SUPPORT_UNFINISHED_H
#define NGRAD_IR_SUPPORT_UNFINISHED_H

#include <spawn.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct Unfinished Unfinished;
struct Unfinished {
  const char *path; // a file, or a folder with all that is in it; NULL: none
  pid_t group;      // of processes; 0: none
  pid_t owner;      // the process that began it; a child after fork leaves it alone
  Unfinished *next, *previous;
};

// Make what is not there yet: a file, open for writing (-1: no), or a folder that is the user's alone. When it cannot
// be made, errno says why and nothing is begun. The storage stays the caller's; path must live until unfinished_end,
// which leaves the file where it is.
int unfinished_create_file(Unfinished *u, const char *path, mode_t mode);
bool unfinished_create_folder(Unfinished *u, const char *path);
void unfinished_end(Unfinished *u);

// Starts a program in a process group of its own, with no signal blocked; 0, or why it did not start. Call
// unfinished_end after the process ended and before it is waited for: then its number may be another's.
int unfinished_spawn(Unfinished *u, const char *program, const posix_spawn_file_actions_t *actions,
                     char *const *arguments, char *const *environment);

// Kills the processes, then removes the files and folders.
void unfinished_abandon(void);

// Removes a file or a folder with all that is in it; links are not followed. False: some of it stays.
bool remove_tree(const char *path);

#endif
