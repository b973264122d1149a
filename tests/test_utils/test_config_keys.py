"""Misspelled keys of configs; test_config.py has the warnings."""

import re
from pathlib import Path

import pytest

from mmlinattn.utils.config_keys import did_you_mean, unknown_keys

pytestmark = pytest.mark.modern


def test_did_you_mean():
    assert did_you_mean('arhc', ['arch', 'depth']) == "; did you mean 'arch'?"
    assert did_you_mean('width', ['arch', 'depths']) == ''


@pytest.mark.parametrize(
    'key, right',
    [
        ('pretraned', 'pretrained'),
        ('train_dataloadr', 'train_dataloader'),
        ('load_form', 'load_from'),
        ('optim_wraper', 'optim_wrapper'),
    ],
)
def test_misspelled_key(key, right):
    assert unknown_keys(['model', key]) == {key: f'; did you mean {right!r}?'}


def test_variables_of_a_config():
    """Configs have variables of their own, like those of the libraries."""
    names = 'train_pipeline', 'models', 'norm_cfg', 'val_evaluator_abs', 'num_gpus'
    own = 'my_train_dataloader', 'visualizers', 'my_custom_hooks', 'train_dataloader2'
    assert not any(unknown_keys([*names, *own]).values())
    assert unknown_keys(['mine', 'compile', 'width'], ['mine']) == dict(width='')


@pytest.mark.parametrize('library', ['mmdet', 'mmseg', 'mmpretrain'])
def test_no_key_of_the_libraries_is_misspelled(library):
    package = pytest.importorskip(library)
    folder = Path(package.__file__).parent / '.mim' / 'configs'
    names = set()
    for path in folder.rglob('*.py'):
        names.update(re.findall(r'^(\w+) *=(?!=)', path.read_text(), re.M))
    assert names and not any(unknown_keys(names).values())
