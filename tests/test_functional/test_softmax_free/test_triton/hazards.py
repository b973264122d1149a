"""Finds in PTX where a copy overwrites what a product still reads."""

import re

_REGISTER = re.compile(r'%[a-z]+\d+')


def overwritten_operands(ptx):
    """Asynchronous copies that race with an asynchronous product.

    A ``wgmma`` reads shared memory until a ``wgmma.wait_group`` waits for it. A
    ``cp.async`` of the next block of columns before that is only right if it
    goes elsewhere: then the place that the product reads, its second operand's
    descriptor, alternates from one iteration to the next.

    Args:
        ptx (str): PTX of a kernel with one level of loops.

    Returns:
        list[str]: The products that are overwritten, empty if there is no race.
    """
    lines = [line.strip() for line in ptx.splitlines()]
    alternating = _alternating(lines)
    labels = {line.split(':')[0]: i for i, line in enumerate(lines) if ':' in line}
    found = []
    for end, line in enumerate(lines):
        branch = re.search(r'bra(?:\.uni)?\s+(\$\w+);', line)
        if not branch or labels.get(branch[1], end) >= end:
            continue
        pending, groups = [], []
        # twice: what one iteration leaves running runs in the next one
        for step in 2 * lines[labels[branch[1]] : end]:
            if 'wgmma.mma_async' in step:
                pending.append(step)
            elif 'wgmma.commit_group' in step:
                groups.append(pending)
                pending = []
            elif waited := re.search(r'wgmma\.wait_group\S*\s+(\d+)', step):
                groups = groups[len(groups) - min(len(groups), int(waited[1])) :]
            elif re.search(r'cp\.async\.c[ag]', step):
                running = [product for group in groups for product in group] + pending
                found += [x for x in running if not alternating & _second_operand(x)]
    return sorted(set(found))


def _second_operand(product):
    """Of ``{accumulators}, first, second, flags...``."""
    return {re.sub(r'\{[^}]*\}', '', product).split(', ')[2].strip()}


def _alternating(lines):
    """Registers whose value depends on the iteration: on one written twice."""
    sources, written = {}, []
    for line in lines:
        found = _REGISTER.findall(line)
        if not found or line.startswith(('.', '@', 'st', 'cp', 'wgmma', 'bar')):
            continue
        destinations = re.search(r'\s(\{[^}]*\}|%\w+)', line)
        names = _REGISTER.findall(destinations[1]) if destinations else found[:1]
        for name in names:
            written.append(name)
            sources.setdefault(name, set()).update(found[len(names) :])
    seen = {name for name in written if written.count(name) > 1}
    while True:
        more = {name for name, of in sources.items() if of & seen} - seen
        if not more:
            return seen
        seen |= more
