// Turns a graph's names into C identifiers that differ from C's keywords, names in C's headers, and other names in
// emitted files.
#include "backends/codegen/codegen.h"
#include "backends/codegen/print/printer.h"
#include "ir/support/escape.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// clang-format off
// Keywords of C and of C++, as C++ can include emitted headers; then variables and types of the standard headers; then
// prefixes of macros in the standard headers and in MPI's mpi.h, which may precede the header of a step with leaves.
static const char *const keywords[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "char8_t", "char16_t", "char32_t", "class", "compl", "concept", "const", "consteval", "constexpr", "constinit",
    "const_cast", "continue", "co_await", "co_return", "co_yield", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return",
    "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
    "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "typeof_unqual", "union",
    "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq", "double_t", "float_t",
    "linux", "locale_t", "math_errhandling", "max_align_t", "nullptr_t", "offsetof", "ptrdiff_t", "signgam", "size_t",
    "unix", "complex", "errno", "i386", "imaginary", "noreturn", "std", "stderr", "stdin", "stdout", "I", "NULL", "NAN",
    "INFINITY", "MAXFLOAT", "UNROLL", "ALWAYS_INLINE"};
static const char *const macros[] = {
    "ACCESSPERMS", "ADJ_", "AIO_", "ALLPERMS", "AT_", "ATOMIC_", "BC_", "BIG_ENDIAN", "BOOL_", "BUFSIZ", "BUS_",
    "BYTE_ORDER", "CHAR_", "CHARCLASS_", "CLD_", "CLOCK_", "CLOCKS_PER_", "CLONE_", "CLOSE_", "COLL_", "CPU_",
    "CSIGNAL", "D_", "DBL_", "DECIMAL_", "DEFFILEMODE", "DELAYTIMER_", "DN_", "DT_", "F_", "FALLOC_", "FAPPEND", "FASYNC",
    "FD_", "FE_", "FFSYNC", "FILENAME_", "FLT_", "FNDELAY", "FNONBLOCK", "FOPEN_", "FP_", "FPE_", "H_", "HAVE_", "HOST_NAME_",
    "HUGE_VAL", "ILL_", "INT", "IOV_", "ITIMER_", "LC_", "LDBL_", "LINE_MAX", "LITTLE_ENDIAN", "LLONG_", "LOCK_",
    "LOGIN_NAME_", "LONG_", "MATH_", "MAX_", "MB_", "MINSIGSTKSZ", "MOD_", "MQ_", "NAME_MAX", "NFDBITS", "NGREG",
    "NGROUPS_", "NL_", "NO_TAGS_WITH_MODIFIERS", "NSIG", "NZERO", "O_", "ONCE_FLAG_", "OPEN_MPI", "PATH_MAX", "PDP_ENDIAN", "PIPE_", "POLL_", "POSIX_",
    "PTHREAD_", "PTRDIFF_", "R_OK", "RAND_MAX", "RE_DUP_", "REG_", "RENAME_", "RTSIG_", "RWF_", "RWH_", "S_I",
    "S_BLKSIZE", "SA_", "SCHAR_", "SCHED_", "SEEK_", "SEGV_", "SEM_", "SHRT_", "SI_", "SIG", "SIZE_", "SNAN",
    "SPLICE_", "SS_", "SSIZE_", "STA_", "STATX_", "STDERR_", "STDIN_", "STDOUT_", "SYNC_", "TIME_", "TIMER_", "TMP_",
    "TRAP_", "TSS_", "TTY_", "UCHAR_", "UINT", "ULLONG_", "ULONG_", "USHRT_", "UTIME_", "V_", "WAIT_", "WCHAR_",
    "WCONTINUED", "WCOREFLAG", "WEOF", "WEXITED", "WINT_", "WNOHANG", "WNOWAIT", "WORD_BIT", "WSTOPPED", "WUNTRACED",
    "W_OK", "X_OK", "XATTR_"};
