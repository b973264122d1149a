"""Build every model that an OpenMMLab library has a config of, train it for one step,
and predict once, on small made-up images.

Detectors take few regions. Configs whose models differ only in where their weights are
from, or in the depth of a ResNet, count as one. Each runs in a process of its own, with
a time limit, those of every folder in turn. What is done is kept in FILE: the same
command goes on where it stopped. A page beside it, .md, has tables of what runs, and of
the errors of the rest.

examples:
  python benchmarks/openmmlab_models.py mmdet --out work_dirs/mmdet.json
  python benchmarks/openmmlab_models.py mmdet mmseg mmpretrain --out models.json
  python benchmarks/openmmlab_models.py mmdet --failed models.json --out compiled.json
"""

import copy
import itertools
import json
import multiprocessing
import os
import resource
import sys
import warnings
from collections import defaultdict
from functools import partial
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common  # noqa: F401
import mmcv
import numpy as np
import torch
from mmengine.config import Config, ConfigDict
from mmengine.logging import MessageHub, MMLogger
from mmengine.model.utils import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope
from mmengine.structures import InstanceData, PixelData
from mmengine.utils import import_modules_from_strings
from side_by_side.report import markdown, write_page

from mmlinattn import ops
from mmlinattn.utils.files import whole_file
from mmlinattn_tools.cli import (
    INPUT_ERRORS,
    Parser,
    errors_in_one_line,
    number,
    output_file,
)

LIBRARIES = ('mmdet', 'mmseg', 'mmpretrain')
WEIGHTS = ('init_cfg', 'pretrained', 'checkpoint', 'teacher_ckpt')
SIDES = dict(mmdet=128, mmseg=128, mmpretrain=224)
# regions at most, of any score
FEW = dict(nms_pre=200, nms_post=100, max_per_img=100, max_num=100, num=32, score_thr=0)
MEMORY = 16 << 30  # bytes of a process
# self-supervised models that see an image once
ONE_VIEW = (
    'MAE',
    'MFF',
    'MILAN',
    'MixMIM',
    'SimMIM',
    'SparK',
    'MaskFeat',
    'iTPN',
    'EVA',
)


def mapped(value, change):
    """A config whose dicts are what a function makes of them."""
    if isinstance(value, dict):
        return {k: mapped(x, change) for k, x in change(value).items()}
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(x, change) for x in value)
    return value


def without_weights(node):
    """A dict without what it would download, its ResNet of 50 layers at most."""
    rest = {k: x for k, x in node.items() if k not in WEIGHTS}
    if 'num_cp' in rest:  # layers that another library computes again
        rest['num_cp'] = 0
    if 'Res' in str(rest.get('type')) and rest.get('depth', 0) in (101, 152):
        rest['depth'] = 50  # of the same blocks
    return rest


def with_few_regions(node):
    """A dict of a train_cfg or test_cfg that lets few boxes through, of any score."""
    return {
        k: min(x, FEW[k]) if k in FEW and isinstance(x, (int, float)) else x
        for k, x in node.items()
    }


def find(value, name):
    """All values of a name in a config."""
    found = [value[name]] if isinstance(value, dict) and name in value else []
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, (dict, list, tuple)) else ():
        found += find(part, name)
    return found


def read_configs(folder):
    """Models, and the names of the configs that have them, by the first name.

    Returns:
        tuple[dict]: Models and names; errors of configs that can't be read.
    """
    models, names, errors = {}, defaultdict(list), {}
    for path in sorted(folder.rglob('*.py')):
        name = str(path.relative_to(folder))
        if '_base_' in path.parts:
            continue
        try:
            config = Config.fromfile(path, format_python_code=False)
            model = config.get('model')
            if model is not None and 'data_preprocessor' in config:
                model.setdefault('data_preprocessor', config.data_preprocessor)
        except Exception as error:
            errors[name] = f'{type(error).__name__}: {error}'
            continue
        if model is not None:
            plain = mapped(model.to_dict(), without_weights)
            text = json.dumps(plain, sort_keys=True, default=str)
            names[text].append(name)
            models[names[text][0]] = model
    return models, {group[0]: group for group in names.values()}, errors


