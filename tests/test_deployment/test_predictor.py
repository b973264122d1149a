"""Predictor and its command on small files of ONNX operators, without torch."""

import errno
import itertools
import json
import re
import resource
import shutil
import sys
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from constant_models import FOUND, write_file
from loading import BLOCK, ROOT, run_command
from PIL import Image
from pycocotools import mask as masks

from mmlinattn.deployment import predictor
from mmlinattn.deployment.predictor import Predictor, as_json, paste

MISSING = ('torch', 'torchvision', 'mmcv', 'mmdet', 'mmengine', 'mmpretrain', 'mmseg')


@pytest.fixture
def photos(tmp_path):
    """A folder with two images, one of them turned by its EXIF data."""
    folder = tmp_path / 'photos'
    (folder / 'more').mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (12, 20, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(folder / 'a.png')
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels).save(folder / 'more/b.jpg', exif=exif)
    return folder


def test_boxes_and_masks(tmp_path, photos):
    model = Predictor(write_file(tmp_path / 'm.onnx', **FOUND))
    assert model.classes == ['cat', 'dog', 'owl']
    detections = model(photos / 'a.png', threshold=0.5)
    assert detections['scores'].tolist() == FOUND['scores'][:2].tolist()
    masks = detections['masks']
    assert masks.shape == (2, 12, 20) and masks.dtype == bool
    assert model(np.zeros((9, 9, 3), np.uint8), 1.0)['masks'].shape == (0, 9, 9)
    assert model(photos / 'more/b.jpg')['masks'].shape == (3, 20, 12)


def test_example(tmp_path, photos):
    """It runs a file where torch can't be imported."""
    script = ROOT / 'examples' / 'onnx_without_torch.py'
    for outputs, line in (
        (FOUND, 'owl'),
        (dict(scores=np.float32([0.1, 0.7, 0.2])), 'dog: 0.70'),
        (dict(label_map=np.eye(4, dtype=np.uint8)), 'dog: 25.0% of the pixels'),
    ):
        file = write_file(tmp_path / 'm.onnx', **outputs)
        command = sys.executable, script, file, photos / 'a.png', '--score', '0.1'
        out = run_command(*command)
        assert line in out and 'a.png' in out


def white_pixels(picture):
    return (np.asarray(picture) > 150).all(-1).sum()


def test_names_can_be_read_in_pictures():
    """Of a box at the border, of a small and of a large photo; one has many classes."""
    detections = dict(boxes=np.array([[0.0, 0, 90, 90]]), labels=np.array([1]))
    detections['scores'] = np.array([0.5])
    counts = []
    for size in (300, 3000):
        image = np.zeros((size, size, 3), np.uint8)
        counts.append(white_pixels(predictor.draw(image, detections, ['a', 'word'])))
    assert 30 < counts[0] < counts[1] / 10


def test_classes_of_a_label_map_are_named_in_their_colors():
    labels = np.zeros((200, 300), np.uint8)
    labels[100:] = 2
    image = np.zeros((200, 300, 3), np.uint8)
    picture = predictor.draw(image, dict(label_map=labels), ['sky', '', 'sea'])
    named = np.asarray(picture)
    halves = named[90, 290], named[190, 290]  # under colors of half the strength
    corner = named[:50, :80] // 2
    for color in halves:
        assert (corner == color).all(-1).any()
    assert white_pixels(picture) > 20


def test_runs_are_those_of_coco():
    detections = dict(FOUND, masks=paste(FOUND['masks'], FOUND['boxes'], (12, 20), 0.4))
    for entry, mask in zip(as_json(detections, [])['objects'], detections['masks']):
        size, counts = entry['mask']['size'], entry['mask']['counts']
        assert sum(counts) == 240
        packed = masks.frPyObjects(dict(size=size, counts=counts), *size)
        assert (masks.decode(packed).astype(bool) == mask).all()


