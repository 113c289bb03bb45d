// Finding the files of a graph's inputs.
#include "frontend/cli/fit_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *named_file(const TextList *named, const char *name) {
  const size_t length = strlen(name);
  for (size_t i = named->count; i-- > 0;)
    if (strncmp(named->items[i], name, length) == 0 && named->items[i][length] == '=')
      return named->items[i] + length + 1;
  return NULL;
}

// The files with the input's name and each known ending: *found is the first, which the caller frees, or NULL.
// False after a message that there are two.
static bool find_in(const char *folder, const char *name, char **found) {
  static const char *const endings[] = {".npy", ".npy.gz", ".idx", ".idx.gz", ".gz", ""};
  bool ok = true;
  *found = NULL;
  char *file = tensor_file(name);
  const bool is_folder = strcmp(name, ".") == 0 || strcmp(name, "..") == 0; // without an ending
  for (size_t i = 0; i + is_folder < sizeof endings / sizeof *endings && ok; i++) {
    char *path = path_join(folder, file, endings[i]);
    const bool is_there = access(path, F_OK) == 0, is_first = is_there && !*found;
    if (is_there && *found) ok = plain_error("%s: expected one file, found %s and %s", name, *found, path) == 0;
    if (is_first) *found = path;
    else free(path);
  }
  free(file);
  return ok;
}

static const char *said_file(const Files *files, const char *name) {
  const char *named = named_file(files->named, name);
  return !named && strcmp(name, "labels") == 0 ? files->labels : named;
}

bool input_is_text(const Files *files, const char *name) {
  return files->text && !said_file(files, name);
}

char *input_file(const Files *files, const char *name) {
  const char *named = said_file(files, name);
  if (named) return memory_or_exit(strdup(named));
  char *path = NULL;
  if (files->folder && !find_in(files->folder, name, &path)) {
    free(path);
    return NULL;
  }
  if (path) return path;
  if (files->folder) {
    path = tensor_path(files->folder, name);
    plain_error("no data for %s: expected %s or .idx, also with .gz, or --%s %s=FILE", name, path, files->named_option,
                name);
    free(path);
  } else
    plain_error("no data for %s: expected --%s DIR or --%s %s=FILE", name, files->folder_option, files->named_option,
                name);
  return NULL;
}

// The input that the text in front of an equals sign names; ninputs: none.
static size_t find_named(const ng_graph *g, size_t ninputs, const char *given, const char *equals) {
  size_t k = 0;
  for (; k < ninputs; k++) {
    const char *name = ng_graph_input(g, k).name;
    if (strncmp(given, name, strlen(name)) == 0 && given + strlen(name) == equals) break;
  }
  return k;
}

// Says which inputs there are, the nearest one first.
static void no_such_input(const Files *files, const ng_graph *g, size_t ninputs, const char *given) {
  enum { MOST_LISTED = 8 };
  const char **names = memory_or_exit(calloc(ninputs + 1, sizeof *names));
  char *list = NULL, *word = memory_or_exit(strndup(given, strcspn(given, "=")));
  size_t nbytes;
  FILE *out = memory_or_exit(open_memstream(&list, &nbytes));
  for (size_t k = 0; k < ninputs; k++) names[k] = ng_graph_input(g, k).name;
  const char *nearest = ng_nearest(word, names, ninputs);
  if (nearest) fprintf(out, "; did you mean %s", nearest);
  fprintf(out, "; its inputs: ");
  for (size_t k = 0; k < ninputs && k < MOST_LISTED; k++) fprintf(out, "%s%s", k ? ", " : "", names[k]);
  if (ninputs > MOST_LISTED) fprintf(out, " and %zu more", ninputs - MOST_LISTED);
  fclose(out);
  (void)memory_or_exit(list);
  usage_error("--%s: expected NAME=FILE with an input of %s, found %s%s", files->named_option, ng_graph_name(g), given,
              list);
  free(names);
  free(word);
  free(list);
}

bool named_files_are_inputs(const Files *files, const ng_graph *g, size_t ninputs) {
  for (size_t i = 0; i < files->named->count; i++) {
    const char *given = files->named->items[i], *equals = strchr(given, '=');
    if (equals && equals[1] && find_named(g, ninputs, given, equals) < ninputs) continue;
    no_such_input(files, g, ninputs, given);
    return false;
  }
  return true;
}
