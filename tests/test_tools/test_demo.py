"""demo.py: pictures of strangers, and its page in a browser."""

import io
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from loading import load_module
from PIL import Image

pytestmark = pytest.mark.modern
pytest.importorskip('mmdet')
pytest.importorskip('mmpretrain')
pytest.importorskip('mmseg')

ROOT = Path(__file__).resolve().parents[2]


demo = load_module(ROOT / 'tools/misc/demo.py')
models = load_module(ROOT / 'tests/test_tools/analysis_models.py')
demo_browser = load_module(ROOT / 'docs/site/demo_browser.py')


def test_files_that_are_offered(tmp_path):
    """Files of folders at any depth, without bases and MMEngine's own."""
    for name in ('a/x.py', 'a/_base_/y.py', 'a/vis_data/config.py', 'z.py', 'a/x.txt'):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = demo.find_files('--configs', [str(tmp_path)], ['.py'])
    assert [path for _, path in found] == [
        str(tmp_path / x) for x in ('a/x.py', 'z.py')
    ]
    for place in ('nowhere', tmp_path / 'a/_base_'):
        with pytest.raises(FileNotFoundError, match=f'--configs {place}: there is no'):
            demo.find_files('--configs', [place], ['.py'])


def test_what_is_offered_first(tmp_path, monkeypatch):
    """The newest run of work_dirs, and pictures of its test data."""
    monkeypatch.chdir(tmp_path)
    args = demo.parse_args([])
    configs, checkpoints, images = demo.offered(args)
    assert len(configs) > 50 and not checkpoints and not images
    for age, run in enumerate(('new', 'old', 'bare')):
        weights = Path('work_dirs', run, 'epoch_1.pth')
        weights.parent.mkdir(parents=True)
        if run != 'bare':  # weights without a config are of no run
            config = models.write_config(weights.parent, run, 'retinanet')
            data = f"'CocoDataset', data_root='{run}', data_prefix=dict(img='val/')"
            text = Path(config).read_text().replace("'CocoDataset'", data)
            Path(config).write_text(text)
            models.write_image(f'{run}/val/{run}.png')
        weights.touch()
        os.utime(weights, (0, 100 - age if run != 'bare' else 200))
    configs, checkpoints, images = demo.offered(args)
    assert configs[0][1] == 'work_dirs/new/new.py' and len(configs) > 50
    assert [path for _, path in checkpoints] == ['work_dirs/new/epoch_1.pth']
    assert images == [('new.png', 'new/val/new.png')]
    # of those that are named, the newest, too
    args = demo.parse_args(['--checkpoints', 'work_dirs', '--configs', 'work_dirs'])
    configs, checkpoints, _ = demo.offered(args)
    assert [Path(path).parent.name for _, path in checkpoints] == ['bare', 'new', 'old']
    assert [Path(path).name for _, path in configs] == ['new.py', 'old.py']


def test_without_gradio(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'gradio', None)
    with pytest.raises(SystemExit) as stop:
        demo.main([])
    assert stop.value.code == 2
    assert 'pip install -r requirements/demo.txt' in capsys.readouterr().err


