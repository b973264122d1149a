"""Properties of every backbone on images of any size, layout and dtype; hypothesis
looks for a counterexample. `make test-full` tries many more images, and larger ones."""

import copy
import importlib.util
import io
import math
import pickle
import zlib
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

pytest.importorskip('hypothesis')
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

spec = importlib.util.spec_from_file_location(
    'battery', Path(__file__).with_name('test_battery.py')
)
battery = importlib.util.module_from_spec(spec)
spec.loader.exec_module(battery)

pytestmark = pytest.mark.modern

# by profile: examples for each backbone, and pixels of a batch at most
EXAMPLES = dict(quick=3, full=20)
PIXELS = dict(quick=112_500, full=2_250_000)
# Talking heads hold a matrix of tokens by tokens.
CAIT_PIXELS = 300_000
SIDES = 32, 1500
ASPECT = 20
LAYOUTS = {
    'contiguous': lambda x: x,
    'channels last': lambda x: x.contiguous(memory_format=torch.channels_last),
    'columns first': lambda x: x.mT.contiguous().mT,
    'every other pixel': lambda x: x.repeat_interleave(2, -1)[..., ::2],
    'one image, repeated': lambda x: x[:1].expand_as(x),
}
PROFILES = pytest.mark.parametrize(
    'profile', ['quick', pytest.param('full', marks=pytest.mark.full)]
)
# of a float32 result; the solvers of softmax-free attention multiply rounding errors
CLOSE = {torch.float64: 1e-9, torch.float32: 1e-3}


class Batch(NamedTuple):
    """A batch of random images."""

    shape: tuple
    layout: str
    dtype: torch.dtype
    seed: int

    def make(self):
        generator = torch.Generator().manual_seed(self.seed)
        x = torch.randn(self.shape, generator=generator, dtype=self.dtype)
        return LAYOUTS[self.layout](x)


@st.composite
def batches(draw, name, profile, dtypes=(torch.float32, torch.float64)):
    """Batches that a backbone is to work on."""
    pixels = PIXELS[profile]
    if name.startswith('CaiT'):
        pixels = min(pixels, CAIT_PIXELS)
    low, high = SIDES
    longer = draw(st.integers(low, min(high, math.isqrt(ASPECT * pixels))))
    shortest = max(low, math.ceil(longer / ASPECT))
    shorter = draw(st.integers(shortest, min(longer, pixels // longer)))
    height, width = draw(st.permutations((longer, shorter)))
    size = draw(st.integers(1, min(3, pixels // (height * width))))
    return Batch(
        (size, 3, height, width),
        draw(st.sampled_from(sorted(LAYOUTS))),
        draw(st.sampled_from(dtypes)),
        draw(st.integers(0, 9)),
    )


def for_all(check, name, profile, *strategies):
    """Calls a check of a backbone with examples, always the same ones."""
    always = settings(
        max_examples=EXAMPLES[profile],
        database=None,
        deadline=None,
        # simpler counterexamples would take minutes to find
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seed(zlib.crc32(name.encode()))(always(given(*strategies)(check)))()


@PROFILES
@battery.BACKBONES
def test_maps_of_any_image(name, profile):
    model = battery.build(name, out_indices=battery.ALL)
    models = {torch.float32: model, torch.float64: copy.deepcopy(model).double()}

    def check(batch):
        x = batch.make()
        with torch.no_grad():
            maps = models[batch.dtype](x)
            exact = models[torch.float64](x.double().contiguous())
        strides = battery.strides(name)
        for out, channels, stride in zip(maps, model.feature_channels, strides):
            hw_shape = [math.ceil(side / stride) for side in batch.shape[2:]]
            assert out.shape == (len(x), channels, *hw_shape)
            assert out.dtype == batch.dtype and out.isfinite().all()
        battery.assert_all_close(maps, exact, CLOSE[batch.dtype])

    for_all(check, name, profile, batches(name, profile))


@pytest.mark.modern_full
@PROFILES
@battery.BACKBONES
def test_copies_are_the_same_and_independent(name, profile):
    """Inference mode also leaves nothing behind that later passes would use."""
    model = battery.build(name, norm_eval=True)

    def check(first, batch):
        x = batch.make()
        with torch.inference_mode():
            model(first.make())
            expected = model(x)
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        loaded = battery.build(name)
        loaded.load_state_dict(torch.load(file))
        original = copy.deepcopy(model)
        copies = loaded, copy.deepcopy(model), pickle.loads(pickle.dumps(model))  # noqa: S301
        with torch.no_grad():
            for parameter in original.parameters():
                parameter.zero_()
            for copied in copies:
                for result, want in zip(copied(x), expected):
                    assert result.equal(want)
        model.zero_grad()
        battery.random_loss(model.train()(x)).backward()
        assert all(p.grad.isfinite().all() for p in model.parameters())
        model.eval()

    small = batches(name, 'quick', (torch.float32,))
    for_all(check, name, profile, small, batches(name, profile, (torch.float32,)))
