import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from mmlinattn.functional.precision import Float32Convolutions

pytestmark = pytest.mark.modern


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 4, stride=4), nn.Flatten(), nn.Linear(8 * 16, 5)
    )


@pytest.mark.parametrize('with_cp', (False, True))
def test_convolutions_stay_in_float32(with_cp):
    model, x = small_model(), torch.randn(2, 3, 16, 16, requires_grad=True)
    seen = {}
    for layer in (model[0], model[2]):
        layer.register_forward_hook(lambda m, x, out: seen.update({m: out.dtype}))
    with Float32Convolutions(), torch.autocast('cpu', torch.bfloat16):
        if with_cp:
            options = Float32Convolutions.checkpoint_options()
            out = checkpoint(model, x, use_reentrant=False, **options)
        else:
            out = model(x)
        maps = torch.nn.functional.conv2d(
            x.bfloat16(), weight=model[0].weight, stride=4
        )
    out.float().sum().backward()
    assert Float32Convolutions.checkpoint_options() == {}
    assert seen == {model[0]: torch.float32, model[2]: torch.bfloat16}
    assert maps.dtype == torch.float32
    grads = [p.grad for p in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    for grad, parameter in zip(grads, model.parameters()):
        torch.testing.assert_close(grad, parameter.grad, rtol=0.02, atol=0.02)


def test_convolutions_rounded_as_on_a_gpu():
    x, weight = torch.randn(1, 4, 9, 9), torch.randn(6, 4, 3, 3)
    exact = nn.functional.conv2d(x.bfloat16().float(), weight.bfloat16().float())
    with Float32Convolutions(round_to=torch.bfloat16):
        assert nn.functional.conv2d(x, weight).equal(nn.functional.conv2d(x, weight))
        assert nn.functional.conv2d(x, weight).dtype == torch.float32
        with torch.autocast('cpu', torch.bfloat16):
            out = nn.functional.conv2d(x, weight)
    assert out.equal(exact.bfloat16())
