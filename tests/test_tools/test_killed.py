"""Trainings of the three libraries that are killed and resumed by a user."""

import importlib.util
import random
from pathlib import Path

import pytest

pytest.importorskip('mmdet')
pytest.importorskip('mmpretrain')
pytest.importorskip('mmseg')

PATH = Path(__file__).resolve().parents[2] / 'benchmarks' / 'kill_and_resume.py'
spec = importlib.util.spec_from_file_location('kill_and_resume', PATH)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


@pytest.mark.modern
@pytest.mark.full
@pytest.mark.parametrize('task', tool.TASKS)
def test_killed_training_ends_as_an_undisturbed_one(task, tmp_path):
    trainings = tool.Trainings(task, tmp_path)
    undisturbed, _ = trainings.finish('undisturbed')
    for i, moment in enumerate(tool.MOMENTS):
        rng = random.Random(i)
        run = tool.kill_and_resume(trainings, f'run{i}', moment, rng, undisturbed)
        assert not run['different'], run


def test_differences_are_seen():
    import torch

    one = dict(state_dict=dict(a=torch.zeros(2), b=torch.ones(2)))
    other = dict(state_dict=dict(a=torch.zeros(2), b=torch.tensor([1, 1 + 1e-7])))
    assert tool.differences(one, one) == []
    assert tool.differences(one, other) == ['b']
    assert tool.differences(one, dict(state_dict=dict(a=torch.zeros(2)))) == ['b']
