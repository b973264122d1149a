"""mmpretrain's ImageNet classification, and what its checkpoint is good for."""

import pytest
import torch

CONFIG = 'soft/softpp-t_in1k.py'
NUM_EPOCHS, EPOCH_LENGTH = 3, 4
SHORT = {
    'train_cfg.max_epochs': NUM_EPOCHS,
    'train_cfg.val_interval': NUM_EPOCHS,
    'default_hooks.checkpoint.interval': NUM_EPOCHS,
    'param_scheduler.0.end': 1,
    'param_scheduler.1.begin': 1,
    # the moving average, which is what is tested, follows at once
    'custom_hooks.0.momentum': 0.5,
}
# mixed precision needs a GPU
FLOAT32 = {'optim_wrapper.type': 'OptimWrapper'}

pytestmark = [pytest.mark.modern, pytest.mark.modern_full]


@pytest.fixture(scope='module')
def trained(earlier_user, configs, quick):
    return earlier_user.train(
        'mmpretrain', configs / CONFIG, quick('imagenet', **SHORT)
    )


def test_testing(user, configs, quick, trained):
    assert {'accuracy/top1', 'accuracy/top5'} == set(trained.metrics)
    metrics = user.test(
        'mmpretrain', configs / CONFIG, trained.checkpoint, quick('imagenet')
    )
    assert metrics == trained.metrics
    assert metrics['accuracy/top5'] > 0


def test_resuming(user, configs, quick, trained):
    options = quick('imagenet', **SHORT)
    options['train_cfg.max_epochs'] = NUM_EPOCHS + 1
    options['default_hooks.checkpoint.interval'] = 1
    resumed = user.train(
        'mmpretrain', configs / CONFIG, options, '--resume', trained.checkpoint
    )
    total = (NUM_EPOCHS + 1) * EPOCH_LENGTH
    assert resumed.iterations == [total]
    assert resumed.optimizer_steps() == {total}
    assert resumed.metrics


def test_finetuning(user, configs, quick, trained):
    config = configs / 'soft/retinanet_softpp-t_fpn_1x_coco.py'
    options = quick(
        'coco',
        **{
            'pretrained': trained.checkpoint,
            'train_cfg.max_epochs': 1,
            'optim_wrapper.optimizer.lr': 0,
        },
    )
    finetuned = user.train('mmdet', config, options)
    assert 'trains FROM SCRATCH' not in finetuned.output
    before, after = weights(trained.checkpoint), weights(finetuned.checkpoint)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.full
@pytest.mark.parametrize(
    'backbone', ['swin-t-elfatt', 'swin-b-elfatt', 'cswin-t-elfatt', 'cswin-b-elfatt']
)
def test_elfatt(user, configs, quick, backbone):
    config = configs / f'elfatt/{backbone}_in1k.py'
    options = quick('imagenet', **SHORT, **FLOAT32)
    training = user.train('mmpretrain', config, options)
    metrics = user.test('mmpretrain', config, training.checkpoint, options)
    assert metrics == training.metrics


@pytest.mark.full
@pytest.mark.parametrize('backbone', ['swin-b-elfatt', 'cswin-b-elfatt'])
def test_finetuning_on_larger_images(user, configs, quick, backbone):
    """It starts from the averaged weights of the whole classifier."""
    short = {'train_cfg.max_epochs': 1}
    trained = user.train(
        'mmpretrain',
        configs / f'elfatt/{backbone}_in1k.py',
        quick('imagenet', **short, **FLOAT32),
    )
    start = trained.checkpoint.rename(user.folder / 'start.pth')
    options = {
        **short,
        **FLOAT32,
        'load_from': start,
        'optim_wrapper.optimizer.lr': 0,
        'param_scheduler.0.eta_min': 0,
    }
    finetuned = user.train(
        'mmpretrain',
        configs / f'elfatt/{backbone}_finetune_in1k-384px.py',
        quick('imagenet', **options),
    )
    assert 'trains FROM SCRATCH' not in finetuned.output
    before, after = weights(start, ''), weights(finetuned.checkpoint, '')
    assert before.keys() == after.keys() and any('head' in name for name in before)
    assert all(torch.equal(before[name], after[name]) for name in before)


def weights(checkpoint, prefix='backbone.'):
    """What of the model, or a part of it, an optimizer changes."""
    state = torch.load(checkpoint, map_location='cpu', weights_only=False)['state_dict']
    return {
        name: value
        for name, value in state.items()
        if name.startswith(prefix)
        and 'running' not in name
        and value.is_floating_point()
    }
