"""What is imported, built and run leaves a process as it was."""

import pytest
from loading import ROOT

# modules of other libraries that ours import, which change things of their own
THEIRS = """
import importlib, sys, warnings
sys.path.insert(0, {tests!r})
import mmcv.cnn, mmengine.model, mmengine.runner, safetensors.torch, timm.models, yaml
import matplotlib.figure, pycocotools.coco, rich.progress, torch.utils.checkpoint
import stock

torch.empty(0)
warned = []
warnings.resetwarnings()
warnings.showwarning = lambda message, *args: warned.append(str(message))
held, names = stock.take(), stock.names()


def check(step, drew=False):
    changes = stock.changes(held, stock.take())
    if drew:
        changes.pop('random numbers', None)
        changes.pop('loggers', None)  # MMEngine's initialization makes its own
    assert not changes, (step, changes)
    assert not stock.replaced(names), (step, stock.replaced(names))
    assert 'mmcv._ext' not in sys.modules and 'mmcv.ops' not in sys.modules, step

"""
IMPORTS = """
def imported(name):
    warned.clear()  # those of taking stock
    module = importlib.import_module(name)
    assert not warned, (name, warned)
    check(name)
    warned.clear()
    importlib.reload(module)
    importlib.import_module(name)
    assert not warned, (name, warned)
    check(f'{name}, again')


for name in ('', '.ops', '.models', '.functional', '.weights', '.utils', '.analysis',
             '.deployment', '.engine', '.hub', '.timm', '.cli', '.own_data',
             '.own_config', '.runs', '.runs.training', '.runs.testing'):
    imported(f'mmlinattn{name}')
"""
RUN = """
from mmengine.registry import MODELS
import logging
from mmengine.logging import MMLogger

small = dict(embed_dims=[8, 16, 24, 32], depths=[1] * 4, num_heads=[2] * 4)
MMLogger.get_current_instance().setLevel(logging.ERROR)
held = stock.take()
for kind in ('SOFTPlusPlus', 'LinearSOFTPlusPlus', 'SwinTransformer', 'RAVLT'):
    model = MODELS.build(dict(type=f'mmlinattn.{kind}', arch=small))
    check(f'{kind} is built', drew=True)
    model.init_weights()
    check(f'{kind} is initialized', drew=True)
    sum(x.sum() for x in model(torch.rand(2, 3, 64, 96))).backward()
    check(f'{kind} has run', drew=True)
timm.create_model('swin_tiny_agent', num_classes=2)
check('timm has built', drew=True)
"""


def test_leaves_the_process_as_it_was(run_python):
    run_python(THEIRS.format(tests=str(ROOT / 'tests')) + IMPORTS + RUN)


CHANGE = """
import sys
sys.path.insert(0, {tests!r})
import stock
{prepare}
held, names = stock.take(False), stock.names()
{change}
print(*stock.changes(held, stock.take(False)), *stock.replaced(names))
"""


@pytest.mark.parametrize(
    'change, output',
    [
        ('sys.meta_path.append(object())', 'meta_path'),
        ('import logging; logging.basicConfig()', 'logging'),
        ('stock.os.environ["X"] = "1"', 'environment'),
        ('stock.warnings.simplefilter("ignore")', 'warnings'),
        ('stock.torch.set_num_threads(3)', 'torch, threads'),
        ('stock.torch.nn.Linear.forward = print', 'torch.nn.modules.linear'),
        ('stock.signal.signal(stock.signal.SIGTERM, print)', 'signals'),
    ],
)
@pytest.mark.full
def test_stock_is_complete(run_python, change, output):
    code = CHANGE.format(tests=str(ROOT / 'tests'), prepare='', change=change)
    assert output in run_python(code)
