"""The files of an adaptation: its lists of photos, the configs of its stages, and the
student with its config."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from pprint import pformat
from statistics import median
from typing import Any, NamedTuple, Optional

from mmengine.config import ConfigDict
from torch import Tensor

from mmlinattn.cli import program
from mmlinattn.engine.hooks.pretrained_backbone_hook import find_hook
from mmlinattn.hub import find_folder
from mmlinattn.own_config import tasks_with
from mmlinattn.runs.alignment import Stage
from mmlinattn.utils import load_config, wrapped_key
from mmlinattn.utils.files import whole_file
from mmlinattn.weights import write_file

from .teachers import PREFIX, SCOPED, Loaded, Teacher

HELD_BACK, MOST_HELD_BACK = 10, 64  # of so many photos one, but no more
WARM_UP = 20  # steps
STUDENT = 'backbone'
SETTINGS = 'configs/_base_/settings/photos-224_{}.py'
# settings of the stages by name
STAGES = dict(attention='attention-alignment', features='feature-alignment')
STAGE = """\"\"\"{title}, written by adapt.py.\"\"\"

_base_ = {base!r}

teacher = {teacher}
teacher.update(init_cfg=dict(type='Pretrained', checkpoint={weights!r}))
student = {student}
model = dict(teacher=teacher, backbone=student)
data_preprocessor = {preprocessor}
train_pipeline = _base_.train_pipeline
train_pipeline[1].update(scale={size})
train_dataloader = dict(
    batch_size={batch},
    num_workers={workers},
    persistent_workers={workers} > 0,
    dataset=dict(ann_file={photos!r}, pipeline=train_pipeline),
)
train_cfg = dict(max_epochs={epochs}, val_interval={epochs})
optim_wrapper = dict(optimizer=dict(lr={lr}))
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end={warmup})
auto_scale_lr = dict(base_batch_size={batch})
load_from = {load_from!r}
randomness = dict(seed={seed})
"""
CONFIG = """\"\"\"{title}, adapted from {teacher}.

Written by adapt.py; every line is yours to change.
\"\"\"

_base_ = {base!r}

{start}
# the student of the teacher's backbone
backbone = {backbone}
model = {model}
"""


class Photos(NamedTuple):
    """The photos of an adaptation.

    Attributes:
        training (list[Path]): Those that it learns from.
        held_back (list[Path]): Those on which its errors are measured.
        median (tuple[int]): Width and height of the median photo.
    """

    training: list[Path]
    held_back: list[Path]
    median: tuple[int, int]

    def lists(self, folder: Path) -> tuple[Path, Path]:
        """Return the files that list both in a folder."""
        folder = folder.resolve()
        return folder / 'photos.txt', folder / 'held_back.txt'


class Plan(NamedTuple):
    """What the files are made of.

    Attributes:
        teacher (Teacher): The teacher.
        student (dict): Config of the student's backbone.
        photos (Photos): What it reads.
        work_dir (Path): The folder of the run.
        args: Options of the command.
    """

    teacher: Teacher
    student: dict[str, Any]
    photos: Photos
    work_dir: Path
    args: argparse.Namespace


def split_photos(paths: Sequence[Path], sizes: Sequence[tuple[int, int]]) -> Photos:
    """Hold back one of ten photos, of a single one none."""
    widths, heights = zip(*sizes)
    size = round(median(widths)), round(median(heights))
    step = max(HELD_BACK, -(-len(paths) // MOST_HELD_BACK))
    held_back = list(paths[::step])
    training = [path for path in paths if path not in {*held_back}]
    return Photos(training or list(paths), held_back, size)


def write_teacher(loaded: Loaded, work_dir: Path) -> None:
    """Write the teacher's backbone by our names, where the stages find it."""
    weights = loaded.backbone.state_dict()
    entries = {f'{PREFIX}{key}': entry for key, entry in weights.items()}
    write_file(dict(state_dict=entries), teacher_file(work_dir))


def teacher_file(work_dir: Path) -> Path:
    """Return the file of the teacher's backbone."""
    return work_dir.resolve() / 'teacher.pth'


def write_stages(plan: Plan) -> list[Stage]:
    """Write lists of photos and the configs of the stages, and return the stages."""
    folder, args = plan.work_dir.resolve(), plan.args
    groups = plan.photos.training, plan.photos.held_back
    for path, photos in zip(plan.photos.lists(folder), groups):
        with whole_file(path) as draft:
            draft.write_text(''.join(f'{photo}\n' for photo in photos), 'utf-8')
    stages, load_from = [], None
    lengths = dict(attention=args.epochs, features=args.features_epochs)
    for name, epochs in lengths.items():
        if not epochs:
            continue
        config = folder / f'{STAGES[name]}.py'
        with whole_file(config) as draft:
            draft.write_text(stage_source(plan, name, epochs, load_from), 'utf-8')
        stages.append(Stage(name, config, folder / name, epochs))
        load_from = str(folder / name / f'epoch_{epochs}.pth')
    return stages


