"""UperNet with Agent-Swin-T on ADE20K, 1x (160k iterations).

No result of a paper is quoted for it.

    python tools/train.py \
        configs/attention_zoo/upernet_swin-t-agent_1x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_swin-t-global_1x_ade20k-512x512.py'

model = dict(backbone=dict(attention='agent'))
