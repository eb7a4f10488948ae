"""Scrambled Sobol' sequences, with the direction numbers that SciPy has, and its points to the last bit.

`scipy.stats.qmc` loads longer than most commands run; these few lines need only its table of numbers.

- I. Sobol', "On the distribution of points in a cube and the approximate evaluation of integrals" (1967);
- P. Bratley and B. Fox, "Algorithm 659", ACM Trans. Math. Softw. 14 (1988): the recurrence of directions;
- S. Joe and F. Kuo, "Constructing Sobol' sequences with better two-dimensional projections" (2008): the
  table;
- J. Matoušek, "On the L2-discrepancy for anchored boxes", J. Complexity 14 (1998): the scrambling.
"""

from functools import cache
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray

BITS = 30
"""Bits of a coordinate: a sequence has 2 to the power of BITS points."""

_TABLE = Path(scipy.__file__).parent / "stats" / "_sobol_direction_numbers.npz"


def sobol(exponent: int, dimensions: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the first 2 to the power of `exponent` points, shape (points, dimensions).

    A SciPy that keeps its table elsewhere computes them itself.
    """
    if not _TABLE.exists():
        from scipy.stats.qmc import Sobol

        scipys: NDArray[np.float64] = Sobol(dimensions, rng=rng).random_base2(exponent)
        return scipys
    rng = rng.spawn(1)[0]  # as SciPy does
    shift = rng.integers(2, size=(dimensions, BITS), dtype=np.uint32) @ (
        1 << np.arange(BITS, dtype=np.uint32)
    )
    matrices = np.tril(rng.integers(2, size=(dimensions, BITS, BITS), dtype=np.uint32))
    matrices[:, range(BITS), range(BITS)] = 1
    places = np.arange(BITS - 1, -1, -1, dtype=np.uint32)  # of bits, the highest first
    bits = _directions(dimensions)[:, np.newaxis, :] >> places[:, np.newaxis] & 1
    directions = ((matrices @ bits % 2) << places[:, np.newaxis]).sum(axis=1, dtype=np.uint32)
    points = shift[np.newaxis]
    for direction in directions.T[:exponent]:  # in the order of the Gray code, which reflects what precedes
        points = np.concatenate([points, points[::-1] ^ direction])
    return points / float(1 << BITS)


@cache
def _directions(dimensions: int) -> NDArray[np.uint32]:
    """Return the direction numbers, shape (dimensions, BITS), as fractions of 2 to the power of BITS. To read
    the table takes longer than all else, and a hunt makes many plans."""
    with np.load(_TABLE) as table:
        polynomials, first = table["poly"][:dimensions], table["vinit"][:dimensions].astype(np.uint32)
    numbers = np.ones((dimensions, BITS), np.uint32)
    for number, polynomial, initial in zip(numbers[1:], map(int, polynomials[1:]), first[1:], strict=True):
        degree = polynomial.bit_length() - 1
        number[:degree] = initial[:degree]
        for place in range(degree, BITS):
            number[place] = number[place - degree]
            for back in range(1, degree + 1):
                if polynomial >> (degree - back) & 1:
                    number[place] ^= number[place - back] << np.uint32(back)
    return numbers << np.arange(BITS - 1, -1, -1, dtype=np.uint32)
