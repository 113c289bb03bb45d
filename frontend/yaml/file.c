// Reads a graph from a file. The files that the graph names are looked up in the file's folder.
#include "frontend/yaml/yaml.h"

#include "frontend/file.h"

#include <string.h>

Graph *yaml_read_file(const Allocator *allocator, const char *path, const ReadSettings *settings, Diagnostics *d) {
  size_t nbytes;
  char *text = file_load(allocator, path, &nbytes, d);
  if (!text) return NULL;
  const char *slash = strrchr(path, '/');
  size_t nfolder = !slash ? 1 : slash == path ? 1 : (size_t)(slash - path);
  char *folder = allocator_alloc(allocator, nfolder + 1);
  Graph *g = NULL;
  if (folder) {
    memcpy(folder, slash ? path : ".", nfolder);
    folder[nfolder] = 0;
    ReadSettings own = settings ? *settings : (ReadSettings){.folder = NULL};
    own.folder = strcmp(path, "-") == 0 ? NULL : folder;
    g = yaml_read_with(allocator, path, text, nbytes, &own, d);
  } else {
    error_out_of_memory(d);
  }
  allocator_free(allocator, folder);
  allocator_free(allocator, text);
  return g;
}
