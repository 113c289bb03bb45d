// The program: which verbs there are, and what happens around them.
#include "frontend/cli/fit_ranks.h"
#include "frontend/cli/progress.h"
#include "frontend/cli/session.h"
#include "frontend/cli/signals.h"
#include "frontend/cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char format_page[]; // docs/format.md

#define STATUS(n) (1U << (n))
#define ANY_NUMBER ((size_t)-1)
#define GRAPH_IS                                                                                                       \
  "GRAPH is a file in format ngrad/1, an ONNX model, JSON of oneDNN Graph or nGraph, or - for standard input.\n"

static const Verb verbs[] = {
    {"check", "GRAPH...", 1, ANY_NUMBER, "read, infer and verify graphs; print them with all types and shapes",
     "Every graph is looked at, whatever is wrong with another. What is printed is a graph file again.\n" GRAPH_IS
     "--json prints an array with an object a graph.\n",
     "  ngrad check models/gpt2_layer_norm_backward.yaml\n", OPTION_DIM | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2), verb_check},
    {"run", "GRAPH", 1, 1, "execute a graph, and summarise, write or compare its outputs",
     "Inputs are NAME.npy files, in DIR or beside the graph, or made up by --random. Unknown and named extents\n"
     "are taken from the files, whatever the graph's dims say. Compiled kernels are cached in $XDG_CACHE_HOME/ngrad\n"
     "or ~/.cache/ngrad, of which those that were not used for the longest time go when all take more than\n"
     "512 MiB.\n"
     "The compiler is $CC, a command with its arguments, or cc; CFLAGS is not heeded.\n"
     "The time told is that of one cold call, or of --compare the shortest of 3; bench times many. The largest error\n"
     "is that of an element, relative to it or, if it is smaller, to the root mean square of its tensor; where 8-bit\n"
     "types or --max-ulp count units in the last place, it is that many ulp.\n" GRAPH_IS,
     "  ngrad run models/gpt2_layer_norm_backward.yaml --random --dim N=64 --compare\n"
     "  ngrad run graph.yaml --in data --out results --threads 2\n"
     "  ngrad run graph.yaml --in data --expect results --tolerance 1e-6\n",
     OPTION_BACKEND | OPTION_IN | OPTION_RANDOM | OPTION_DIM | OPTION_OUT | OPTION_EXPECTED | OPTION_NAN_CHECK |
         OPTION_THREADS | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_WATCH | OPTION_STATE | OPTION_JSON |
         OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(3) | STATUS(4), verb_run},
    {"emit", "GRAPH -o DIR", 1, 1, "write a graph as C source: NAME.c and NAME.h, after the graph's name",
     "The source is C11 and C++17 and needs libc and libm only. It chooses the best of its instruction sets where it\n"
     "runs, and is the same on whatever machine it was written.\n",
     "  ngrad emit models/gpt2_layer_norm_backward.yaml --isa avx2,avx512 -o kernels\n",
     OPTION_SOURCE_OUT | OPTION_PASSES | OPTION_JSON | OPTION_MEMORY, STATUS(0) | STATUS(1) | STATUS(2), verb_emit},
    {"show", "GRAPH", 1, 1, "print what becomes of a graph on its way to kernels",
     "yaml and dot show the graph as it was read or, with --after, as a pass leaves it; kernels, loops and c what\n"
     "comes after all passes: what each kernel computes, how its loops do that, and the C that says so. yaml is a\n"
     "graph file again; dot is for Graphviz. memory shows what lives where in the memory between kernels, and when;\n"
     "memory-svg draws that.\n",
     "  ngrad show models/gpt2_layer_norm_backward.yaml --format kernels\n"
     "  ngrad show graph.yaml --format dot | dot -Tsvg > graph.svg\n"
     "  ngrad show graph.yaml --format memory-svg > memory.svg\n",
     OPTION_AFTER | OPTION_FORMAT | OPTION_DIM | OPTION_ISA | OPTION_PASSES | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2), verb_show},
    {"report", "GRAPH...", 1, ANY_NUMBER, "write a page of HTML: what becomes of graphs, and where the time goes",
     "The page is one file and needs no network. It draws the graph as kernels, laid out by Graphviz's dot where that "
     "is\n"
     "installed, with the operators, texts, loops and C of each; their times beside bounds, and on a roofline; the "
     "plan\n"
     "of the memory; and the graph before and after each pass. Times are measured as bench --profile does.\n"
     "Several graphs are on one page, and compared. A name that ends in .html is a page that report wrote, whose\n"
     "graphs are taken from it: so two builds are compared. --json prints the data that is on the page.\n" GRAPH_IS,
     "  ngrad report models/gpt2_layer_norm_backward.yaml -o report.html\n"
     "  ngrad report before.html graph.yaml -o compared.html\n",
     OPTION_FILE_OUT | OPTION_DIM | OPTION_THREADS | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_SECONDS |
         OPTION_REPORT | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(4), verb_report},
    {"bench", "GRAPH...", 1, ANY_NUMBER, "time compiled graphs on random data",
     "Each run is measured in turns with the ceiling: a plain streaming loop that reads and writes as many bytes as\n"
     "the graph's inputs and outputs have. ratio is the ceiling's median by the kernel's: 1 is as fast as memory.\n"
     "Where the arithmetic takes longer than that, GF/s counts its operations (two a product of a contraction, one an\n"
     "addition, a maximum, a function), and of peak is their part of what a loop of multiply-adds on registers does,\n"
     "with the same instruction set and threads, in turns too. Threads are pinned for the time. --json prints an array "
     "with an object a graph.\n"
     "± is the median absolute deviation of the samples, and an outlier is more than 7.4 times that away from the\n"
     "median, which is 5 standard deviations of a normal distribution. Two graphs are timed in turns with each other,\n"
     "and so are with --with this program and another build; then it says how many times as long the second takes, as\n"
     "the median of the turns with its 95 % interval. With --profile graphs are timed one after the other.\n"
     "--profile prints a table a graph too: its kernels, and the loops of those that have several, by what they do; "
     "the\n"
     "bytes of the tensors that each reads and writes, once; which bound a kernel is near, reaching half of the "
     "ceiling's\n"
     "rate (memory) or half of the peak (arithmetic); the operators of a kernel and their lines in GRAPH. Times\n"
     "there are means over the middle fifth of the runs, so that they add up; other is what is in no kernel.\n",
     "  ngrad bench models/*.yaml --threads 2 --json\n"
     "  ngrad bench models/transformer_mlp_forward.yaml --profile\n"
     "  ngrad bench before.yaml after.yaml --export times.csv\n"
     "  ngrad bench models/transformer_mlp_forward.yaml --with ~/other/build/ngrad\n",
     OPTION_DIM | OPTION_THREADS | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_COLD | OPTION_SECONDS |
         OPTION_PROFILE | OPTION_TURNS | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(4), verb_bench},
    {"convert", "GRAPH", 1, 1,
     "write a graph as a file in format ngrad/1, with all types and shapes, or as an ONNX model",
     GRAPH_IS
     "In ngrad/1 the files of constants stay where they are: what is written names them as GRAPH does, beside\n"
     "itself. In a model, of opset 17, operators that ONNX has not are nodes of the domain \"ngrad\", which ngrad "
     "reads\n"
     "and Netron draws; states are inputs, and their updates outputs; layouts are left out.\n",
     "  ngrad convert onednn_dump.json -o graph.yaml\n"
     "  ngrad convert step.yaml -o step.onnx\n",
     OPTION_TO | OPTION_FILE_OUT | OPTION_DIM | OPTION_JSON | OPTION_MEMORY, STATUS(0) | STATUS(1) | STATUS(2),
     verb_convert},
    {"grad", "GRAPH", 1, 1, "write the graph that computes a graph's gradients",
     "Its outputs are diff_NAME for each of --wrt; its inputs are, as far as it uses them, GRAPH's inputs, values "
     "that\n"
     "GRAPH computes (under their own names), and diff_NAME for each of --of. With -o it says which they are. "
     "--forward\n"
     "writes GRAPH with these values as outputs. The gradient graph then computes again what is cheap to compute from\n"
     "what it takes anyway: activations, masks, one-hot labels, casts and other views of a value. That of a graph "
     "with\n"
     "leaves takes inputs only, and computes all else again.\n",
     "  ngrad grad models/transformer_mlp_forward.yaml --wrt x,gamma,beta -o backward.yaml\n"
     "  ngrad grad graph.yaml --forward forward.yaml -o backward.yaml\n",
     OPTION_FILE_OUT | OPTION_GRADIENT | OPTION_FORWARD | OPTION_DIM | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2), verb_grad},
    {"gradcheck", "GRAPH", 1, 1, "compare a graph's gradients with differences, in f64, on random data",
     "The derivative of one sum of all outputs with random weights is taken by central differences of ever smaller\n"
     "steps. Elements at kinks are skipped; of large graphs some elements of each input are checked.\n",
     "  ngrad gradcheck models/resnet50_residual_forward.yaml --dim N=1\n",
     OPTION_GRADIENT | OPTION_GRADCHECK | OPTION_DIM | OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(3), verb_gradcheck},
    {"train", "GRAPH -o DIR", 1, 1, "write the graph of a training step: forward, gradients, optimizer",
     "GRAPH computes a loss, or --loss adds one; its parameters are its states (state:) of floating-point types that "
     "it\n"
     "does not update itself. A graph without states has its floating-point constants that come from files, or are\n"
     "initializers of an ONNX model, as parameters. DIR/NAME_step.yaml has its inputs, states and outputs that are "
     "single numbers; a call updates the\n"
     "parameters. It adds the optimizer's states (PARAMETER.momentum, .m and .v, or .sum; f32 beside 16-bit floats),\n"
     "and step, which counts calls. The optimizers compute what PyTorch's do, weight decay included.\n"
     "The step t counts from 0; with --warmup N the rate is multiplied by (t + 1) / N while t < N, and the schedule\n"
     "begins after that: step multiplies it by gamma^floor(t / step-size), cosine by\n"
     "(1 + cos(pi t / (steps - warmup))) / 2.\n"
     "With --accumulate N the data inputs of the step have an axis of N leaves before their others, [N, L, ...], which "
     "is\n"
     "the same memory as [N * L, ...]; only one leaf's activations need to be there at a time. Gradients are added in "
     "a\n"
     "binary tree of the leaves, and running statistics become the means of what the leaves would make of them. Such "
     "a\n"
     "step can be taken by several ranks: see ngrad help fit.\n"
     "With --sync-batch-norm batch norms take the statistics of the whole batch; the activations of all leaves are "
     "then\n"
     "there at a time.\n"
     "DIR/NAME_test.yaml computes the outputs that are single numbers without training, DIR/NAME_infer.yaml those "
     "that\n"
     "need no labels: batch norms take their running statistics, dropout does nothing. NAME is GRAPH's name as a C\n"
     "identifier. Files that GRAPH takes constants or first values from are copied to DIR. With any of --isa, "
     "--threads,\n"
     "--prefix, --memory and --self-test, which are as emit has them, DIR/NAME.c and DIR/NAME.h have the functions\n"
     "NAME_train_step, NAME_infer, NAME_init, NAME_save and NAME_load. run and fit have --memory for the graphs.\n",
     "  ngrad train models/train/mlp.yaml --optimizer adam -o mlp\n"
     "  ngrad train models/train/cnn.yaml --optimizer momentum --learning-rate 0.05 --freeze 'conv*' -o cnn\n",
     OPTION_TRAIN | OPTION_DIM | OPTION_ARENA | OPTION_JSON | OPTION_MEMORY, STATUS(0) | STATUS(1) | STATUS(2),
     verb_train},
    {"fit", "STEP", 1, 1, "train: call a training step on batches of samples",
     "STEP is a graph with updates, as train writes it. An input whose first extent is a named one has samples along\n"
     "that, which is the batch (behind an axis of leaves: along both); its file has all samples along its first axis.\n"
     "Other inputs are whole files. Files are .npy or MNIST's idx, also compressed by gzip, and may be of a type or\n"
     "shape that the input's can stand for: bytes for floats, [28, 28] for [784]. With --text, samples are bytes of\n"
     "any file, one behind the other, and those of labels begin a byte later. Each epoch takes the samples in\n"
     "another order, by the seed; its last batch may be shorter. A batch has a multiple of the graph's leaves: up to\n"
     "leaves - 1 samples are left out of an epoch, others each time. The same seed, data and batch give the same\n"
     "bits on every machine, however often training is stopped (Ctrl-C) and resumed.\n"
     "What is printed are means of the outputs that are single numbers, and the SHA-256 of all states. A number that "
     "is\n"
     "not finite ends training: exit status 1, and the node that made it is named.\n"
     "With --ranks, processes that mpirun started (Open MPI's or MPICH's; mpicc is needed) share the leaves of each\n"
     "batch, which ngrad train --accumulate N makes. All give the same bits as one process, on any number of ranks.\n",
     "  ngrad train models/train/mlp.yaml --optimizer adam -o mlp\n"
     "  ngrad fit mlp/mlp_step.yaml --in train --test test --epochs 3 -o mlp\n"
     "  ngrad fit mlp/mlp_step.yaml --in train --epochs 5 -o mlp --resume\n"
     "  ngrad fit gpt/gpt_bytes_step.yaml --text book.txt --steps 2000 -o gpt\n"
     "  mpirun -np 4 ngrad fit mlp/mlp_step.yaml --in train --ranks -o mlp\n"
     "  ngrad run mlp/mlp_infer.yaml --in images --state mlp/mlp.npz\n",
     OPTION_FIT | OPTION_DIM | OPTION_THREADS | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(4), verb_fit},
    {"scale", "STEP", 1, 1, "tell what a training step costs on many ranks, by a model",
     "STEP is a graph with leaves, as train --accumulate N writes it, which fit --ranks trains. The functions of a "
     "leaf\n"
     "and those common to all are compiled and timed here, on --threads; or --leaf-time gives a time, and nothing is\n"
     "compiled. Messages are those that the ranks of fit exchange, bucket by bucket, counted on the busiest rank. "
     "Their\n"
     "cost: the latency of each, and the bytes by the bandwidth. A row tells a number of ranks: how many leaves the\n"
     "busiest has, the time of a step, the efficiency, the largest part of the time; bytes and messages that a rank\n"
     "sends, and the bytes that a ring all-reduce would send; and the time of a step with a ring. Where ranks have\n"
     "unequal numbers of leaves, or send more than 1.1 times a ring, it says so, and a better number if it knows "
     "one.\n",
     "  ngrad scale mlp/mlp_step.yaml --ranks 1..64 --latency 1.5us --bandwidth 100Gbit/s\n"
     "  ngrad scale step.yaml --leaves 8192 --leaf-time 300ms --common-time 2ms --ranks 64,1024,10000\n",
     OPTION_SCALE | OPTION_DIM | OPTION_THREADS | OPTION_ISA | OPTION_PASSES | OPTION_COMPILE | OPTION_SECONDS |
         OPTION_JSON | OPTION_MEMORY,
     STATUS(0) | STATUS(1) | STATUS(2) | STATUS(4), verb_scale},
    {"ops", "[NAME]", 0, 1, "list the operators, or describe one in full", NULL,
     "  ngrad ops LayerNormBackward\n"
     "  ngrad ops --schema > ngrad.schema.json\n",
     OPTION_JSON | OPTION_SCHEMA, STATUS(0) | STATUS(2), verb_ops},
    {"passes", "", 0, 0, "list the passes in their order, and the rules that they apply", NULL, "  ngrad passes\n",
     OPTION_JSON, STATUS(0) | STATUS(2), verb_passes},
};
enum { NVERBS = sizeof verbs / sizeof *verbs };