static const char *const mixed_macros[] = {
    "L_", "M_", "MPI", "OMPI_", "OPAL_", "P_", "PLATFORM_COMPILER_", "PMPI", "PRI", "QMPI_", "ROMIO_", "SCN", "ompi_",
    "sa_", "si_", "sigev_"};

// Prefixes of the vocabulary's functions and types.
static const char *const vocabulary[] = {
    "bf16_from_", "d_", "dmask", "dvec", "e4m3_", "e5m2_", "f16_from_", "f32_add_", "f32_bits", "f32_flush", "f32_fma", "f32_from_", "f32_is_small", "f64_", "flush_",
    "greatest_dropped", "h_", "half_of_byte", "hvec", "is_kept", "l_", "lvec", "mask_", "nearest_from_", "pair", "places", "put_",
    "random_",   "s16_from_", "s32_from_", "s64_from_", "s8_from_", "u16_from_", "u32_from_", "u64_from_", "u8_from_", "v_", "words"};

// Suffixes of names that emitted files define. A graph called x_info would clash with the type x_info that the header
// of a graph x defines.
static const char *const emitted_suffixes[] = {
    "_get_info", "_has_isa", "_info", "_parallel_for", "_init", "_load", "_permutation", "_save", "_state", "_get_states", "_task", "_tensor", "_test", "_workspace_nbytes"};

// Names that a self-test defines, and parameters of emitted functions, which a function of the same name would clash
// with.
static const char *const emitted_names[] = {
    "backwards", "blocks", "call_kernel", "case_checked", "case_extents", "case_first", "case_indices", "case_nelems", "e4m3_of_bits", "element_nbytes", "error_of", "expect",
    "expected_samples", "f16_of_bits", "fill_input", "has_failed", "hash_bytes", "hash_of", "in", "init_states", "is_counted", "in_place", "input_range", "is_packed",
    "is_type", "isa", "list_states", "load_element", "nbytes", "nbytes_of", "new_block", "new_memory", "number", "out", "output_magnitude",
    "output_tolerance", "parallel_for", "put_states", "spoil", "state_data", "state_index", "state_output", "status", "store_element", "store_half", "take_states", "task", "test_case", "test_files", "test_first_values", "workspace", "workspace_nbytes_of",
    "MOST_SAMPLES", "NCASES", "NDIMS", "NINPUTS", "NOUTPUTS", "NSTATES", "NUPDATES", "PARALLEL_FOR"};

// Names that the functions of a loop define or call.
static const char *const locals[] = {
    "a", "ahead", "args", "b", "begin", "block", "c", "c_end", "chain", "d", "dmask", "dvec", "end", "i", "i0", "i1",
    "is_next", "j", "mask", "n", "o", "r", "rows", "run", "start", "strip", "sum", "u", "vec", "fma", "fmaf", "fmod", "fmodf", "sqrt", "sqrtf", "memcpy"};
// clang-format on

// Names are compared with hundreds of words, so first by their first letter.
static bool is_among(const char *const *words, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++)
    if (words[i][0] == name[0] && strcmp(words[i], name) == 0) return true;
  return false;
}

#define IS_AMONG(words, name) is_among(words, sizeof(words) / sizeof *(words), name)

static bool has_lower_case(const char *name) {
  for (; *name; name++)
    if (islower((unsigned char)*name)) return true;
  return false;
}

static bool ends_in(const char *name, const char *ending) {
  size_t length = strlen(name), own = strlen(ending);
  return length >= own && strcmp(name + length - own, ending) == 0;
}

static bool begins_with(const char *name, const char *beginning) {
  return name[0] == beginning[0] && strncmp(name, beginning, strlen(beginning)) == 0;
}

static bool is_macro(const char *name) {
  for (size_t i = 0; isupper((unsigned char)name[0]) && i < sizeof macros / sizeof *macros; i++)
    if (begins_with(name, macros[i]) && !has_lower_case(name)) return true;
  for (size_t i = 0; i < sizeof mixed_macros / sizeof *mixed_macros; i++)
    if (begins_with(name, mixed_macros[i])) return true;
  const bool may_be_error = name[0] == 'E' && (isupper((unsigned char)name[1]) || isdigit((unsigned char)name[1]));
  return may_be_error && !has_lower_case(name);
}

