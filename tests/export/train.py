"""Exports networks with torch.onnx, trains them for some steps here and in PyTorch, and compares. Usage: train.py NGRAD"""
import subprocess
import sys
import warnings

warnings.simplefilter("ignore")
try:
    import numpy as np
    import torch

    import networks
except ImportError as missing:
    print(f"left out: export: no {missing.name}")
    sys.exit(77)

# With other seeds, the input of some ReLU is so close to 0 that a rounding decides its gradient. PyTorch trains in f64, so
# that no rounding of its own does.
SEED, STEPS, RATE, TOLERANCE = 2, 5, 0.05, 1e-5
NETWORKS = {  # the network, its inputs, the shape of labels, the number of classes, and what is no parameter
    "resnet": (networks.ResNet, lambda: torch.randn(8, 1, 28, 28), (8,), 10, []),
    "transformer": (networks.Transformer, lambda: torch.randint(0, 256, (4, 16)), (4, 16), 256, ["--freeze", "mask"]),
}


def ngrad(*arguments):
    subprocess.run([sys.argv[1], *arguments], check=True, stdout=subprocess.DEVNULL)


def train_here(name, batches, options):
    """The losses of steps, and the states behind them by name."""
    ngrad("train", f"{name}.onnx", "--loss", "cross-entropy", "--optimizer", "momentum", "--learning-rate", str(RATE), *options, "-o", name)
    losses = []
    for i, (x, labels) in enumerate(batches):
        np.save(f"{name}/x.npy", x.numpy())
        np.save(f"{name}/labels.npy", labels.numpy().astype(np.int32))
        state = ["--state", f"{name}/state.npz"] if i else []
        ngrad("run", f"{name}/{name}_step.yaml", "--in", name, *state, "--save", f"{name}/state.npz", "-o", name)
        losses.append(float(np.load(f"{name}/loss.npy")))
    return losses, np.load(f"{name}/state.npz")


def train_there(net, batches):
    losses = []
    optimizer = torch.optim.SGD(net.parameters(), RATE, 0.9)
    for x, labels in batches:
        optimizer.zero_grad()
        logits = net(x.double() if x.is_floating_point() else x)
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def error_of(found, expected):
    return np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-6)


def check(name):
    make, make_x, shape, classes, frozen = NETWORKS[name]
    torch.manual_seed(SEED)
    net = make()
    batches = [(make_x(), torch.randint(0, classes, shape)) for _ in range(STEPS)]
    options = networks.export(net, batches[0][0], f"{name}.onnx")
    net.train().double()
    found, states = train_here(name, batches, frozen + options)
    errors = {"the losses": error_of(np.array(found), np.array(train_there(net, batches)))}
    for key in dict(net.named_parameters()).keys() - set(states.files):
        errors[f"{key}, which is not trained"] = np.inf
    for key, value in net.state_dict().items():
        if key in states and "running_var" not in key:  # PyTorch's is that of a sample, ONNX's that of a population
            errors[key] = error_of(states[key], value.detach().numpy())
    worst = max(errors, key=errors.get)
    print(f"{name}: {len(errors)} compared after {STEPS} steps, the worst is {worst}: {errors[worst]:.1e}")
    return len(errors) >= 20 and errors[worst] <= TOLERANCE


sys.exit(not all([check(name) for name in NETWORKS]))
