_base_ = './classifier_cait-s24-attnscale.py'
pretrained = 'https://dl.fbaipublicfiles.com/deit/S24_224.pth'
