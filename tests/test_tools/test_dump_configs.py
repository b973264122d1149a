from pathlib import Path

import pytest

pytestmark = pytest.mark.modern


def test_dump(tmp_path, monkeypatch, load_tool):
    tool = load_tool('misc/dump_configs.py')
    for path, text in {
        '_base_/net.py': 'model = dict(width=8, heads=[dict(k=1), dict(k=2)])\n',
        'a/large.py': "_base_ = '../_base_/net.py'\nmodel = dict(width=16)\nx = (3,)",
    }.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(tool, 'CONFIGS', tmp_path)
    tool.main([str(tmp_path / 'out')])
    (file,) = Path(tmp_path, 'out').rglob('*.txt')
    assert file == tmp_path / 'out/a/large.txt' and file.read_text().splitlines() == [
        *('model.heads.0.k = 1', 'model.heads.1.k = 2', 'model.width = 16'),
        'x = (3,)',
    ]