def by_turns(models):
    """Models, the first of every folder first, then the second ones."""
    places = defaultdict(itertools.count)
    order = [(next(places[name.rpartition('/')[0]]), name) for name in models]
    return [(name, models[name]) for _, name in sorted(order)]


def classes_of(model):
    """The least number of classes that a part of a model knows."""
    counts = find(model, 'num_classes') + find(model, 'num_things_classes')
    return min([x for x in counts if isinstance(x, int) and x > 0], default=2)


def side_of(model, library):
    """The side of square images in pixels that a model takes."""
    for part in (model.get('bbox_head'), model.get('backbone')):
        for name in ('input_size', 'img_size'):
            sides = [x for x in find(part, name) if x]
            if sides and library != 'mmseg':
                return sides[0] if isinstance(sides[0], int) else sides[0][0]
    many = any(x > 300 for x in find(model, 'num_queries'))
    return SIDES[library] * (2 if many else 1)  # as many pixels as queries


def detection_data(model, side, count, training):
    """Images with boxes, masks and segments."""
    from mmdet.testing import _utils as made

    shape, classes = (3, side, side), classes_of(model)
    preprocessor = model.get('data_preprocessor') or {}
    with_texts = find(model, 'language_model')
    single = training and preprocessor.get('use_det_processor')
    if 'Track' in preprocessor.get('type', '') and not single:
        frames = dict(num_frames=1)
        if training:
            frames = dict(num_frames=2, key_frames_inds=[0])
        frames |= dict(image_shapes=shape, with_mask=True)
        data = made.demo_track_inputs(1, num_classes=max(2, classes), **frames)
        tracks = data['data_samples']
        samples = [x for track in tracks for x in track.video_data_samples]
    else:
        coarse = find(model, 'semantic_head') and not find(model, 'panoptic')
        coarse = coarse and 'Panoptic' not in model['type']
        data = made.demo_mm_inputs(
            count,
            shape,
            [4] * count,
            min(max(2, classes), 200),  # more do not fit into a byte
            sem_seg_output_strides=8 if coarse else 1,
            with_mask=True,
            with_semantic=True,
            texts=['cat . dog .'] * count if with_texts else None,
        )
        samples = data['data_samples']
    for sample in samples:
        sample.gt_instances.labels %= 2 if with_texts else classes
        corners = torch.rand(20, 2) * side / 2
        boxes = torch.cat([corners, corners + side / 3], 1)
        sample.proposals = InstanceData(bboxes=boxes, scores=torch.rand(20))
        sample.set_metainfo(dict(homography_matrix=np.eye(3)))
        sample.set_metainfo(dict(batch_input_shape=(side, side)))
    if 'MultiBranch' in preprocessor.get('type', '') and training:
        branches = ('sup', 'unsup_teacher', 'unsup_student')
        data = {k: {x: copy.deepcopy(v) for x in branches} for k, v in data.items()}
    return data


def segmentation_data(model, side, count, training):
    """Images with a class, or a depth, for each pixel."""
    from mmseg.structures import SegDataSample

    channels = (model.get('backbone') or {}).get('in_channels', 3)
    channels = channels if isinstance(channels, int) else 3
    samples = []
    for _ in range(count):
        labels = torch.randint(classes_of(model), (1, side, side))
        shape = dict(img_shape=(side, side), ori_shape=(side, side), flip=False)
        samples.append(
            SegDataSample(
                metainfo=dict(shape, pad_shape=(side, side)),
                gt_sem_seg=PixelData(data=labels),
                gt_edge_map=PixelData(data=labels % 2),
                gt_depth_map=PixelData(data=torch.rand(1, side, side)),
            )
        )
    images = [torch.randint(256, (channels, side, side)).byte() for _ in range(count)]
    return dict(inputs=images, data_samples=samples)


def is_self_supervised(model):
    """Whether a config is of a model that learns features, and predicts nothing."""
    from mmpretrain.models import BaseSelfSupervisor
    from mmpretrain.registry import MODELS

    kind = MODELS.get(model['type'])
    return isinstance(kind, type) and issubclass(kind, BaseSelfSupervisor)


