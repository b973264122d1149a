import pytest

from mmlinattn.utils import check_file, load_config


def test_check_file(tmp_path):
    path = tmp_path / 'weights.pth'
    with pytest.raises(FileNotFoundError, match="config='.*weights.pth'"):
        load_config(str(path))
    with pytest.raises(FileNotFoundError, match="pretrained='.*weights.pth'"):
        check_file('pretrained', str(path))
    path.touch()
    check_file('pretrained', str(path))
    check_file('pretrained', 's3://bucket/weights.pth')


def test_scope_that_mmengine_would_pass_on(tmp_path):
    """MMEngine passes all of ``collate_fn`` to the function, which fails."""
    child = tmp_path / 'child.py'
    child.write_text("_base_ = 'mmpretrain::_base_/datasets/imagenet_bs32_simclr.py'\n")
    loader = load_config(str(child)).train_dataloader
    assert loader.collate_fn == dict(type='default_collate')
    assert loader.sampler['_scope_'] == 'mmpretrain'
