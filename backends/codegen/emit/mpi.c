// Prints the code that moves messages between ranks: the declarations in ranks_types.in, and their implementation on
// MPI in ranks_mpi.in.
#include "backends/codegen/codegen.h"
#include "backends/codegen/emit/template.h"

extern const char ranks_types[], ranks_mpi[], ranks_process[];

static void add_include(const void *header, const char *name, Text *out) {
  if (is_part(name, "DECLARATIONS")) text_format(out, "#include \"%s\"\n", (const char *)header);
}

static void add_types(const void *prefix, const char *name, Text *out) {
  if (is_part(name, "DECLARATIONS")) emit_ranks_types(prefix, out);
}

void emit_ranks_types(const char *prefix, Text *out) {
  print_template(&(Template){ranks_types, prefix, add_types, NULL}, out);
}

void emit_mpi(const char *prefix, const char *header, Text *out) {
  print_template(&(Template){ranks_mpi, prefix, add_include, header}, out);
}

void emit_mpi_process(const char *prefix, Text *out) {
  print_template(&(Template){ranks_mpi, prefix, add_types, prefix}, out);
  print_template(&(Template){ranks_process, prefix, add_types, prefix}, out);
}