@pytest.mark.parametrize(
    'outputs, expected',
    [
        (FOUND, dict(name='dog', score=0.9)),
        (dict(label_map=np.int32([[0, 0], [0, 2]])), dict(cat=0.75, owl=0.25)),
        (dict(scores=np.float32([0.1, 0.2, 0.7])), dict(name='owl', score=0.7)),
    ],
    ids=['detector', 'segmentor', 'classifier'],
)
def test_command_without_torch(outputs, expected, tmp_path, photos, run_python):
    if 'label_map' in outputs:
        outputs = dict(label_map=np.resize(outputs['label_map'], (20, 12)))
        (photos / 'a.png').unlink()
        expected = dict(zip(('cat', 'owl'), (0.75, 0.25)))
    path = write_file(tmp_path / 'm.onnx', **outputs)
    arguments = ['predictor.py', path, str(photos), '--out', str(tmp_path / 'out')]
    code = 'from mmlinattn.deployment import predictor\npredictor.main()'
    run_python(f'{BLOCK.format(blocked=MISSING)}\nsys.argv = {arguments}\n{code}')
    predictions = json.loads((tmp_path / 'out/predictions.json').read_text())
    names = [*('a.png',) * (photos / 'a.png').exists(), 'more/b.jpg']
    assert list(predictions) == names
    if 'label_map' in outputs:
        assert predictions['more/b.jpg'] == dict(shares=expected)
        labels = np.array(Image.open(tmp_path / 'out/more/b.jpg.labels.png'))
        assert (labels == outputs['label_map']).all()
    else:
        (rows,) = predictions['a.png'].values()
        assert {key: pytest.approx(rows[0][key]) for key in expected} == expected
        assert len(rows) == (2 if 'boxes' in outputs else 3)
    assert Image.open(tmp_path / 'out/more/b.jpg.png').size == (12, 20)


def test_an_image_that_a_model_refuses_costs_only_itself(
    tmp_path, photos, capsys, monkeypatch
):
    """Such as a strip of 2,000 x 3 pixels, at which ONNX Runtime raises."""
    path = write_file(tmp_path / 'm.onnx', scores=np.float32([0.5]))
    predict = Predictor.__call__

    def refuse(self, image, threshold):
        if image.shape[:2] == (3, 2000):
            raise RuntimeError('Non-zero status code')
        return predict(self, image, threshold)

    monkeypatch.setattr(Predictor, '__call__', refuse)
    Image.new('RGB', (2000, 3)).save(photos / 'a0.png')
    predictor.main([path, str(photos), '--out', str(tmp_path / 'out')])
    errors = capsys.readouterr().err
    assert f'not predicted: {photos / "a0.png"}: 2000 x 3 pixels: Non-zero' in errors
    predictions = json.loads((tmp_path / 'out/predictions.json').read_text())
    assert list(predictions) == ['a.png', 'more/b.jpg']


