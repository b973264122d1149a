"""Properties of every backbone on images of random size, layout and dtype. `make
test-full` tries many more images, and larger ones."""

import copy
import math
import random

import miniature_backbones as battery
import pytest
import torch

LAYOUTS = {
    'contiguous': lambda x: x,
    'channels last': lambda x: x.contiguous(memory_format=torch.channels_last),
    'columns first': lambda x: x.mT.contiguous().mT,
    'every other pixel': lambda x: x.repeat_interleave(2, -1)[..., ::2],
    'one image, repeated': lambda x: x[:1].expand_as(x),
}
# examples for each backbone, and pixels of a batch at most
EXAMPLES = pytest.mark.parametrize(
    'num, pixels', [(3, 60_000), pytest.param(20, 2_250_000, marks=pytest.mark.full)]
)
# of a float32 result; the solvers of softmax-free attention multiply rounding errors
CLOSE = {torch.float64: 1e-9, torch.float32: 1e-3}


def batches(name, num, pixels):
    """Batches, always the same ones: sides of 32 to 1500 pixels, one at most 20 times
    the other."""
    if name.startswith('CaiT'):  # it holds a matrix of tokens by tokens
        pixels //= 8
    draw = random.Random(name)
    for _ in range(num):
        longer = draw.randint(32, min(1500, pixels // 32, math.isqrt(20 * pixels)))
        shortest = max(32, math.ceil(longer / 20))
        shorter = draw.randint(shortest, min(longer, pixels // longer))
        sides = draw.sample((longer, shorter), 2)
        size = draw.randint(1, min(3, pixels // (longer * shorter)))
        dtype = draw.choice((torch.float32, torch.float64))
        layout = LAYOUTS[draw.choice(sorted(LAYOUTS))]
        yield layout(torch.randn(size, 3, *sides, dtype=dtype))


@EXAMPLES
@battery.BACKBONES
def test_maps_of_any_image(name, num, pixels):
    model = battery.build(name, out_indices=battery.ALL)
    models = {torch.float32: model, torch.float64: copy.deepcopy(model).double()}
    for x in batches(name, num, pixels):
        with torch.no_grad():
            maps = models[x.dtype](x)
            exact = models[torch.float64](x.double().contiguous())
        strides = battery.strides(name)
        for out, channels, stride in zip(maps, model.feature_channels, strides):
            hw_shape = [math.ceil(side / stride) for side in x.shape[2:]]
            assert out.shape == (len(x), channels, *hw_shape)
            assert out.dtype == x.dtype and out.isfinite().all()
        battery.assert_all_close(maps, exact, CLOSE[x.dtype])
