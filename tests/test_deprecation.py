import importlib

import pytest

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
