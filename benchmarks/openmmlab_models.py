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

import json
import multiprocessing
import os
import resource
import sys
import warnings
from collections import defaultdict
from importlib import import_module
from operator import itemgetter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common  # noqa: F401
import mmcv
import torch
from mmengine.config import ConfigDict
from mmengine.logging import MessageHub, MMLogger
from mmengine.model.utils import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope
from mmengine.utils import import_modules_from_strings
from openmmlab_configs import (
    by_turns,
    find,
    mapped,
    read_configs,
    with_few_regions,
    without_weights,
)
from openmmlab_data import DATA, is_self_supervised, made_up_language_models, side_of
from side_by_side.report import markdown, write_page

from mmlinattn import ops
from mmlinattn.cli.parser import (
    INPUT_ERRORS,
    Parser,
    errors_in_one_line,
    number,
    output_file,
)
from mmlinattn.utils.files import whole_file

LIBRARIES = ('mmdet', 'mmseg', 'mmpretrain', 'mmrotate')
MEMORY = 16 << 30  # bytes of a process


def try_model(library, model, folder):
    """Try a model; returns its error, and the operators it calls."""
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
    """Return the result of :func:`try_model` in a process that may crash or hang."""
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
    """Return names of the models that run in a report."""
    results = json.loads(Path(report).read_text())[library]['results']
    return [name for name, result in results.items() if 'error' not in result]


def kind_of(result):
    """Return one of: runs, needs NAME, fails."""
    if 'error' not in result:
        return 'runs'
    missing = 'not among the operators of mmlinattn' in result['error']
    return f'needs {result["error"].split()[1]}' if missing else 'fails'


def page(report, compiled):
    """Return a page about what runs, Markdown; ``compiled`` is a report of what fails,
    made where mmcv is compiled."""
    header = ['library', 'configs', 'run', 'need an operator', 'fail with both', 'fail']
    rows, others = [], []
    for library, entry in report.items():
        counts = defaultdict(int)
        there = compiled.get(library, {}).get('results', {})
        for name, result in entry['results'].items():
            kind, count = kind_of(result), len(entry['names'][name])
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
        lines += ['', markdown(titles, sorted(others, key=itemgetter(1, 0)))]
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
        entry = report.setdefault(library, dict(results={}))
        entry.update(names=names, errors=errors, torch=torch.__version__)
        fine = ran_in(args.failed, library) if args.failed else ()
        for name, model in by_turns(models):
            if args.only in name and name not in {*entry['results'], *fine}:
                result = run_apart(args.limit, library, model, args.out.parent)
                entry['results'][name] = result
                print(name, result.get('error', 'runs'), flush=True)
                with whole_file(args.out) as draft:
                    draft.write_text(json.dumps(report, indent=1))
    compiled = json.loads(Path(args.compiled).read_text()) if args.compiled else {}
    write_page(args.out.with_suffix('.md'), page(report, compiled))


if __name__ == '__main__':
    main()
