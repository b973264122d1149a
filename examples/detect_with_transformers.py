"""RT-DETRv2 of Hugging Face's transformers with a backbone of ours, on a COCO folder.

Channels and strides are the backbone's own. Weights of a public detector are kept
where shapes allow: --weights PekingU/rtdetr_v2_r18vd.
"""

import argparse
from pathlib import Path

import torch
from pycocotools.coco import COCO
from transformers import (
    RTDetrImageProcessor,
    RTDetrV2Config,
    RTDetrV2ForObjectDetection,
    TimmBackbone,
    TimmBackboneConfig,
    Trainer,
    TrainingArguments,
)
from transformers.image_utils import load_image

import mmlinattn.timm  # noqa: F401


def detector(backbone, classes, weights=None, **settings):
    """Return an RT-DETRv2 on the last three maps of a backbone by its name in timm."""
    body = TimmBackboneConfig(
        backbone=backbone, out_indices=[1, 2, 3], use_pretrained_backbone=False
    )
    channels = TimmBackbone(body).channels
    config = RTDetrV2Config(
        backbone_config=body,
        encoder_in_channels=channels,
        feat_strides=[8, 16, 32],
        id2label=dict(enumerate(classes)),
        label2id={name: i for i, name in enumerate(classes)},
        **settings,
    )
    if weights is None:
        return RTDetrV2ForObjectDetection(config)
    return RTDetrV2ForObjectDetection.from_pretrained(
        weights, config=config, ignore_mismatched_sizes=True
    )


class Photos(torch.utils.data.Dataset):
    """Photos of a COCO file; classes are numbered from 0 as the file lists them."""

    def __init__(self, annotations, images, processor):
        self.coco, self.images, self.processor = COCO(annotations), images, processor
        self.ids = sorted(self.coco.imgs)
        self.classes = {k: i for i, k in enumerate(sorted(self.coco.cats))}

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        key = self.ids[index]
        boxes = self.coco.loadAnns(self.coco.getAnnIds(key, iscrowd=False))
        boxes = [dict(x, category_id=self.classes[x['category_id']]) for x in boxes]
        target = dict(image_id=key, annotations=boxes)
        sample = self.processor(
            self.read(index), annotations=target, return_tensors='pt'
        )
        return dict(pixels=sample['pixel_values'][0], labels=sample['labels'][0])

    def read(self, index):
        """Return a photo, as Pillow has it."""
        name = self.coco.imgs[self.ids[index]]['file_name']
        return load_image(str(self.images / name))


def collate(samples):
    pixels = torch.stack([x['pixels'] for x in samples])
    return dict(pixel_values=pixels, labels=[x['labels'] for x in samples])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add('annotations', type=Path, help='COCO file of the photos for training')
    add('images', type=Path, help='their folder')
    add('out', type=Path, help='folder for the trained detector')
    add('--backbone', default='softpp_tiny', help='name in timm')
    add('--weights', help='detector on the Hub, or a folder')
    add('--epochs', type=int, default=12)
    add('--size', type=int, default=640, help='side of the images in the network')
    add('--layers', type=int, default=6, help='of the decoder')
    args = parser.parse_args(argv)

    size = dict(height=args.size, width=args.size)
    processor = RTDetrImageProcessor(size=size, do_normalize=True)
    photos = Photos(args.annotations, args.images, processor)
    classes = [photos.coco.cats[x]['name'] for x in photos.classes]
    model = detector(args.backbone, classes, args.weights, decoder_layers=args.layers)
    settings = TrainingArguments(
        args.out,
        num_train_epochs=args.epochs,
        per_device_train_batch_size=4,
        learning_rate=1e-4,
        max_grad_norm=0.1,
        remove_unused_columns=False,
        report_to='none',
    )
    Trainer(model, settings, collate, photos).train()
    model.save_pretrained(args.out)  # or: push_to_hub('me/my-detector')
    processor.save_pretrained(args.out)

    photo = photos.read(0)
    model = RTDetrV2ForObjectDetection.from_pretrained(args.out).eval()
    with torch.no_grad():
        outputs = model(**processor(photo, return_tensors='pt'))
    sides = [photo.size[::-1]]
    predictions = processor.post_process_object_detection(outputs, 0.0, sides)[0]
    best = int(predictions['scores'].argmax())
    label = model.config.id2label[int(predictions['labels'][best])]
    box = [round(x, 1) for x in predictions['boxes'][best].tolist()]
    print(f'{label} {predictions["scores"][best]:.2f} {box}')


if __name__ == '__main__':
    main()
