#!/usr/bin/python3
"""ngrad_onnx_backend by the test runner that comes with ONNX (python3-onnx).

Usage: backend_test.py LEAST. $NGRAD_BACKEND as in the module: the interpreter runs every model of a node, compiled code those
of a few kinds. What the module says that it cannot run is skipped, as ONNX's scoreboard does. Fails if fewer than LEAST pass.
"""
import os
import sys
import unittest

import models
import ngrad_onnx_backend
import numpy
import onnx.backend.test
from onnx import helper

for name, kind in ("object", object), ("bool", bool):  # which ONNX 1.12 takes from numpy, and numpy 1.24 lacks
    if name not in vars(numpy):
        setattr(numpy, name, kind)

KINDS = "add|batchnorm|clip|conv|cumsum|gather|gemm|layer_normalization_2d|lstm|matmul|relu|reshape|scatter|slice|softmax|top_k"
SEQUENCES = {"test_if_seq", "test_if_opt"}

backend_test = onnx.backend.test.BackendTest(ngrad_onnx_backend, __name__)
if os.environ.get("NGRAD_BACKEND") != "interpreter":
    backend_test.include(f"^test_({KINDS})")
for name in {*models.WRONG_DATA, *models.TIES_OF_F32, *models.RANDOM, *SEQUENCES}:
    backend_test.exclude(f"^{name}_cpu")


class Calls(unittest.TestCase):
    """What callers other than the runner give."""

    def test_names_and_layouts(self):
        x = numpy.arange(6, dtype="f4").reshape(2, 3)
        info = helper.make_tensor_value_info
        for name in ("x", 'a"b\n', "é"):
            node = helper.make_node("Neg", [name], ["y"])
            graph = helper.make_graph([node], "g", [info(name, 1, [2, 3])], [info("y", 1, [2, 3])])
            rep = ngrad_onnx_backend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
            for array in (x, numpy.asfortranarray(x), numpy.stack([x, x], axis=2)[:, :, 0], x.astype(">f4")):
                numpy.testing.assert_array_equal(rep.run([array])[0], -x)
            self.assertRaisesRegex(ValueError, "expected 1 inputs, found 2", rep.run, [x, x])
            self.assertRaisesRegex(ValueError, "without an array", rep.run, {"z": x})


suite = unittest.defaultTestLoader.loadTestsFromTestCase(backend_test.test_cases["OnnxBackendNodeModelTest"])
suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Calls))
result = unittest.TextTestRunner(verbosity=0, stream=sys.stdout).run(suite)
npassed = result.testsRun - len(result.skipped) - len(result.failures) - len(result.errors)
print(f"{npassed} pass")
sys.exit(0 if result.wasSuccessful() and npassed >= int(sys.argv[1]) else 1)
