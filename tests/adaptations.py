"""A detector of one's own, and the words of a short adaptation of it."""

import torch
from small_configs import draw_shapes

from mmlinattn.commands import new_config
from mmlinattn.engine.preflight import build_model
from mmlinattn.utils import load_config
from mmlinattn.utils.log import quiet

OPTIONS = [
    *('--size', '32', '--epochs', '2', '--features-epochs', '1'),
    *('--batch-size', '4', '--workers', '0'),
]


def write_world(folder):
    """Writes photos with labels, a config from new-config, and its weights."""
    draw_shapes('coco', folder / 'coco', 14, 2)
    data = ['--data', f'{folder}/coco', '--task', 'det', '--no-estimate']
    model = ['--backbone', 'softpp-micro-linear', '--start', 'none']
    new_config.main([*data, *model, '--out', f'{folder}/mine.py'])
    with quiet():
        model = build_model(load_config(f'{folder}/mine.py'))
        model.init_weights()
    meta = dict(dataset_meta=dict(classes=['a', 'b']))
    weights = dict(meta=meta, state_dict=model.state_dict())
    torch.save(weights, folder / 'teacher.pth')
    return folder


def argv_of(world, out, *others):
    teacher = ['--teacher', f'{world}/mine.py', '--weights', f'{world}/teacher.pth']
    teacher += ['--data', f'{world}/coco/train2017']
    attention = () if '--attention' in others else ('--attention', 'ELFATT')
    place = ['--out', f'{world}/{out}.pth', '--work-dir', f'{world}/{out}']
    return [*teacher, *attention, *place, *OPTIONS, *others]
