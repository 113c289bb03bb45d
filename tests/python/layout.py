"""Prints C that compiles only where ngrad.h declares what ngrad.py says: layouts of structs, numbers of arguments."""

import ctypes

import ngrad

STRUCTS = {
    "ng_tensor": ngrad._Tensor,
    "ng_tensor_info": ngrad._TensorInfo,
    "ng_message": ngrad._Message,
    "ng_state": ngrad._State,
    "ng_dim_info": ngrad._Dim,
    "ng_read_options": ngrad._ReadOptions,
    "ng_options": ngrad._Options,
    "ng_gradient_options": ngrad._GradientOptions,
    "ng_setting": ngrad._Setting,
    "ng_train_options": ngrad._TrainOptions,
    "ng_kernel_info": ngrad._KernelInfo,
}

print("#include <ngrad.h>\n#include <stddef.h>")
for name, struct in STRUCTS.items():
    print(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "");')
    for field, *_ in struct._fields_:
        at = getattr(struct, field)
        print(f'_Static_assert(offsetof({name}, {field}) == {at.offset} && sizeof((({name} *)0)->{field}) == {at.size}, "");')
kinds = {struct: name for name, struct in STRUCTS.items()}


def size(kind):
    if kind is None or kind in kinds:
        return f"sizeof({kinds[kind]})" if kind else "1"
    return str(ctypes.sizeof(kind))


# A call with one argument for each that is declared; the sizes of results.
for name, (result, arguments) in ngrad._FUNCTIONS.items():
    values = ", ".join("0" for _ in arguments)
    call = f"ng_{name}({values})"
    print(f"void check_{name}(void);\nvoid check_{name}(void) {{ {call}; }}")
    if result:
        print(f'_Static_assert(sizeof({call}) == {size(result)}, "");')
