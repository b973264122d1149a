"""The page of demo.py in a browser without a screen."""

import importlib.util
import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.modern]

pytest.importorskip('mmpretrain')
pytest.importorskip('mmseg')
pytest.importorskip('gradio', reason='pip install -r requirements/demo.txt')
sync_api = pytest.importorskip(
    'playwright.sync_api', reason='pip install -r requirements/demo.txt'
)

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / 'tools/misc/demo.py'
LIMIT = 60_000  # ms that an answer may take


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


models = load(Path(__file__).parent / 'analysis_models.py')
demo_browser = load(ROOT / 'docs/site/demo_browser.py')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('demo')
    for kind in ('classifier', 'segmentor'):
        (folder / 'configs').mkdir(exist_ok=True)
        models.write_config(folder / 'configs', kind, kind)
    resnet = Path(models.write_config(folder / 'configs', 'resnet', 'segmentor'))
    backbone = "dict(type='mmseg.ResNetV1c', depth=18"
    resnet.write_text(
        resnet.read_text()
        .replace(models.SOFT, backbone)
        .replace('in_channels=16, in_index=1', 'in_channels=512, in_index=3')
    )
    models.write_image(folder / 'images/square.png')
    models.write_image(folder / 'large.png', 2001, 1000)
    (folder / 'text.png').write_text('not an image')
    return folder


@pytest.fixture(scope='module')
def address(folder):
    """Where the page is served, by a process that ends with the tests."""
    folders = ['--configs', folder / 'configs', '--images', folder / 'images']
    with demo_browser.demo_page(
        '--max-megapixels', '2', *folders, cwd=folder
    ) as address:
        yield address


@pytest.fixture(scope='module')
def browser():
    with sync_api.sync_playwright() as playwright:
        try:
            browser = demo_browser.launch(playwright)
        except FileNotFoundError as error:
            pytest.skip(str(error))
        yield browser
        browser.close()


@pytest.fixture
def page(browser, address):
    page = browser.new_page(viewport=dict(width=1200, height=1000))
    page.set_default_timeout(LIMIT)
    page.goto(address)
    page.wait_for_selector('#message textarea')
    yield page
    page.close()


def message(page, pattern):
    """Waits for a message and returns it."""
    box = page.locator('#message textarea')
    sync_api.expect(box).to_have_value(re.compile(pattern), timeout=LIMIT)
    return box.input_value()


def upload(page, path):
    with page.expect_file_chooser() as chooser:
        page.click('#upload')
    chooser.value.set_files(str(path))


def choose(page, which, name):
    """Takes an entry of a list."""
    page.locator(f'#{which} input').fill(name)
    page.get_by_role('option', name=name).first.click()


def picture(page, which):
    """Size of what is shown in a part of the page."""
    image = page.locator(f'#{which} img')
    image.wait_for()
    sizes = '(x) => x.decode().then(() => [x.naturalWidth, x.naturalHeight])'
    return image.evaluate(sizes)


def test_from_upload_to_click(page, folder):
    upload(page, folder / 'images/square.png')
    message(page, '^90 x 60 pixels')
    assert picture(page, 'picture') == [90, 60]

    choose(page, 'config2', 'segmentor')
    page.click('#predict')
    message(page, r'^Predictions: [\d.]+ s$')
    width, height = picture(page, 'predictions')
    assert width > 3 * 500 and height > 200

    box = page.locator('#picture img').bounding_box()
    # the picture keeps its sides' ratio in the middle of its box
    scale = min(box['width'] / 90, box['height'] / 60)
    x = box['x'] + box['width'] / 2 + scale * 20
    y = box['y'] + box['height'] / 2 - scale * 10
    page.mouse.click(x, y)
    found = message(page, r'^Attention at \(\d+, \d+\)')
    place = [int(x) for x in re.findall(r'\d+', found)[:2]]
    assert abs(place[0] - 65) <= 1 and abs(place[1] - 20) <= 1
    first = picture(page, 'attention')
    page.check('#every-layer input')
    page.mouse.click(x, y - scale * 10)
    message(page, r'^Attention at \(\d+, (9|10|11)\)')
    assert picture(page, 'attention')[0] >= first[0]

    page.click('#curves')
    message(page, '^Frequency curves')
    assert min(picture(page, 'frequencies')) > 500


def test_choose_a_picture(page):
    choose(page, 'chosen', 'square.png')
    message(page, '^90 x 60 pixels')
    assert picture(page, 'picture') == [90, 60]


def test_what_is_refused(page, folder):
    page.click('#predict')
    message(page, '^Error: there is no picture')
    upload(page, folder / 'text.png')
    message(page, "^Error: image='text.png' is not an image: give PNG, JPEG")
    upload(page, folder / 'large.png')
    found = message(page, '^Error: .*has 1000 x 2001 pixels')
    assert 'give one of 2 megapixels or fewer' in found
    assert page.locator('#picture img').count() == 0

    upload(page, folder / 'images/square.png')
    message(page, '^90 x 60 pixels')
    choose(page, 'config1', 'resnet')
    page.click('#curves')
    message(page, '^Error: ResNetV1c has no attention of mmlinattn')
    assert page.locator('#frequencies img').count() == 0


def test_files_that_are_not_served(page, address, folder):
    """The server hands out nothing that the page does not show."""
    for path in (TOOL, folder / 'configs/classifier.py', '/etc/passwd'):
        for route in ('gradio_api/file=', 'file='):
            answer = page.request.get(f'{address}/{route}{path}')
            assert answer.status in (403, 404), (route, path)


def test_no_other_host(page, address):
    """The browser is told to ask none."""
    policy = page.request.get(address).headers['content-security-policy']
    assert policy.startswith("default-src 'self' data: blob: ") and '*' not in policy


def test_this_machine_only(address):
    """Nobody else can reach the port: it is bound to the loopback address."""
    port = int(address.rpartition(':')[2])
    table = Path('/proc/net/tcp')
    if not table.exists():
        pytest.skip('there is no table of open ports')
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    bound = [x[1].split(':')[0] for x in rows if x[1].endswith(f':{port:04X}')]
    assert bound and set(bound) == {'0100007F'}
