// Names that the C library may declare where an emitted file is compiled or linked. Emitted functions must not use
// them.
#include "backends/codegen/print/printer.h"

#include <string.h>

// clang-format off
// Functions and function-like macros of all headers of C17, and of the most used headers of POSIX and GNU. Each also
// stands for its variants with the endings below (sinf, sinl, …).
static const char *const functions[] = {
    "a64l", "abort", "abs", "accept", "accept4", "access", "acct", "acos", "acosh", "adjtime", "alarm",
    "aligned_alloc", "alloca", "alphasort", "arc4random", "arc4random_buf", "arc4random_uniform", "asctime", "asin", "asinh",
    "asprintf", "assert", "at_quick_exit", "atan", "atan2", "atanh", "atexit", "atof", "atoi", "atol",
    "atomic_compare_exchange_strong", "atomic_exchange", "atomic_fetch_add", "atomic_flag_clear",
    "atomic_flag_clear_explicit", "atomic_flag_test_and_set", "atomic_flag_test_and_set_explicit", "atomic_init",
    "atomic_load", "atomic_signal_fence", "atomic_store", "atomic_thread_fence", "basename", "bcmp", "bcopy",
    "bind", "brk", "bsearch", "btowc", "bzero", "c16rtomb", "c32rtomb", "cabs", "cacos", "cacosh", "call_once",
    "calloc", "canonicalize", "canonicalize_file_name", "carg", "casin", "casinh", "catan", "catanh", "cbrt",
    "ccos", "ccosh", "ceil", "cexp", "chdir", "chmod", "chown", "chroot", "cimag", "clearenv", "clearerr", "clock",
    "clock_adjtime", "clock_getcpuclockid", "clock_getres", "clock_gettime", "clock_nanosleep", "clock_settime",
    "clog", "close", "closedir", "close_range", "closefrom", "cnd_broadcast", "cnd_destroy", "cnd_init", "cnd_signal",
    "cnd_timedwait", "cnd_wait", "confstr", "conj", "connect", "copy_file_range", "copysign", "cos", "cosh", "cpow",
    "cproj", "creal", "creat", "crypt", "csin", "csinh", "csqrt", "ctan", "ctanh", "ctermid", "ctime", "cuserid",
    "daddl", "daemon", "ddivl", "dfmal", "difftime", "dirfd", "div", "dladdr", "dladdr1", "dlclose", "dlerror", "dlinfo",
    "dlmopen", "dlopen", "dlsym", "dlvsym", "dmull", "dprintf", "drand48", "drem", "dsqrtl", "dsubl", "dup", "dup2",
    "dup3", "dysize", "eaccess", "ecvt", "endusershell", "erand48", "erf", "erfc", "euidaccess", "execl", "execle",
    "execlp", "execv", "execve", "execveat", "execvp", "execvpe", "exit", "exp", "exp10", "exp2", "explicit_bzero",
    "expm1", "f32addf128", "f32addf32x", "f32addf64", "f32addf64x", "f32divf128", "f32divf32x", "f32divf64",
    "f32divf64x", "f32fmaf128", "f32fmaf32x", "f32fmaf64", "f32fmaf64x", "f32mulf128", "f32mulf32x", "f32mulf64",
    "f32mulf64x", "f32sqrtf128", "f32sqrtf32x", "f32sqrtf64", "f32sqrtf64x", "f32subf128", "f32subf32x",
    "f32subf64", "f32subf64x", "f32xaddf128", "f32xaddf64", "f32xaddf64x", "f32xdivf128", "f32xdivf64",
    "f32xdivf64x", "f32xfmaf128", "f32xfmaf64", "f32xfmaf64x", "f32xmulf128", "f32xmulf64", "f32xmulf64x",
    "f32xsqrtf128", "f32xsqrtf64", "f32xsqrtf64x", "f32xsubf128", "f32xsubf64", "f32xsubf64x", "f64addf128",
    "f64addf64x", "f64divf128", "f64divf64x", "f64fmaf128", "f64fmaf64x", "f64mulf128", "f64mulf64x", "f64sqrtf128",
    "f64sqrtf64x", "f64subf128", "f64subf64x", "f64xaddf128", "f64xdivf128", "f64xfmaf128", "f64xmulf128",
    "f64xsqrtf128", "f64xsubf128", "fabs", "faccessat", "fadd", "fallocate", "fchdir", "fchmod", "fchmodat",
    "fchown", "fchownat", "fclose", "fcloseall", "fcntl", "fcvt", "fdatasync", "fdim", "fdiv", "fdopen", "fdopendir",
    "feclearexcept", "fegetenv", "fegetexceptflag", "fegetround", "feholdexcept", "feof", "feraiseexcept", "ferror",
    "fesetenv", "fesetexceptflag", "fesetround", "fetestexcept", "feupdateenv", "fexecve", "fflush", "ffma", "ffs",
    "ffsll", "fgetc", "fgetpos", "fgets", "fgetwc", "fgetws", "fileno", "finite", "flockfile", "floor", "fma",
    "fmax", "fmaximum", "fmaximum_mag", "fmaximum_mag_num", "fmaximum_num", "fmaxmag", "fmemopen", "fmin",
    "fminimum", "fminimum_mag", "fminimum_mag_num", "fminimum_num", "fminmag", "fmod", "fmul", "fopen",
    "fopencookie", "fork", "fpathconf", "fpclassify", "fprintf", "fputc", "fputs", "fputwc", "fputws", "fread",
    "free", "freopen", "frexp", "fromfp", "fromfpx", "fscanf", "fseek", "fseeko", "fsetpos", "fsqrt", "fstat",
    "fstatat", "fsub", "fsync", "ftell", "ftello", "ftruncate", "ftrylockfile", "funlockfile", "futimens",
    "futimes", "futimesat", "fwide", "fwprintf", "fwrite", "fwscanf", "gamma", "gcvt", "get_current_dir_name",
    "getc", "getchar", "getcwd", "getdate", "getdelim", "getdomainname", "getdtablesize", "getegid", "getentropy",
    "getenv", "geteuid", "getgid", "getgroups", "gethostid", "gethostname", "getitimer", "getline", "getloadavg",
    "getlogin", "getopt", "getpagesize", "getpass", "getpayload", "getpeername", "getpgid", "getpgrp", "getpid",
    "getppid", "getpt", "getresgid", "getresuid", "gets", "getsid", "getsockname", "getsockopt", "getsubopt",
    "gettid", "gettimeofday", "getuid", "getumask", "getusershell", "getw", "getwc", "getwchar", "getwd", "gmtime",
    "grantpt", "group_member", "gsignal", "hypot", "ilogb", "imaxabs", "imaxdiv", "index", "initstate", "isalnum",
    "isalpha", "isatty", "isblank", "iscntrl", "isdigit", "isfdtype", "isfinite", "isgraph", "isgreater",
    "isgreaterequal", "isinf", "isless", "islessequal", "islessgreater", "islower", "isnan", "isnormal", "isprint",
    "ispunct", "isspace", "isunordered", "isupper", "iswalnum", "iswalpha", "iswblank", "iswcntrl", "iswctype",
    "iswdigit", "iswgraph", "iswlower", "iswprint", "iswpunct", "iswspace", "iswupper", "iswxdigit", "isxdigit",
    "j0", "j1", "jn", "jrand48", "kill", "kill_dependency", "killpg", "l64a", "labs", "lchmod", "lchown", "lcong48",
    "ldexp", "ldiv", "lgamma", "lgammaf128_r", "lgammaf32_r", "lgammaf32x_r", "lgammaf64_r", "lgammaf64x_r",
    "lgammaf_r", "lgammal_r", "link", "linkat", "listen", "llabs", "lldiv", "llogb", "llrint", "llround",
    "localeconv", "localtime", "lockf", "log", "log10", "log1p", "log2", "logb", "longjmp", "lrand48", "lrint",
    "lround", "lseek", "lstat", "lutimes", "madvise", "main", "malloc", "mblen", "mbrlen", "mbrtoc16", "mbrtoc32",
    "mbrtowc", "mbsinit", "mbsrtowcs", "mbstowcs", "mbtowc", "memccpy", "memchr", "memcmp", "memcpy",
    "memfd_create", "memfrob", "memmem", "memmove", "mempcpy", "memrchr", "memset", "mincore", "mkdir", "mkdirat",
    "mkdtemp", "mkfifo", "mkfifoat", "mknod", "mknodat", "mkostemp", "mkostemps", "mkstemp", "mkstemps", "mktemp",
    "mktime", "mlock", "mlock2", "mlockall", "mmap", "modf", "mprotect", "mrand48", "mremap", "msync",
    "mtx_destroy", "mtx_init", "mtx_lock", "mtx_timedlock", "mtx_trylock", "mtx_unlock", "munlock", "munlockall",
    "munmap", "name_to_handle_at", "nan", "nanosleep", "nearbyint", "nextafter", "nextdown", "nexttoward", "nextup",
    "nice", "nrand48", "obstack_printf", "obstack_vprintf", "offsetof", "on_exit", "open", "open_by_handle_at",
    "open_memstream", "opendir", "openat", "pathconf", "pause", "pclose", "perror", "pipe", "pipe2", "pkey_alloc", "pkey_free",
    "pkey_get", "pkey_mprotect", "pkey_set", "poll", "popen", "posix_fadvise", "posix_fallocate", "posix_madvise",
    "posix_memalign", "posix_openpt", "pow", "ppoll", "pread", "printf", "process_madvise", "process_mrelease",
    "profil", "pselect", "psiginfo", "psignal", "pthread_kill", "pthread_sigmask", "pthread_sigqueue", "ptsname",
    "putc", "putchar", "putenv", "puts", "putw", "putwc", "putwchar", "pwrite", "qecvt", "qfcvt", "qgcvt", "qsort",
    "quick_exit", "raise", "rand", "random", "rawmemchr", "read", "readdir", "readahead", "readlink", "readlinkat", "realloc",
    "reallocarray", "realpath", "recv", "recvfrom", "recvmmsg", "recvmsg", "remainder", "remap_file_pages",
    "remove", "remquo", "rename", "renameat", "renameat2", "revoke", "rewind", "rewinddir", "rindex", "rint", "rmdir", "round",
    "roundeven", "rpmatch", "sbrk", "scalb", "scalbln", "scalbn", "scandir", "scandirat", "scanf", "secure_getenv", "seed48", "seekdir", "select",
    "send", "sendmmsg", "sendmsg", "sendto", "setbuf", "setbuffer", "setdomainname", "setegid", "setenv", "seteuid",
    "setgid", "sethostid", "sethostname", "setitimer", "setjmp", "setlinebuf", "setlocale", "setlogin",
    "setpayload", "setpayloadsig", "setpgid", "setpgrp", "setregid", "setresgid", "setresuid", "setreuid", "setsid",
    "setsockopt", "setstate", "settimeofday", "setuid", "setusershell", "setvbuf", "shm_open", "shm_unlink",
    "shutdown", "sigabbrev_np", "sigaction", "sigaddset", "sigaltstack", "sigandset", "sigblock", "sigdelset",
    "sigdescr_np", "sigemptyset", "sigfillset", "siggetmask", "sighold", "sigignore", "siginterrupt",
    "sigisemptyset", "sigismember", "signal", "signbit", "significand", "sigorset", "sigpause", "sigpending",
    "sigprocmask", "sigqueue", "sigrelse", "sigreturn", "sigset", "sigsetjmp", "sigsetmask", "sigstack",
    "sigsuspend", "sigtimedwait", "sigwait", "sigwaitinfo", "sin", "sincos", "sinh", "sleep", "snprintf",
    "sockatmark", "socket", "socketpair", "splice", "sprintf", "sqrt", "srand", "srand48", "srandom", "sscanf",
    "ssignal", "stat", "statx", "stderr", "stdin", "stdout", "stpcpy", "stpncpy", "strcasecmp", "strcasestr",
    "strcat", "strchr", "strchrnul", "strcmp", "strcoll", "strcpy", "strcspn", "strdup", "strerror",
    "strerrordesc_np", "strerrorname_np", "strfromd", "strfromf", "strfromf128", "strfromf32", "strfromf32x",
    "strfromf64x", "strfroml", "strfry", "strftime", "strlen", "strncasecmp", "strncat", "strncmp", "strncpy",
    "strndup", "strnlen", "strpbrk", "strptime", "strrchr", "strsep", "strsignal", "strspn", "strstr", "strtod",
    "strtof", "strtof128", "strtof32", "strtof32x", "strtof64_l", "strtof64x", "strtoimax", "strtok", "strtol",
    "strtold", "strtoll_l", "strtoq", "strtoul", "strtoull_l", "strtoumax", "strtouq", "strverscmp", "strxfrm",
    "swab", "swprintf", "swscanf", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs", "syscall",
    "sysconf", "system", "sysv_signal", "tan", "tanh", "tcgetpgrp", "tcsetpgrp", "tee", "telldir", "tempnam", "tgamma",
    "tgkill", "thrd_create", "thrd_current", "thrd_detach", "thrd_equal", "thrd_exit", "thrd_join", "thrd_sleep",
    "thrd_yield", "time", "timegm", "timelocal", "timer_create", "timer_delete", "timer_getoverrun",
    "timer_gettime", "timer_settime", "timespec_get", "timespec_getres", "tmpfile", "tmpnam", "tolower",
    "totalorder", "totalordermag", "toupper", "towctrans", "towlower", "towupper", "trunc", "truncate",
    "tss_create", "tss_delete", "tss_get", "tss_set", "ttyname", "ttyslot", "tzset", "ualarm", "ufromfp",
    "ufromfpx", "umask", "ungetc", "ungetwc", "unlink", "unlinkat", "unlockpt", "unsetenv", "usleep", "utimensat",
    "utimes", "va_arg", "va_copy", "va_end", "va_start", "valloc", "vasprintf", "vdprintf", "vfork", "vfprintf",
    "vfscanf", "vfwprintf", "vfwscanf", "vhangup", "vmsplice", "vprintf", "vscanf", "vsnprintf", "vsprintf",
    "vsscanf", "vswprintf", "vswscanf", "vwprintf", "vwscanf", "wait", "wait3", "wait4", "waitid", "waitpid",
    "wcrtomb", "wcscat", "wcschr", "wcscmp", "wcscoll", "wcscpy", "wcscspn", "wcsftime", "wcslen", "wcsncat",
    "wcsncmp", "wcsncpy", "wcspbrk", "wcsrchr", "wcsrtombs", "wcsspn", "wcsstr", "wcstod", "wcstof", "wcstoimax",
    "wcstok", "wcstol", "wcstold", "wcstombs", "wcstoul", "wcstoumax", "wcsxfrm", "wctob", "wctomb", "wctrans",
    "wctype", "wmemchr", "wmemcmp", "wmemcpy", "wmemmove", "wmemset", "wprintf", "write", "wscanf", "y0", "y1", "yn"};

