"""InLine attention beside that of the official code, and its input from a block."""

import importlib.util
from pathlib import Path

import pytest
import torch

from mmlinattn.models import InLineAttention, TransformerBlock

pytestmark = pytest.mark.modern

PATH = Path(__file__).parents[2] / 'data/official/inline_fixture.py'


def test_class_token():
    """It is in the product and in the mean, but not convolved, as in InLine-DeiT."""
    spec = importlib.util.spec_from_file_location('inline_fixture', PATH)
    official = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(official)
    module = InLineAttention(official.DIMS, official.HEADS)
    weights = official.weights('inline_deit').items()
    module.load_state_dict({k.replace('residual', 'filters'): x for k, x in weights})
    out = module(official.image('inline_deit'), (official.SIDE, official.SIDE))
    expected = official.outputs('inline_deit')['tokens']
    assert (out - expected).norm() < 1e-5 * expected.norm()


@pytest.mark.parametrize('norm_placement', ('pre', 'post'))
@pytest.mark.parametrize('reads_shortcut', (False, True))
def test_tokens_that_filters_are_made_of(reads_shortcut, norm_placement):
    attention = dict(type='InLineAttention', reads_shortcut=reads_shortcut)
    block = TransformerBlock(8, 2, attention, norm_placement=norm_placement).eval()
    means = []
    block.attn.filters.register_forward_pre_hook(
        lambda module, args: means.append(args[0])
    )
    x = 1 + torch.randn(2, 6, 8)
    block(x, (2, 3))
    normed = norm_placement == 'pre' and not reads_shortcut
    expected = block.norm1(x) if normed else x
    torch.testing.assert_close(means[0], expected.mean(1)[..., None])
