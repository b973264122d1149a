import pytest
import torch
from mmengine.logging import MMLogger
from mmengine.optim import build_optim_wrapper
from torch import nn

from mmlinattn.registry import MODELS

pytestmark = pytest.mark.modern

WRAPPER = dict(type='mmlinattn.CPUAmpOptimWrapper', optimizer=dict(type='SGD', lr=1e-3))


def small_backbone():
    torch.manual_seed(0)
    arch = dict(embed_dims=[8, 16], depths=[1, 1], num_heads=[1, 2])
    attention = dict(type='SoftmaxFreeAttention', sampling_ratio=4)
    cfg = dict(arch=arch, attention=attention, norm_eval=True, with_cp=True)
    return MODELS.build(dict(type='PyramidTransformer', **cfg)).train()


def test_trains():
    x = torch.randn(2, 3, 64, 64)
    losses = []
    for amp in (False, True):
        model = small_backbone()
        kind = WRAPPER if amp else dict(WRAPPER, type='OptimWrapper')
        optim_wrapper = build_optim_wrapper(model, kind)
        seen = {}
        for module in model.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                module.register_forward_hook(
                    lambda m, x, out, seen=seen: seen.update({m: out.dtype})
                )
        steps = []
        for _ in range(3):
            with optim_wrapper.optim_context(model):
                loss = sum(out.float().square().mean() for out in model(x))
            optim_wrapper.update_params(loss)
            steps.append(loss.item())
        assert {seen[m] for m in seen if isinstance(m, nn.Conv2d)} == {torch.float32}
        half = {torch.bfloat16} if amp else {torch.float32}
        assert {seen[m] for m in seen if isinstance(m, nn.Linear)} == half
        assert all(p.dtype == torch.float32 for p in model.parameters())
        losses.append(steps)
    single, half = losses
    assert half != single
    assert half == pytest.approx(single, rel=0.02)
    assert single[2] < single[0] and half[2] < half[0]


def test_says_once_what_it_does(capsys):
    MMLogger.get_instance('amp', logger_name='amp')
    build_optim_wrapper(nn.Linear(2, 2), WRAPPER)
    (line,) = capsys.readouterr().out.splitlines()
    assert 'convolutions in float32' in line


def test_goes_on_from_a_gpu():
    """Its state also has the scale of the loss."""
    model = nn.Linear(2, 2)
    optim_wrapper = build_optim_wrapper(model, WRAPPER)
    state = optim_wrapper.state_dict()
    state['loss_scaler'] = dict(scale=512.0)
    state['param_groups'][0]['lr'] = 0.5
    optim_wrapper.load_state_dict(state)
    assert optim_wrapper.get_lr() == dict(lr=[0.5])
