_base_ = './classifier_cait-xxs24-attnscale.py'
pretrained = 'https://dl.fbaipublicfiles.com/deit/XXS24_224.pth'
