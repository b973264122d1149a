"""Files that are read, and files that are refused."""

import io
import os
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest
import safetensors.torch
import torch
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer, MessageHub
from mmengine.optim import OptimWrapper
from mmengine.registry import PARAM_SCHEDULERS

from mmlinattn.weights import read_file

WEIGHTS = {'a': torch.arange(6.0).view(2, 3), 'b': torch.tensor(3)}
PAYLOAD = b'no state dict, but text that is long enough to be a header of any file'


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'weights.pth'


@pytest.mark.parametrize('name', ['x.pth', 'x.pth.tar', 'x.bin', 'legacy', 'float16'])
def test_files_of_torch(tmp_path, name):
    weights = dict(WEIGHTS)
    if name == 'float16':
        weights['c'] = torch.nn.Parameter(torch.ones(2, dtype=torch.float16))
    new = name != 'legacy'
    torch.save(weights, tmp_path / name, _use_new_zipfile_serialization=new)
    read = read_file(str(tmp_path / name))
    assert read.keys() == weights.keys()
    assert all(torch.equal(read[key], value) for key, value in weights.items())


def test_safetensors(tmp_path, monkeypatch):
    path = tmp_path / 'x.safetensors'
    safetensors.torch.save_file(WEIGHTS, path)
    read = read_file(str(path))
    assert all(read[key].equal(value) for key, value in WEIGHTS.items())
    path.write_bytes(PAYLOAD)
    with pytest.raises(ValueError, match=r'x\.safetensors.* cannot be read'):
        read_file(str(path))
    monkeypatch.setitem(sys.modules, 'safetensors', None)
    with pytest.raises(ImportError, match='pip install safetensors'):
        read_file(str(path))


def test_config_of_yacs(path, monkeypatch):
    """Checkpoints of Swin's code hold one; reading them needs no yacs."""
    yacs = types.ModuleType('yacs.config')
    yacs.CfgNode = type('CfgNode', (dict,), dict(__module__='yacs.config'))
    monkeypatch.setitem(sys.modules, 'yacs', types.ModuleType('yacs'))
    monkeypatch.setitem(sys.modules, 'yacs.config', yacs)
    config = yacs.CfgNode(MODEL=yacs.CfgNode(NAME='swin', DEPTHS=[2, 2]))
    config.__dict__.update(_immutable=True)
    torch.save(dict(model=WEIGHTS, config=config), path)
    monkeypatch.delitem(sys.modules, 'yacs.config')
    content = read_file(path)
    assert content['config'] == dict(MODEL=dict(NAME='swin', DEPTHS=[2, 2]))
    assert content['model']['a'].equal(WEIGHTS['a'])


def test_metadata_of_training(path):
    """The entries of MMEngine's runner in a checkpoint need no trust."""
    hub = MessageHub('metadata')
    for value in (0.5, 0.25):
        hub.update_scalar('train/loss', value)
    hub.update_info('accuracy', np.float64(0.75))
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    wrapper = OptimWrapper(optimizer)
    wrapper.update_params(model(torch.ones(1, 2)).sum())
    schedules = [
        dict(type='MultiStepLR', milestones=[8, 11]),
        dict(type='CosineRestartLR', periods=[2], eta_min=0),
        dict(type='PolyLR', power=2.0),
        dict(type='ReduceOnPlateauLR', monitor='loss'),
    ]
    schedules = [
        PARAM_SCHEDULERS.build(dict(x, optimizer=optimizer)) for x in schedules
    ]
    # mmpose's lists of points may be empty, which protocol 2 writes by a call
    data = dict(classes=('cat',), swaps=np.zeros(0), raw=b'')
    meta = dict(cfg='x = 1', dataset_meta=data, mean=np.zeros(2))
    content = dict(
        meta=dict(meta, model=ConfigDict(type='X'), seen={1, 2}),
        state_dict=model.state_dict(),
        optimizer=wrapper.state_dict(),
        message_hub=hub.state_dict(),
        param_schedulers=[x.state_dict() for x in schedules],
        random=np.random.RandomState(0).get_state(),
    )
    torch.save(content, path)
    read = read_file(str(path))
    assert read['message_hub']['log_scalars']['train/loss'].mean() == 0.375
    assert read['message_hub']['runtime_info']['accuracy'] == 0.75
    assert read['meta']['model'].type == 'X' and read['meta']['seen'] == {1, 2}
    assert read['meta']['dataset_meta']['raw'] == b''
    assert read['meta']['dataset_meta']['swaps'].shape == (0,)
    assert read['optimizer']['state'][0]['exp_avg'].shape == (2, 2)
    for schedule, state in zip(schedules, read['param_schedulers']):
        assert state.keys() == schedule.state_dict().keys()


