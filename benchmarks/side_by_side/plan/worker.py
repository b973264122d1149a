"""Measures one part in a process of its own, until it is done or time is up."""

import argparse
import sys
import time
import traceback

import torch

from .measuring import first_line
from .parts import PARTS
from .record import Record
from .unit import LeftOut, Settings

# Exit codes: what is due remains for the next run, or for another process.
OUT_OF_TIME, BROKEN = 4, 5


def main():
    parser = argparse.ArgumentParser(
        description='Measures a part of a plan. The command calls it.'
    )
    parser.add_argument('part', choices=PARTS)
    parser.add_argument('record')
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--seconds', type=float, required=True)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--small', action='store_true')
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    settings = Settings(torch.device(args.device), args.small)
    sys.exit(measure(PARTS[args.part], Record(args.record), settings, args.seconds))


def measure(part, record, settings, seconds):
    """Measures the units of a part that are due.

    Args:
        part (Part): The part.
        record (Record): Gets the results.
        settings (Settings): Device and size.
        seconds (float): No unit is begun after so many.

    Returns:
        int: The exit code: 0 if none is left to try.
    """
    begin = time.monotonic()
    for unit in part.units(settings):
        if not record.is_due(part.name, unit.key):
            continue
        if time.monotonic() - begin > seconds:
            return OUT_OF_TIME
        record.begin(part.name, unit.key)
        start = time.monotonic()
        rows, error, status = [], None, 'done'
        try:
            rows = unit.run()
        except LeftOut as reason:
            status, error = 'left out', str(reason)
        except Exception as failure:  # whatever it is, the plan goes on
            traceback.print_exc()
            status, error = 'failed', first_line(failure)
        spent = time.monotonic() - start
        record.end(part.name, unit.key, status, spent, rows, error)
        word = f'{status}: {error}' if error else status
        print(f'{part.name}: {unit.key}: {word}, {spent:.1f} s', flush=True)
        if status == 'failed' and not device_works(settings.device):
            return BROKEN
    return 0


def device_works(device):
    """Whether a GPU takes work: after an illegal access no process of it does."""
    if device.type != 'cuda':
        return True
    try:
        torch.ones(1, device=device).sum().item()
    except RuntimeError:
        return False
    return True


if __name__ == '__main__':
    main()
