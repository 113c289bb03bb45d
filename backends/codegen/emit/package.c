// The files that make an emitted pair a library of another build system, laid out as that system's documents ask:
// Arduino's library specification (1.5, rev. 2.2), Zephyr's page on modules, and CMake's on packages. Each file is a
// template in package/. Names of graphs go through text_add_user_string; other texts are C identifiers.
#include "backends/codegen/codegen.h"
#include "backends/codegen/emit/emit.h"
#include "backends/codegen/emit/file_printer.h"
#include "backends/codegen/emit/template.h"
#include "ir/support/escape.h"

#include <ctype.h>
#include <string.h>

extern const char arduino_properties_text[], arduino_keywords_text[], arduino_example_text[], zephyr_module_text[],
    zephyr_cmake_text[], zephyr_kconfig_text[], cmake_lists_text[], cmake_config_text[];

static const Package packages[] = {
    {"arduino",
     "src/",
     "src/",
     NULL,
     true,
     {{"library.properties", arduino_properties_text},
      {"keywords.txt", arduino_keywords_text},
      {"examples/@/@.ino", arduino_example_text}}},
    {"zephyr",
     "src/",
     "include/",
     NULL,
     true,
     {{"zephyr/module.yml", zephyr_module_text},
      {"CMakeLists.txt", zephyr_cmake_text},
      {"Kconfig", zephyr_kconfig_text}}},
    {"cmake",
     "src/",
     "include/",
     "tests/",
     false,
     {{"CMakeLists.txt", cmake_lists_text}, {"cmake/@Config.cmake", cmake_config_text}}},
};
enum { NPACKAGES = sizeof packages / sizeof *packages };

const Package *package_at(size_t i) {
  return i < NPACKAGES ? &packages[i] : NULL;
}

static void add_upper(const char *name, Text *out) {
  for (const char *c = name; *c; c++) text_format(out, "%c", toupper((unsigned char)*c));
}

static void add_constant_keywords(const EmittedFile *file, Text *out) {
  text_format(out, "%s_OK\tLITERAL1\n%s_ISA_BEST\tLITERAL1\n", file->prefix, file->prefix);
  for (size_t i = 0; i < file->nfunctions; i++)
    text_format(out, "%s_WORKSPACE_NBYTES\tLITERAL1\n", file->functions[i].name);
}

// Adds an array for an input or output of a function: bytes where elements share them. C++ has no arrays of no
// elements.
static void add_array(const Value *v, const char *name, size_t number, Text *out) {
  const size_t nelems = (size_t)shape_nelems(&v->shape);
  const size_t count = type_is_packed(v->type) ? type_array_nbytes(v->type, nelems) : nelems;
  text_format(out, "static %s %s%zu[%zu]; /* ", element_types[v->type].name, name, number, count ? count : 1);
  add_tensor_comment(out, v, "");
  text_add_string(out, " */\n");
}

// The example calls the first function.
static void add_tensors(const EmittedFile *file, Text *out) {
  const Graph *g = emitted_graph(&file->functions[0]);
  for (size_t i = 0; i < ninputs_given(g); i++) add_array(g->inputs[i], "input", i, out);
  for (size_t i = 0; i < noutputs_given(g); i++) add_array(g->outputs[i], "output", i, out);
}

static void add_arguments(const EmittedFile *file, Text *out) {
  static const char *const blocks[MOST_BLOCKS] = {"parameters", "optimizer"};
  const Graph *g = emitted_graph(&file->functions[0]);
  for (size_t i = 0; i < ninputs_given(g); i++) text_format(out, "input%zu, ", i);
  for (size_t i = 0; i < noutputs_given(g); i++) text_format(out, "output%zu, ", i);
  for (int b = 0; b < MOST_BLOCKS; b++)
    if (file->functions[0].uses_block[b]) text_format(out, "%s, ", blocks[b]);
}

static void add_tests(const EmittedFile *file, Text *out) {
  text_format(out, "%s%s_test.c", file->package->tests, file->file_stem);
  if (file->nfunctions > 1) text_format(out, " %s%s_infer_test.c", file->package->tests, file->file_stem);
}

static void add_part(const void *context, const char *name, Text *out) {
  const EmittedFile *file = context;
  if (is_part(name, "VERSION")) text_add_string(out, NGRAD_VERSION);
  else if (is_part(name, "STEM")) text_add_string(out, file->file_stem);
  else if (is_part(name, "GRAPH")) text_add_user_string(out, SINK_TERMINAL, emitted_graph(&file->functions[0])->name);
  else if (is_part(name, "FUNCTION")) text_add_string(out, file->functions[0].name);
  else if (is_part(name, "UPPER")) add_upper(file->prefix, out);
  else if (is_part(name, "CONSTANT_KEYWORDS")) add_constant_keywords(file, out);
  else if (is_part(name, "TENSORS")) add_tensors(file, out);
  else if (is_part(name, "ARGUMENTS")) add_arguments(file, out);
  else if (is_part(name, "BLOCKS")) text_add_string(out, file->nblocks > 1 ? "parameters, optimizer" : "parameters");
  else if (is_part(name, "LAST_ARGUMENTS"))
    text_format(out, "%s%s", file->threads == EMIT_CALLBACK ? ", NULL, NULL" : "",
                file->functions[0].stages ? ", NULL" : "");
  else if (is_part(name, "TESTS")) add_tests(file, out);
  for (size_t i = 0; is_part(name, "FUNCTION_KEYWORDS") && i < file->nfunctions; i++) {
    const char *function = file->functions[i].name;
    text_format(out, "%s\tKEYWORD2\n%s_get_info\tKEYWORD2\n%s_workspace_nbytes\tKEYWORD2\n", function, function,
                function);
  }
}

bool package_file(const EmittedFile *file, size_t i, Text *path, Text *text) {
  const TemplateFact facts[] = {
      {"OPENMP", file->threads == EMIT_OPENMP}, {"LEAVES", file_has_leaves(file)}, {"STATES", file->nblocks > 0},
      {"OPTIMIZER", file->nblocks > 1},         {"TEST", file->has_test},          {NULL, false},
  };
  const PackageFile *own = &file->package->files[i];
  if (i >= MOST_PACKAGE_FILES || !own->path) return false;
  print_template(&(Template){own->path, file->prefix, add_part, file, facts}, path);
  print_template(&(Template){own->text, file->prefix, add_part, file, facts}, text);
  return true;
}
