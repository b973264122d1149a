"""Copies, tiles and frames of one source stay together in the splits of own data, and
names that only look alike do not."""

from pathlib import Path

import pytest

from mmlinattn.own_data.records import Photo
from mmlinattn.own_data.sources import Sources
from mmlinattn.own_data.splits import assign

HASH, OTHER = '0123456789abcdef' * 2, 'fedcba9876543210' * 2
ROOT = Path('data')


def photos(*names, split=None):
    return [Photo(ROOT / name, (8, 8), split=split) for name in names]


def together(names):
    """Names of the photos of each source of several."""
    listed = photos(*names)
    groups = Sources(ROOT, [photo.path for photo in listed]).group(listed)
    several = [group for group in groups if len(group) > 1]
    return [[str(photo.path.relative_to(ROOT)) for photo in group] for group in several]


# names of photos of one source
ALIKE = dict(
    roboflow=[f'a_jpg.rf.{HASH}.jpg', f'a_jpg.rf.{OTHER}.jpg'],
    roboflow_png=[f'a-png.rf.{HASH}.png', f'a-png.rf.{OTHER}.jpg'],
    roboflow_short=[f'a_jpg.rf.{HASH[:20]}.jpg', f'a_jpg.rf.{OTHER[:20]}.jpg'],
    roboflow_video=[f'v_mp4-12_jpg.rf.{HASH}.jpg', f'v_mp4-13_jpg.rf.{OTHER}.jpg'],
    roboflow_splits=[
        f'train/images/a_jpg.rf.{HASH}.jpg',
        f'valid/images/a_jpg.rf.{OTHER}.jpg',
    ],
    augmented=['a.jpg', 'a_aug1.jpg', 'a_aug_2.jpg'],
    augmented_alone=['a_aug1.jpg', 'a-aug-2.jpg', 'a_augmented_3.jpg'],
    changed=['a.jpg', 'a_hflip.jpg', 'a_rot90.png', 'flip_a.jpg', 'a_noise_2.jpg'],
    changed_twice=['a.jpg', 'a_flip_rot90.jpg', 'a_aug1_blur.jpg'],
    desktop=['a.jpg', 'a - Copy.jpg', 'a - Copy (2).jpg', 'a copy.jpg'],
    augmentor=[
        f'd_original_a.jpg_{i}0000000-1111-2222-3333-444444444444.jpg' for i in '12'
    ],
    tiles=['a_tile_0.png', 'a_tile_1.png', 'a-tile-12.png', 'a_patch_3_4.png'],
    rows=['a_r0_c1.png', 'a_r12_c3.png', 'a_row1_col2.png'],
    places=['a_x0_y512.png', 'a_x512_y0.png', 'a_y0_x512.png'],
    dota=['P0001__1__0___824.png', 'P0001__0.5__824___0.png'],
    grid=['a_0_0.png', 'a_0_512.png', 'a_512_0.png', 'a_512_512.png'],
    counted=['a_0_0.png', 'a_0_1.png', 'a_1_0.png', 'a_1_1.png'],
    frames=['a_frame_0001.jpg', 'a_frame_0002.jpg', 'a-frame12.jpg'],
    frames_in_a_folder=['a/frame_0001.jpg', 'a/frame_0002.jpg'],
)


@pytest.mark.parametrize('names', ALIKE.values(), ids=ALIKE)
def test_photos_of_one_source(names):
    beside = [name.replace('a', 'b', 1).replace('P0001', 'P0002') for name in names]
    if 'd_orig' in names[0] or 'v_mp4' in names[0]:
        beside = [name.replace('_a.', '_b.').replace('v_', 'w_') for name in names]
    if 'train' in names[0]:
        beside = ['b.jpg', 'c.jpg']
    groups = together([*names, *beside])
    assert groups[0] == names
    assert groups[1:] == ([] if 'b.jpg' in beside and len(beside) == 2 else [beside])


