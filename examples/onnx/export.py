"""Writes net.onnx and expected.h: a small convolutional network as PyTorch exports it, and its results. CMake does not need it."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 4, 3, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 9, 5)).eval()
x = (torch.arange(64) * 37 % 61 / 61).reshape(1, 1, 8, 8)
torch.onnx.export(net, x, "net.onnx", input_names=["x"], output_names=["y"])
results = ", ".join(f"{float(y):.9g}F" for y in net(x).flatten())
with open("expected.h", "w") as file:
    file.write(f"/* Written by export.py. */\nstatic const float expected[] = {{{results}}};\n")
