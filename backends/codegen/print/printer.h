// What the parts of the emitter share: a program's text in the making.
#ifndef NGRAD_BACKENDS_CODEGEN_PRINT_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_PRINT_PRINTER_H

#include "backends/codegen/isa.h"
#include "ir/kernel/kernel.h"

typedef struct NameSet { // open addressing, at most half full
  const char **slots;    // NULL: a free one
  size_t nslots, count;
} NameSet;

typedef struct Printer {
  Arena *scratch;
  Text *out;
  Text *plain; // for what any processor can run: the struct of arguments and, with open dims, its layout
  const Program *program;
  const char *prefix;            // of the file's symbols
  const char *identifier;        // of the program's own: the prefix, and the instruction set where there are several
  const char **value_member;     // by value->index: the member of the argument struct that points to it
  const char **temporary_member; // by number, all kernels' in order
  size_t *first_temporary;       // by kernel: where its temporaries start in temporary_member
  const char **dim_member;       // by open dim
  bool has_optional_outputs;     // whose pointers may be null
  bool are_constants_given;      // by the pool: pointers in the order of their values; else they are in the text
  bool *is_optional;             // by value->index: such an output, but for those that are read again
  bool is_callable[EXPR_OP_COUNT][2]; // by whether in f64: the function that print_callables prints is there
  bool *may_be_unwanted; // by number of a temporary: partial sums for some outputs only, NULL without these
  bool is_profiled;      // the pool has a mark, to be called before the first loop and after each
  size_t workspace_nbytes;
  bool has_open_workspace; // workspace_nbytes is only a part: the rest depends on open dims
  bool out_of_memory;
} Printer;

// Prints the functions of one loop: IDENTIFIER_kernelK_loopL(args, block) and what it calls.
void print_loop_functions(Printer *p, size_t kernel, size_t loop);

// Names by which a value is a member of the argument struct and a parameter, and an expression a variable of a loop's
// functions: their own where it can be, and none of those in `taken`, to which the name is added. `number` tells it
// apart where its own cannot be.
const char *print_member_name(Printer *p, const char *name, NameSet *taken, size_t number);
const char *print_local_name(Printer *p, const char *label, NameSet *taken, size_t number);

// Whether the C library declares such a function, or macro; a type, or variable.
bool is_libc_function(const char *name);
bool is_libc_type(const char *name);

// A number by what its dims are called: a literal, or a product in parentheses; "1" when out of memory.
const char *open_number_text(Printer *p, int64_t number, Monomial monomial, const char *const *names);
// Such a text without the parentheses that a product has, for where nothing binds as tightly.
const char *bare_text(Printer *p, const char *product);

// Adds those chunks of the vocabulary's text that `used` needs, and what they need in turn.
bool print_vocabulary(const Isa *isa, const Text *used, Text *out);
// Whether `used` needs any of the ISA's own header, where that takes another's for the rest. Marks `used` as out
// of memory when that cannot be found out.
bool needs_vocabulary(const Isa *isa, Text *used);
// So that a vocabulary can stand in a file several times, and the file beside others in one translation unit: gives its
// functions and types the prefix; takes its macros and those names back.
void print_renames(const Text *vocabulary, const char *prefix, Text *out);
void print_undefinitions(const Text *vocabulary, Text *out);

// Moves C to `out`, with no line longer than 120 columns where that can be; `from` is empty then. False: out of memory.
bool text_move_wrapped(Text *out, Text *from);

#endif
