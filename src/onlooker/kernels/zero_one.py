"""Where on a circle of parameters each round's pick is explained.

The circle holds `cos(angle) * theta + sin(angle) * direction`. Beating one rival, `c cos(angle) + p sin(angle) > 0`
with `c` and `p` the pick's lead under `theta` and under `direction`, takes half of it, so a round's rivals together
leave one arc or nothing.
"""

from math import atan2, pi

import numpy as np

from onlooker.base.types import Features, Index, Vector
from onlooker.kernels.cached_njit import cached_njit

# The order of a sum is the compiler's, so that it can use wide registers; it is the same in every call.
# No fused products: of parallel vectors the two halves of a cross product must cancel.
_compiled = cached_njit(error_model="numpy", fastmath={"reassoc", "nsz"})


@_compiled
def leads(
    features: Features,
    offsets: Index,
    chosen: Index,
    weights: Vector,
    start: int,
    stop: int,
    direction: Vector,
    out: Vector,
) -> None:
    """Fill how far the pick scores above each arm of its round under `direction`; rounds without weight are skipped.

    Features are subtracted before they are multiplied: what all arms share cannot drown what tells them apart.
    """
    d = direction.shape[0]
    origin = np.empty(d)
    for t in range(start, stop):
        if weights[t] == 0.0:
            continue
        pick = offsets[t] + chosen[t]
        for j in range(d):
            origin[j] = features[pick, j]
        for row in range(offsets[t], offsets[t + 1]):
            lead = 0.0
            for j in range(d):
                lead += (origin[j] - features[row, j]) * direction[j]
            out[row] = lead


@_compiled
def arcs(
    offsets: Index,
    chosen: Index,
    weights: Vector,
    start: int,
    stop: int,
    here: Vector,
    ahead: Vector,
    low: Vector,
    length: Vector,
) -> None:
    """Fill where each round's arc begins and how long it is: 0 if no angle explains the pick, `2 pi` if all do.

    `here` and `ahead` are the leads under `theta` and under the direction. As normals of half-planes they span a cone,
    kept as its most clockwise and its most anticlockwise one: (rx, ry) and (lx, ly). An arm with the features of the
    pick ties at every angle, and the first of equals is chosen.
    """
    for t in range(start, stop):
        length[t] = 0.0
        if weights[t] == 0.0:
            continue
        pick = offsets[t] + chosen[t]
        rx, ry, lx, ly = 0.0, 0.0, 0.0, 0.0
        bound, possible = False, True
        for row in range(offsets[t], offsets[t + 1]):
            x, y = here[row], ahead[row]
            if x == 0.0 and y == 0.0:
                possible = row >= pick
            elif not bound:
                rx, ry, lx, ly, bound = x, y, x, y, True
            else:
                from_right, to_left = rx * y - ry * x, x * ly - y * lx
                if from_right < 0.0:
                    rx, ry, possible = x, y, to_left > 0.0
                elif to_left < 0.0:
                    lx, ly, possible = x, y, from_right > 0.0
                else:
                    possible = from_right > 0.0 or to_left > 0.0 or rx * x + ry * y > 0.0
            if not possible:
                break
        if not possible:
            continue
        if not bound:
            length[t] = 2 * pi
            continue
        begin = atan2(ly, lx) - pi / 2
        low[t] = begin + 2 * pi if begin < -pi else begin
        length[t] = pi - atan2(rx * ly - ry * lx, rx * lx + ry * ly)