def test_a_damaged_image_costs_only_itself(tmp_path, photos, capsys):
    content = (photos / 'a.png').read_bytes()
    (photos / 'a0.png').write_bytes(content[: len(content) // 2])
    (photos / 'b0.jpg').write_text('<html>')
    path = write_file(tmp_path / 'm.onnx', scores=np.float32([0.5]))
    predictor.main([path, str(photos), '--out', str(tmp_path / 'out')])
    printed = capsys.readouterr()
    assert all(f'not read: {photos / x}: ' in printed.err for x in ('a0.png', 'b0.jpg'))
    assert '2 pictures, 2 images could not be read or predicted' in printed.out
    predictions = json.loads((tmp_path / 'out/predictions.json').read_text())
    assert list(predictions) == ['a.png', 'more/b.jpg']
    # the same folder once more: the damaged one is read now, and no other
    (photos / 'a0.png').write_bytes(content)
    (tmp_path / 'out/a.png.png').unlink()
    predictor.main([path, str(photos), '--out', str(tmp_path / 'out')])
    assert '2 images are predicted already, 2 remain' in capsys.readouterr().out
    predictions = json.loads((tmp_path / 'out/predictions.json').read_text())
    assert sorted(predictions) == ['a.png', 'a0.png', 'more/b.jpg']
    assert not (tmp_path / 'out/a.png.png').exists()
    (photos / 'a.png').write_text('')
    with pytest.raises(SystemExit, match='2'):
        predictor.main([path, str(photos / 'a.png'), '--out', str(tmp_path / 'no')])


@pytest.mark.parametrize('mode', ['RGB', 'L', 'P', '1', 'LA', 'RGBA', 'CMYK', 'I;16'])
@pytest.mark.parametrize('ending', ['jpg', 'png', 'ppm', 'webp', 'tif'])
def test_pixels_are_those_of_opencv(mode, ending, tmp_path, monkeypatch):
    """Of every mode and orientation that OpenCV reads."""
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 99)
    rows, columns = np.mgrid[:24, :40]
    image = Image.fromarray(np.uint16(rows * 1500 + columns * 700))
    if mode != 'I;16':
        gray = Image.fromarray(np.uint8(rows * 5 + columns * 3))
        image = Image.merge('RGB', (gray, gray.rotate(180), gray)).convert(mode)
    for orientation in (1, 3, 6):
        exif = Image.Exif()
        exif[0x0112] = orientation
        try:
            image.save(tmp_path / f'a.{ending}', exif=exif)
        except OSError:
            return  # the format has no such mode
        wanted = cv2.imread(str(tmp_path / f'a.{ending}'))
        if wanted is None:
            continue
        pixels = predictor.read_image(tmp_path / f'a.{ending}')
        assert pixels.shape == wanted.shape
        assert abs(pixels[..., ::-1].astype(int) - wanted).max() <= 3


@pytest.mark.parametrize('dtype', [np.int32, np.uint32, np.float32])
@pytest.mark.parametrize('most', [200, 40_000, 2**20])
def test_pixels_of_32_bits_are_refused(dtype, most, tmp_path):
    """OpenCV does not read them; the upper bits of small numbers are black."""
    pixels = np.linspace(0, most, 240).reshape(12, 20).astype(dtype)
    Image.fromarray(pixels).save(tmp_path / 'a.tif')
    assert cv2.imread(str(tmp_path / 'a.tif')) is None
    with pytest.raises(ValueError, match=r'a.tif.*: pixels of 32 bits are not read'):
        predictor.read_image(tmp_path / 'a.tif')


@pytest.mark.parametrize('shape', [(12, 20), (12, 20, 3)])
@pytest.mark.parametrize('ending', ['png', 'tif'])
def test_what_is_left_of_16_bits_is_said(predict, photos, tmp_path, shape, ending):
    """A microscope's values of 16 to 1,867 leave eight gray levels."""
    values = np.linspace(16, 1867, 240, dtype=np.uint16).reshape(12, 20)
    path = photos / f'dark.{ending}'
    cv2.imwrite(str(path), np.resize(values.T, shape[::-1]).T)
    _, said, predictions = predict()
    assert f'1 images, such as {path}, have 16 bits' in said and '8 gray levels' in said
    assert len(predictions) == 3
    with pytest.warns(UserWarning, match=f'dark.{ending} has 16 bits'):
        Predictor(tmp_path / 'm.onnx')(path)


def test_the_file_alone_is_a_command(tmp_path, photos, run_python):
    copied = shutil.copy(predictor.__file__, tmp_path / 'copied.py')
    path = write_file(tmp_path / 'm.onnx', scores=np.float32([0.5]))
    code = f'import runpy, sys\nsys.argv = {["copied.py", path, str(photos / "a.png")]}'
    run_python(f"{code}\nrunpy.run_path({str(copied)!r}, run_name='__main__')")
    assert (tmp_path / 'predictions/a.png.png').is_file()


@pytest.mark.parametrize(
    'image',
    [np.zeros((8, 8), np.uint8), np.zeros((8, 8, 3)), np.zeros((3, 8, 9), 'u1')],
)
def test_wrong_images(image, tmp_path):
    model = Predictor(write_file(tmp_path / 'm.onnx', scores=np.float32([1])))
    with pytest.raises(ValueError, match=r'an image must be \(H, W, 3\) uint8, got'):
        model(image)


def test_wrong_arguments(tmp_path, photos, capsys, monkeypatch):
    right = write_file(tmp_path / 'm.onnx', scores=np.float32([1]))
    other = write_file(tmp_path / 'o.onnx', 'images', scores=np.float32([1]))
    (tmp_path / 'empty').mkdir()
    monkeypatch.setattr(sys, 'argv', ['predictor.py'])
    for arguments, message in [
        ([other, photos], 'takes images, tensor(uint8), not whole images'),
        ([tmp_path / 'none.onnx', photos], 'none.onnx'),
        ([photos / 'a.png', photos], 'a.png'),
        ([right, tmp_path / 'empty'], 'has no images'),
        ([right, tmp_path / 'nowhere'], 'has no images'),
        ([right, photos, '--out', tmp_path], 'exists'),
    ]:
        with pytest.raises(SystemExit) as stopped:
            predictor.main(list(map(str, arguments)))
        line = capsys.readouterr().err.strip().splitlines()[-1]
        assert stopped.value.code == 2 and message in line


@pytest.fixture
def predict(tmp_path, photos, capsys):
    """Runs the command, and returns the exit code, lines and the predictions."""

    def call(*options, outputs=FOUND, name='m.onnx', images=photos):
        path = write_file(tmp_path / name, **outputs)
        code = 0
        try:
            out = str(tmp_path / 'out')
            predictor.main([path, str(images), '--out', out, *options])
        except SystemExit as stop:
            code = stop.code
        printed = capsys.readouterr()
        predictions = json.loads((tmp_path / 'out/predictions.json').read_text())
        return code, printed.out + printed.err, predictions

    return call


def test_what_a_folder_was_made_with(predict, photos):
    _, _, first = predict()
    assert len(first['a.png']['objects']) == 2
    assert '0 remain' in predict()[1]
    code, said, predictions = predict('--threshold', '0.7')
    assert code == 0 and 'were made with --threshold 0.3, and are made again' in said
    assert len(predictions['a.png']['objects']) == 1
    # others' predictions are kept
    for options in (dict(outputs=dict(scores=np.float32([1]))), dict(name='o.onnx')):
        if 'name' in options:
            options['outputs'] = dict(FOUND, scores=FOUND['scores'] / 2)
        code, said, kept = predict('--threshold', '0.7', **options)
        assert code == 2 and 'has predictions of m.onnx with --threshold 0.7' in said
        assert kept == predictions
    code, said, kept = predict(images=photos / 'a.png')
    assert code == 2 and 'give another --out, or --overwrite' in said
    assert kept == predictions
    Image.new('RGB', (9, 9)).save(photos / 'a.png')
    code, said, predictions = predict('--threshold', '0.7')
    assert 'made of 1 other images' in said and '1 remain' in said
    _, _, predictions = predict('--overwrite', outputs=dict(scores=np.float32([1])))
    assert 'classes' in predictions['a.png']


def test_its_own_pictures_are_no_photos(tmp_path, photos, predict):
    (tmp_path / 'out').mkdir()
    for images in (tmp_path, photos, tmp_path):
        shutil.rmtree(tmp_path / 'out')
        for _ in range(2):
            code, _, predictions = predict(images=images)
            assert code == 0 and len(predictions) == 2


def test_a_photo_that_fails_costs_only_itself(predict, monkeypatch):
    run = Predictor.__call__

    def call(self, image, threshold):
        if len(image) == 12:
            raise RuntimeError('a dimension\nof 0')
        return run(self, image, threshold)

    monkeypatch.setattr(Predictor, '__call__', call)
    code, said, predictions = predict()
    assert code == 0 and list(predictions) == ['more/b.jpg']
    assert re.search('not predicted: .*a.png: 20 x 12 pixels: a dimension of 0', said)


@pytest.mark.skipif(not Path('/proc/self/statm').exists(), reason='needs Linux')
def test_memory_does_not_grow_with_sizes(tmp_path):
    """ONNX Runtime's patterns for 200 sizes of images would stay in memory: 5 MB of
    this graph of 500 operators."""
    helper, types = onnx.helper, onnx.TensorProto
    names = [f'x{i}' for i in range(500)]
    nodes = [helper.make_node('Cast', ['image'], ['floats'], to=types.FLOAT)]
    nodes += [helper.make_node('Add', ['floats', f'{x}_'], [x]) for x in names]
    nodes += [helper.make_node('Sum', names, ['sum'])]
    nodes += [helper.make_node('ReduceMean', ['sum'], ['scores'], axes=[0, 1])]
    constants = [
        helper.make_tensor(f'{x}_', types.FLOAT, [], [float(i)])
        for i, x in enumerate(names)
    ]
    describe = helper.make_tensor_value_info
    image = describe('image', types.UINT8, ['height', 'width', 3])
    scores = describe('scores', types.FLOAT, [1, 1, 3])
    graph = helper.make_graph(nodes, 'many', [image], [scores], constants)
    opsets = [helper.make_opsetid('', 17)]
    onnx.save(
        helper.make_model(graph, opset_imports=opsets, ir_version=8),
        tmp_path / 'm.onnx',
    )
    model = Predictor(tmp_path / 'm.onnx', threads=1)

    def pages():
        return int(Path('/proc/self/statm').read_text().split()[1])

    for side in range(200, 220):
        model(np.zeros((side, 2, 3), np.uint8))
    before = pages()
    for side in range(1, 201):
        scores = model(np.zeros((side, 2, 3), np.uint8))['scores']
        assert scores.ravel() == pytest.approx(124750, rel=1e-4)
    assert (pages() - before) * resource.getpagesize() < 2 * 2**20


def kill_at(monkeypatch, count):
    """Lets the process end, as by SIGKILL, before it writes its next picture."""
    save = predictor.save_png
    left = itertools.count(-count)

    def save_or_die(*args):
        if next(left) >= 0:
            raise Killed
        save(*args)

    monkeypatch.setattr(predictor, 'save_png', save_or_die)
    # an end by SIGKILL writes nothing
    monkeypatch.setattr(predictor.Folder, 'save', save_unless_killed)


class Killed(BaseException):
    """Stands for the end of a process."""


SAVE = predictor.Folder.save


def save_unless_killed(self):
    if not isinstance(sys.exc_info()[1], Killed):
        SAVE(self)


def test_a_killed_command_goes_on(predict, photos, tmp_path, monkeypatch):
    """It keeps what was predicted, and makes nothing twice."""
    for name in 'cdef':
        shutil.copy(photos / 'a.png', photos / f'{name}.png')
    whole, out = tmp_path / 'whole', tmp_path / 'out'
    _, _, expected = predict()
    out.rename(whole)
    for count, left in ((2, 4), (3, 1)):
        with monkeypatch.context() as patch:
            kill_at(patch, count)
            with pytest.raises(Killed):
                predict()
        assert not list(out.rglob('.*.part'))
        with (out / predictor.LOG).open('a') as file:
            file.write('["half of a line')  # of a kill while it was written
        assert len(predictor.Folder.read(out).predictions) == 6 - left
    _, said, predicted = predict()
    assert '5 images are predicted already, 1 remain' in said
    assert predicted == expected and not (out / predictor.LOG).exists()
    files = [{x.relative_to(y) for x in y.rglob('*')} for y in (out, whole)]
    assert files[0] == files[1]


def test_predictions_of_two_models_are_never_mixed(
    predict, photos, tmp_path, monkeypatch
):
    """A kill while one's predictions replace another's leaves none or its own."""
    out = tmp_path / 'out'
    predict()
    for options, outputs in (
        (['--overwrite'], dict(scores=np.float32([1]))),
        (['--overwrite', '--threshold', '0.8'], FOUND),
        (['--threshold', '0.7'], FOUND),
    ):
        with monkeypatch.context() as patch:
            kill_at(patch, 1)
            with pytest.raises(Killed):
                predict(*options, outputs=outputs)
        assert not (out / predictor.RESULT).exists()
        assert list(predictor.Folder.read(out).predictions) == ['a.png']
        options = [x for x in options if x != '--overwrite']
        _, said, predicted = predict(*options, outputs=outputs)
        assert '1 images are predicted already, 1 remain' in said
        assert len(predicted) == 2


@pytest.mark.parametrize('step', ('_write_result', '_write_record', '_remove_log'))
@pytest.mark.parametrize('options', ([], ['--overwrite', '--threshold', '0.7']))
def test_a_kill_between_files_loses_nothing(
    step, options, predict, photos, tmp_path, monkeypatch
):
    """Whichever file is the last that is written at the end."""
    predict(*options[1:])
    Image.new('RGB', (9, 9)).save(photos / 'new.png')

    def die(self):
        raise Killed

    with monkeypatch.context() as patch:
        begin = predictor.Folder.begin

        def begin_then_die(self):
            begin(self)
            patch.setattr(predictor.Folder, step, die)

        patch.setattr(predictor.Folder, 'begin', begin_then_die)
        with pytest.raises(Killed):
            predict(*options)
    threshold = 0.7 if options else 0.3
    folder = predictor.Folder.read(tmp_path / 'out')
    assert folder.threshold == threshold and 'new.png' in folder.predictions
    _, said, predictions = predict(*options[1:])
    # a changed threshold's predictions are made again, but those of this run
    assert '3 images are predicted already' in said
    assert len(predictions) == 3


def test_predictions_of_other_programs(photos, tmp_path, capsys):
    """A predictions.json that this command did not write is neither read nor replaced,
    and photos beside it are photos."""
    path = write_file(tmp_path / 'm.onnx', scores=np.float32([0.5]))
    out = tmp_path / 'out'
    out.mkdir()
    for content, record in (
        ('[{"image_id": 1}]', None),
        ('{"a.png": 1}', None),
        ('{"a.png": {"objects": []}}', '{"model": "theirs"}'),
        ('{', '[]'),
    ):
        (out / 'predictions.json').write_text(content)
        if record:
            (out / 'made_with.json').write_text(record)
        for options in ([], ['--overwrite']):
            with pytest.raises(SystemExit, match='2'):
                predictor.main([path, str(photos), '--out', str(out), *options])
            assert 'give another --out' in capsys.readouterr().err
            assert (out / 'predictions.json').read_text() == content
    shutil.copy(out / 'predictions.json', photos)
    predictor.main([path, str(photos), '--out', str(tmp_path / 'new')])
    predictions = json.loads((tmp_path / 'new/predictions.json').read_text())
    assert list(predictions) == ['a.png', 'more/b.jpg']


def test_a_full_disk_costs_a_line(predict, photos, tmp_path, monkeypatch, capsys):
    """What was predicted before stays, and the same command goes on."""
    path = write_file(tmp_path / 'm.onnx', **FOUND)
    write, count = Path.replace, itertools.count()

    def replace(self, target):
        if next(count) >= 2:  # the record and a picture fit
            raise OSError(errno.ENOSPC, 'No space left on device', str(target))
        return write(self, target)

    monkeypatch.setattr(Path, 'replace', replace)
    with pytest.raises(SystemExit, match='2'):
        predictor.main([path, str(photos), '--out', str(tmp_path / 'out')])
    line = capsys.readouterr().err.splitlines()[-1]
    assert 'No space left on device' in line and 'the same command goes on' in line
    monkeypatch.undo()
    assert not list(tmp_path.rglob('.*.part'))
    code, said, predictions = predict()
    assert code == 0 and len(predictions) == 2
    assert '1 images are predicted already' in said


@pytest.mark.parametrize('value', ('nan', '-0.1', '1.5', 'inf', 'high'))
def test_thresholds_that_are_none(value, tmp_path, photos, capsys):
    path = write_file(tmp_path / 'm.onnx', **FOUND)
    with pytest.raises(SystemExit, match='2'):
        predictor.main([path, str(photos), '--threshold', value])
    assert '--threshold' in capsys.readouterr().err.splitlines()[-1]
    with pytest.raises(ValueError, match='threshold must be a number, got nan'):
        Predictor(path)(photos / 'a.png', float('nan'))


def test_a_gpu_is_used_where_there_is_one(tmp_path, monkeypatch):
    path = write_file(tmp_path / 'm.onnx', scores=np.float32([1]))
    session, used = predictor.onnxruntime.InferenceSession, []

    def open_session(file, options, providers):
        used.append(providers)
        return session(file, options, providers=['CPUExecutionProvider'])

    there = [
        'TensorrtExecutionProvider',
        'CUDAExecutionProvider',
        'CPUExecutionProvider',
    ]
    runtime = predictor.onnxruntime
    monkeypatch.setattr(runtime, 'InferenceSession', open_session)
    for providers in (there, there[2:]):
        monkeypatch.setattr(runtime, 'get_available_providers', lambda x=providers: x)
        Predictor(path)
    assert used == [there[1:], there[2:]]
