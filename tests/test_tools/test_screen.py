"""The screen of a training: few lines before it, and a summary behind it."""

import io
import shlex
import sys
from argparse import Namespace

import pytest
from loading import ROOT
from mmengine.hooks import CheckpointHook
from mmengine.logging import HistoryBuffer

from mmlinattn.runs import screen

pytestmark = pytest.mark.openmmlab


def test_the_screen_is_short_until_the_first_iteration():
    out = io.StringIO()
    brief = screen.Brief(out)
    brief.write('INFO - config:\n' + 'x\n' * 500)
    brief.write('WARNING - keys:\n' + 'x\n' * 500)
    brief.write('ERROR - both\nlines\n')
    for _ in range(100):
        brief.write('WARNING - one\n')
    shown = out.getvalue().splitlines()
    assert shown[:3] == ['WARNING - keys: ...', 'ERROR - both', 'lines']
    assert len(shown) == screen.LINES + 2
    brief.write('INFO - Epoch(train) [1][1/4]\n')
    brief.write('INFO - a\ntable\n')
    assert out.getvalue().splitlines()[-3:] == [
        *('INFO - Epoch(train) [1][1/4]', 'INFO - a', 'table')
    ]


@pytest.mark.parametrize('best', [True, False])
def test_summary(tmp_path, monkeypatch, best):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'argv', [str(ROOT / 'tools/train.py')])
    logs = tmp_path / 'my work/now'
    logs.mkdir(parents=True)
    scalars = {'train/loss': [3, 2, 1], 'val/coco/mAP': [0.5]}
    scalars['train/grad_norm'] = [1, 2, 3 if best else float('inf')]
    scalars = {name: HistoryBuffer(x, [1] * len(x)) for name, x in scalars.items()}
    (tmp_path / 'my work/last_checkpoint').write_text('my work/epoch_2.pth')
    (tmp_path / 'my work/best.pth').touch()
    best_entries = dict(best_score=0.5, best_ckpt='my work/best.pth') if best else {}
    runner = Namespace(
        work_dir=str(logs.parent),
        log_dir=str(logs),
        hooks=[CheckpointHook(save_best='coco/mAP', rule='greater')],
        message_hub=Namespace(runtime_info=best_entries, log_scalars=scalars),
    )
    cfg = dict(test_dataloader={})
    printed = screen.summary(runner, cfg, 'a b.py', ['--whole'])
    lines = dict(line.split(': ', 1) for line in printed)
    name = 'best' if best else 'epoch_2'
    assert lines['checkpoint'].strip() == f'my work/{name}.pth'
    assert (tmp_path / 'my work/curves.png').stat().st_size > 5000
    assert ('gradients' in lines) != best
    assert ('score' in lines) == best
    assert lines.get('score', 'coco/mAP 0.5, the best').strip() == (
        'coco/mAP 0.5, the best'
    )
    python, tool, *words = shlex.split(lines['test'])
    assert python == sys.executable and words == ['a b.py', f'my work/{name}.pth']
    assert (ROOT / 'tools/test.py').samefile(tool)
    assert lines['export'].endswith(' --whole') and 'start' not in lines
    without = screen.summary(runner, cfg, 'a b.py', [], draws=False)
    assert not [x for x in without if x.startswith('predict')]
    untested = [x.split(':')[0] for x in screen.summary(runner, {}, 'a b.py', [])]
    assert untested[-2:] == ['start', 'export']


@pytest.mark.parametrize(
    'name, score, share',
    [
        ('mIoU', 45.2, 0.452),
        ('val/aAcc', 90.0, 0.9),
        ('accuracy/top1', 54.6, 0.546),
        ('single-label/f1-score', 50.0, 0.5),
        ('coco/bbox_mAP', 0.5, 0.5),
        ('dota/mAP', 0.5, 0.5),
        ('loss', 45.2, 45.2),
    ],
)
def test_scores_are_parts_of_one(tmp_path, monkeypatch, name, score, share):
    """In the curves and in the summary, whichever library gives them."""
    drawn = []
    monkeypatch.setattr(screen, 'save', lambda figure, out: drawn.append(figure))
    checkpoint = tmp_path / 'best.pth'
    checkpoint.touch()
    best = {f'best_score_{name}': score, f'best_ckpt_{name}': str(checkpoint)}
    scalars = {f'val/{name}': HistoryBuffer([score], [1])}
    runner = Namespace(message_hub=Namespace(runtime_info=best, log_scalars=scalars))
    assert screen.best_of(runner) == (str(checkpoint), f'{name} {share:.4g}, the best')
    screen.draw_curves(runner, tmp_path / 'curves.png')
    (line,) = drawn[0].axes[1].lines
    assert line.get_ydata() == pytest.approx([share])
