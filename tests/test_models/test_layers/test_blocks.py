import pytest

from mmlinattn.models import TransformerBlock, drop_path_rates


def test_drop_path_rates_grow_linearly():
    assert drop_path_rates(0.3, 4) == pytest.approx([0, 0.1, 0.2, 0.3])
    assert drop_path_rates(0.3, 1) == [0]


def test_wrong_options():
    with pytest.raises(ValueError, match="norm_placement.*'middle'"):
        TransformerBlock(8, 2, dict(type='SoftmaxAttention'), norm_placement='middle')
    with pytest.raises(ValueError, match='position_convs.*0...2.*3'):
        TransformerBlock(8, 2, dict(type='SoftmaxAttention'), position_convs=3)
