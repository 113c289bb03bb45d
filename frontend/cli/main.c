// The program: which verbs there are, and what happens around them.
#include "frontend/cli/session.h"
#include "frontend/cli/signals.h"
#include "frontend/cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS(n) (1U << (n))
#define ANY_NUMBER ((size_t)-1)
#define GRAPH_IS "GRAPH is a file in format ngrad/1 or in oneDNN Graph's JSON, or - for standard input.\n"

static const Verb verbs[] = {
    {"check", "GRAPH...", 1, ANY_NUMBER, "read, infer and verify graphs; print them with all types and shapes",
     "Every graph is looked at, whatever is wrong with another. What is printed is a graph file again.\n" GRAPH_IS
     "--json prints an array with an object a graph.\n",
     "  ngrad check models/gpt2_layer_norm_backward.yaml\n", OPTION_DIM | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2), verb_check},
    {"run", "GRAPH", 1, 1, "execute a graph, and summarise, write or compare its outputs",
     "Inputs are NAME.npy files, in DIR or beside the graph, or made up by --random. Unknown extents, and those\n"
     "of names without a value, are taken from the files. Compiled kernels are cached in $XDG_CACHE_HOME/ngrad\n"
     "or ~/.cache/ngrad, of which those that were not used for the longest time go when all take more than\n"
     "512 MiB.\n"
     "The compiler is $CC, a command with its arguments, or cc; CFLAGS is not heeded.\n" GRAPH_IS,
     "  ngrad run models/gpt2_layer_norm_backward.yaml --random --dim N=64 --compare\n"
     "  ngrad run graph.yaml --in data --out results --threads 2\n"
     "  ngrad run graph.yaml --in data --expect results --tolerance 1e-6\n",
     OPTION_BACKEND | OPTION_IN | OPTION_RANDOM | OPTION_DIM | OPTION_OUT | OPTION_EXPECTED | OPTION_NAN_CHECK |
         OPTION_THREADS | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_WATCH | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(3) | STATUS(4), verb_run},
    {"emit", "GRAPH -o DIR", 1, 1, "write a graph as C source: NAME.c and NAME.h, after the graph's name",
     "The source is C11 and C++17 and needs libc and libm only. It chooses the best of its instruction sets where it\n"
     "runs, and is the same on whatever machine it was written.\n",
     "  ngrad emit models/gpt2_layer_norm_backward.yaml --isa avx2,avx512 -o kernels\n",
     OPTION_SOURCE_OUT | OPTION_PASSES | OPTION_JSON | OPTION_MEMORY, STATUS(0) | STATUS(1) | STATUS(2), verb_emit},
    {"show", "GRAPH", 1, 1, "print what becomes of a graph on its way to kernels",
     "yaml and dot show the graph as it was read or, with --after, as a pass leaves it; kernels, loops and c what\n"
     "comes after all passes: what each kernel computes, how its loops do that, and the C that says so. yaml is a\n"
     "graph file again; dot is for Graphviz.\n",
     "  ngrad show models/gpt2_layer_norm_backward.yaml --format kernels\n"
     "  ngrad show graph.yaml --format dot | dot -Tsvg > graph.svg\n",
     OPTION_AFTER | OPTION_FORMAT | OPTION_DIM | OPTION_ISA | OPTION_PASSES | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2), verb_show},
    {"bench", "GRAPH...", 1, ANY_NUMBER, "time compiled graphs on random data",
     "Each run is measured in turns with the ceiling: a plain streaming loop that reads and writes as many bytes as\n"
     "the graph's inputs and outputs have. ratio is the ceiling's median by the kernel's: 1 is as fast as memory.\n"
     "Where the arithmetic takes longer than that, GF/s counts its operations (two a product of a contraction, one an\n"
     "addition, a maximum, a function), and of peak is their part of what a loop of multiply-adds on registers does,\n"
     "with the same instruction set and threads, in turns too. Threads are pinned for the time. --json prints an array "
     "with an object a graph.\n"
     "--profile prints a table a graph too: its kernels, and the loops of those that have several, by what they do; "
     "the\n"
     "bytes of the tensors that each reads and writes, once; which bound a kernel is near, reaching half of the "
     "ceiling's\n"
     "rate (memory) or half of the peak (arithmetic); the operators of a kernel and their lines in GRAPH. Times\n"
     "there are means over the middle fifth of the runs, so that they add up; other is what is in no kernel.\n",
     "  ngrad bench models/*.yaml --threads 2 --json\n"
     "  ngrad bench models/transformer_mlp_forward.yaml --profile\n",
     OPTION_DIM | OPTION_THREADS | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_COLD | OPTION_SECONDS |
         OPTION_PROFILE | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(4), verb_bench},
    {"convert", "GRAPH", 1, 1, "write a graph as a file in format ngrad/1, with all types and shapes",
     GRAPH_IS "The files of constants stay where they are: what is written names them as GRAPH does, beside itself.\n",
     "  ngrad convert onednn_dump.json -o graph.yaml\n", OPTION_FILE_OUT | OPTION_DIM | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2), verb_convert},
    {"grad", "GRAPH", 1, 1, "write the graph that computes a graph's gradients",
     "Its outputs are diff_NAME for each of --wrt; its inputs are, as far as it uses them, GRAPH's inputs, values "
     "that\n"
     "GRAPH computes (under their own names: make them outputs of GRAPH too), and diff_NAME for each of --of. With -o\n"
     "it says which they are.\n",
     "  ngrad grad models/transformer_mlp_forward.yaml --wrt x,gamma,beta -o backward.yaml\n",
     OPTION_FILE_OUT | OPTION_GRADIENT | OPTION_DIM | OPTION_MEMORY, STATUS(0) | STATUS(1) | STATUS(2), verb_grad},
    {"gradcheck", "GRAPH", 1, 1, "compare a graph's gradients with differences, in f64, on random data",
     "The derivative of one sum of all outputs with random weights is taken by central differences of ever smaller\n"
     "steps. Elements at kinks are skipped; of large graphs some elements of each input are checked.\n",
     "  ngrad gradcheck models/resnet50_residual_forward.yaml --dim N=1\n",
     OPTION_GRADIENT | OPTION_GRADCHECK | OPTION_DIM | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(3), verb_gradcheck},
    {"ops", "[NAME]", 0, 1, "list the operators, or describe one in full", NULL, "  ngrad ops LayerNormBackward\n",
     OPTION_JSON, STATUS(0) | STATUS(2), verb_ops},
    {"passes", "", 0, 0, "list the passes in their order, and the rules that they apply", NULL, "  ngrad passes\n",
     OPTION_JSON, STATUS(0) | STATUS(2), verb_passes},
};
enum { NVERBS = sizeof verbs / sizeof *verbs };

