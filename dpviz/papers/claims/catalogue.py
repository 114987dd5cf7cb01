"""All claims, paper by paper. A claim is one entry in the file of its paper."""

from dpviz.papers.claims import bagdasaryan, chen, kang
from dpviz.papers.claims.context import Claim

CLAIMS: tuple[Claim, ...] = (*kang.CLAIMS, *chen.CLAIMS, *bagdasaryan.CLAIMS)
