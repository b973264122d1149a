import importlib

import pytest
import torch

from mmlinattn import functional as F
from mmlinattn.models import layers

pytestmark = pytest.mark.modern


@pytest.mark.parametrize(
    'old, name',
    (
        ('backbones.embeddings', 'PositionTable'),
        ('backbones.blocks', 'TransformerBlock'),
        ('attentions.lepe', 'LePE'),
    ),
)
def test_old_names_say_the_new_ones(old, name):
    module = importlib.import_module(f'mmlinattn.models.{old}')
    with pytest.warns(DeprecationWarning, match=f'mmlinattn.models.layers.{name}'):
        assert getattr(module, name) is getattr(layers, name)
    with pytest.raises(AttributeError):
        _ = module.nothing


HW, SIDE = (2, 5), (4, 4)
LEPE = layers.LePE(2)


@pytest.mark.parametrize(
    'function, args',
    (
        (F.pad_map, (torch.rand(10, 2), HW, SIDE)),
        (F.crop_map, (torch.rand(32, 2), (4, 8), HW)),
        (F.blockify, (torch.rand(10, 2), HW, SIDE)),
        (F.unblockify, (torch.rand(2, 16, 2), HW, SIDE)),
        (F.local_attention, (*torch.rand(3, 1, 1, 10, 2), HW, SIDE)),
        (LEPE, (torch.rand(1, 10, 2), HW, SIDE)),
    ),
    ids=('pad_map', 'crop_map', 'blockify', 'unblockify', 'local_attention', 'LePE'),
)
def test_centred_is_centered(function, args):
    expected = function(*args, centered=True)
    with pytest.warns(DeprecationWarning, match=r'^centred of .* is centered now'):
        out = function(*args, centred=True)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(out, function(*args))
    torch.testing.assert_close(out, expected, rtol=0, atol=0)
    with pytest.raises(TypeError, match='centered and its old name centred'):
        function(*args, centered=True, centred=True)