static bool is_keyword(const char *name) {
  if (IS_AMONG(keywords, name) || is_libc_type(name) || is_macro(name)) return true;
  return ends_in(name, "_t") && (begins_with(name, "int") || begins_with(name, "uint"));
}

static bool is_vocabulary(const char *name) {
  for (size_t i = 0; i < sizeof vocabulary / sizeof *vocabulary; i++)
    if (begins_with(name, vocabulary[i])) return true;
  return false;
}

// Adds the name as an identifier; a keyword gets an underscore appended.
static void add_identifier(const char *name, Text *out) {
  size_t start = out->nbytes;
  if (!isalpha((unsigned char)*name) || (unsigned char)*name >= 0x80) text_add_string(out, "g_");
  text_add_user_string(out, SINK_IDENTIFIER, name);
  if (!out->out_of_memory && is_keyword(text_string(out) + start)) text_add_string(out, "_");
}

// Whether a function of this name would clash with a function of the C library or the vocabulary, with a name that
// emitted files use, or with a file, function or type of another graph.
static bool is_reserved(const char *name) {
  for (size_t i = 0; i < sizeof emitted_suffixes / sizeof *emitted_suffixes; i++)
    if (ends_in(name, emitted_suffixes[i])) return true;
  return is_libc_function(name) || is_vocabulary(name) || IS_AMONG(emitted_names, name);
}

void emit_identifier(const char *name, Text *out) {
  enum { LONGEST = 128, PREFIX_BYTES = 100 }; // file names contain it, and are limited to 255 bytes
  Text id;
  text_init(&id, out->allocator);
  add_identifier(name, &id);
  if (id.nbytes <= LONGEST) text_add(out, text_string(&id), id.nbytes);
  else
    text_format(out, "%.*s_%016llx", PREFIX_BYTES, text_string(&id),
                (unsigned long long)bytes_hash(name, strlen(name)));
  if (is_reserved(text_string(&id))) text_add_string(out, "_");
  out->out_of_memory |= id.out_of_memory;
  text_deinit(&id);
}

// The slot that holds the name, or the free slot that it would get. At least one slot is free.
static const char **find_slot(const NameSet *set, const char *name) {
  size_t at = bytes_hash(name, strlen(name)) % set->nslots;
  while (set->slots[at] && strcmp(set->slots[at], name) != 0) at = (at + 1) % set->nslots;
  return &set->slots[at];
}

static bool is_taken(const NameSet *set, const char *name) {
  return set->nslots && *find_slot(set, name);
}

static bool grow(NameSet *set, Arena *arena) {
  NameSet larger = {.nslots = set->nslots ? 2 * set->nslots : 32, .count = set->count};
  larger.slots = ARENA_ARRAY(arena, const char *, larger.nslots);
  if (!larger.slots) return false;
  for (size_t i = 0; i < set->nslots; i++)
    if (set->slots[i]) *find_slot(&larger, set->slots[i]) = set->slots[i];
  *set = larger;
  return true;
}

// Adds a name that is not in the set; returns it.
static const char *add_name(Printer *p, NameSet *set, const char *name) {
  if (2 * (set->count + 1) > set->nslots && !grow(set, p->scratch)) {
    p->out_of_memory = true;
    return name;
  }
  *find_slot(set, name) = name;
  set->count++;
  return name;
}

// Whether the file being printed may define the name: its prefix, PREFIX_..., or the guard of its header.
static bool is_of_file(const Printer *p, const char *name) {
  const size_t length = strlen(p->prefix);
  const bool begins = strncmp(name, p->prefix, length) == 0;
  return (begins && (!name[length] || name[length] == '_')) || begins_with(name, "NGRAD_");
}

