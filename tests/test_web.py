"""examples/web predicts in Chromium what Predictor predicts."""

import json
import shutil
import subprocess
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread

import analysis_models as miniatures
import numpy as np
import pytest
import torch
from loading import ROOT
from PIL import Image

from mmlinattn.deployment import Predictor, WholeModel, export
from mmlinattn.engine import build_model
from mmlinattn.utils import load_config

PAGE = ROOT / 'examples/web'
CHROMIUM = shutil.which('chromium') or shutil.which('google-chrome')
pytestmark = [
    pytest.mark.full,
    pytest.mark.openmmlab,
    pytest.mark.skipif(not CHROMIUM, reason='needs Chromium'),
    pytest.mark.skipif(
        not (PAGE / 'node_modules').exists(), reason='npm install in examples/web'
    ),
]
ANSWER = """
<script>
ready.then(() => fetch('answer', { method: 'POST', body: JSON.stringify({
  status: document.getElementById('status').textContent,
  classes,
  found: shown && Object.fromEntries(Object.entries(shown.found).map(
    ([name, x]) => [name, { dims: x.dims, data: Array.from(x.data, Number) }])),
  picture: document.getElementById('canvas').toDataURL(),
}) }))
</script>
"""


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, and takes what the page found."""

    def do_GET(self):
        if self.path.partition('?')[0] != '/':
            return super().do_GET()
        page = ((PAGE / 'index.html').read_text('utf-8') + ANSWER).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.end_headers()
        return self.wfile.write(page)

    def do_POST(self):
        size = int(self.headers['Content-Length'])
        self.server.answers.put(json.loads(self.rfile.read(size)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


def predict_in_browser(folder, model, photo):
    """What the page finds in a photo, as arrays by name, and the names of classes."""
    for name in ('predict.js', 'node_modules'):
        (folder / name).symlink_to(PAGE / name)
    handler = partial(Handler, directory=str(folder))
    with ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        server.answers = Queue()
        Thread(target=server.serve_forever, daemon=True).start()
        address = f'http://127.0.0.1:{server.server_port}/?model={model}&photo={photo}'
        options = ['--headless=new', '--no-sandbox', '--disable-gpu']
        options.append(f'--user-data-dir={folder / "profile"}')
        with open(folder / 'chromium.log', 'wb') as log:
            browser = subprocess.Popen(
                [CHROMIUM, *options, address], stdout=log, stderr=log
            )
            try:
                answer = server.answers.get(timeout=120)
            finally:
                browser.terminate()
                browser.wait(30)
        server.shutdown()
    assert answer['found'], answer['status']
    predicted = {
        name: np.array(x['data']).reshape(x['dims'])
        for name, x in answer['found'].items()
    }
    return predicted, answer['classes']


def write_model(kind, path):
    """A small model with random weights in an ONNX file."""
    config = load_config(miniatures.write_config('', kind, kind, miniatures.QUICK))
    torch.manual_seed(0)
    pipeline = config.test_dataloader.dataset.pipeline
    preprocessor = config.get('data_preprocessor') or config.model.data_preprocessor
    model = WholeModel(build_model(config), pipeline, preprocessor)
    export(model, path, notes=dict(classes=['cat', 'dog', 'owl']))


@pytest.mark.parametrize('kind', ['mask', 'segmentor', 'classifier'])
def test_the_page_finds_what_predictor_finds(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_model(kind, tmp_path / 'model.onnx')
    pixels = np.random.default_rng(0).integers(0, 256, (9, 13, 3)).astype(np.uint8)
    Image.fromarray(pixels).resize((130, 97)).save('photo.png')
    predicted, classes = predict_in_browser(tmp_path, 'model.onnx', 'photo.png')
    predictor = Predictor('model.onnx')
    expected = predictor('photo.png')
    assert classes == predictor.classes
    if kind == 'segmentor':
        assert (predicted['label_map'] == expected['label_map']).mean() > 0.999
        return
    np.testing.assert_allclose(predicted['scores'], expected['scores'], atol=1e-4)
    if kind == 'mask':
        # boxes with the same score may change places
        assert len(predicted['boxes']) == len(expected['boxes']) > 0
        for box, label in zip(expected['boxes'], expected['labels']):
            same = predicted['boxes'][predicted['labels'] == label]
            assert abs(same - box).max(axis=1).min() < 0.5
