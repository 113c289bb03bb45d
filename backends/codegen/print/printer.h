// The state of printing a program as C, which the files of print/ and emit/ use, and the functions that emit/ calls in
// print/.
#ifndef NGRAD_BACKENDS_CODEGEN_PRINT_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_PRINT_PRINTER_H

#include "backends/codegen/codegen.h"

// Emitted texts consist of parts: functions, structs, groups of macros. Each part ends in a blank line.

typedef struct Part {
  const Text *text;
  size_t begin, code; // where in the text the part begins, and its code, which follows its comment
  const char *name;   // parts of two texts with one name are variants of a part; NULL: only equal parts are
} Part;

typedef struct Parts {
  Arena *arena;
  Part *items; // in each text, in order
  size_t count, capacity;
  bool out_of_memory;
} Parts;

typedef struct NameSet { // a hash table with open addressing, at most half full
  const char **slots;    // NULL: free
  size_t nslots, count;
} NameSet;

typedef struct PrintedConstant {
  const Value *value;
  const char *name;
  struct PrintedConstant *next;
} PrintedConstant;

typedef struct Constants { // constant tensors as arrays; equal tensors are one array
  Text text;
  PrintedConstant *first;
} Constants;

typedef struct Printer {
  Arena *scratch;
  Text *out;
  Text *plain;  // text that must compile without the instruction set: the argument struct and the workspace layout
  Parts *parts; // of `out` and `plain`; NULL: not wanted
  const Program *program;
  const Liveness *liveness;      // the program's
  const char *prefix;            // of the file's symbols
  Constants *constants;          // the file's arrays; NULL: the pool passes constants
  const char *identifier;        // prefix of this program's symbols: PREFIX, or FUNCTION_ISA if a file holds several
  const char **value_member;     // by value->index: the member of the argument struct that points to the value
  const char **temporary_member; // likewise for temporaries, numbered through all kernels
  const char **dim_member;       // by open dim: the member that holds its value
  bool is_callable[EXPR_OP_COUNT][2]
                  [2]; // by operation, is_f64, then by_element: print_callables has printed its function
  bool has_cuts; // kernels can be compiled apart: loops' functions are external, `plain` declares them, form feeds in
                 // `out` separate kernels, and what several kernels call is in `plain`
  EmitThreads threads; // how loops run on several threads
  bool is_marked;      // the pool may have a function `mark`, whose context is `marked`: it is called after each loop
  bool is_canonical;   // names are numbers, comments are dropped: to compare kernels' texts
  size_t *first_alike; // by kernel: the first kernel with the same functions, whose functions it calls; often itself
  bool *is_shared;     // by kernel: several kernels call its functions, through its own argument struct
  size_t workspace_nbytes;
  bool has_open_workspace; // the workspace's size depends on open dims; workspace_nbytes is only the fixed part
  bool out_of_memory;
} Printer;

// The member that points to a temporary.
static inline const char **temporary_member(const Printer *p, size_t kernel, size_t temporary) {
  return &p->temporary_member[p->liveness->first_temporary[kernel] + temporary];
}

// Prints the functions of one loop: IDENTIFIER_kernelK_loopL(args, block), which runs one of its blocks, and the
// functions that it calls.
void print_loop_functions(Printer *p, size_t kernel, size_t loop);

// names.c and libc_names.c

// The C name of a value (member of the argument struct, and parameter), or of an expression (variable in a loop's
// functions). The given name if it is a free identifier, else an identifier made of the name and `number`. The result
// is in the scratch arena and is added to `taken`.
const char *print_member_name(Printer *p, const char *name, NameSet *taken, size_t number);
const char *print_local_name(Printer *p, const char *label, NameSet *taken, size_t number);

bool is_libc_function(const char *name); // the C library declares such a function or macro
bool is_libc_type(const char *name);     // the C library declares such a type or variable

// parts.c

// A part begins at the end of the text. `parts` NULL: does nothing.
void part_begin(Parts *parts, const Text *text, const char *name);
void part_begin_named(Parts *parts, const Text *text, const char *format, ...) __attribute__((format(printf, 3, 4)));
void part_end_comment(Parts *parts); // the comment of the last part ends here
// Adds the text and its parts to another text in parts.
void parts_add(Parts *to, Text *out, const Parts *from, const Text *text);

// types.c: element types and numbers.

typedef struct ElementType {
  const char *name;   // in memory: "float", "uint16_t"
  char prefix;        // of the vector that a load returns: v (f32 lanes) or d (f64 lanes)
  const char *suffix; // of vocabulary functions that access memory: "_bf16"; "" for f32 and f64
  const char *from;   // the function or operator that converts an element to f32: "f32_from_bf16"; "": C converts it
  const char *to;     // the reverse conversion, from f32, or from f64 for integers of 32 and 64 bits
} ElementType;
extern const ElementType element_types[TYPE_COUNT];
void add_number(Text *out, double number, bool is_f64); // else of f32
void add_integer(Text *out, int64_t integer);
const char *checked(Printer *p, const char *text); // NULL becomes "" and sets p->out_of_memory
// The number as C: a literal, or a product with open dims, in parentheses unless is_bare. names[i]: the name of open
// dim i. "" when out of memory.
const char *open_number_text(Printer *p, int64_t number, Monomial monomial, const char *const *names, bool is_bare);

// vocabulary.c

typedef struct VocabularyName {
  const char *text; // of `length` bytes
  size_t length;
  bool is_macro; // else a function or type
} VocabularyName;

typedef struct VocabularyNames { // names that printed definitions define, each once
  Arena *arena;
  VocabularyName *items;
  size_t count, capacity;
  bool out_of_memory;
} VocabularyNames;
void vocabulary_add_name(VocabularyNames *names, VocabularyName name);

// Adds the vocabulary's definitions that `used` needs, directly or through other definitions. `names` and `parts` may
// be NULL. False: out of memory.
bool print_vocabulary(const Isa *isa, const Text *used, VocabularyNames *names, Parts *parts, Text *out);
// Whether `used` needs any definition of the ISA's own header, not only of the header that the ISA falls back to. Sets
// used->out_of_memory if memory is exhausted.
bool needs_vocabulary(const Isa *isa, Text *used);
// A file may contain the vocabulary several times, and a translation unit may include several files. So macros rename
// the vocabulary's functions and types to PREFIX_NAME; after the vocabulary's uses, these macros and the vocabulary's
// own macros are undefined.
void print_renames(const VocabularyNames *names, const char *prefix, Text *out);
void print_macro_renames(const VocabularyNames *names, Parts *parts, Text *out); // to NG(NAME)
void print_undefinitions(const VocabularyNames *names, Text *out);

// wrap.c

// Moves C text to `out`, breaking lines longer than 120 columns where possible. `from` is deinitialised. False: out of
// memory.
bool text_move_wrapped(Text *out, Text *from);

#endif