# ------------------------------------------------------------------------ refused
class Call:
    """Pickled, it is a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize('legacy', [False, True])
def test_code_is_not_run(path, monkeypatch, legacy):
    folder = path.with_name('made')
    content = dict(WEIGHTS, hidden=Call(os.mkdir, str(folder)))
    torch.save(content, path, _use_new_zipfile_serialization=not legacy)
    with pytest.raises(ValueError, match=r'a \w+\.mkdir.*MMLINATTN_TRUST=1.*--trust'):
        read_file(str(path))
    assert not folder.exists()
    monkeypatch.setenv('MMLINATTN_TRUST', '1')
    assert read_file(str(path))['a'].equal(WEIGHTS['a'])
    assert folder.is_dir()
    monkeypatch.setenv('MMLINATTN_TRUST', 'yes')
    with pytest.raises(ValueError, match="MMLINATTN_TRUST must be 0 or 1, got 'yes'"):
        read_file(str(path))


@pytest.mark.parametrize('target', ['os.system', 'builtins.__import__', 'torch.load'])
@pytest.mark.parametrize('protocol', [0, 4])
def test_names_of_code(path, target, protocol):
    """Written by hand, as an attacker would, in old and new protocols."""
    module, name = target.split('.')
    named = {
        0: f'c{module}\n{name}\n'.encode(),
        4: b'\x80\x04\x8c%c%s\x8c%c%s\x93'
        % (len(module), module.encode(), len(name), name.encode()),
    }[protocol]
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('weights/data.pkl', named + b'(S"true"\ntR.')
        archive.writestr('weights/version', '3')
    with pytest.raises(ValueError, match=f'holds more than weights.*{target}'):
        read_file(str(path))


class Changed(NamedTuple):
    """Pickled by Changer, it sets attributes of an object found by name."""

    target: object
    state: object


class Changer(pickle._Pickler):
    def save(self, obj, **kwargs):
        if not isinstance(obj, Changed):
            return super().save(obj, **kwargs)
        super().save(obj.target)
        super().save(obj.state)
        self.write(pickle.BUILD)


@pytest.mark.parametrize(
    'target', [torch._utils._rebuild_tensor_v2, OrderedDict, HistoryBuffer.mean]
)
@pytest.mark.parametrize('state', [dict(changed=1), (None, dict(changed=1))])
def test_attributes_of_what_is_allowed_stay(path, target, state):
    """A file can't change, for example, `__defaults__` of a function."""
    module = types.SimpleNamespace(__name__='own', Pickler=Changer)
    content = dict(WEIGHTS, hidden=Changed(target, state))
    torch.save(content, path, pickle_module=module)
    with pytest.raises(ValueError, match='holds more than weights.*a change of'):
        read_file(str(path))
    assert not hasattr(target, 'changed')


@pytest.mark.parametrize(
    'arguments', [(HistoryBuffer, '__init__'), (torch.Size, 'mean'), ('mean', 'join')]
)
def test_getattr_is_for_statistics_alone(path, arguments):
    torch.save(dict(WEIGHTS, hidden=Call(getattr, *arguments)), path)
    with pytest.raises(ValueError, match='holds more than weights.*a getattr of'):
        read_file(str(path))


# ------------------------------------------------- memory that is not in the file
CLAIMED = [
    # claimed numbers, shape, strides, what is said of the three that are stored
    (40, (40,), (1,), 'claims 160 bytes, and the file holds'),
    (10**9, (3,), (1,), 'claims 4000000000 bytes'),
    (2**62, (3,), (1,), 'claims'),
    (-1, (0,), (1,), 'claims -4 bytes'),
    (3, (40,), (1,), r'\(40,\) needs 40 numbers, and its storage has 3'),
    (3, (2,), (3,), 'needs 4 numbers, and its storage has 3'),
    (3, (2**62, 4), (4, 2**62), 'numbers, and its storage has 3'),
    (3, (3,), (-1,), 'and its storage has 3'),
]


def forge(path, legacy, claimed, shape, strides, key='0'):
    """Writes a file with a storage of three numbers, and a tensor in it that claims
    more."""
    storage = object()

    class Pickler(pickle._Pickler):
        def persistent_id(self, item):
            if item is storage:
                view = (None,) * legacy
                return 'storage', torch.FloatStorage, key, 'cpu', claimed, *view

    buffer = io.BytesIO()
    rest = 0, shape, strides, False, OrderedDict()
    tensor = Call(torch._utils._rebuild_tensor_v2, storage, *rest)
    Pickler(buffer, 2).dump(dict(a=tensor))
    if not legacy:
        with zipfile.ZipFile(path, 'w') as archive:
            archive.writestr('x/data.pkl', buffer.getvalue())
            archive.writestr('x/version', '3\n')
            archive.writestr('x/data/0', bytes(12))
        return
    system = dict(protocol_version=1001, little_endian=True, type_sizes={})
    heads = 0x1950A86A20F9469CFC6C, 1001, system  # as torch.save writes them
    parts = [pickle.dumps(head, 2) for head in heads] + [buffer.getvalue()]
    parts += [pickle.dumps(['0'], 2), (3).to_bytes(8, 'little'), bytes(12)]
    path.write_bytes(b''.join(parts))


