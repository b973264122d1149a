"""Cases of the suites, measured in one process.

The command's own way, a process for the memory of every variant, would spend most of
a short time on starting CUDA.
"""

import gc
import time
from functools import lru_cache, partial
from weakref import WeakKeyDictionary

import torch

from ..cases import Case, place
from ..command import count
from ..memory import peak_bytes
from ..rates import measure_rates
from ..report import make_rows
from ..timing import (
    STEPS,
    autocast,
    drop_gradients,
    forward_backward,
    gradient,
    measure,
    synchronize,
)
from .unit import Settings, Unit

METHOD = """Times are those of whole steps between two synchronizations, medians of \
up to {rounds} rounds that the variants take turns in; a slow variant takes part in \
fewer. Memory is the peak that torch allocates in one step above what is there before \
it; input, weights and the weights' gradients are not counted. A training step is \
forward, backward and AdamW's step."""
ROUNDS = 30
# Seconds that the rounds of a case and step may take.
SECONDS = 6

_OPTIMIZERS = WeakKeyDictionary()
_FLOPS = {}


def training_step(module, inputs, precision):
    """Forward, backward from a fixed gradient, and AdamW's step."""
    optimizer = _OPTIMIZERS.get(module)
    if optimizer is None:
        # so small that the weights stay what they are
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-8)
        _OPTIMIZERS[module] = optimizer
    forward_backward(module, inputs, precision)
    optimizer.step()
    optimizer.zero_grad()


ALL_STEPS = {**STEPS, 'training step': training_step}


def case_units(cases, settings: Settings, batches, dtypes):
    """A unit for every case, batch and dtype.

    Args:
        cases (list[Case]): The cases.
        settings (Settings): Device and size.
        batches (Sequence[int]): Images at a time.
        dtypes (Sequence[str]): Names of dtypes.

    Returns:
        list[Unit]: The units, batch by batch.
    """
    if settings.small:
        # one of those that differ in their large shapes only
        cases = {(case.name, case.small): case for case in cases}.values()
        batches, dtypes = batches[:1], dtypes[:1]
    return [
        Unit(
            f'{case.at(batch, settings.small).title}, {dtype}',
            partial(measure_case, case, batch, dtype, settings),
        )
        for batch in batches
        for dtype in dtypes
        for case in cases
    ]


def measure_case(case: Case, batch, dtype_name, settings: Settings):
    """Rows of one case, as :func:`report.make_rows` makes them, and their dtype."""
    device, dtype = settings.device, getattr(torch, dtype_name)
    case = case.at(batch, settings.small)
    rates = rates_of(device, dtype, settings.small)
    inputs = place(case.inputs(case.shape, dtype), device)
    modules, errors = build(case, device)
    flops = {}
    if case.counted and not settings.small:
        for name, module in modules.items():
            found = flops_of_image(case, name, module, dtype, device)
            if found is not None:
                flops[name] = batch * found
    rows = []
    for step in case.steps:
        peaks = {name: dict(error=error) for name, error in errors.items()}
        runs, seconds = {}, {}
        for name, module in modules.items():
            module.train(step != 'forward')
            run, clean_up = runner(module, inputs, step, device, dtype)
            peaks[name], seconds[name] = try_step(module, run, clean_up, device)
            if 'error' not in peaks[name]:
                runs[name] = run, clean_up
        times = {}
        if case.timed and runs:
            times = measure(
                runs,
                {name: rounds(seconds[name], len(runs), settings) for name in runs},
            )
        training = step != 'forward'
        floor = None
        if case.floor and not training:
            floor = case.floor(inputs, rates)
        rows += make_rows(
            case,
            step,
            times,
            peaks,
            {name: (3 if training else 1) * found for name, found in flops.items()},
            rates,
            floor,
            next(iter(case.variants)),
        )
    gradient.cache_clear()
    return [dict(row, dtype=dtype_name) for row in rows]


@lru_cache(maxsize=4)
def rates_of(device, dtype, small):
    return measure_rates(device, dtype, small)


def build(case, device):
    """Modules of the variants, and why some can't be built."""
    modules, errors = {}, {}
    for name, make in case.variants.items():
        torch.manual_seed(0)
        try:
            modules[name] = make().to(device)
        except (ImportError, RuntimeError) as error:
            errors[name] = first_line(error)
    return modules, errors


def runner(module, inputs, step, device, dtype):
    """One step of a module that waits for the device, and what cleans up."""
    precision = partial(autocast, device, dtype)

    def run():
        ALL_STEPS[step](module, inputs, precision)
        synchronize(device)

    def clean_up():
        drop_gradients([*module.parameters(), *inputs])

    return run, clean_up


def try_step(module, run, clean_up, device):
    """Warms a step up and measures its memory.

    Returns:
        tuple: 'bytes' or 'error' as ``memory.peak_of_variant`` returns them, and
        the seconds of the last warm-up.
    """
    seconds = 0.0
    try:
        for _ in range(2):  # kernels are compiled and chosen in the first one
            start = time.perf_counter()
            run()
            seconds = time.perf_counter() - start
            clean_up()
        if module.training:
            for param in module.parameters():
                param.grad = torch.zeros_like(param)
        return dict(bytes=peak_bytes(run, device)), seconds
    except (MemoryError, RuntimeError) as error:
        found = first_line(error)
        if 'out of memory' in found or 'allocate memory' in found:
            found = 'out of memory'
        else:
            synchronize(device)  # raises where no other variant can run either
        return dict(error=found), seconds
    finally:
        clean_up()
        free(device)


def free(device):
    """Gives memory back, so that one variant's does not crowd out the next."""
    gc.collect()
    if device.type == 'cuda':
        torch.cuda.empty_cache()


def rounds(seconds, variants, settings):
    """Rounds that a step of so many seconds takes part in."""
    if settings.small:
        return 2
    share = SECONDS / variants / max(seconds, 1e-5)
    return min(max(int(share), 1), ROUNDS)


def flops_of_image(case, name, module, dtype, device):
    """FLOPs of one image in a forward pass, counted once for all batches; None where
    they can't be counted."""
    key = case.name, case.shape[1:], name
    if key not in _FLOPS:
        one = place(case.inputs((1, *case.shape[1:]), dtype), device)
        module.eval()
        try:
            _FLOPS[key] = count(module, one)
        except Exception as error:  # of other libraries' models; times matter more
            print(f'{name}: FLOPs are not counted: {first_line(error)}')
            _FLOPS[key] = None
    return _FLOPS[key]


def first_line(error):
    """An exception in one line."""
    lines = str(error).strip().splitlines()
    return f'{type(error).__name__}: {lines[0]}' if lines else type(error).__name__
