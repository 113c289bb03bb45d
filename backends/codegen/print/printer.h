// A program's C text while it is being printed: the state that the files of print/ and emit/ share, and what print/
// offers to emit/.
#ifndef NGRAD_BACKENDS_CODEGEN_PRINT_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_PRINT_PRINTER_H

#include "backends/codegen/isa.h"
#include "ir/kernel/program.h"

typedef struct NameSet { // a hash table with open addressing, at most half full
  const char **slots;    // NULL: free
  size_t nslots, count;
} NameSet;

typedef struct PrintedConstant {
  const Value *value;
  const char *name;
  struct PrintedConstant *next;
} PrintedConstant;

typedef struct Constants { // constant tensors as arrays; equal ones are one array
  Text text;
  PrintedConstant *first;
} Constants;

typedef struct Printer {
  Arena *scratch;
  Text *out;
  Text *plain; // text that must compile without the instruction set: the argument struct and the workspace layout
  const Program *program;
  const char *prefix;            // of the file's symbols
  Constants *constants;          // of the file; NULL: the pool gives them
  const char *identifier;        // prefix of this program's symbols: PREFIX, or FUNCTION_ISA if a file holds several
  const char **value_member;     // by value->index: the member of the argument struct that points to the value
  const char **temporary_member; // likewise for temporaries, numbered through all kernels
  size_t *first_temporary;       // by kernel: the number of its first temporary
  const char **dim_member;       // by open dim: the member that holds its value
  bool has_optional_outputs;     // output pointers may be NULL
  bool *is_optional;             // by value->index: an output that may be NULL and that no loop reads again
  bool is_callable[EXPR_OP_COUNT][2]; // by operation, then is_f64: print_callables has printed its function
  bool *may_be_unwanted; // by temporary's number: partial sums that only some outputs need; NULL if those are NULL
  bool is_profiled;      // the pool has a function `mark`, which is called before the first loop and after each loop
  bool is_marked;        // the pool may have such a function, and the context for it in `marked`
  bool is_canonical;     // names are numbers, and there are no comments: for comparison with other kernels' texts
  size_t *first_alike;   // by kernel: the first kernel with the same functions, which it calls; often itself
  bool *is_shared;       // by kernel: several kernels call its functions, with an argument struct of their own
  size_t workspace_nbytes;
  bool has_open_workspace; // the workspace's size depends on open dims; workspace_nbytes is only the fixed part
  bool out_of_memory;
} Printer;

// Prints the functions of one loop: IDENTIFIER_kernelK_loopL(args, block), which runs one of its blocks, and the
// functions that it calls.
void print_loop_functions(Printer *p, size_t kernel, size_t loop);

// The C name of a value (member of the argument struct, and parameter), or of an expression (variable in a loop's
// functions). It is the given name if that is a free identifier, else one made of the name and `number`. The result is
// in the scratch arena and is added to `taken`.
const char *print_member_name(Printer *p, const char *name, NameSet *taken, size_t number);
const char *print_local_name(Printer *p, const char *label, NameSet *taken, size_t number);

bool is_libc_function(const char *name); // the C library declares such a function or macro
bool is_libc_type(const char *name);     // the C library declares such a type or variable

// The number as C: a literal, or a product with open dims in parentheses. names[i]: what open dim i is called. "1" when
// out of memory.
const char *open_number_text(Printer *p, int64_t number, Monomial monomial, const char *const *names);
// Strips the outer parentheses of such a text, for contexts in which no operator binds more tightly.
const char *bare_text(Printer *p, const char *product);

// Adds the vocabulary's definitions that `used` needs, directly or through other definitions. False: out of memory.
bool print_vocabulary(const Isa *isa, const Text *used, Text *out);
// Whether `used` needs any definition of the ISA's own header, not only of the header that the ISA falls back to. Sets
// used->out_of_memory if there is too little memory to find out.
bool needs_vocabulary(const Isa *isa, Text *used);
// A file may contain the vocabulary several times, and may be included in one translation unit with others. So its
// functions and types are renamed to PREFIX_NAME before it, and its macros and these renames are undefined after it.
void print_renames(const Text *vocabulary, const char *prefix, Text *out);
void print_macro_renames(const Text *vocabulary, Text *out); // to NG(NAME), each with a blank line behind it
void print_undefinitions(const Text *vocabulary, Text *out);

// Moves C text to `out`, breaking lines longer than 120 columns where possible. `from` is deinitialised. False: out of
// memory.
bool text_move_wrapped(Text *out, Text *from);

#endif