def encoded(form='PNG', size=(90, 60), **options):
    pixels = np.random.default_rng(0).integers(0, 255, (*size[::-1], 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form, **options)
    return file.getvalue()


@pytest.fixture
def check(tmp_path):
    def call(content):
        path = tmp_path / 'picture.txt'
        path.write_bytes(content)
        return demo.check_picture(path, 0.011)

    return call


def test_pictures_that_are_taken(check):
    """Their bytes are recognized, whatever their name; (width, height), upright."""
    for form in demo.FORMATS:
        assert check(encoded(form)) == (90, 60)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    assert check(encoded('JPEG', exif=exif)) == (60, 90)


@pytest.mark.parametrize(
    'content',
    (
        b'',
        b'<svg xmlns="http://www.w3.org/2000/svg"/>',
        encoded('GIF'),
        encoded()[:2000],
        encoded(size=(31, 60)),
    ),
)
def test_pictures_that_are_refused(check, content):
    with pytest.raises(ValueError, match=r"image='picture.txt': .*Give PNG, .* of up"):
        check(content)


def test_size_before_pixels(check, monkeypatch):
    def load(self):
        raise AssertionError('decoded')

    content = encoded(size=(106, 104))
    monkeypatch.setattr('PIL.PngImagePlugin.PngImageFile.load', load)
    with pytest.raises(ValueError, match='it has 106 x 104 pixels'):
        check(content)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('demo')
    (folder / 'configs').mkdir()
    for kind in ('classifier', 'segmentor'):
        models.write_config(folder / 'configs', kind, kind)
    (folder / 'configs/run').mkdir()
    config = models.write_config(folder / 'configs/run', 'retinanet', 'retinanet')
    models.save_weights(config, folder / 'configs/run/retinanet.pth')
    models.write_image(folder / 'images/square.png')
    models.write_image(folder / 'images/other.png', 50, 40)
    models.write_image(folder / 'large.png', 2001, 1000)
    (folder / 'text.png').write_text('not an image')
    return folder


@pytest.fixture
def page(folder, monkeypatch, tmp_path):
    """The page, with temporary files in tmp_path; its process ends with the test."""
    hint = 'pip install -r requirements/demo.txt'
    pytest.importorskip('gradio', reason=hint)
    sync_api = pytest.importorskip('playwright.sync_api', reason=hint)
    monkeypatch.setenv('TMPDIR', str(tmp_path))
    monkeypatch.setattr(tempfile, 'tempdir', None)
    options = '--configs', folder / 'configs', '--images', folder / 'images'
    options += '--checkpoints', folder / 'configs', '--score', '0'
    with sync_api.sync_playwright() as playwright:
        try:
            browser = demo_browser.launch(playwright)
        except FileNotFoundError as error:
            pytest.skip(str(error))
        with demo_browser.demo_page(*options, '--max-megapixels', '2') as address:
            page = browser.new_page(viewport=dict(width=1200, height=1000))
            page.set_default_timeout(60_000)
            asked = []
            page.on('request', lambda request: asked.append(request.url))
            page.goto(address)
            yield page
            local = 'data:', 'blob:', address
            assert [url for url in asked if not url.startswith(local)] == []
        browser.close()
    assert not [*tmp_path.rglob('*.png')]  # uploads end with the page


def upload(page, path):
    with page.expect_file_chooser() as chooser:
        page.click('#upload')
    chooser.value.set_files(str(path))


def choose(page, which, name):
    """Takes an entry of a list."""
    page.locator(f'#{which} input').fill(name)
    page.get_by_role('option', name=name).first.click()


def size(page, which, place=0):
    """Size of a picture that is shown in a part of the page."""
    image = page.locator(f'#{which} img').nth(place)
    image.wait_for()
    sizes = '(x) => x.decode().then(() => [x.naturalWidth, x.naturalHeight])'
    return image.evaluate(sizes)


def error(page):
    """Waits for a dialog with an error, closes it, and returns its text."""
    dialog = page.locator('.toast-body.error').first
    dialog.wait_for()
    text = dialog.inner_text()
    dialog.locator('.toast-close').click()
    dialog.wait_for(state='detached')
    return text


@pytest.mark.full
def test_page(page, folder, tmp_path):
    # a checkpoint, a picture, and the predictions for it are shown
    assert size(page, 'picture') == [40, 50]
    assert size(page, 'predictions') == [40, 50]
    assert 'retinanet' in page.locator('#predictions').inner_text()
    caption = page.get_by_text('objects: 5')
    caption.wait_for()
    score = page.locator('#score input[type=range]')
    score.fill('1')
    score.dispatch_event('pointerup')
    page.get_by_text('objects: 0').wait_for()
    upload(page, folder / 'images/square.png')
    page.locator('#predictions img').wait_for(state='detached')
    assert size(page, 'picture') == [90, 60]
    assert [*tmp_path.rglob('square.png')]
    choose(page, 'config1', 'segmentor')
    page.click('#predict')
    for place in (0, 1):  # models, and pictures of their own size
        assert size(page, 'predictions', place) == [90, 60]

    box = page.locator('#picture img').bounding_box()
    # the picture keeps its sides' ratio in the middle of its box
    scale = min(box['width'] / 90, box['height'] / 60)
    x = box['x'] + box['width'] / 2 + scale * 20
    y = box['y'] + box['height'] / 2 - scale * 10
    page.mouse.click(x, y)
    assert min(size(page, 'attention')) > 200
    label = page.locator('#attention label').first.inner_text()
    place = [int(x) for x in re.findall(r'\d+', label)]
    assert abs(place[0] - 65) <= 1 and abs(place[1] - 20) <= 1

    page.click('#curves')
    assert min(size(page, 'frequencies')) > 500
    choose(page, 'chosen', 'other.png')
    page.locator('#frequencies img').wait_for(state='detached')
    assert size(page, 'picture') == [40, 50]


@pytest.mark.full
def test_what_the_page_refuses(page, folder):
    page.locator('#predictions img').wait_for()
    choose(page, 'config0', 'none')
    page.click('#predict')
    assert 'no model is chosen' in error(page)
    for name, reason in (('text', 'cannot identify'), ('large', 'it has 1000 x 2001')):
        upload(page, folder / f'{name}.png')
        assert f"image='{name}.png': {reason}" in error(page)
        assert size(page, 'picture') == [40, 50]
    # the server hands out no file that the page does not show
    for path in (ROOT / 'README.md', folder / 'configs/classifier.py', '/etc/passwd'):
        for route in ('gradio_api/file=', 'file='):
            assert page.request.get(f'{page.url}{route}{path}').status in (403, 404)
    # the page names no other host, the browser is told to ask none, and another host is
    # not answered
    served = page.request.get(page.url)
    assert not re.search(r'<[^>]*https?://', served.text())
    policy = served.headers['content-security-policy']
    assert policy.startswith("default-src 'self' data: blob: ") and '*' not in policy
    assert page.request.get(page.url, headers=dict(host='evil.example')).status == 400
