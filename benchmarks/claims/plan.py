"""Which runs there are, the most telling first."""

from itertools import product
from typing import Any, Optional

from mmengine import load

from . import models
from .looks import lacks_looks, looks_file
from .models import BACKBONES, LIKE, SIDE, VITS
from .training import Run

# That of the papers' ImageNet trainings (AdamW, cosine, warm-up, weight decay 0.05)
# without what needs hundreds of epochs: mixup, cutmix, erasing.
RECIPE = dict(side=SIDE, kept=144, batch=32, epochs=4, lr=1e-3, weight_decay=0.05)
RECIPE.update(warmup=0.1, crop=[0.35, 1.0], smoothing=0.1)
# 192 landmarks; boxes and pixels start from the classifier of the same model and seed.
DENSE = dict(RECIPE, side=[256, 192], kept=[256, 192], batch=4, epochs=5)
RECIPES = dict(
    imagenette=RECIPE,
    cifar10=dict(RECIPE, side=32, kept=32, batch=64, epochs=6, crop=[0.6, 1.0]),
    bccd=DENSE,
    camvid=DENSE,
)
DENSE_DATA = ('bccd', 'camvid')
RATES = (5e-4, 1e-3, 2e-3)
# Epochs of short runs: those that tune a rate, those of one epoch, and fine-tuning.
SHORT = dict(imagenette=1.0, cifar10=0.75, bccd=1.0, camvid=1.0)
ONE_EPOCH = ('SOFT', 'SOFT++')  # for which one epoch is compared with all
# Fine-tuning from the same weights, with data in other orders: exactly paired.
TECHNIQUES: dict[str, dict[str, Any]] = {
    'plain': {},
    'AttnScale': dict(attn_scale=True),
    'FeatScale': dict(feat_scale=True),
    # (1 + 2 s) and (1 + 2 t), as the official code has it: for AdamW, twice the rate
    'FeatScale twice': dict(feat_scale=True),
}

STARTS = (*models.INVERSES, *models.PYRAMIDS)
# Groups of models by data, the most telling first.
ORDER = (
    ('imagenette', STARTS),
    ('cifar10', models.FLAT_INVERSES),
    ('bccd', STARTS),
    ('camvid', STARTS),
    ('cifar10', (*models.FLAT, *VITS)),
    ('imagenette', models.CLASSIFIERS),
)


class Plan:
    """The runs in a folder, and the rate of each model. What :meth:`record` returned
    before, perhaps on another machine, is finished, too."""

    def __init__(self, work_dir, recorded=None):
        self.work_dir, self.recorded = work_dir, recorded or {}

    def recorded_of(self, run, what):
        """'seeds' or 'looks' of a run, None if they are not recorded."""
        models = self.recorded.get(run.data, {}) if run.split == 'train' else {}
        return models.get(run.name, {}).get(what, {}).get(str(run.seed))

    def has(self, run):
        """Whether a run is finished, and what else is to be measured of its model."""
        looks = self.recorded_of(run, 'looks') or not lacks_looks(run, self.work_dir)
        result = run.result(self.work_dir) or self.recorded_of(run, 'seeds')
        return bool(looks and result)

    def run(self, data, name, seed, lr):
        """A run of a model at a rate, from its classifier's backbone if need be."""
        backbone, start = BACKBONES[name], None
        if data in DENSE_DATA:
            start = self.full('imagenette', name, seed)
            backbone = dict(backbone, out_indices=[0, 1, 2])
        recipe = dict(RECIPES[data], lr=lr)
        return Run(name, data, backbone, recipe, seed, start=start)

    def tuned(self, data, name) -> tuple[list[Run], Optional[float]]:
        """Short runs on nine tenths of the training photos, a rate each, and the best
        rate once they are finished: while it is the least or the largest of them, there
        are more."""
        rates = [*RATES]
        while True:
            runs = [self.run(data, name, 0, x)._replace(split='tune') for x in rates]
            runs = [x.with_recipe(epochs=SHORT[data]) for x in runs]
            results = [run.result(self.work_dir) for run in runs]
            if None in results:
                return runs, None
            scores = [x['score'] for x in results]
            if scores[0] > max(scores[1:]):
                rates.insert(0, rates[0] / 2)
            elif scores[-1] > max(scores[:-1]):
                rates.append(rates[-1] * 2)
            else:
                return runs, rates[scores.index(max(scores))]

    def full(self, data, name, seed):
        """A model's run of a seed, at its rate."""
        like = LIKE.get(name, name)
        recorded = self.recorded.get(data, {}).get(like)
        lr = recorded['lr'] if recorded else self.tuned(data, like)[1]
        return self.run(data, name, seed, lr)

    def tuned_on(self, name, technique, seed):
        """Fine-tuning of a ViT's first seed with a technique, in an order of data."""
        start = self.full('cifar10', name, 0)
        lr = start.recipe['lr']
        recipe = dict(start.recipe, lr=lr and lr / 4, epochs=SHORT['cifar10'])
        if technique != 'plain':
            recipe['scaling_lr'] = 20 if technique == 'FeatScale twice' else 10
        backbone = dict(start.backbone, **TECHNIQUES[technique])
        label = f'{name} {technique}'
        return Run(label, start.data, backbone, recipe, seed + 1, start=start)

    def runs(self, seeds, data=tuple(RECIPES)):
        """Yields all runs of some data. Those that need a rate come after the runs that
        tune it, and must be taken one after the other."""
        for of, names in ORDER:
            for seed, name in product(range(seeds), names if of in data else ()):
                if seed == 0 and name not in {*LIKE, *self.recorded.get(of, {})}:
                    yield from self.tuned(of, name)[0]
                run = self.full(of, name, seed)
                if of in DENSE_DATA and name in ONE_EPOCH:
                    short = run._replace(name=f'{name}, one epoch')
                    yield short.with_recipe(epochs=SHORT[of])
                if seed == 0 or name not in VITS:
                    yield run
                for technique in TECHNIQUES if name in VITS else ():
                    yield self.tuned_on(name, technique, seed)

    def record(self, seeds):
        """What is finished, for the page: by data and name a model's rate, what came
        out by seed, and what else was measured of it by seed."""
        found: dict[str, Any] = {name: {} for name in RECIPES}
        keys = ('score', 'ap', 'photos', 'right', 'values', 'seconds')
        for run in self.runs(seeds):
            if run.split != 'train' or not run.has_rate:
                continue
            result, file = run.result(self.work_dir), looks_file(run, self.work_dir)
            result = result or self.recorded_of(run, 'seeds')
            looks = load(file) if file.is_file() else self.recorded_of(run, 'looks')
            if result:
                head = dict(lr=run.recipe['lr'], seeds={}, looks={})
                of_model = found[run.data].setdefault(run.name, head)
                kept = {key: result[key] for key in keys if key in result}
                of_model['seeds'][str(run.seed)] = kept
            if result and looks:
                of_model['looks'][str(run.seed)] = looks
        return found