def stage_source(plan: Plan, name: str, epochs: int, load_from: Any) -> str:
    """Return the source of the config of a stage."""
    args, photos = plan.args, plan.photos
    batch = min(args.batch_size, len(photos.training))
    steps = epochs * (len(photos.training) // batch)
    return STAGE.format(
        title=f'{STAGES[name]} of {plan.teacher.name} with {" ".join(args.attention)}',
        base=settings_of(name),
        teacher=pformat(plan.teacher.backbone),
        weights=str(teacher_file(plan.work_dir)),
        student=pformat(plan.student),
        preprocessor=pformat(plan.teacher.preprocessor),
        size=args.size,
        batch=batch,
        workers=args.workers,
        photos=str(photos.lists(plan.work_dir)[0]),
        epochs=epochs,
        lr=rate_of(name, args.lr),
        warmup=max(2, min(WARM_UP, steps // 4)),
        load_from=load_from,
        seed=args.seed,
    )


def settings_of(name: str) -> str:
    """Return the path of our config of a stage."""
    return str(find_folder() / SETTINGS.format(STAGES[name]))


def rate_of(name: str, chosen: Optional[float]) -> float:
    """Return the learning rate of a stage: our config's, or as many times that as a
    rate that was chosen for the first stage is."""
    own = own_rate(name)
    return own if chosen is None else chosen * own / own_rate('attention')


def own_rate(name: str) -> float:
    """Return the learning rate in our config of a stage."""
    return load_config(settings_of(name)).optim_wrapper.optimizer.lr


def write_student(
    plan: Plan, loaded: Loaded, weights: Mapping[str, Tensor], out: Path
) -> None:
    """Write the student with the other parts of the teacher's checkpoint, and its
    config."""
    entries = {key: x for key, x in weights.items() if key.startswith(PREFIX)}
    entries.update(loaded.others)
    teacher, is_whole = plan.teacher, loaded.is_whole
    adapted = dict(
        teacher=teacher.name,
        weights=teacher.weights,
        license=teacher.license,
        attention=list(plan.args.attention),
        backbone=plan.student,
        width=teacher.cfg.get('width'),
        model_name=model_name(plan),
        is_whole=is_whole,
        photos=len(plan.photos.training),
        epochs=[plan.args.epochs, plan.args.features_epochs],
    )
    source = config_source(plan, out, is_whole)
    meta = dict(adapted=adapted, dataset_meta=loaded.meta, cfg=source)
    write_file(dict(meta=meta, state_dict=entries), out)
    with whole_file(out.with_suffix('.py')) as draft:
        draft.write_text(source, 'utf-8')


def model_name(plan: Plan) -> str:
    """Return the method and the backbone of a config of ours, '' for any other."""
    name = plan.teacher.cfg.get('model_name', '')
    if name or not plan.teacher.base.startswith(SCOPED):
        return str(name)
    words = Path(plan.teacher.base).stem.split('_')
    is_classifier = any(word.startswith('in1k') for word in words)
    return f'classifier {words[0]}' if is_classifier else f'{words[0]} {words[1]}'


def config_source(plan: Plan, out: Path, is_whole: bool) -> str:
    """Return the source of a config with the student, which starts from its weights:
    all parts of the model, or its backbone."""
    cfg, place = plan.teacher.cfg, str(out.resolve())
    backbone = dict(plan.student, _delete_=True)
    start = f'load_from = {place!r}  # the whole model'
    if find_hook(cfg) is not None:
        pretrained = None if is_whole else place
        whole = f'{start}\n' if is_whole else ''
        start = f'{whole}pretrained = {pretrained!r}  # weights of the backbone alone'
    elif not is_whole:
        start = '# its init_cfg has its weights'
        backbone.update(init_cfg=dict(type='Pretrained', checkpoint=place))
    return CONFIG.format(
        title=f'{plan.teacher.name} with {" ".join(plan.args.attention)}',
        teacher=plan.teacher.describe().replace('\\', '/'),
        base=plan.teacher.base,
        start=start,
        backbone=pformat(backbone),
        model=nested_in(cfg.model),
    )


def nested_in(model: ConfigDict) -> str:
    """Return source of the model's entry that replaces the backbone, inside of
    wrappers."""
    if STUDENT in model:
        return f'dict({STUDENT}={STUDENT})'
    key = wrapped_key(model)
    return f'dict({key}={nested_in(model[key])})'


def next_command(plan: Plan, out: Path) -> str:
    """Return lines with the command that fine-tunes the student."""
    config = str(out.with_suffix('.py'))
    lines = [
        'To fine-tune it on the data of its config:',
        program.command('train', config),
    ]
    tasks = tasks_with(model_name(plan).partition(' ')[2])
    if tasks:
        words = ['--data', 'PHOTOS', '--task', tasks[0], '--start', str(out)]
        lines += [
            'To fine-tune it on photos of your own:',
            program.command('new-config', *words, '--out', 'mine.py'),
        ]
    return '\n'.join(lines)