// Types and variables of the headers that emitted files include.
static const char *const types[] = {
    "DIR", "FILE", "blkcnt64_t", "blkcnt_t", "blksize_t", "caddr_t", "clock_t", "clockid_t", "comparison_fn_t",
    "cookie_close_function_t", "cookie_io_functions_t", "cookie_read_function_t", "cookie_seek_function_t",
    "cookie_write_function_t", "daddr_t", "dev_t", "div_t", "environ", "fd_mask", "fd_set", "fpos64_t", "fpos_t",
    "fsblkcnt64_t", "fsblkcnt_t", "fsfilcnt64_t", "fsfilcnt_t", "fsid_t", "gid_t", "id_t", "ino64_t", "ino_t",
    "key_t", "ldiv_t", "lldiv_t", "loff_t", "mode_t", "nlink_t", "off64_t", "off_t", "pid_t", "pthread_attr_t",
    "pthread_key_t", "pthread_once_t", "pthread_spinlock_t", "pthread_t", "quad_t", "register_t", "sigset_t",
    "ssize_t", "stderr", "stdin", "stdout", "suseconds_t", "time_t", "timer_t", "u_char", "u_int", "u_int16_t",
    "u_int32_t", "u_int64_t", "u_int8_t", "u_long", "u_quad_t", "u_short", "uid_t", "uint", "ulong", "useconds_t",
    "ushort", "va_list"};
// clang-format on

static const char *const endings[] = {"",     "f",    "l",  "f32", "f64", "f32x",
                                      "f64x", "f128", "64", "_l",  "_r",  "_unlocked"};

static bool is_function(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (functions[i][0] == name[0] && strncmp(functions[i], name, length) == 0 && !functions[i][length]) return true;
  return false;
}

bool is_libc_type(const char *name) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i][0] == name[0] && strcmp(types[i], name) == 0) return true;
  return false;
}

bool is_libc_function(const char *name) {
  const size_t length = strlen(name);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    const size_t own = strlen(endings[i]);
    if (length > own && strcmp(name + length - own, endings[i]) == 0 && is_function(name, length - own)) return true;
  }
  return false;
}
