"""ngrad as a backend of ONNX: what onnx.backend.test and ONNX's scoreboard ask for.

    import ngrad_onnx_backend as backend

    outputs = backend.run_model(onnx.load("model.onnx"), [x])

A model is read when it is run, with the shapes of its inputs, and inputs that decide shapes as constants. $NGRAD_BACKEND is
compiled (default) or interpreter.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import Any, Mapping, Sequence

import ngrad
import numpy
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

_WANTED = re.compile(r'load\(PATH, constants=\{"(.*?)": FILE\}\)')


def _plain(array: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Without gaps, and in the machine's order of bytes."""
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=False)


class NgradRep(BackendRep):  # type: ignore[misc]
    """A model, ready to run."""

    def __init__(self, model: onnx.ModelProto) -> None:
        given = {tensor.name for tensor in model.graph.initializer}
        self._bytes = model.SerializeToString()
        self._inputs = [value.name for value in model.graph.input if value.name not in given]
        self._outputs = [value.name for value in model.graph.output]

    def _load(self, folder: str, arrays: Mapping[str, numpy.ndarray[Any, Any]]) -> tuple[ngrad.Graph, list[str]]:
        """The graph, and its inputs' names in the model, without those that the reader asks for as constants."""
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(self._bytes)
        shapes = {name: array.shape for name, array in arrays.items()}
        constants: dict[str, str] = {}
        while True:
            try:
                graph = ngrad.load(path, constants=constants, shapes=shapes)
                return graph, [name for name in self._inputs if name not in constants]
            except ngrad.GraphError as error:
                wanted = (set(_WANTED.findall(str(error))) & set(arrays)) - set(constants)
                if not wanted:
                    raise
                for name in wanted:
                    constants[name] = os.path.join(folder, f"{len(constants)}.npy")
                    numpy.save(constants[name], arrays[name])

    def is_read(self) -> bool:
        """Whether the model is read, or lacks nothing but data."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                self._load(folder, {})
            except ngrad.GraphError as error:
                return all("load(PATH, " in message.text for message in error.messages if message.is_error)
        return True

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs, by index and by name, for a list or a dict of inputs, or for the only one."""
        if isinstance(inputs, numpy.ndarray):
            inputs = [inputs]
        if not isinstance(inputs, Mapping):
            if len(inputs) != len(self._inputs):
                raise ValueError(f"expected {len(self._inputs)} inputs, found {len(inputs)}")
            inputs = dict(zip(self._inputs, inputs))
        if missing := [name for name in self._inputs if name not in inputs]:
            raise ValueError(f"inputs without an array: {', '.join(missing)}")
        arrays = {name: _plain(numpy.asarray(array)) for name, array in inputs.items()}
        with tempfile.TemporaryDirectory() as folder:
            graph, names = self._load(folder, arrays)
            values = [arrays[name] for name in names]
            states = graph.initial_states()  # of dropout in training
            if os.environ.get("NGRAD_BACKEND", "compiled") == "interpreter":
                results = graph.interpret(*values, *states.values())
            else:
                results = graph(*values, states=states or None)
        found = list(results)
        return namedtupledict("Outputs", self._outputs)(*found[: len(self._outputs)])


class NgradBackend(Backend):  # type: ignore[misc]
    """The interface of onnx.backend.base."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> bool:
        return cls.supports_device(device) and NgradRep(model).is_read()

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> NgradRep:
        return NgradRep(model)  # which onnx.checker need not know: ngrad tells what is wrong

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        arrays = dict(zip((name for name in node.input if name), map(numpy.asarray, inputs)))
        types = onnx.mapping.NP_TYPE_TO_TENSOR_TYPE
        graph = helper.make_graph(
            [node], "node", [helper.make_tensor_value_info(name, types[a.dtype], a.shape) for name, a in arrays.items()],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
        )  # fmt: skip
        version = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
        return NgradRep(model).run(arrays)


is_compatible = NgradBackend.is_compatible
prepare = NgradBackend.prepare
run_model = NgradBackend.run_model
run_node = NgradBackend.run_node
supports_device = NgradBackend.supports_device