static void print_help(FILE *out) {
  fputs("usage: ngrad VERB [OPTION...] [GRAPH...]\n\n"
        "ngrad compiles computation graphs of training steps.\n\nverbs:\n",
        out);
  for (const Verb *v = verbs; v < verbs + NVERBS; v++) fprintf(out, "  %-9s  %s\n", v->name, v->summary);
  fputs("\n  ngrad VERB --help   what it takes\n  ngrad --version     version, instruction sets of this processor\n"
        "\nexample:\n  ngrad run models/gpt2_layer_norm_backward.yaml --random --compare\n",
        out);
}

static void print_version(void) {
  printf("ngrad %s\ninstruction sets:", NG_VERSION);
  for (size_t i = 0; i < ng_isa_count(); i++)
    if (ng_isa_at(i).is_available) printf(" %s", ng_isa_at(i).name);
  putchar('\n');
}

static const Verb *find_verb(const char *name) {
  const char *known[NVERBS];
  for (size_t i = 0; i < NVERBS; i++) {
    if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
    known[i] = verbs[i].name;
  }
  const char *nearest = word_nearest(name, known, NVERBS);
  if (nearest) usage_error("unknown verb %s, did you mean %s", name, nearest);
  else usage_error("unknown verb %s, see ngrad --help", name);
  return NULL;
}

static int run_verb(const Verb *verb, int argc, char **argv) {
  Settings settings;
  int status = 0;
  if (!settings_parse(&settings, verb, argc, argv)) status = NG_USAGE;
  else if (settings.wants_help) verb_print_help(verb);
  else status = verb->run(&settings);
  settings_free(&settings);
  return status;
}

static int run_program(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || (strcmp(name, "help") == 0 && argc == 2)) {
    print_help(stdout);
    return 0;
  }
  if (strcmp(name, "--version") == 0) {
    print_version();
    return 0;
  }
  if (!*name) {
    print_help(stderr);
    return NG_USAGE;
  }
  if (strcmp(name, "help") == 0) {
    const Verb *verb = find_verb(argv[2]);
    if (verb) verb_print_help(verb);
    return verb ? 0 : NG_USAGE;
  }
  const Verb *verb = find_verb(name);
  return verb ? run_verb(verb, argc - 2, argv + 2) : NG_USAGE;
}

// A closed descriptor would be given to the next file that is opened, and output would end up in it.
static void keep_standard_files(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 1 ? O_RDONLY : O_RDWR) != fd) _exit(NG_WRONG);
}

int main(int argc, char **argv) {
  keep_standard_files();
  signal(SIGPIPE, SIG_DFL); // whoever closes a pipe has seen enough
  signals_watch();
  int status = run_program(argc, argv);
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  plain_error("cannot write to standard output%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
  return status ? status : NG_WRONG;
}