// Whether the entry point's parameters or the argument struct may contain the name besides the graph's values: fixed
// names, NAME_out for outputs that are copies, kN_N_NAME for temporaries.
static bool is_reserved_member(const Printer *p, const char *name) {
  static const char *const own[] = {
      "a",         "args",    "context",    "extents",      "i",    "inputs", "isa",       "memory",          "nbytes",
      "optimizer", "outputs", "parameters", "parallel_for", "pool", "ranks",  "workspace", "workspace_nbytes"};
  return IS_AMONG(own, name) || ends_in(name, "_out") || (name[0] == 'k' && isdigit((unsigned char)name[1])) ||
         is_of_file(p, name);
}

// A prefix for names that are reserved. The result does not begin with the file's prefix.
static const char *escape_prefix(const Printer *p) {
  return p->prefix[0] == 'x' ? "y_" : "x_";
}

const char *print_member_name(Printer *p, const char *name, NameSet *taken, size_t number) {
  enum { LONGEST = 63 };
  Text id;
  text_init(&id, p->scratch->allocator);
  add_identifier(name, &id);
  const char *stem = text_string(&id), *member = arena_copy_text(p->scratch, stem, id.nbytes);
  if (is_reserved_member(p, stem)) member = arena_format(p->scratch, "%s%.40s_%zu", escape_prefix(p), stem, number);
  else if (id.nbytes > LONGEST) member = arena_format(p->scratch, "%.40s_%zu", stem, number);
  for (size_t n = number; member && is_taken(taken, member); n++)
    member = arena_format(p->scratch, "%s%.40s_%zu", escape_prefix(p), stem, n);
  if (!member || id.out_of_memory) p->out_of_memory = true;
  text_deinit(&id);
  return member ? add_name(p, taken, member) : "x";
}

// Whether a loop's functions may use the name for anything but an expression: axes (d0, d1, …; p0, p1, …), p_NAME,
// acc_NAME and so on, and vocabulary functions.
static bool is_reserved_local(const char *name) {
  static const char *const own[] = {"acc_",  "ahead_",   "held_",  "spilled_", "p_",     "part_",
                                    "rows_", "streams_", "total_", "wants_",   "within_"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (begins_with(name, own[i])) return true;
  return is_vocabulary(name) || !isalpha((unsigned char)name[0]) ||
         ((name[0] == 'd' || name[0] == 'p') && isdigit((unsigned char)name[1]));
}

static bool is_free_local(const Printer *p, const char *name, bool has_label, const NameSet *taken) {
  // Without a label, it is t and a number.
  const bool is_word = has_label && (is_reserved_local(name) || IS_AMONG(locals, name) || is_keyword(name));
  return !is_word && !is_of_file(p, name) && !is_taken(taken, name);
}

const char *print_local_name(Printer *p, const char *label, NameSet *taken, size_t number) {
  enum { LONGEST = 48 };
  char stem[LONGEST + 1] = "t", numbered[LONGEST + 2];
  size_t length = label ? strlen(label) : 0;
  bool has_label = length && length <= LONGEST;
  for (size_t i = 0; has_label && i <= length; i++) {
    unsigned char c = (unsigned char)label[i];
    stem[i] = c >= 0x80 || (c && !isalnum(c)) ? '_' : (char)c;
  }
  snprintf(numbered, sizeof numbered, "%s0", stem);
  const bool is_reserved_stem =
      is_of_file(p, stem) || (has_label && (is_reserved_local(numbered) || is_keyword(numbered)));
  const char *before = is_reserved_stem ? escape_prefix(p) : "";
  const char *name = has_label ? arena_format(p->scratch, "%s%s", before, stem) : NULL;
  while (!p->out_of_memory && !(name && is_free_local(p, name, has_label, taken))) {
    name = arena_format(p->scratch, "%s%s%zu", before, stem, number++);
    if (!name) p->out_of_memory = true;
  }
  return name ? add_name(p, taken, name) : "t";
}
