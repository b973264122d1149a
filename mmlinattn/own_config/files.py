"""The files of a new config: itself, and the lists of its data."""

from pathlib import Path
from typing import Optional, Union

from mmlinattn.cli.label_files import RECORD, note_files
from mmlinattn.cli.parser import check_claim
from mmlinattn.own_data import OwnData, write

from .devices import Devices
from .whole import whole_config
from .write import Choices, NewConfig, make_config


def write_config(
    data: OwnData,
    out: Union[str, Path],
    backbone: Optional[str] = None,
    detector: Optional[str] = None,
    pretrained: Optional[str] = None,
    epochs: Optional[int] = None,
    overwrite: bool = False,
    *,
    start: Optional[str] = None,
    attn_scale: bool = False,
    feat_scale: bool = False,
) -> NewConfig:
    """Write a config that trains one of our models on a user's data, as the command
    ``mmlinattn new-config`` does, and the lists of its data, in a folder beside it with
    its name and ``_data``.

    Args:
        data (OwnData): What :meth:`.OwnData.from_folder` has read.
        out (str | Path): The file, ``NAME.py``, outside of the folder of the data.
        backbone (str, optional): Its name in our configs. Default: that of ``start``.
        detector (str, optional): The method, its name in our configs. Default: that of
            ``start``, or chosen by the task and the annotations.
        pretrained (str, optional): Weights of the backbone, or 'none'. Default: what
            ``start`` says.
        epochs (int, optional): Passes over the photos. Default: depends on their
            number.
        overwrite (bool): Replace a config that exists.
        start (str, optional): What to start from: 'coco', 'ade20k', 'cityscapes' or
            'imagenet' for a public model that learned these data, the name of a public
            model, a path or an address of a whole model's weights, or 'none'. Default:
            a public model under a license, chosen by task, devices and the number of
            photos.
        attn_scale (bool): Add AttnScale to the backbone.
        feat_scale (bool): Add FeatScale to the backbone.

    Returns:
        NewConfig: Its source, and notes on decisions.

    Raises:
        FileExistsError: If ``out`` exists, or its folder of lists has other files.
        FileNotFoundError: If ``start`` is no name, and there is no such file.
        ValueError: If ``out`` can't be a config of these data, or there is no config of
            ours for the choices and data.
    """
    out = Path(out)
    check_paths(data.folder.root, out)
    if out.exists() and not overwrite:
        raise FileExistsError(f'{out} exists: overwrite=True replaces it')
    scales = dict(attn_scale=attn_scale, feat_scale=feat_scale)
    choices = Choices(backbone, detector, pretrained, epochs, start, **scales)
    config = make_config(data, choices, folder_of_lists(out), Devices.find())
    put_in_place(config, data, out)
    return config


def check_paths(data: Path, out: Path) -> None:
    """Raise an error for a folder of data or a file for the config that can't be
    one."""
    if not data.is_dir():
        raise FileNotFoundError(f'--data {data}: there is no such folder')
    if out.suffix != '.py':
        raise ValueError(f'--out {out}: the name of a config must end in .py')
    if data.resolve() in out.resolve().parents:
        raise ValueError(f'--out {out} is in the folder --data: give another place')


def folder_of_lists(out: Path) -> Path:
    """Return the folder beside a config for the lists of its data."""
    return out.with_name(f'{out.stem}_data')


def put_in_place(config: NewConfig, data: OwnData, out: Path) -> None:
    """Write a config and the lists of its data, both or neither.

    Raises:
        FileExistsError: If the folder of lists has other files.
    """
    lists = folder_of_lists(out)
    check_claim(lists, RECORD)
    with whole_config(out, lists) as (draft, folder):
        write(data, folder)
        note_files(data.label_files, folder)
        draft.write_text(config.source, 'utf-8')
