"""What a plan has measured so far, in one file that every unit is written to."""

import json
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import torch

from mmlinattn import __version__
from mmlinattn.utils.files import whole_file

from ..rates import machine

ROOT = Path(__file__).resolve().parents[3]
# A unit that failed so often is not tried again.
MAX_FAILURES = 2
LIBRARIES = ('triton', 'mmengine', 'mmcv', 'mmcv-lite', 'mmdet', 'timm', 'numpy')


class Record:
    """Results of a plan.

    Args:
        path (Path): The JSON file, which need not be there.

    Attributes:
        data (dict): 'device', 'small', 'runs' (each with its machine and versions)
            and 'parts', by name the units by key. A unit has 'status' ('running',
            'done', 'failed', 'left out' or 'cut off'), 'run', 'failures', 'seconds',
            'rows' and, where it was not done, 'error'.

    Raises:
        ValueError: If the file is no record of a plan.
    """

    def __init__(self, path):
        self.path = Path(path)
        self.data = dict(device=None, small=None, runs=[], parts={})
        if self.path.exists():
            try:
                self.data = json.loads(self.path.read_text())
                if not {'device', 'small', 'runs', 'parts'} <= self.data.keys():
                    raise KeyError('parts')
            except (ValueError, KeyError, AttributeError) as error:
                raise ValueError(
                    f'{self.path} is no record of a plan; choose another --out'
                ) from error

    def start_run(self, device, small):
        """Notes what measures now.

        Raises:
            ValueError: If the record is of another device or size of input:
                their figures do not belong in one table.
        """
        name = device_name(device)
        given = dict(device=name, small=small)
        if self.data['runs'] and given != {key: self.data[key] for key in given}:
            kept = {key: self.data[key] for key in given}
            raise ValueError(
                f'{self.path} has results of {kept}, not of {given}; choose another '
                '--out'
            )
        self.data.update(given)
        self.data['runs'].append(
            dict(machine=machine(device), commit=commit(), versions=versions())
        )
        self.save()

    @property
    def run(self):
        """Number of the present run, from 0."""
        return len(self.data['runs']) - 1

    def units(self, part):
        """Units of a part by key."""
        return self.data['parts'].setdefault(part, {})

    def is_due(self, part, key):
        """Whether a unit is to be measured in this run."""
        unit = self.units(part).get(key)
        if unit is None:
            return True
        finished = unit['status'] == 'done' or unit['failures'] >= MAX_FAILURES
        return not finished and unit['run'] != self.run

    def begin(self, part, key):
        """Notes that a unit runs: what ends its process leaves this behind."""
        failures = self.units(part).get(key, {}).get('failures', 0)
        self.units(part)[key] = dict(status='running', run=self.run, failures=failures)
        self.save()

    def end(self, part, key, status, seconds, rows=(), error=None):
        """Notes what became of a unit."""
        unit = self.units(part)[key]
        unit.update(status=status, seconds=round(seconds, 2), rows=list(rows))
        unit['failures'] += status == 'failed'
        if error:
            unit['error'] = error
        self.save()

    def cut(self, part, error, failed):
        """Notes why units of a process that has ended were not finished.

        Args:
            part (str): Name of the part.
            error (str): What ended the process.
            failed (bool): Whether the unit itself did, and not a limit.
        """
        for unit in self.units(part).values():
            if unit['status'] == 'running':
                unit.update(
                    status='failed' if failed else 'cut off', rows=[], error=error
                )
                unit['failures'] += failed
        self.save()

    def save(self):
        """Writes the file whole or not at all."""
        with whole_file(self.path) as draft:
            draft.write_text(json.dumps(self.data, indent=1))


def device_name(device):
    """Name of a GPU, or of the processor."""
    if device.type == 'cuda':
        return torch.cuda.get_device_name(device)
    return machine(device).partition(',')[0] or platform.machine()


def commit():
    """The commit that is measured, None where git does not tell."""
    command = ['git', 'describe', '--always', '--dirty', '--abbrev=12']
    try:
        found = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def versions():
    """Versions of the libraries that matter, those that are there."""
    found = dict(mmlinattn=__version__, torch=torch.__version__)
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if torch.cuda.is_available():
        found['cudnn'] = str(torch.backends.cudnn.version())
    return found
