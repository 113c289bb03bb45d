// Names of a graph as C identifiers, clear of what C, its headers and the emitted text itself call by name.
#include "backends/codegen/codegen.h"
#include "backends/codegen/printer.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// clang-format off
// Of C and, as headers are read by it too, C++; then variables and types of the headers, and macros by their
// beginnings.
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
    "unix", "NULL", "NAN", "INFINITY", "MAXFLOAT", "UNROLL", "ALWAYS_INLINE"};
static const char *const macros[] = {
    "_", "D_", "FP_", "H_", "HUGE_VAL", "INT", "MATH_", "M_", "PTRDIFF_", "SIG_", "SIZE_", "SNAN", "UINT", "WCHAR_",
    "WINT_", "V_"};

// External functions of libm, string.h, stdlib.h and stdio.h; those of libm also end in f and l.
static const char *const functions[] = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "drem",
    "erf", "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "finite", "floor", "fma", "fmax", "fmin", "fmod",
    "frexp", "gamma", "hypot", "ilogb", "isinf", "isnan", "j0", "j1", "jn", "ldexp", "lgamma", "llrint", "llround",
    "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "modf", "nan", "nearbyint", "nextafter", "nexttoward",
    "pow", "remainder", "remquo", "rint", "round", "scalb", "scalbln", "scalbn", "significand", "sin", "sincos",
    "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc", "y0", "y1", "yn", "bcmp", "bcopy", "bzero", "ffs", "index",
    "main", "memccpy", "memchr", "memcmp", "memcpy", "memmem", "memmove", "mempcpy", "memset", "rindex", "strcat",
    "strchr", "strcmp", "strcoll", "strcpy", "strcspn", "strdup", "strerror", "strlen", "strncat", "strncmp",
    "strncpy", "strndup", "strnlen", "strpbrk", "strrchr", "strsep", "strsignal", "strspn", "strstr", "strtok",
    "strxfrm", "abort", "abs", "aligned_alloc", "atexit", "atof", "atoi", "atol", "atoll", "at_quick_exit", "bsearch",
    "calloc", "clearenv", "div", "exit", "free", "getenv", "labs", "ldiv", "llabs", "lldiv", "malloc", "mblen", "mbstowcs",
    "mbtowc", "putenv", "qsort", "quick_exit", "rand", "random", "realloc", "setenv", "srand", "srandom", "strtod",
    "strtof", "strtol", "strtold", "strtoll", "strtoul", "strtoull", "system", "unsetenv", "wcstombs", "wctomb",
    "clearerr", "fclose", "feof", "ferror", "fflush", "fgetc", "fgetpos", "fgets", "fopen", "fprintf", "fputc", "fputs",
    "fread", "freopen", "fscanf", "fseek", "fsetpos", "ftell", "fwrite", "getc", "getchar", "getline", "gets", "perror",
    "pclose", "popen", "printf", "putc", "putchar", "puts", "remove", "rename", "rewind", "scanf", "setbuf", "setvbuf",
    "snprintf", "sprintf", "sscanf", "stderr", "stdin", "stdout", "tmpfile", "tmpnam", "ungetc", "vfprintf", "vfscanf",
    "vprintf", "vscanf", "vsnprintf", "vsprintf", "vsscanf"};

// What a self-test calls its own.
static const char *const of_self_test[] = {
    "backwards", "call_kernel", "case_extents", "case_nelems", "e4m3_of_bits", "element_nbytes", "error_of", "expect",
    "expected_samples", "f16_of_bits", "fill_input", "has_failed", "hash_of", "in_place", "input_range", "is_packed",
    "is_type", "load_element", "nbytes_of", "new_memory", "output_tolerance", "store_element", "store_half", "test_case",
    "workspace_nbytes_of", "MOST_SAMPLES", "NCASES", "NDIMS", "NINPUTS", "NOUTPUTS", "PARALLEL_FOR"};

// What the functions that a loop becomes call their own, and what they call.
static const char *const locals[] = {
    "a", "ahead", "args", "b", "begin", "block", "chain", "chunk", "d", "dmask", "dvec", "end", "i", "i0", "i1", "is_next", "j",
    "mask", "n", "o", "r", "rows", "run", "start", "sum", "u", "vec", "fma", "fmaf", "sqrt", "sqrtf", "memcpy"};
// clang-format on

static bool is_among(const char *const *words, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(words[i], name) == 0) return true;
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

static bool is_keyword(const char *name) {
  if (IS_AMONG(keywords, name)) return true;
  if (ends_in(name, "_t") && (strncmp(name, "int", 3) == 0 || strncmp(name, "uint", 4) == 0)) return true;
  for (size_t i = 0; i < sizeof macros / sizeof *macros; i++)
    if (strncmp(name, macros[i], strlen(macros[i])) == 0 && !has_lower_case(name)) return true;
  return false;
}

static bool is_vocabulary(const char *name) {
  static const char *const beginnings[] = {"v_",         "d_",        "h_",   "f16_from_",
                                           "bf16_from_", "f32_from_", "f64_", "s32_from_"};
  for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
    if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0) return true;
  return false;
}

