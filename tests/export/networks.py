"""Networks as people write them, exported by torch.onnx: a small residual network and a small transformer."""
import importlib.util

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.skip = nn.Identity()
        if stride > 1 or before != channels:
            self.skip = nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class Transformer(nn.Module):
    def __init__(self, length=16, width=32, nheads=4):
        super().__init__()
        self.nheads = nheads
        self.bytes = nn.Embedding(256, width)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, 256)
        self.scale = nn.Parameter(torch.tensor(0.7))
        self.register_buffer("mask", torch.triu(torch.full((length, length), -1e9), 1))

    def forward(self, x):
        h = self.bytes(x) + self.places
        batch, length, width = h.shape
        parts = self.qkv(self.norm1(h)).reshape(batch, length, 3, self.nheads, width // self.nheads).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        weights = torch.softmax(q @ k.transpose(-2, -1) / (width // self.nheads) ** 0.5 + self.mask, -1)
        h = h + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        h = h + self.down(nn.functional.gelu(self.up(self.norm2(h))))
        return self.head(self.norm3(h)) * self.scale.exp()


def export(net, x, path):
    """The batch has a name; weights stay as they are, so that they can be trained. Returns the options that ngrad train needs."""
    net.train()
    names = {"input_names": ["x"], "output_names": ["y"]}
    if importlib.util.find_spec("onnxscript"):  # the exporter of PyTorch 2.5 and later, which exports batch norms for inference
        torch.onnx.export(net, (x,), path, **names, dynamo=True, optimize=False, external_data=False,
                          dynamic_shapes=({0: torch.export.Dim("N")},))  # fmt: skip
        return ["--train-batch-norms"]
    torch.onnx.export(net, x, path, **names, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      opset_version=17, dynamic_axes={"x": {0: "N"}, "y": {0: "N"}})  # fmt: skip
    return []
