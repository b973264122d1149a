import pytest
import torch

from mmlinattn import functional
from mmlinattn.analysis.substitution import substituted
from mmlinattn.models.attentions import softmax_free

pytestmark = pytest.mark.modern


def test_every_name_leads_to_the_substitute(monkeypatch):
    original = functional.gaussian_kernel
    monkeypatch.setattr(softmax_free, 'theirs', original, raising=False)
    q = torch.rand(1, 1, 3, 4)
    with substituted(original, lambda q, k: 'other'):
        assert functional.gaussian_kernel(q, q) == 'other'
        assert softmax_free.theirs(q, q) == 'other'
        with substituted(functional.gaussian_kernel, lambda q, k: 'inner'):
            assert functional.gaussian_kernel(q, q) == 'inner'
        assert functional.gaussian_kernel(q, q) == 'other'
    assert functional.gaussian_kernel is softmax_free.theirs is original


def test_nothing_is_left_behind_by_an_error():
    original = functional.gaussian_kernel
    with pytest.raises(RuntimeError), substituted(original, len):
        raise RuntimeError
    assert functional.gaussian_kernel is original


def test_function_of_others():
    context = substituted(torch.functional.broadcast_shapes, len)
    with pytest.raises(ValueError, match='no module of mmlinattn holds'), context:
        pass
