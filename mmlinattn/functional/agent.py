"""Agent attention.

Legend: B batch, h heads, N tokens, n agents, d head dim.
"""

from typing import Optional

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .tokens import few_to_tokens_attention


def agent_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    agents: Tensor,
    agent_bias: Optional[Tensor] = None,
    query_bias: Optional[Tensor] = None,
) -> Tensor:
    r"""Return two softmax attentions in a row: agents attend to keys, queries to
    agents.

    :math:`\sigma(Q A^T / \sqrt d + B_2)\,\sigma(A K^T / \sqrt d + B_1) V`
    (*Agent Attention: On the Integration of Softmax and Linear Attention*,
    arXiv 2312.08874).

    Args:
        q, k, v (Tensor): (B, h, N, d) each.
        agents (Tensor): A, (B, h, n, d).
        agent_bias (Tensor, optional): :math:`B_1`, broadcast to (B, h, n, N).
        query_bias (Tensor, optional): :math:`B_2`, broadcast to (B, h, N, n).

    Returns:
        Tensor: (B, h, N, d).
    """
    collected = few_to_tokens_attention(agents, k, v, agent_bias)
    return scaled_dot_product_attention(q, agents, collected, attn_mask=query_bias)
