"""The types of the module, for a type checker: mypy --strict accepts this file, and every ignored error is one."""

from typing import Any, Dict, List, Optional, Tuple, Union

import numpy

import ngrad

graph: ngrad.Graph = ngrad.load("layer_norm.yaml", dims={"N": 4})
bound: ngrad.Graph = ngrad.loads(b"format: ngrad/1").with_dims(N=3).with_shapes(x=(3, 4))
pair: List[ngrad.Graph] = [graph.gradient(wrt="x", of=["y"]), graph.forward(save_least=True)]
step: ngrad.Graph = graph.train("sgd", losses="loss", learning_rate=0.1).inference(losses=["loss"]).test()
kernel: ngrad.Kernel = graph.compile(isa="scalar", disable=["fuse"], compile_timeout=2.5)
name: str = kernel.name + kernel.isa + graph.show("loops", after="fuse")
shape: Optional[Tuple[Union[int, str, None], ...]] = kernel.inputs[0].shape
strides: Tuple[int, ...] = graph.outputs[0].strides
dims: Dict[str, Optional[int]] = graph.dims
states: Dict[str, "numpy.ndarray[Any, Any]"] = graph.initial_states(seed=1)
results: ngrad.Results = kernel(1.0, states=states, out=[None], threads=2)
names: Tuple[str, ...] = results.names
model: bytes = graph.onnx()
y, *rest = results
last = results["y"], results[0], results[1:]

trainable: ngrad.Graph = graph.trainable()
graph.with_dims(N="3")  # type: ignore[arg-type]
graph.compile(is_a="scalar")  # type: ignore[call-arg]
graph.train(3)  # type: ignore[arg-type]
graph.inputs[0].shapes  # type: ignore[attr-defined]
ngrad.load(1)  # type: ignore[arg-type]
wrong: int = graph.name  # type: ignore[assignment]
try:
    graph.emit("out", self_test=True)
except ngrad.GraphError as error:
    line: int = error.messages[0].lines  # type: ignore[attr-defined]
