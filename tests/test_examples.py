"""The examples run, and the files for GitHub name what is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]


def run(name, *args):
    command = [sys.executable, '-W', 'ignore', ROOT / 'examples' / f'{name}.py', *args]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.modern
def test_plain_pytorch():
    *_, last = run('plain_pytorch')
    assert float(last.split('%')[0]) > 90, last


@pytest.mark.modern
def test_own_attention():
    lines = run('own_attention')
    assert lines[-1].startswith('RetinaNet: [(256,')


@pytest.mark.modern
def test_torchvision_detectors():
    lines = run('torchvision_detectors')
    assert [x.split()[0] for x in lines] == [
        *('FasterRCNN', 'MaskRCNN', 'RetinaNet', 'FCOS')
    ]
    assert all('loss_' in x or 'classification' in x for x in lines)


def test_detect_with_transformers(tmp_path):
    pytest.importorskip('accelerate')
    data = tmp_path / 'data'
    command = [ROOT / 'tools/dataset_converters/make_shapes.py', '--out', data]
    command += ['--layout', 'shapes', '--num-train', '4', '--num-val', '1']
    subprocess.run([sys.executable, *command], check=True)
    files = [data / 'annotations/instances_train2017.json', data / 'train2017']
    options = ['--backbone', 'mlla_tiny', '--size', '160', '--layers', '2']
    lines = run('detect_with_transformers', *files, tmp_path, *options, '--epochs', '1')
    assert re.match(r'(circle|square|triangle) [01]\.', lines[-1])


@pytest.mark.full
def test_your_photos(tmp_path):
    run('your_photos', '', tmp_path)
    assert [*(tmp_path / 'found').glob('*.png')]


def test_workflows():
    """Their targets of make are there."""
    targets = {'lint', 'docs', 'test-openmmlab', 'test-modern'}
    makefile = (ROOT / 'Makefile').read_text('utf-8')
    assert all(re.search(rf'^[a-z -]*{x}\b.*:', makefile, re.M) for x in targets)
    found = set()
    for path in (ROOT / '.github').rglob('*.yml'):
        content = yaml.safe_load(path.read_text('utf-8'))
        for job in content.get('jobs', {}).values():
            rows = job.get('strategy', {}).get('matrix', {}).get('include', [{}])
            for step, row in ((x, y) for x in job['steps'] for y in rows):
                command = step.get('run', '')
                for key, value in row.items():
                    command = command.replace(f'${{{{ matrix.{key} }}}}', value)
                found.update(re.findall(r'^make (\S+)', command))
    assert found == targets


def test_citation():
    citation = yaml.safe_load((ROOT / 'CITATION.cff').read_text('utf-8'))
    version = (ROOT / 'mmlinattn' / 'version.py').read_text('utf-8')
    assert f"'{citation['version']}'" in version
    assert all(x['authors'] and x['url'] for x in citation['references'])
