// State for printing a source file and its header for users: header.c prints the header, entry.c the source's external
// functions, states.c prints states, file.c the rest of the source.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_FILE_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_FILE_PRINTER_H

#include "backends/codegen/codegen.h"

enum {
  ABI = 5, // version of the emitted interface (function signatures and structs)
  MOST_ISAS = 16
};

typedef struct FileState { // a tensor in a block of states, or in the source
  const Value *value;      // a state of the first function's graph
  const char *member;      // its name as part of an identifier
  bool is_stored;          // in the source
  int block;
  size_t offset, nbytes; // in the block
} FileState;

typedef struct FileStates {
  FileState *items;    // by state of the first graph
  FileState **by_name; // the same, sorted
  size_t count, nstored;
  size_t stored_nbytes;
  int nblocks;
  size_t nbytes[MOST_BLOCKS]; // by block
} FileStates;

// Printing one function of the file.
typedef struct FilePrinter {
  const EmittedFile *file;
  const char *prefix; // the file's
  EmittedFunction *function;
  const Graph *graph; // the first program's
  const FileStates *states;
  const struct FileParts *parts; // file.c
  Arena *scratch;
  const char **member;             // by value->index: the parameter's name
  const char **dim_member;         // by open dim: the parameter's name
  bool updates_block[MOST_BLOCKS]; // of states (find_blocks)
  bool has_open_workspace;         // the size of the workspace depends on open dims
  bool has_section[MOST_ISAS];     // by file->isas: the file has code for it
  InPlace *in_place;               // by output: the inputs, except states, whose memory it may use
  bool *may_be_overwritten;        // by input: some output may use its memory
  bool has_shared_loops;   // some loop may run on several threads; for the file's first function: of any function
  size_t scratch_nbytes;   // step with leaves: the largest workspace of its functions
  size_t workspace_nbytes; // the largest of all instruction sets, without the part that depends on open dims
} FilePrinter;

// The numbers of inputs and outputs that are parameters: all except states and their updates.
size_t ninputs_given(const Graph *g);
size_t noutputs_given(const Graph *g);
bool file_has_leaves(const EmittedFile *file);
// The most bytes of arrays that a step of scalar C keeps elements of rows in, on the stack: spilled vectors
// (Spill, ir/kernel/schedule.h), and copies of rows that lie in lanes.
int64_t spilled_nbytes(const EmittedFile *file);
bool input_has_leaves(const Value *v); // each rank passes only its own leaves; false if empty
// Prints a template (template.h), in whose conditions the names of file_printer.c stand for facts about the function.
void print_file_template(const FilePrinter *f, const char *text,
                         void (*add_part)(const void *f, const char *name, Text *out), Text *out);
void add_file_part(const void *context, const char *name, Text *out); // FUNCTION or NLEAVES
void add_isa(const FilePrinter *f, size_t i, Text *out);              // the constant PREFIX_ISA_NAME of file->isas[i]
void add_isa_case(const FilePrinter *f, size_t i, Text *out);         // "  case PREFIX_ISA_NAME: "
// Prints for each instruction set that the file has code for, under the condition that compilers support it.
void print_for_isas(const FilePrinter *f, bool from_best, void (*print)(const FilePrinter *f, size_t isa, Text *out),
                    Text *out);

// states.c: the places of states in the caller's blocks, and the functions that fill, save and load them.

// Places the states of the file's graphs in blocks; `member` has the names of the first graph's values. False: out of
// memory.
bool find_states(FileStates *states, const EmittedFile *file, const char *const *member, Arena *arena);

void find_blocks(FilePrinter *f); // sets the function's uses_block and is_stored, and updates_block

// Adds a parameter for each block that the function uses: "void *parameters, /* ... */\n    ".
void add_block_parameters(const FilePrinter *f, Text *out);
// Adds the address of a state of f's graph, a pointer to void.
void add_state_address(const FilePrinter *f, const Value *state, Text *out);
void print_block_checks(const FilePrinter *f, Text *out);  // statements that return a status
void print_stored_states(const FilePrinter *f, Text *out); // arrays

void add_state_part(const void *context, const char *name,
                    Text *out); // a part of a template: of header.in, for instance

// index_checks.c: the checks of inputs that hold indices, in an entry point.

// Both print nothing for a graph without such inputs.
void print_index_functions(const FilePrinter *f, Text *out); // functions that the checks call
void print_index_checks(const FilePrinter *f, Text *out);    // statements that return PREFIX_INDEX_OUT_OF_RANGE

// stages.c: the code of steps with leaves: the runner (backends/codegen/leaves/run.h), and the tables that it reads.

bool stages_is_leaf(const EmittedStages *s, uint32_t function); // the function runs for each leaf

size_t stages_workspace(const FilePrinter *f); // of a single process; needs f->scratch_nbytes
bool name_tensors(FilePrinter *f);             // sets f->member, for a graph with leaves. False: out of memory
// Prints the tables, FUNCTION_step(isa, step), which fills in an instruction set's tables, and FUNCTION_run_step.
void print_stages(const FilePrinter *f, Text *out);

// header.c: the header, and text that both the header and the source contain.

void print_origin(const FilePrinter *f, Text *out); // a comment with ngrad's version, the graph and the licence
void print_header(const FilePrinter *functions, Text *out);
void add_output_name(const FilePrinter *f, Text *out, size_t i); // output i's parameter
void add_dim_parameters(const FilePrinter *f, Text *out);        // open dims as parameters
// Adds all parameters of the entry point. Those of tensors have no names if `is_bare`: the headers of devices' systems
// define macros such as INPUT, B1 and PI.
void add_parameters(const FilePrinter *f, bool is_bare, Text *out);

// entry.c: the external functions of the source.

// Prints FUNCTION_workspace_nbytes, FUNCTION_get_info and the entry point FUNCTION; before the file's first function
// also PREFIX_has_isa.
void print_entry_points(const FilePrinter *f, Text *out);

#endif