static void print_help(FILE *out) {
  fputs("usage: ngrad VERB [OPTION...] [GRAPH...]\n\n"
        "ngrad compiles computation graphs of training steps.\n\nverbs:\n",
        out);
  for (const Verb *v = verbs; v < verbs + NVERBS; v++) fprintf(out, "  %-9s  %s\n", v->name, v->summary);
  fputs("\n  ngrad VERB --help   what it takes\n  ngrad help format   what a graph file holds\n  ngrad --version     "
        "version, instruction sets of this processor\n"
        "\nexample:\n  ngrad run models/gpt2_layer_norm_backward.yaml --random --compare\n"
        "\nThe graphs of the examples are in models/ of the sources, which an installation has as "
        "share/doc/ngrad/examples/.\n",
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
  if (!settings_parse(&settings, verb, argc, argv)) {
    status = NG_USAGE;
    if (verb->options & OPTION_FIT) ranks_end_unopened();
  } else if (settings.wants_help) {
    verb_print_help(verb);
  } else {
    progress_begin(verb->name, settings.noperands ? settings.operands[0] : "");
    status = verb->run(&settings);
    progress_end();
  }
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
  if (strcmp(name, "help") == 0 && strcmp(argv[2], "format") == 0) {
    fputs(format_page, stdout);
    return 0;
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
