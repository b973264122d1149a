"""What a process has besides modules: settings, hooks, handlers, and others' functions.

It is run in interpreters of its own, where nothing else is imported.
"""

import atexit
import gc
import logging
import multiprocessing
import os
import random
import signal
import sys
import threading
import types
import warnings
from typing import Any

import cv2
import numpy as np
import torch
from mmengine import registry
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.logging import MMLogger
from mmengine.registry import DefaultScope
from mmengine.runner import CheckpointLoader

OURS = 'mmlinattn'
# libraries whose functions and constants nobody else may replace
WATCHED = ('cv2', 'mmcv', 'mmengine', 'numpy', 'timm', 'torch', 'torchvision')
BACKENDS = {
    'generic': ('all',),
    'cuda': ('all', 'conv', 'rnn', 'matmul'),
    'mkldnn': ('all', 'conv', 'rnn', 'matmul'),
}


def of_python() -> dict[str, Any]:
    loggers = {'': logging.root, **logging.root.manager.loggerDict}
    settings = {
        name: (x.level, list(x.handlers), list(x.filters), x.propagate, x.disabled)
        for name, x in loggers.items()
        if isinstance(x, logging.Logger)
    }
    unset = (logging.NOTSET, [], [], True, False)
    return {
        'meta_path': list(sys.meta_path),
        'path': list(sys.path),
        'path_hooks': list(sys.path_hooks),
        'hooks': [sys.excepthook, sys.displayhook, threading.excepthook],
        'streams': [sys.stdin, sys.stdout, sys.stderr],
        'recursion limit': sys.getrecursionlimit(),
        'environment': dict(os.environ),
        'folder': os.getcwd(),
        'signals': {x: signal.getsignal(x) for x in signal.valid_signals()},
        'warnings': [list(warnings.filters), warnings.showwarning],
        'logging': {name: x for name, x in settings.items() if x != unset},
        'logger class': [logging.getLoggerClass(), logging.root.manager.disable],
        'collector': [gc.isenabled(), gc.get_threshold(), list(gc.callbacks)],
        'at exit': atexit._ncallbacks(),
        'threads': [x.name for x in threading.enumerate()],
        'start method': multiprocessing.get_start_method(allow_none=True),
    }


def of_torch() -> dict[str, Any]:
    backends: Any = torch.backends
    settings = {
        'dtype': torch.get_default_dtype(),
        'device': torch.empty(0).device,
        'threads': [torch.get_num_threads(), torch.get_num_interop_threads()],
        'deterministic': [
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ],
        'gradients': [torch.is_grad_enabled(), torch.is_anomaly_enabled()],
        'autocast': [torch.is_autocast_enabled(), torch.is_autocast_cpu_enabled()],
        'precision of products': torch.get_float32_matmul_precision(),
        'cudnn': [
            *(backends.cudnn.enabled, backends.cudnn.benchmark),
            *(backends.cudnn.deterministic, backends.cudnn.allow_tf32),
        ],
        'cuda': [
            backends.cuda.matmul.allow_tf32,
            backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
            backends.cuda.flash_sdp_enabled(),
            backends.cuda.mem_efficient_sdp_enabled(),
            backends.cuda.math_sdp_enabled(),
        ],
        'mkldnn': backends.mkldnn.enabled,
        'sharing': torch.multiprocessing.get_sharing_strategy(),
        'printing': vars(torch._tensor_str.PRINT_OPTS).copy(),
        'safe classes': getattr(torch.serialization, 'get_safe_globals', list)(),
    }
    if hasattr(backends, 'fp32_precision'):
        settings['float32'] = {
            (x, op): torch._C._get_fp32_precision_getter(x, op)
            for x, ops in BACKENDS.items()
            for op in ops
        }
    return settings


def of_libraries() -> dict[str, Any]:
    extension: Any = sys.modules.get('mmcv._ext')
    roots = {
        name: x
        for name, x in vars(registry).items()
        if isinstance(x, registry.Registry)
    }
    return {
        'numpy': [np.geterr(), np.get_printoptions()],
        'cv2': [cv2.getNumThreads(), cv2.useOptimized()],
        'extension': extension and hasattr(extension, 'no_such_operator'),
        'loaders': list(CheckpointLoader._schemes.items()),
        'packages of scopes': dict(MODULE2PACKAGE),
        'scopes': list(DefaultScope._instance_dict),
        'loggers': list(MMLogger._instance_dict),
        'registered': {name: list(x._module_dict) for name, x in roots.items()},
        'children': {
            name: [y for y in x._children if y != OURS] for name, x in roots.items()
        },
    }


def of_generators() -> dict[str, Any]:
    return {
        'random numbers': [
            random.getstate(),
            np.random.get_state()[1].tolist(),  # noqa: NPY002
            torch.random.get_rng_state().tolist(),
        ]
    }


def take(with_generators: bool = True) -> dict[str, Any]:
    """All of it by name; a model that is built draws random numbers."""
    state = {**of_python(), **of_libraries()}
    state.update((f'torch, {name}', x) for name, x in of_torch().items())
    return {**state, **of_generators()} if with_generators else state


def names() -> dict[str, dict[str, Any]]:
    """Functions, classes and constants of the watched libraries' modules, and the
    methods of their classes."""
    attributes = {}
    for name, module in list(sys.modules.items()):
        if name.partition('.')[0] in WATCHED and isinstance(module, types.ModuleType):
            attributes[name] = dict(vars(module))
            for key, x in attributes[name].copy().items():
                if isinstance(x, type) and x.__module__ == name:
                    attributes[f'{name}.{key}'] = dict(vars(x))
    return attributes


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What differs, as it was and as it is."""
    changed = {}
    for name, old in before.items():
        new = after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            inner = {x: (old.get(x), new.get(x)) for x in {*old, *new}}
            inner = {x: pair for x, pair in inner.items() if pair[0] != pair[1]}
            changed.update({f'{name}, {x}': pair for x, pair in inner.items()})
        elif old != new:
            changed[name] = old, new
    return changed


def replaced(before: dict[str, dict[str, Any]]) -> list[str]:
    """Names of functions and classes that are others now."""
    now = names()
    return [
        f'{place}.{key}'
        for place, entries in before.items()
        for key, x in entries.items()
        if callable(x) and now.get(place, {}).get(key) is not x
    ]
