"""mmseg's UperNet on ADE20K and on Cityscapes, and a run that is killed."""

import pytest

SHORT = {
    'train_cfg.max_iters': 4,
    'train_cfg.val_interval': 4,
    'default_hooks.checkpoint.interval': 4,
    'param_scheduler.0.end': 2,
    'param_scheduler.1.begin': 2,
}


@pytest.fixture
def mmseg(modern):
    """mim's name of mmseg; where that can't resolve ``mmseg::``, our tool does."""
    return 'tools' if modern else 'mmsegmentation'


@pytest.mark.modern_full
@pytest.mark.modern
def test_upernet_on_ade20k(user, configs, quick, mmseg):
    config = configs / 'soft/upernet_softpp-t_1x_ade20k-512x512.py'
    check_train_and_test(user, mmseg, config, quick('ade20k', **SHORT))


@pytest.mark.full
def test_upernet_on_cityscapes(user, configs, quick, mmseg):
    config = configs / 'soft/upernet_softpp-t_1x_cityscapes-768x768.py'
    check_train_and_test(user, mmseg, config, quick('cityscapes', **SHORT))


@pytest.mark.full
@pytest.mark.parametrize('backbone', ['deit-s12-featscale', 'swin-s-attnscale'])
def test_upernet_against_oversmoothing(user, configs, quick, mmseg, backbone):
    config = f'antioversmoothing/upernet_{backbone}_1x_ade20k-512x512.py'
    check_train_and_test(user, mmseg, configs / config, quick('ade20k', **SHORT))


@pytest.mark.full
@pytest.mark.parametrize('backbone', ['cswin-t-elfatt', 'swin-b-elfatt'])
def test_upernet_with_elfatt(user, configs, quick, mmseg, backbone):
    config = f'elfatt/upernet_{backbone}_1x_ade20k-512x512.py'
    check_train_and_test(user, mmseg, configs / config, quick('ade20k', **SHORT))


@pytest.mark.modern
@pytest.mark.full
def test_mask2former_on_ade20k(user, configs, quick, mmseg):
    config = configs / 'elfatt/mask2former_swin-t-elfatt_1x_ade20k-512x512.py'
    options = {k: x for k, x in SHORT.items() if 'param_scheduler' not in k}
    check_train_and_test(user, mmseg, config, quick('ade20k_queries', **options))


def check_train_and_test(user, mmseg, config, options):
    training = user.train(mmseg, config, options)
    assert training.iterations == [1, 2, 3, 4]
    assert 'trains FROM SCRATCH: pretrained=None' in training.output
    assert {'aAcc', 'mIoU', 'mAcc'} == set(training.metrics)
    assert training.metrics['aAcc'] > 0
    metrics = user.test(mmseg, config, training.checkpoint, options)
    assert metrics == training.metrics


@pytest.mark.full
@pytest.mark.modern
def test_killed_training_goes_on(user, configs, quick):
    config = configs / 'soft/upernet_softpp-t_1x_ade20k-512x512.py'
    options = quick(
        'ade20k',
        **{
            'default_hooks.checkpoint.interval': 2,
            'param_scheduler.0.end': 2,
            'param_scheduler.1.begin': 2,
        },
    )
    last = user.folder / 'train' / 'last_checkpoint'
    user.run_until(
        lambda: last.exists() and last.read_text(),
        *user.train_command('mmlinattn', config, last.parent, options),
    )
    saved = int(last.read_text().rpartition('_')[2].partition('.')[0])
    end = saved + 2
    # as if it had been killed while it wrote the next one, and the note were lost
    (last.parent / f'iter_{end}.pth').write_bytes(b'incomplete')
    last.unlink()

    options.update({'train_cfg.max_iters': end, 'train_cfg.val_interval': end})
    training = user.train('mmlinattn', config, options, '--resume')
    assert training.iterations == [saved + 1, end]
    assert training.optimizer_steps() == {end}
    assert training.log[0]['lr'] > 5e-5  # beyond the warm-up
    assert 'trains FROM SCRATCH' not in training.output
    metrics = user.test('mmlinattn', config, training.checkpoint, options)
    assert metrics == training.metrics
