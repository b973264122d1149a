"""Time of a step by operator."""

from torch.profiler import ProfilerActivity, profile

from .cases import size
from .report import markdown, milliseconds

METHOD = """Time inside each operator without those that it calls, in one step under \
PyTorch's profiler, which slows many small operators a little. Operators of less than \
{share:.0%} of every step are summed up."""
SMALLEST_SHARE = 0.02
OTHERS = 'others'


def profile_step(run, device):
    """Profiles one step.

    Args:
        run (Callable): The step.
        device (torch.device): Where it runs.

    Returns:
        dict[str, tuple[float, int]]: By operator, its own seconds and calls, the
        slowest first.
    """
    gpu = device.type == 'cuda'
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * gpu
    with profile(activities=activities) as profiler:
        run()
    found = {
        event.key: (own_microseconds(event, gpu) / 1e6, event.count)
        for event in profiler.key_averages()
    }
    found = {key: value for key, value in found.items() if value[0] > 0}
    return dict(sorted(found.items(), key=lambda item: -item[1][0]))


def total_seconds(found):
    """Seconds of a whole profile."""
    # those of a record are without the small ones
    operators = found['operators'].values()
    return found.get('seconds') or sum(seconds for seconds, _ in operators)


def own_microseconds(event, gpu):
    if not gpu:
        return event.self_cpu_time_total
    # torch 2.4 gave it its new name
    return getattr(event, 'self_device_time_total', None) or getattr(
        event, 'self_cuda_time_total', 0
    )


def shares(profiles):
    """Shares of each step's time, by the operators that matter in any step.

    Args:
        profiles (list[dict]): Each with 'operators', as :func:`profile_step`
            returns.

    Returns:
        list[dict[str, float]]: Of every profile by operator, 'others' last.
    """
    totals = [total_seconds(found) for found in profiles]
    seconds = {}
    for found, total in zip(profiles, totals):
        for name, (own, _) in found['operators'].items():
            if own >= SMALLEST_SHARE * total:
                seconds[name] = seconds.get(name, 0) + own
    names = sorted(seconds, key=lambda name: -seconds[name])
    out = []
    for found, total in zip(profiles, totals):
        of_step = {
            name: found['operators'].get(name, (0, 0))[0] / total for name in names
        }
        out.append({**of_step, OTHERS: max(1 - sum(of_step.values()), 0)})
    return out


def profile_table(profiles):
    """Profiles as Markdown, a column each."""
    lines = []
    parts = shares(profiles)
    for name in parts[0]:
        cells = []
        for found, part in zip(profiles, parts):
            calls = found['operators'].get(name, (0, 0))[1]
            cells.append(f'{part[name]:.1%}' + (f', {calls} calls' if calls else ''))
        lines.append([name if name == OTHERS else f'`{name}`', *cells])
    totals = [milliseconds(total_seconds(found)) for found in profiles]
    lines.append(['**all, ms**', *totals])
    titles = [
        f'{x["case"]}, {size(x["shape"])}: {x["variant"]}, {x["step"]}'
        for x in profiles
    ]
    method = METHOD.format(share=SMALLEST_SHARE)
    return f'{method}\n\n{markdown(["operator", *titles], lines)}'


def as_records(profiles):
    """Profiles for JSON: of each step the operators that the table has, as seconds and
    calls, and the seconds of all."""
    names = [name for name in shares(profiles)[0] if name != OTHERS]
    records = []
    for found in profiles:
        operators = found['operators']
        kept = {name: operators[name] for name in names if name in operators}
        records.append(dict(found, seconds=total_seconds(found), operators=kept))
    return records