def classification_data(model, side, count, training):
    """Images with a class, and for self-supervised models their views and masks."""
    from mmpretrain.structures import DataSample

    images = torch.randint(256, (count, 3, side, side)).byte()
    samples = [DataSample().set_gt_label(x % classes_of(model)) for x in range(count)]
    data = dict(inputs=images, data_samples=samples)
    if not is_self_supervised(model):
        return data
    side //= dict(SimMIM=4, MixMIM=1).get(model['type'], 16)
    for sample in samples:
        sample.mask = (torch.rand(side, side) > 0.5).long()
    views = 8 if model['type'] == 'SwAV' else 2
    if model['type'] in ('BEiT', 'CAE'):  # what makes their targets sees half the size
        return dict(data, inputs=[images, images[..., ::2, ::2]])
    one = model['type'] in ONE_VIEW or not training
    return dict(data, inputs=images if one else [images] * views)


DATA = dict(
    mmdet=detection_data, mmseg=segmentation_data, mmpretrain=classification_data
)


def made_up_language_models(folder):
    """Lets language models have random weights and few words, instead of a download."""
    import transformers

    words = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '.', '?', 'cat', 'dog']
    words += [f'[unused{index}]' for index in range(1000)]
    vocabulary = folder / 'words.txt'
    vocabulary.write_text('\n'.join(words))
    tokenizer = transformers.BertTokenizerFast(str(vocabulary))
    sizes = dict(vocab_size=2000, hidden_size=768, num_hidden_layers=2)
    config = transformers.BertConfig(**sizes)
    for kind in (transformers.AutoTokenizer, transformers.BertTokenizer):
        kind.from_pretrained = lambda *args, **kwargs: tokenizer
    transformers.BertConfig.from_pretrained = lambda *args, **kwargs: config
    model = partial(transformers.BertModel, config, add_pooling_layer=False)
    transformers.BertModel.from_pretrained = lambda *args, **kwargs: model()


def try_model(library, model, folder):
    """Tries a model; returns its error, and the operators it calls."""
    operators, called = set(), ops.find
    ops.find = lambda name: operators.add(name) or called(name)
    torch.manual_seed(0)
    MessageHub.get_current_instance().update_info('iter', 0)
    model = ConfigDict(mapped(model.to_dict(), without_weights))
    for name in {'train_cfg', 'test_cfg'} & {*model}:
        model[name] = mapped(model[name], with_few_regions)
    preprocessor = model.get('data_preprocessor') or {}
    preprocessor.pop('batch_augments', None)
    side = side_of(model, library)
    if library == 'mmseg':
        preprocessor.pop('size_divisor', None)
        preprocessor['size'] = (side, side)
    if find(model, 'language_model'):
        made_up_language_models(folder)
    classifies = model['type'] in ('ImageClassifier', 'BaseReID')
    make = DATA['mmpretrain' if classifies else library]
    result, step = {}, 'build'
    try:
        net = revert_sync_batchnorm(MODELS.build(model))
        net.init_weights()
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
        step = 'train'
        data = net.data_preprocessor(make(model, side, 2, True), True)
        loss, _ = net.parse_losses(net(**data, mode='loss'))
        loss.backward()
        optimizer.step()
        step = 'predict'
        data = net.eval().data_preprocessor(make(model, side, 1, False), False)
        features = library == 'mmpretrain' and is_self_supervised(model)
        with torch.no_grad():
            net(**data, mode='tensor' if features else 'predict')
    except Exception as error:
        text = ' '.join(f'{type(error).__name__}: {error}'.split())
        result = dict(step=step, error=text[:300])
    return dict(result, operators=sorted(operators))


def child(connection, *args):
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    connection.send(try_model(*args))


