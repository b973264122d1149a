"""A backbone in a training loop of plain PyTorch, without a config or a runner.

A small Swin with ELFATT's attention, and a convolution for each of its maps, tell the
pixels of discs, squares and noise apart.
"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, interpolate

from mmlinattn.models import SwinTransformer

SIDE, CLASSES = 96, 3


class Segmentor(nn.Module):
    """Maps of all strides, each by a convolution to classes, and their sum."""

    def __init__(self, backbone, num_classes):
        super().__init__()
        self.backbone = backbone
        dims = backbone.feature_channels
        self.heads = nn.ModuleList(nn.Conv2d(x, num_classes, 1) for x in dims)

    def forward(self, images):
        """(B, 3, H, W) to logits (B, classes, H, W)."""
        maps = [head(x) for head, x in zip(self.heads, self.backbone(images))]
        size = images.shape[2:]
        return sum(interpolate(x, size, mode='bilinear') for x in maps)


def shapes(count):
    """Return images of a disc and a square on noise, and the class of each pixel."""
    images = torch.rand(count, 3, SIDE, SIDE)
    labels = torch.zeros(count, SIDE, SIDE, dtype=torch.long)
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing='ij')
    for image, label in zip(images, labels):
        (a, b), (c, d) = torch.randint(16, SIDE - 16, (2, 2))
        disc = (x - a) ** 2 + (y - b) ** 2 < 15**2
        square = ((x - c).abs() < 12) & ((y - d).abs() < 12)
        for k, (mask, color) in enumerate([(disc, 0), (square, 2)], 1):
            image[color, mask], label[mask] = 1.0, k
    return images * 2 - 1, labels


def main(steps=30):
    torch.manual_seed(0)
    backbone = SwinTransformer(
        arch=dict(embed_dims=[24, 48, 96], depths=[1, 2, 1], num_heads=[1, 2, 4]),
        attention='elfatt',
        out_indices=(0, 1, 2),
    )
    model = Segmentor(backbone, CLASSES)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for step in range(steps):
        images, labels = shapes(4)
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f'step {step + 1}: loss {loss.item():.3f}')
    images, labels = shapes(16)
    with torch.no_grad():
        right = model.eval()(images).argmax(1) == labels
    print(f'{right.float().mean():.1%} of the pixels of new images are right')


if __name__ == '__main__':
    main()
