"""SOFT++ whose landmarks do not grow with the image, beside the printed one, trained.

The task needs attention: a bag of 8 x 8 patches of Imagenette's photographs, without
positions, which no other layer relates. Every model has the best of the same four
rates, found by runs as long as the others on nine tenths of the training photographs.
What is finished is kept, so that the command can be killed and started again.

    python -m claims.linear IMAGENETTE WORK_DIR SEEDS   (in benchmarks/)
"""

import sys
from pathlib import Path

import numpy as np
import torch
from common import ROOT
from mmengine import load
from side_by_side.report import write_json

from mmlinattn.models import SoftmaxFreeAttention

from .models import FREE, PatchBag, RankOneAttention, flat  # noqa: F401
from .plan import RECIPE
from .tasks import Classes
from .training import Run, trained

OUT = ROOT / 'docs' / 'claims' / 'linear.json'
RATES = (5e-4, 1e-3, 2e-3, 4e-3)
SIDE, SIZES, PATCH = 112, (112, 168, 256), 8
MAP, TRAINED, LANDMARKS = (14, 14), 49, (16, 49, 196)
BAG = dict(img_size=SIDE, patch_size=PATCH)
ROWS = dict(attn_norm='rows', num_landmarks=TRAINED, solver='cholesky', ridge=0.001)
ROWS.update(relative_ridge=True)
MODELS = {
    'softmax': flat('SoftmaxAttention'),
    'no attention': flat('NoSoftmaxFreeAttention', **FREE),
    'rank one': flat('RankOneAttention', **FREE),
    'rows, pool': flat(**ROWS),
    'printed, pool': flat(),
    'rows, conv': flat(**ROWS, sampler='conv'),
    'printed, conv': flat(sampler='conv'),
    'rows, pool, AttnScale': flat(**ROWS),
}
MODELS = {name: dict(cfg, **BAG) for name, cfg in MODELS.items()}
MODELS['rows, pool, AttnScale']['attn_scale'] = True


def planned(name, seed, lr, epochs, split='train'):
    recipe = dict(RECIPE, lr=lr, epochs=epochs)
    return Run(f'bag {name}', 'imagenette', MODELS[name], recipe, seed, split)


def fix(attentions, num):
    """Gives attentions a number of landmarks, None for those of their ratio, and where
    they are SOFT++'s, the scale that they had in training."""
    for x in attentions:
        x.trained_size = None
        x.sampler.fixed_side = num and int(num**0.5)
        if num and x.attn_norm != 'rows':
            x.trained_size = MAP[0] * MAP[1], TRAINED


def look(model, task):
    """Top-1 at other sizes, and with other landmarks, fixed or those of the ratio."""
    soft = [x for x in model.modules() if isinstance(x, SoftmaxFreeAttention)]
    soft = [x for x in soft if type(x) is SoftmaxFreeAttention]
    found = {}

    def score(label, side):
        found[label] = task.score(model, 'val', side)['score']

    for side in SIZES:
        fix([x for x in soft if x.attn_norm != 'rows'], None)
        score(f'{side}', side)
        if soft:
            fix(soft, TRAINED)
            score(f'{side}, {TRAINED} landmarks', side)
    for num in LANDMARKS if soft else ():
        fix(soft, num)
        score(f'{SIDE}, {num} landmarks', SIDE)
    return found


def main(folder, work_dir, seeds, epochs=4):
    torch.set_num_threads(1)
    work_dir = Path(work_dir)
    tasks = {'imagenette': Classes(Path(folder), work_dir)}
    found = load(OUT) if OUT.is_file() else {}
    for seed in range(-1, int(seeds)):  # the rates first
        for name in MODELS:
            of_model = found.setdefault(name, dict(rates={}, seeds={}))
            rates = of_model['rates']
            if seed < 0:
                for lr in RATES:
                    if f'{lr:g}' not in rates:
                        run = planned(name, 0, lr, epochs, 'tune')
                        trained(run, tasks, work_dir, 'cpu')
                        rates[f'{lr:g}'] = run.result(work_dir)['score']
            elif str(seed) not in of_model['seeds']:
                lr = RATES[int(np.argmax([rates[f'{x:g}'] for x in RATES]))]
                model = trained(planned(name, seed, lr, epochs), tasks, work_dir, 'cpu')
                of_model['seeds'][str(seed)] = look(model, tasks['imagenette'])
            write_json(OUT, found, depth=3)


if __name__ == '__main__':
    main(*sys.argv[1:])