def run_apart(seconds, *args):
    """Returns the result of :func:`try_model` in a process that may crash or hang."""
    fork = multiprocessing.get_context('fork')
    here, there = fork.Pipe(False)
    process = fork.Process(target=child, args=(there, *args))
    process.start()
    there.close()
    try:
        if here.poll(seconds):
            return here.recv()
        return dict(step='run', error=f'took more than {seconds} s', operators=[])
    except EOFError:
        process.join()
        text = f'the process ended with exit code {process.exitcode}'
        return dict(step='run', error=text, operators=[])
    finally:
        process.kill()
        process.join()


def ran_in(report, library):
    """Names of the models that run in a report."""
    results = json.loads(Path(report).read_text())[library]['results']
    return [name for name, result in results.items() if 'error' not in result]


def kind_of(result):
    """One of: runs, needs NAME, fails."""
    if 'error' not in result:
        return 'runs'
    missing = 'not among the operators of mmlinattn' in result['error']
    return f'needs {result["error"].split()[1]}' if missing else 'fails'


def page(report, compiled):
    """A page about what runs, Markdown; ``compiled`` is a report of what fails, made
    where mmcv is compiled."""
    header = ['library', 'configs', 'run', 'need an operator', 'fail with both', 'fail']
    rows, others = [], []
    for library, found in report.items():
        counts = defaultdict(int)
        there = compiled.get(library, {}).get('results', {})
        for name, result in found['results'].items():
            kind, count = kind_of(result), len(found['names'][name])
            if kind == 'fails' and 'error' in there.get(name, {}):
                kind = 'fails with both'
            counts[kind] += count
            if kind != 'runs':
                more = f' and {count - 1} more' if count > 1 else ''
                error = result['error'].replace('|', '/').replace('<', '&lt;')
                others.append([f'{library}: {name}{more}', kind, result['step'], error])
        needs = sum(count for kind, count in counts.items() if 'needs' in kind)
        numbers = sum(counts.values()), counts['runs'], needs
        numbers += counts['fails with both'], counts['fails']
        rows.append([library, *map(str, numbers)])
    lines = [f'torch {torch.__version__}, mmcv {mmcv.__version__}.']
    lines += ['', markdown(header, rows)]
    if others:
        titles = ['config', 'kind', 'step', 'error']
        lines += ['', markdown(titles, sorted(others, key=lambda x: (x[1], x[0])))]
    return '\n'.join(lines) + '\n'


def main(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument('libraries', nargs='+', choices=LIBRARIES)
    parser.add_argument(
        '--out', type=output_file, metavar='FILE', required=True, help='JSON file'
    )
    parser.add_argument('--only', default='', help='text in the names of configs')
    parser.add_argument(
        '--failed', metavar='FILE', help='only models that do not run in this report'
    )
    text = 'what --failed wrote where mmcv is compiled, for the page'
    parser.add_argument('--compiled', metavar='FILE', help=text)
    parser.add_argument(
        '--limit', type=number(int, 1, 10000), default=300, help='seconds for a model'
    )
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    warnings.simplefilter('ignore')
    report = json.loads(args.out.read_text()) if args.out.exists() else {}
    if not {*report} <= {*LIBRARIES}:
        parser.error(f'--out {args.out} is not of this command')
    for library in args.libraries:
        with errors_in_one_line(*INPUT_ERRORS):
            package = Path(import_module(library).__file__).parent
            import_modules_from_strings([f'{library}.models'])
        init_default_scope(library)
        MMLogger.get_current_instance().setLevel('ERROR')
        os.chdir(package / '.mim')  # some configs name another one by its path
        models, names, errors = read_configs(package / '.mim/configs')
        found = report.setdefault(library, dict(results={}))
        found.update(names=names, errors=errors, torch=torch.__version__)
        fine = ran_in(args.failed, library) if args.failed else ()
        for name, model in by_turns(models):
            if args.only in name and name not in {*found['results'], *fine}:
                result = run_apart(args.limit, library, model, args.out.parent)
                found['results'][name] = result
                print(name, result.get('error', 'runs'), flush=True)
                with whole_file(args.out) as draft:
                    draft.write_text(json.dumps(report, indent=1))
    compiled = json.loads(Path(args.compiled).read_text()) if args.compiled else {}
    write_page(args.out.with_suffix('.md'), page(report, compiled))


if __name__ == '__main__':
    main()
