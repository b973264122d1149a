"""UperNet with Agent-Swin-T on ADE20K, 1x (160k iterations).
ELFATT paper: mIoU 46.7, 61M parameters.
    python tools/train.py configs/attention_zoo/upernet_swin-t-agent_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_swin-t-agent.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
