// What the files that print a loop share: print_expr.c, print_row.c, print_vectors.c,
// print_sweep.c and print_loop.c.
#ifndef NGRAD_BACKENDS_CODEGEN_LOOP_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_LOOP_PRINTER_H

#include "backends/codegen/printer.h"

// Where an expression is computed, by the axes that it varies over.
typedef enum Level { LEVEL_CALL, LEVEL_ROW, LEVEL_MIDDLE, LEVEL_VECTOR } Level;

enum { ALL_SWEEPS = -1 };

typedef struct LoopPrinter {
  Printer *p;
  Text *out;
  const Kernel *k;
  const Loop *loop;
  size_t kernel_index, loop_index;
  const char **name;                // by ExprId, then of open dims
  const char **access_name;         // by AccessId: what stands behind p_, part_ and so on
  bool mentions_dim[MAX_OPEN_DIMS]; // in the function's body so far
  Text *function;                   // its text but for the body, while that is in the making
  uint32_t *nuses;                  // by ExprId, in the sweep or section being printed
  int *time;                        // by ExprId: the sweep before which a row's scalar is known
  int sweep;                        // which is needed; ALL_SWEEPS
  bool *is_needed;                  // by ExprId: for the sweep or section being printed
  const char *vec, *scalar, *mask;  // C types
  char prefix;                      // of the vocabulary: v or d
  const char *lane;                 // index of the vector's first lane: "i" or "j"
  const char *part;                 // which of the accumulators: "", "[r]", "[u]", "[0]"
  bool is_tail;                     // only the first n lanes are there
  bool calls_long;                  // functions of many instructions, as there are many in the loop
  bool is_part_tested;              // what is printed stands under the test of add_part_test
  bool is_ahead;                    // addresses are those of what is fetched ahead in the last middle axis
  int indent;
} LoopPrinter;

// print_expr.c: lines, operands, memory, expressions.

