"""mmseg's UperNet and Mask2Former on ADE20K and on Cityscapes."""

import pytest

SHORT = {
    'train_cfg.max_iters': 4,
    'train_cfg.val_interval': 4,
    'default_hooks.checkpoint.interval': 4,
    'default_hooks.logger.interval': 1,
}
WARMUP = {'param_scheduler.0.end': 2, 'param_scheduler.1.begin': 2}


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(
            'soft/upernet_softpp-t_1x_ade20k-512x512',
            marks=[pytest.mark.modern, pytest.mark.modern_full],
        ),
        pytest.param(
            'soft/upernet_softpp-t_1x_cityscapes-768x768', marks=pytest.mark.full
        ),
        pytest.param(
            'elfatt/mask2former_swin-t-elfatt_1x_ade20k-512x512',
            marks=[pytest.mark.modern, pytest.mark.full],
        ),
    ],
)
def test_train_and_test(user, configs, quick, modern, name):
    # where mim can't resolve `mmseg::`, our tool does
    library = 'tools' if modern else 'mmsegmentation'
    config = configs / f'{name}.py'
    options = quick(config, **SHORT, **(WARMUP if 'upernet' in name else {}))
    training = user.train(library, config, options)
    assert [line['iter'] for line in training.log if 'loss' in line] == [1, 2, 3, 4]
    assert 'trains FROM SCRATCH: pretrained=None' in training.output
    assert {'aAcc', 'mIoU', 'mAcc'} == set(training.metrics)
    assert training.metrics['aAcc'] > 0
    metrics = user.test(library, config, training.checkpoint, options)
    assert metrics == training.metrics