# names that only look alike
UNLIKE = dict(
    numbers=['IMG_0001.jpg', 'IMG_0002.jpg', 'IMG_0003.jpg'],
    times=[
        f'IMG_{day}_{time}.jpg'
        for day in (20200101, 20200102)
        for time in (120000, 120100)
    ],
    takes=['1_1.jpg', '1_2.jpg', '2_1.jpg', '2_2.jpg'],
    part_of_a_grid=['a_0_0.jpg', 'a_0_512.jpg', 'a_512_0.jpg'],
    downloads=['image.jpg', 'image (1).jpg', 'image (2).jpg'],
    crops_of_a_field=['maize_crop_1.jpg', 'maize_crop_2.jpg'],
    other_words=['mainframe1.jpg', 'mainframe2.jpg', 'augusta_1.jpg', 'augusta_2.jpg'],
    copiers=['photocopy1.jpg', 'photocopy2.jpg', 'rotor_1.jpg', 'rotor_2.jpg'],
    photos_of_tiles=['floor_tile/floor_tile_1.jpg', 'floor_tile/floor_tile_2.jpg'],
    two_places=['cat/a_aug1.jpg', 'dog/a_aug2.jpg'],
    two_videos=['a/frame_1.jpg', 'b/frame_1.jpg'],
    equal_names=['train/0001.jpg', 'val/0001.jpg', 'train/0002.jpg', 'val/0002.jpg'],
    short_hash=['a.rf.12.jpg', 'a.rf.13.jpg'],
    one_copy=['a_aug1.jpg', 'b_aug1.jpg'],
)


@pytest.mark.parametrize('names', UNLIKE.values(), ids=UNLIKE)
def test_photos_that_only_look_alike(names):
    assert together(names) == []


def split(listed):
    splits, notes = assign(listed, {}, ROOT)
    names = {key: {photo.path.name[:3] for photo in x} for key, x in splits.items()}
    return splits, names, ' '.join(map(str, notes))


def test_copies_stay_together():
    listed = photos(
        *(f'{i:03}_jpg.rf.{j}{HASH}.jpg' for i in range(20) for j in range(3))
    )
    splits, names, notes = split(listed)
    assert names['train'].isdisjoint(names['val'])
    assert len(names['val']) == 4 and len(splits['val']) == 12
    assert '60 photos are of 20 sources' in notes and 'too good' not in notes


@pytest.mark.parametrize(
    'sizes', [(1, 1), (2, 1), (9, 1, 1), (1, 1, 1, 1, 9), (30, 30)]
)
def test_few_sources(sizes):
    """There is always a validation photo, and most are for training."""
    names = [f'{i:03}_aug{j}.jpg' for i, size in enumerate(sizes) for j in range(size)]
    splits, names, _ = split(photos(*names))
    assert splits['val'] and splits['train']
    assert names['train'].isdisjoint(names['val'])
    assert len(splits['train']) >= len(splits['val'])


def test_a_single_video_is_said():
    splits, _, notes = split(photos(*(f'frame_{i}.jpg' for i in range(10))))
    assert len(splits['val']) == 2
    assert '1 sources of photos are both' in notes


def test_copies_in_both_of_own_splits_are_said():
    listed = photos('a_aug1.jpg', 'b.jpg', split='train')
    listed += photos('a_aug2.jpg', 'c.jpg', split='val')
    _, _, notes = split(listed)
    assert '1 sources' in notes and 'a_aug1.jpg and a_aug2.jpg' in notes
    assert 'sources' not in split(photos('b.jpg', split='train') + listed[2:])[2]


def test_one_video_for_each_class():
    """Whole videos for validation would leave a class without photos for training."""
    listed = [
        Photo(ROOT / name / f'clip_frame_{i}.jpg', (8, 8), class_name=name)
        for name in ('red', 'blue')
        for i in range(10)
    ]
    splits, notes = assign(listed, {}, ROOT)
    for split in ('train', 'val'):
        assert {photo.class_name for photo in splits[split]} == {'blue', 'red'}
    assert len(splits['val']) == 4
    warning = 'sources of photos are both in training and in validation or testing'
    assert any(warning in str(note) for note in notes)