void print_indent(LoopPrinter *l);
void print_line(LoopPrinter *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void print_comment(LoopPrinter *l, const char *what, const Text *words); // words behind what they are about
void open_brace(LoopPrinter *l);
void close_brace(LoopPrinter *l);
int loop_vector_axis(const Loop *loop);
int last_middle_axis(const Loop *loop); // -1: there is none
bool has_rows(const LoopPrinter *l);
bool varies_by_row(const LoopPrinter *l, AxisSet axes);
// The level of what varies over these axes; for LEVEL_MIDDLE *depth is the deepest of its middle axes.
Level level_of(const LoopPrinter *l, AxisSet axes, int *depth);
Level expr_level(const LoopPrinter *l, ExprId id);
Level root_level(const LoopPrinter *l, const Root *root);
// Where rows lie across lanes: whether an access is along both axes and has its row's elements one behind the other,
// so that it is transposed in a copy. The last rows, fewer than lanes, are gathered.
bool is_transposed(const LoopPrinter *l, AccessId id);
// There too: whether the rows lie one behind the other, and their elements apart, perhaps all in one set of a cache.
// What is read is copied.
bool is_column(const LoopPrinter *l, AccessId id);
const char *axis_name(const LoopPrinter *l, int axis);
// Whether an access's elements have no addresses, so that what goes for theirs is counted in elements.
bool is_place(const Access *a);
void add_start(LoopPrinter *l, const Access *a); // a pointer to the access's first element, or its place
const char *access_member(const LoopPrinter *l, const Access *a);
// Adds " + axis * stride" for those axes that have one; true if any was added.
bool add_terms(LoopPrinter *l, const Access *a, AxisSet axes, bool has_before);
// A number as C, of type size_t where it has powers; in parentheses where it is a product.
const char *number_text(LoopPrinter *l, int64_t number, Powers powers);
const char *row_stride_text(LoopPrinter *l, const Access *a); // along the first outer axis, of type ptrdiff_t
const char *axes_text(LoopPrinter *l, AxisSet axes);          // how many elements they have
const char *block_text(LoopPrinter *l);                       // the length of the loop's blocks or tiles
const char *chunks_text(LoopPrinter *l, uint32_t loop);       // how many of them an iteration of its kept axes has
// The part of a function that may mention open dims, which are then declared before it.
void begin_body(LoopPrinter *l, Text *body);
void end_body(LoopPrinter *l, Text *body);
void add_number(LoopPrinter *l, double number, bool is_f64); // as C
// A scalar expression's name or number; an expression as a vector.
void add_scalar(LoopPrinter *l, ExprId id);
void add_vector(LoopPrinter *l, ExprId id);
// The address of an access: its row pointer, the middle axes, the first lane.
void add_address(LoopPrinter *l, AccessId id);
const char *type_suffix(Type type); // of functions of the vocabulary that access memory
// Whether the caller may not want what is stored, which then is not; around its stores stands a test of wants_NAME.
bool is_optional(const LoopPrinter *l, AccessId id);
bool may_be_unwanted(const LoopPrinter *l, AccessId id); // partial sums that are NULL when nobody wants them
// "if (part_NAME) ", where a block's own may be NULL.
void add_part_test(LoopPrinter *l, AccessId id);
void open_store(LoopPrinter *l, const Root *root);
void close_store(LoopPrinter *l, const Root *root);
void print_vector_store(LoopPrinter *l, const Root *root);
void print_scalar_store(LoopPrinter *l, const Root *root);
const char *scalar_type(const LoopPrinter *l, const Expr *e); // in C
// Decides whether the loop calls functions of many instructions, and prints those that it does unless they are there.
void print_callables(LoopPrinter *l);
void print_scalar_expr(LoopPrinter *l, ExprId id, AxisSet axes);
void print_vector_expr(LoopPrinter *l, ExprId id);

// print_row.c: what sweeps need, scalars and row pointers.

bool is_row_sum(const LoopPrinter *l, ExprId id);
void need_expr(LoopPrinter *l, ExprId id);
// The reduction that a root takes part in; EXPR_NONE for a store.
ExprOp root_reduction(const LoopPrinter *l, const Root *root);
// An accumulated product that nothing else needs is a fused multiply-add into the sum.
bool is_fused_product(const LoopPrinter *l, const Root *root);
// Whether the sweep that is needed finds a vector where an earlier one left it, or leaves it for later ones.
bool is_found_again(const LoopPrinter *l, ExprId id);
bool is_left(const LoopPrinter *l, ExprId id);
// What a root stores or accumulates: for an inner sum, its operand.
ExprId root_operand(const LoopPrinter *l, const Root *root);
bool is_widened_sum(const LoopPrinter *l, const Root *root); // to an array in f64, though the kernel is in f32
bool is_array_sum(const LoopPrinter *l, const Root *root);
// Whether a root adds up vectors, in an inner sum.
bool is_vector_sum(const LoopPrinter *l, const Root *root);
bool is_in_sweep(const LoopPrinter *l, const Root *root, int sweep);
// Marks in is_needed what a sweep, or the whole loop, computes.
void need_sweep(LoopPrinter *l, int sweep);
void need_all(LoopPrinter *l);
bool is_printed(const LoopPrinter *l, ExprId id);
void open_rows(LoopPrinter *l);
void close_rows(LoopPrinter *l);
void declare_pointer(LoopPrinter *l, AccessId id, bool is_written);
// Calls f for each access that vectors or middle axes use: loads, then stores.
void for_each_pointer(LoopPrinter *l, void (*f)(LoopPrinter *, AccessId, bool));
void find_times(LoopPrinter *l);
// The outer axes whose indices a section's text mentions. Without rows, section 0 speaks for the whole step.
AxisSet mentioned_axes(LoopPrinter *l, int section);
// The scalars that become known before sweep `section`, and what is stored or added up of them.
void print_section(LoopPrinter *l, int section);

// print_vectors.c: the innermost loop.

// The function of the vocabulary that combines two results of a reduction, without its prefix.
const char *combine_name(ExprOp reduction);
bool is_prefetched(const LoopPrinter *l, AccessId id);
bool fetches_ahead(const LoopPrinter *l); // whether the sweep that is needed does, along the vector axis
// How far it is in each tensor to a row ahead of `o`, where that is not the same everywhere.
void declare_distances(LoopPrinter *l);
// The body of the innermost loop: what all rows share, then each row.
void print_body(LoopPrinter *l, int sweep);
// The innermost loop between two places: whole groups of vectors, whole vectors, what is left.
void print_vector_loops(LoopPrinter *l, int sweep, const char *from, const char *to, bool has_sums);

// print_sweep.c: the loops around it, and sums over a row.

void print_sweep(LoopPrinter *l, int sweep); // nothing where it has no work of its own

#endif