@pytest.mark.parametrize('trusted', ['0', '1'])
@pytest.mark.parametrize('legacy', [False, True])
def test_foreign_memory_is_not_read(path, legacy, trusted, monkeypatch):
    """A file that claims more numbers than it stores, in either format."""
    monkeypatch.setenv('MMLINATTN_TRUST', trusted)
    forge(path, legacy, 3, (3,), (1,))
    assert read_file(path)['a'].tolist() == [0, 0, 0]
    for claimed, shape, strides, message in CLAIMED:
        forge(path, legacy, claimed, shape, strides)
        if legacy and claimed == 40:  # fewer bytes than its pickle has
            message = 'cannot be read'
        with pytest.raises(ValueError, match=message):
            read_file(path)
    forge(path, legacy, 3, (3,), (1,), key='1')
    with pytest.raises(ValueError, match="storage '1' (claims|is not stored)"):
        read_file(path)


@pytest.mark.parametrize(
    'function, arguments',
    [
        (torch.UntypedStorage, (1000,)),
        (torch.storage.TypedStorage, (1000,)),
        (np.ndarray, ((1000,),)),
        (np.zeros(3).__reduce__()[0], (np.ndarray, (1000,), b'd')),
    ],
)
def test_memory_that_nobody_fills(path, function, arguments):
    """Calls of classes that a file names beside its tensors."""
    torch.save(dict(WEIGHTS, hidden=Call(function, *arguments)), path)
    with pytest.raises(ValueError, match='holds more than weights|cannot be read'):
        read_file(path)


def test_storages_of_all_kinds(path):
    """Views, empty tensors, one storage twice, storages without a type."""
    base = torch.arange(24.0)
    content = dict(
        view=base[4:20:3],
        matrix=base.view(4, 6).T,
        whole=base,
        empty=torch.zeros(0, 5),
        scalar=torch.tensor(3, dtype=torch.int8),
        flags=torch.tensor([True, False]),
        complex=torch.ones(2, dtype=torch.complex64),
        half=torch.ones(3, dtype=torch.bfloat16),
        expanded=torch.ones(1).expand(7),
    )
    for new in (True, False):
        torch.save(content, path, _use_new_zipfile_serialization=new)
        read = read_file(path)
        assert all(read[key].equal(value) for key, value in content.items())
    raw = torch.arange(9, dtype=torch.uint8)
    torch.save(dict(raw=raw.untyped_storage()), path)
    assert bytes(read_file(path)['raw']) == bytes(range(9))


def cut_off(share, legacy):
    buffer = io.BytesIO()
    content = {'a': torch.zeros(5000)}
    torch.save(content, buffer, _use_new_zipfile_serialization=not legacy)
    return buffer.getvalue()[: int(share * buffer.tell())]


def other_zip(name):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, 'w') as archive:
        archive.writestr(f'x/{name}', 'text')
    return buffer.getvalue()


@pytest.mark.parametrize(
    'content, message',
    [
        (b'', 'is empty'),
        (PAYLOAD, 'is not a file of torch.save or safetensors'),
        (b'cos\nsystem\n(S"true"\ntR.', 'is not a file of torch.save'),
        (pickle.dumps(dict(a=1)), 'is not a file of torch.save'),
        (b'PK\x03\x04' + PAYLOAD, 'is cut off'),
        *((cut_off(x, False), 'is cut off') for x in (0.1, 0.99)),
        *((cut_off(x, True), 'cannot be read') for x in (0.1, 0.99)),
        (other_zip('a.txt'), 'is a zip file, not a state dict'),
        (other_zip('constants.pkl'), 'is a TorchScript program'),
    ],
)
def test_garbage_gets_no_hint_to_trust(path, content, message):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_file(str(path))
    assert 'rust' not in str(error.value)


def test_no_dict_and_no_file(path):
    with pytest.raises(FileNotFoundError, match="SRC='.*there is no such file"):
        read_file(str(path), 'SRC')
    torch.save([torch.zeros(1)], path)
    with pytest.raises(ValueError, match='must hold a dict, but holds a list'):
        read_file(str(path))
