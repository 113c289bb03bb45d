"""Fits a line by the module ngrad, on arrays of numpy: states are updated in place."""
import sys

import ngrad
import numpy as np

GRAPH = """
format: ngrad/1
dims: {N: 4}
inputs:
  - {name: x, type: f32, shape: [N, 1]}
  - {name: y, type: f32, shape: [N, 1]}
state:
  - {name: slope, type: f32, shape: [1, 1], init: {uniform: [-1, 1]}}
  - {name: offset, type: f32, shape: [1], init: zeros}
nodes:
  - {op: MatMul, inputs: [x, slope, offset], outputs: [guess]}
  - {op: SquaredDifference, inputs: [guess, y], outputs: [error]}
  - {op: ReduceMean, inputs: [error], outputs: [loss], attributes: {axes: [0, 1]}}
outputs: [loss]
"""

step = ngrad.loads(GRAPH, "line").train("sgd", losses="loss", learning_rate=0.1)
states = step.initial_states(seed=0)
x = np.array([[-1], [0], [1], [2]], np.float32)
for _ in range(200):
    (loss,) = step(x, 3 * x + 1, states=states)
slope, offset = states["slope"].item(), states["offset"].item()
print(f"slope {slope:.3f}, offset {offset:.3f}, bits {ngrad.bits()}")
sys.exit(abs(slope - 3) > 1e-3 or abs(offset - 1) > 1e-3)
