"""Upper bound of GPU utilisation without refusals: cutting stock, GPUs alone.

Pods come in the proportions of the trace, all of them are known in advance and may be divided and moved
at will; processors, memory and nodes do not matter. Hardly anybody requests what an 810/1000 leaves on
its GPU, so it is not 100 %. A rule may exceed it later, depending on whom it refuses.
"""

from collections import Counter
from collections.abc import Mapping

from broker.domain.placement.shares.cutting_stock import share_prices
from broker.domain.placement.shares.node_capacity import WHOLE_MILLI, ShareRequest


def ceiling(wanted: Mapping[ShareRequest, int]) -> float:
    """Return the requested share of the fewest GPUs that could hold it, in percent."""
    shares, gpus, takes = Counter[int](), 0.0, 0
    for request, times in wanted.items():
        takes += request.total_share * times
        if request.is_partial:
            shares[request.share] += times
        else:
            gpus += request.gpus * times
    gpus += sum(price * shares[share] for share, price in share_prices(shares).items())
    return 100 * takes / WHOLE_MILLI / gpus
