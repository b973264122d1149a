"""Cases, and the inputs that they are measured on.

Legend: B batch, C channels, (H, W) map, h heads, N = H * W tokens, m landmarks,
d head dim.
"""

from typing import Callable, NamedTuple

import torch
from torch import nn
from torch.nn.functional import conv2d, gelu, interpolate, layer_norm

from mmlinattn.functional import gaussian_kernel


def natural_map(shape):
    """Noise in octaves, smooth enough to make landmarks as much alike as those of
    photographs: some hundred of a thousand eigenvalues of SOFT's matrix A matter.
    White noise would make A well-conditioned."""
    maps = torch.zeros(shape)
    for octave in range(max(shape[2:]).bit_length()):
        grid = [-(-side // 2**octave) for side in shape[2:]]
        maps += 4**octave * interpolate(
            noise((*shape[:2], *grid), octave), shape[2:], mode='bilinear'
        )
    std, mean = torch.std_mean(maps, dim=(-2, -1), keepdim=True)
    return (maps - mean) / std


def image(shape, dtype):
    """Return a batch of images in float32: in half precision models run autocast."""
    return (natural_map(shape),)


class Case(NamedTuple):
    """Variants of one thing, on one input, measured in turn.

    Attributes:
        name (str): What is measured.
        variants (dict[str, Callable]): By name, what makes a module; the first is
            the baseline.
        shape (tuple[int]): Shape of the input's map, (B, C, H, W).
        small (tuple[int]): A shape for smoke tests and for warming up.
        inputs (Callable): Takes a shape and a dtype to the modules' inputs.
        steps (tuple[str]): Of 'forward' and 'forward+backward'.
        paper (dict[tuple[str], tuple[float]]): By variant and baseline, how
            many times faster the paper says it is, from and to.
    """

    name: str
    variants: dict[str, Callable]
    shape: tuple[int, ...]
    small: tuple[int, ...] = (1, 3, 64, 64)
    inputs: Callable = image
    steps: tuple[str, ...] = ('forward', 'forward+backward')
    paper: dict[tuple, tuple] = {}

    @property
    def title(self):
        """Name and input, as in '--only'."""
        return f'{self.name}, {size(self.shape)}'

    def at(self, batch, small):
        """Return the case on another batch, and on its small input if asked for."""
        shape = self.small if small else self.shape
        return self._replace(shape=(batch, *shape[1:]))


def size(shape):
    """Return a shape as text."""
    return '×'.join(map(str, shape))


def shapes_of(outs, whole=True):
    """Return shapes of a tensor, or of those in tuples and lists; not ``whole`` leaves
    out the channels of maps (B, C, H, W)."""
    if isinstance(outs, torch.Tensor):
        shape = tuple(outs.shape)
        return shape if whole or len(shape) != 4 else (shape[0], *shape[2:])
    return tuple(shapes_of(out, whole) for out in outs)


@torch.no_grad()
def check_same_work(title, modules, inputs):
    """Raise a ValueError if a variant gives maps of other sizes than the first one. A
    detector's are those of its neck and of its dense head, one value an anchor."""
    work = {}
    for name, module in modules.items():
        module.eval()  # mmdet's Swin does not return itself
        outs = module(*inputs)
        work[name] = getattr(module, 'work', None) or shapes_of(outs, whole=False)
    first, *others = work
    for name in others:
        if work[name] != work[first]:
            raise ValueError(
                f'{title}: {name} gives {work[name]}, {first} gives {work[first]}; '
                'variants must do the same work'
            )


def place(inputs, device):
    """Return inputs on a device, leaves of its graph where they need gradients."""
    return tuple(
        value.detach().to(device).requires_grad_(value.requires_grad)
        if isinstance(value, torch.Tensor)
        else value
        for value in inputs
    )


class Op(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Within(nn.Module):
    """A module that is called in a context, which a function makes."""

    def __init__(self, module, context):
        super().__init__()
        self.module, self.context = module, context

    def forward(self, *inputs):
        with self.context():
            return self.module(*inputs)


def unfused():
    """Return a context in which softmax attention writes its matrix out."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:  # before torch 2.3
        return torch.backends.cuda.sdp_kernel(
            enable_flash=False, enable_mem_efficient=False
        )
    return sdpa_kernel(SDPBackend.MATH)


def noise(shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def project(tokens, num_heads, seed=0):
    """Return a random projection of (B, N, C) to heads (B, h, N, d)."""
    channels = tokens.size(-1)
    out = tokens @ noise((channels, channels), seed) / channels**0.5
    return out.unflatten(-1, (num_heads, -1)).transpose(1, 2).contiguous()


def leaves(tensors, dtype):
    return tuple(tensor.to(dtype).requires_grad_() for tensor in tensors)


def softmax_free_inputs(shape, dtype, num_heads, ratio):
    """Return queries (B, h, N, d), landmarks (B, h, m, d) and values of a smooth image,
    as SOFT makes them on a map (B, h * d, H, W): landmarks come from the queries by a
    strided convolution of cells of ``ratio`` tokens, LayerNorm and GELU."""
    batch, channels, height, width = shape
    maps = natural_map((batch, 3, height, width))
    maps = conv2d(maps, noise((channels, 3, 3, 3)), padding=1).relu()
    tokens = layer_norm(maps.flatten(2).mT, (channels,))
    q, v = (project(tokens, num_heads, seed) for seed in (0, 1))
    dims = q.size(-1)
    q = q / dims**0.25
    maps = q.flatten(0, 1).mT.unflatten(-1, shape[2:])
    maps = conv2d(maps, noise((dims, dims, ratio, ratio)), stride=ratio)
    landmarks = gelu(layer_norm(maps.flatten(2).mT, (dims,)))
    return leaves((q, landmarks.unflatten(0, q.shape[:2]), v), dtype)


def product_inputs(shape, dtype, num_heads, ratio, transposed=False):
    """Return rows and columns of P, or of its transpose, and what it multiplies."""
    q, landmarks, v = softmax_free_inputs(shape, dtype, num_heads, ratio)
    if transposed:
        values = v[:, :, : landmarks.size(2)].contiguous()
        return q, landmarks, values.detach().requires_grad_()
    return landmarks, q, v


def solver_inputs(shape, dtype, num_heads, ratio):
    """Return a (B, h, m, m) of a smooth image's landmarks, and a right-hand side (B, h,
    m, d) in its range. Always float32 or more: so is it in the models."""
    dtype = torch.promote_types(dtype, torch.float32)
    _, landmarks, v = softmax_free_inputs(shape, dtype, num_heads, ratio)
    with torch.no_grad():
        a = gaussian_kernel(landmarks)
        x = a @ v[:, :, : a.size(-1)]
    return leaves((a, x), dtype)
