"""mmpretrain's ImageNet classification, and uses of its checkpoint."""

import pytest
import torch

CONFIG = 'soft/softpp-t_in1k.py'
SHORT = {
    'train_cfg.max_epochs': 3,
    'train_cfg.val_interval': 3,
    'default_hooks.checkpoint.interval': 3,
    'param_scheduler.0.end': 1,
    'param_scheduler.1.begin': 1,
    # the moving average, which is tested, follows at once
    'custom_hooks.0.momentum': 0.5,
}

pytestmark = [pytest.mark.modern, pytest.mark.modern_full]


@pytest.fixture(scope='module')
def trained(earlier_user, configs, quick):
    config = configs / CONFIG
    return earlier_user.train('mmpretrain', config, quick(config, **SHORT))


def test_testing(user, configs, quick, trained):
    assert {'accuracy/top1', 'accuracy/top5'} == set(trained.metrics)
    config = configs / CONFIG
    metrics = user.test('mmpretrain', config, trained.checkpoint, quick(config))
    assert metrics == trained.metrics
    assert metrics['accuracy/top5'] > 0


def test_finetuning(user, configs, quick, trained):
    config = configs / 'soft/retinanet_softpp-t_fpn_1x_coco.py'
    options = {
        'pretrained': trained.checkpoint,
        'train_cfg.max_epochs': 1,
        'optim_wrapper.optimizer.lr': 0,
    }
    finetuned = user.train('mmdet', config, quick(config, **options))
    assert 'trains FROM SCRATCH' not in finetuned.output
    before, after = weights(trained.checkpoint), weights(finetuned.checkpoint)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def weights(checkpoint):
    """Weights of the backbone that an optimizer changes."""
    state = torch.load(checkpoint, map_location='cpu', weights_only=False)['state_dict']
    return {
        name: value
        for name, value in state.items()
        if name.startswith('backbone.')
        and 'running' not in name
        and value.is_floating_point()
    }
