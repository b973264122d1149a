"""demo.py: pictures of strangers, and its page in a browser."""

import importlib.util
import io
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.modern
pytest.importorskip('mmdet')
pytest.importorskip('mmpretrain')
pytest.importorskip('mmseg')

ROOT = Path(__file__).resolve().parents[2]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


demo = load(ROOT / 'tools/misc/demo.py')
models = load(ROOT / 'tests/test_tools/analysis_models.py')
demo_browser = load(ROOT / 'docs/site/demo_browser.py')


def test_files_that_are_offered(tmp_path):
    """Those of folders at any depth, without bases and what MMEngine keeps."""
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
    """Known by their bytes, whatever their name; (width, height), upright."""
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
    with sync_api.sync_playwright() as playwright:
        try:
            browser = demo_browser.launch(playwright)
        except FileNotFoundError as error:
            pytest.skip(str(error))
        with demo_browser.demo_page(*options, '--max-megapixels', '2') as address:
            page = browser.new_page(viewport=dict(width=1200, height=1000))
            page.set_default_timeout(60_000)
            page.goto(address)
            yield page
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


def size(page, which):
    """Size of what is shown in a part of the page."""
    image = page.locator(f'#{which} img')
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
    upload(page, folder / 'images/square.png')
    assert size(page, 'picture') == [90, 60]
    assert [*tmp_path.rglob('square.png')]
    choose(page, 'config2', 'segmentor')
    page.click('#predict')
    width, height = size(page, 'predictions')
    assert width > 3 * 500 and height > 200

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
    page.click('#predict')
    assert 'there is no picture' in error(page)
    for name, reason in (('text', 'cannot identify'), ('large', 'it has 1000 x 2001')):
        upload(page, folder / f'{name}.png')
        assert f"image='{name}.png': {reason}" in error(page)
        assert page.locator('#picture img').count() == 0
    # the server hands out no file that the page does not show
    for path in (ROOT / 'README.md', folder / 'configs/classifier.py', '/etc/passwd'):
        for route in ('gradio_api/file=', 'file='):
            assert page.request.get(f'{page.url}{route}{path}').status in (403, 404)
    # the browser is told to ask no other host, and another host is not answered
    policy = page.request.get(page.url).headers['content-security-policy']
    assert policy.startswith("default-src 'self' data: blob: ") and '*' not in policy
    assert page.request.get(page.url, headers=dict(host='evil.example')).status == 400
