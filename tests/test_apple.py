"""Models call nothing that PyTorch lacks on Apple's GPUs."""

import apple
import miniature_backbones as battery
import pytest
import torch


@pytest.mark.parametrize('name', battery.CASES)
def test_backbones(name):
    model = battery.build(name).train()
    with apple.like_mps():
        battery.random_loss(model(battery.images())).backward()


@pytest.mark.parametrize(
    'call, missing',
    [
        (lambda x: x.double(), 'float64'),
        (lambda x: torch.linalg.eig(x), 'linalg_eig'),
        (lambda x: torch.nn.functional.adaptive_avg_pool2d(x[None], 3), 'to [3, 3]'),
    ],
)
def test_what_is_missing_is_found(call, missing):
    with pytest.raises(AssertionError) as error, apple.like_mps():
        call(torch.eye(4))
    assert missing in str(error.value)
