"""What is measured of trained classifiers besides their score."""

import json

import torch

from mmlinattn.analysis import blocks_of
from mmlinattn.utils.files import whole_file

from .tasks import as_tensor

SIZES = (192, 256)
# At larger sizes: those that the claim is about, and the controls.
SIZED = ('SOFT++', 'SOFT', 'Swin softmax', 'SOFT++ no attention')
PHOTOS, LOOKS = 1000, 32


def sizes_file(run, work_dir):
    return run.folder(work_dir) / 'sizes.json'


def measure_sizes(run, model, task, work_dir):
    """Scores, and norms of branches, at the size of training and at larger ones, kept
    beside the run.

    Args:
        run (Run): A finished run.
        model (Classifier): Its model.
        task (Classes): Of its data.
        work_dir (Path): Where runs are kept.
    """
    found = {}
    for side in (run.recipe['side'], *SIZES):
        score = task.score(model, 'val', side, limit=PHOTOS)
        found[str(side)] = dict(score, branches=branches(model, task, side))
    with whole_file(sizes_file(run, work_dir)) as draft:
        draft.write_text(json.dumps(found), 'utf-8')


@torch.no_grad()
def branches(model, task, side):
    """Of each block, the norm of what attention adds over that of what it is added to,
    the mean over photos."""
    found = []

    def after(block, args, out):
        tokens, added = (
            args[0],
            block.attention(
                block.norm1(args[0]) if block.pre_norm else args[0], args[1]
            ),
        )
        ratio = added.norm(dim=(1, 2)) / tokens.norm(dim=(1, 2))
        found.append(ratio.mean().item())

    handles = [
        block.register_forward_hook(after) for block in blocks_of(model).values()
    ]
    pixels, _ = task.arrays('val', side)
    device = next(model.parameters()).device
    model(as_tensor(pixels[:LOOKS]).to(device))
    for handle in handles:
        handle.remove()
    return found