static bool is_function(const char *name) {
  char stem[32];
  size_t length = strlen(name);
  if (IS_AMONG(functions, name) || is_vocabulary(name)) return true;
  if (length == 0 || length > sizeof stem || !strchr("fl", name[length - 1])) return false;
  memcpy(stem, name, length - 1);
  stem[length - 1] = 0;
  return IS_AMONG(functions, stem);
}

// Letters and digits stay, all else becomes an underscore and its code; a keyword gets an underscore behind it.
static void add_identifier(const char *name, Text *out) {
  size_t start = out->nbytes;
  if (!isalpha((unsigned char)*name) || (unsigned char)*name >= 0x80) text_add_string(out, "g_");
  for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
    bool is_plain = *c < 0x80 && (isalnum(*c) || *c == '_');
    if (is_plain) text_add(out, (const char *)c, 1);
    else text_format(out, "_%02x", (unsigned)*c);
  }
  if (!out->out_of_memory && is_keyword(text_string(out) + start)) text_add_string(out, "_");
}

// 64-bit FNV-1a.
static uint64_t hash_of(const char *name) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3U;
  return hash;
}

void emit_identifier(const char *name, Text *out) {
  enum { LONGEST = 128, KEPT = 100 }; // it names files too
  Text id;
  text_init(&id, out->allocator);
  add_identifier(name, &id);
  if (id.nbytes <= LONGEST) text_add(out, text_string(&id), id.nbytes);
  else text_format(out, "%.*s_%016llx", KEPT, text_string(&id), (unsigned long long)hash_of(name));
  if (is_function(text_string(&id)) || IS_AMONG(of_self_test, text_string(&id))) text_add_string(out, "_");
  out->out_of_memory |= id.out_of_memory;
  text_deinit(&id);
}

static bool is_taken(const char *name, const char *const *taken, size_t ntaken) {
  for (size_t i = 0; i < ntaken; i++)
    if (taken[i] && strcmp(taken[i], name) == 0) return true;
  return false;
}

// What the emitted struct and its function call their own: NAME_out, and temporaries kN_N_NAME.
static bool is_own_member(const char *name) {
  static const char *const own[] = {"a",      "args",      "context",         "extents", "i",
                                    "inputs", "isa",       "memory",          "outputs", "parallel_for",
                                    "pool",   "workspace", "workspace_nbytes"};
  return IS_AMONG(own, name) || ends_in(name, "_out") || (name[0] == 'k' && isdigit((unsigned char)name[1]));
}

const char *print_member_name(Printer *p, const char *name, const char *const *taken, size_t ntaken, size_t number) {
  enum { LONGEST = 63 };
  Text id;
  text_init(&id, p->scratch->allocator);
  add_identifier(name, &id);
  const char *stem = text_string(&id), *member = arena_copy_text(p->scratch, stem, id.nbytes);
  if (is_own_member(stem)) member = arena_format(p->scratch, "x_%.40s_%zu", stem, number);
  else if (id.nbytes > LONGEST) member = arena_format(p->scratch, "%.40s_%zu", stem, number);
  for (size_t n = number; member && is_taken(member, taken, ntaken); n++)
    member = arena_format(p->scratch, "x_%.40s_%zu", stem, n);
  if (!member || id.out_of_memory) p->out_of_memory = true;
  text_deinit(&id);
  return member ? member : "x";
}

// Axes, p_NAME, acc_NAME and the like, which only their printers make, and functions of the vocabulary.
static bool is_own_local(const char *name) {
  static const char *const own[] = {"acc_",  "ahead_", "held_",    "kept_",  "p_",
                                    "part_", "rows_",  "streams_", "total_", "wants_"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (strncmp(name, own[i], strlen(own[i])) == 0) return true;
  return is_vocabulary(name) || !isalpha((unsigned char)name[0]) || (name[0] == 'd' && isdigit((unsigned char)name[1]));
}

static bool is_free_local(const char *name, const char *const *taken, size_t ntaken) {
  return !is_own_local(name) && !IS_AMONG(locals, name) && !is_keyword(name) && !is_taken(name, taken, ntaken);
}

const char *print_local_name(Printer *p, const char *label, const char *const *taken, size_t ntaken, size_t number) {
  enum { LONGEST = 48 };
  char stem[LONGEST + 1] = "t", numbered[LONGEST + 2];
  size_t length = label ? strlen(label) : 0;
  bool has_label = length && length <= LONGEST;
  for (size_t i = 0; has_label && i <= length; i++) {
    unsigned char c = (unsigned char)label[i];
    stem[i] = c >= 0x80 || (c && !isalnum(c)) ? '_' : (char)c;
  }
  snprintf(numbered, sizeof numbered, "%s0", stem);
  const char *before = is_own_local(numbered) || is_keyword(numbered) ? "x_" : "";
  const char *name = has_label ? arena_format(p->scratch, "%s%s", before, stem) : NULL;
  while (!p->out_of_memory && !(name && is_free_local(name, taken, ntaken))) {
    name = arena_format(p->scratch, "%s%s%zu", before, stem, number++);
    if (!name) p->out_of_memory = true;
  }
  return name ? name : "t";
}
